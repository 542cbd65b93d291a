"""The expressions that read HTML match what they should on every supported Python."""

import json
import re
import shutil
import subprocess
import sys

import pytest

from kadcrawl.crawl.content import html_links, html_walk, tag_parser

MATCHES = """
import json, re, sys
print(json.dumps([
    [[found if isinstance(found, str) else list(found) for found in re.compile(pattern, flags).findall(text)]
     for text in texts]
    for pattern, flags, texts in json.load(sys.stdin)
]))
"""
PLAIN = (
    "a href=\"x\">",
    "a href='../x?y#z'>",
    "a class=\"reference internal\" title=\"T\" href=\"http://g/x#y\">",
    "a href=\"x\" class=\"c\" data-y=\"\" >",
    "a id=\"a\" href=\"#top\">",
    "a href=\"\">",
)  # fmt: skip
NOT_PLAIN = ('a rel="nofollow" href="x">', 'a href="x" rel="y">', 'a href="x&amp;y">', "a href=x>", 'a href="http://">')
MARKUP = (
    "<a href=x><b c='d>' e>",
    '..<stylhttp://--/e x=\'>\x0b><a href="?q">src<!-->><link rel=stylesheet <tsrcitle',
    '<p a="b" c=d=\'><a href=x>',
    "<p a=b c=\"><a href='y'>",
    "<a b='href' =c='d x><a href=y>",
)
ORDERLY = ('a href="x">', 'a href href="x">', "link rel=a href=b/>", "a x =y>", 'a x="1" y>', 'a x="1>')


def matched_here(cases: list[tuple[str, int, tuple[str, ...]]]) -> list[list[object]]:
    return [
        [
            [found if isinstance(found, str) else list(found) for found in re.compile(pattern, flags).findall(text)]
            for text in texts
        ]
        for pattern, flags, texts in cases
    ]


@pytest.mark.parametrize("tag", PLAIN)
def test_most_tags_need_no_parser(tag: str) -> None:
    """Python 3.11.2 once took none of them for plain, and each page cost half as much CPU again."""
    assert html_links._PLAIN.fullmatch(tag.encode())


@pytest.mark.parametrize("tag", NOT_PLAIN)
def test_a_tag_that_is_not_plain_is_left_to_the_parser(tag: str) -> None:
    assert html_links._PLAIN.fullmatch(tag.encode()) is None


def test_a_python_that_skips_what_a_group_took_before_it_failed_finds_the_same() -> None:
    """Before 3.11.5 Python goes on behind what the last turn of a possessive group took, even if that turn failed."""
    program = older_python()
    cases = [
        (html_links._PLAIN.pattern.decode("latin-1"), 0, (*PLAIN, *NOT_PLAIN)),
        (html_walk.LINK_TAG.pattern.decode("latin-1"), int(re.DOTALL), MARKUP),
        (tag_parser._ORDERLY.pattern, 0, ORDERLY),
    ]
    run = subprocess.run(
        [program, "-c", MATCHES], input=json.dumps(cases), capture_output=True, text=True, check=True, timeout=60
    )
    assert matched_here(cases) == json.loads(run.stdout)


def older_python() -> str:
    """Return a Python from 3.11.0 to 3.11.4, such as that of Debian 12. Skips the test if none is here."""
    for program in ("/usr/bin/python3.11", shutil.which("python3.11") or sys.executable):
        run = subprocess.run(
            [program, "-c", "import sys; print(sys.version_info[:3] < (3, 11, 5))"],
            capture_output=True,
            text=True,
            check=False,
        ) if shutil.which(program) else None  # fmt: skip
        if run is not None and run.stdout.strip() == "True":
            return program
    pytest.skip("no Python from 3.11.0 to 3.11.4 is here")
