"""A small site that has a difference of every class, for the test of the rules and for examples.

Tests: tests/scripts/test_compare_links.py
"""

from pathlib import Path
from typing import Final

FILES: Final[dict[str, str]] = {
    "robots.txt": "User-agent: *\nDisallow: /private/\n",
    "index.html": """<!doctype html><html lang=en><meta charset=utf-8><title><a href="in-title.html"></title>
<link rel=stylesheet href=look.css><link rel=next href=next.html><link rel=search href=search.xml>
<h1 id=top>Specimen</h1>
<a href="folder\\spelled.html">A backslash</a> <a href="plain.html">A plain link</a>
<a href="tilde-~.html">A tilde</a> <a href="tilde-%7E.html">An escaped tilde</a>
<a href="plain.html?b=1&amp;a=2">A query</a> <a href="plain.html?a=2&amp;b=1">The same, sorted</a>
<a rel=nofollow href=unloved.html>Unloved</a> <a href=silent.html>A page that says nofollow</a>
<a href=photo.png>A photo</a> <a href=later.html>A page with a refresh</a>
<a href="ftp://ftp.example.org/file">A file</a> <a href="mailto:someone@example.org">Mail</a>
<a href="#top">Up</a> <a href="private/secret.html">Forbidden</a>
<iframe src=frame.html></iframe> <img src=picture.gif srcset="small.gif 1x, large.gif 2x">
<textarea><a href="in-text.html">No link</a></textarea> <!-- <a href="in-comment.html">No link</a> -->
<p style="background: url(paper.gif)">Paper</p>
""",
    "folder/spelled.html": "<!doctype html><title>Spelled</title>",
    "plain.html": "<!doctype html><title>Plain</title><a href='index.html'>Home</a>",
    "tilde-~.html": "<!doctype html><title>Tilde</title>",
    "unloved.html": "<!doctype html><title>Unloved</title><a href='only-from-unloved.html'>On</a>",
    "only-from-unloved.html": "<!doctype html><title>On</title>",
    "silent.html": "<!doctype html><meta name=robots content=nofollow><a href=hushed.html>Hush</a>",
    "hushed.html": "<!doctype html><title>Hushed</title>",
    "later.html": "<!doctype html><meta http-equiv=refresh content='600; url=latest.html'><title>Later</title>",
    "latest.html": "<!doctype html><title>Latest</title>",
    "next.html": "<!doctype html><title>Next</title>",
    "frame.html": "<!doctype html><title>Frame</title><a href='only-from-frame.html'>On</a>",
    "only-from-frame.html": "<!doctype html><title>On</title>",
    "in-title.html": "<!doctype html><title>In a title</title>",
    "in-text.html": "<!doctype html><title>In a text area</title>",
    "in-comment.html": "<!doctype html><title>In a comment</title>",
    "private/secret.html": "<!doctype html><title>Secret</title>",
    "look.css": "body { background: url(wall.gif) }\n",
    "search.xml": "<OpenSearchDescription/>\n",
    **dict.fromkeys(("photo.png", "picture.gif", "small.gif", "large.gif", "paper.gif", "wall.gif"), "GIF89a"),
}
"""The files by path."""


def write(root: Path) -> Path:
    """Write the site and return its root."""
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root
