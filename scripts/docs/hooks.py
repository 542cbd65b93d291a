"""Hooks of MkDocs: links from a page to a file of the repository outside docs/ lead to the repository's site.

So the same link works in the repository, in an editor, and in the built site. A link to a file that is not there is a
warning, and `make docs` fails on warnings.

Tests: tests/docs/test_hooks.py
"""

import logging
import posixpath
import re
from pathlib import Path
from typing import Any

log = logging.getLogger("mkdocs.plugins.kadcrawl")

_LINK = re.compile(r"(\]\()((?:\.\./)+[^)#\s]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"^(`{3,}).*?^\1`*$", re.DOTALL | re.MULTILINE)


def outside_links(markdown: str, page: str, root: Path, base: str) -> tuple[str, list[str]]:
    """Return the text with links out of docs/ made absolute, and the linked files that do not exist.

    `page` is the path of the page below docs/, `root` the repository, and `base` the URL of its files, with a slash.
    """
    missing: list[str] = []

    def absolute(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), match[2]))
        if target == "docs" or target.startswith("docs/"):
            return match[0]
        if target.startswith("..") or not (root / target).exists():
            missing.append(match[2])
        return f"{match[1]}{base}{target}{match[3] or ''})"

    # Only text has links: what looks like a link in a block of code stays as it is.
    parts: list[str] = []
    end = 0
    for fence in _FENCE.finditer(markdown):
        parts += _LINK.sub(absolute, markdown[end : fence.start()]), fence[0]
        end = fence.end()
    return "".join([*parts, _LINK.sub(absolute, markdown[end:])]), missing


def on_page_markdown(markdown: str, page: Any, config: Any, **_: object) -> str:
    """Return the page's text for MkDocs, and warn of links to files that are not there."""
    root = Path(config.config_file_path).parent
    base = f"{config.extra['repository']}/blob/main/"
    text, missing = outside_links(markdown, page.file.src_uri, root, base)
    for target in missing:
        log.warning("%s links to %s, which is not in the repository", page.file.src_uri, target)
    return text
