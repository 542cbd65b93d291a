"""The native link extractor sees what the Python code sees, or leaves it to the Python code."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest

from fuzz import corpus
from fuzz.mutations import Comparison
from fuzz.pages import pages
from kadcrawl.crawl.content import html_links, html_walk, native_links
from kadcrawl.crawl.content.html_links import LinkExtractor
from kadcrawl.crawl.content.native_links import NativeLinks
from kadcrawl.settings.limits import Limits
from kadcrawl.system.cooperative import run_to_end
from kadcrawl.urls import canonical
from scripts.sites import SitesError, sites
from tests.crawl.content.test_html_walk import NOT_PLAIN, PLAIN
from tests.support.cases import cases
from tests.support.native import native as compiled

PAGE = "http://h/d/p?q"
UTF8 = "text/html; charset=utf-8"
MUTATIONS = 5_000
JOINS = 20_000


@pytest.fixture(scope="module")
def native() -> NativeLinks:
    return compiled()


class Watched:
    """Passes calls on to the native module, and counts the pages that it read."""

    def __init__(self, native: NativeLinks) -> None:
        self.SOURCES = native.SOURCES
        self.join, self.tags, self.plain = native.join, native.tags, native.plain
        self._meanings = native.meanings
        self.read = self.left = 0

    def meanings(self, *arguments: object) -> object:
        found = self._meanings(*arguments)  # type: ignore[arg-type]
        self.read += found is not None
        self.left += found is None
        return found


def test_mutated_pages_have_the_same_tags_and_links(native: NativeLinks) -> None:
    comparison = Comparison(native, [page[2:] for page in pages()] + [path.read_bytes() for path in kept_pages()], 1)
    assert [] == [found for _ in range(MUTATIONS) if (found := comparison.one_page())]


def kept_pages() -> list[Path]:
    """Return the inputs that the fuzzer kept."""
    return sorted((corpus.KEPT / "html").iterdir())


def test_joins_are_those_of_the_url_parser(native: NativeLinks) -> None:
    comparison = Comparison(native, [b""], 1)
    assert [] == [found for _ in range(JOINS) if (found := comparison.one_join())]
    assert comparison.joined > JOINS / 10


@cases(
    ("base", "href", "url"),
    [
        ("http://h/d/p?q", "x", "http://h/d/x"),
        ("http://h/d/p?q/r", "x/", "http://h/d/x/"),
        ("http://h/d/e/", "../x?a=b/../c", "http://h/d/x?a=b/../c"),
        ("http://h/d/", "../../../x", "http://h/x"),
        ("http://h/d/", "./../", "http://h/"),
        ("http://h/d/", "/", "http://h/"),
        ("http://h/d/", "http://h/x", "http://h/x"),
        ("http://h/d/", "%C3%A9", "http://h/d/%C3%A9"),
        ("http://h/d/", "http://h", "http://h/"),
        ("http://h/d/", "https://h/x", "https://h/x"),
        ("http://h/d/", "http://hh/x", "http://hh/x"),
        ("http://h/d/", "https://a-b.example/i?@a=b&c", "https://a-b.example/i?@a=b&c"),
        ("http://h/d/", "https://1a.example", "https://1a.example/"),
        ("http://h/d/", "http://g/" + "x" * 2_038, "http://g/" + "x" * 2_038),
        ("http://h/d/", "http://g/" + "x" * 2_039, None),
        ("http://h/d/", "http://127.1/x", None),
        ("http://h/d/", "http://a.0x7f/x", None),
        ("http://h/d/", "http://xn--bcher-kva.example/x", None),
        ("http://h/d/", "http://G/x", None),
        ("http://h/d/", "http://g:80/x", None),
        ("http://h/d/", "http://u@g/x", None),
        ("http://h/d/", "http://g./x", None),
        ("http://h/d/", "http://g..a/x", None),
        ("http://h/d/", "http://-g/x", None),
        ("http://h/d/", "http://" + "g" * 64 + "/x", None),
        ("http://h/d/", "http://g?x", None),
        ("http://h/d/", "http://g/?x", None),
        ("http://h/d/", "http://g/../x", None),
        ("http://h/d/", "http:///x", None),
        ("http://h/d/", "//g/x", None),
        ("http://h/d/", "a//b", None),
        ("http://h/d/", "a/../b", None),
        ("http://h/d/", "a/..", None),
        ("http://h/d/", "%2E%2E/b", None),
        ("http://h/d/", "%c3", None),
        ("http://h/d/", "x?", None),
        ("http://h/d/", "?x", None),
        ("http://h/d/", "mailto:x", None),
        ("http://h/d/", "", None),
        ("http://h/d/", "a b", None),
        ("http://h/d/", "x#f", None),
        ("http://h/d/", "x" * 3_000, None),
        ("ftp://h/d/", "x", None),
        ("http://h", "x", None),
        ("", "x", None),
    ],
)
def test_a_join_that_takes_a_parser_is_left_to_it(native: NativeLinks, base: str, href: str, url: str | None) -> None:
    assert url == native.join(base, href.encode())
    assert url is None or url == canonical(href, base)


def test_real_pages_have_the_same_links(native: NativeLinks) -> None:
    try:
        stored = sites()
    except SitesError as error:
        if os.environ.get("KADCRAWL_REQUIRE_SITES") == "1":
            raise
        pytest.skip(str(error))
    watched = Watched(native)
    python, fast = LinkExtractor(Limits(), native=None), LinkExtractor(Limits(), native=watched)  # type: ignore[arg-type]
    for site in stored:
        for path in sorted(site.root.rglob("*.html"))[::4]:
            url = f"http://{site.name}.example/{path.relative_to(site.root)}"
            body = path.read_bytes()
            assert run_to_end(html_walk.link_tags(body, native)) == run_to_end(html_walk.link_tags(body)), url
            assert python.extract(body, "text/html", url) == fast.extract(body, "text/html", url), url
    assert watched.read > 500


@pytest.mark.parametrize(
    ("body", "url", "is_read"),
    [
        (b"<a href=x>", PAGE, True),
        (b"<a href='x'>" * html_links.NATIVE_TAGS_MAX, PAGE, True),
        (b"<a href='x'>" * (html_links.NATIVE_TAGS_MAX + 1), PAGE, False),
        (b"<a href=x><base href=/>", PAGE, False),
        (b"<a href=x>".ljust(html_links.NATIVE_BYTES_MAX), PAGE, True),
        (b"<a href=x>".ljust(html_links.NATIVE_BYTES_MAX + 1), PAGE, None),
        (b"<a href=x>", "http://h/".ljust(html_links.NATIVE_URL_CHARS_MAX, "p"), True),
        (b"<a href=x>", "http://h/".ljust(html_links.NATIVE_URL_CHARS_MAX + 1, "p"), None),
    ],
)
def test_what_is_above_a_limit_is_left_to_python(
    native: NativeLinks, body: bytes, url: str, is_read: bool | None
) -> None:
    watched = Watched(native)
    extractor = LinkExtractor(Limits(), native=watched)  # type: ignore[arg-type]
    assert extractor.extract(body, UTF8, url).links
    assert (int(is_read is True), int(is_read is False)) == (watched.read, watched.left)


PLAIN_LINKS = b"".join(b"<a href='%d'>" % number for number in range(html_links.BATCH_TAGS + 100))
ODD_LINKS = b"".join(b"<a rel=nofollow href=%d>" % number for number in range(html_links.BATCH_TAGS + 100))


@pytest.mark.parametrize("links_max", [10, html_links.BATCH_TAGS, 20_000])
@pytest.mark.parametrize(
    "body",
    [
        PLAIN_LINKS,
        ODD_LINKS,
        b"<meta name=robots content=noindex><link rel=canonical href=c>" + PLAIN_LINKS + b"<a rel=nofollow href=n>",
        b"<link rel=next href=1>".join([PLAIN_LINKS[:3_000], PLAIN_LINKS[:3_000], PLAIN_LINKS]),
    ],
)
def test_a_page_with_many_links_has_the_same_share_of_them(native: NativeLinks, body: bytes, links_max: int) -> None:
    limits = Limits(links_per_page_max=links_max)
    python, fast = LinkExtractor(limits, native=None), LinkExtractor(limits, native=native)
    assert python.extract(body, UTF8, "http://h/") == fast.extract(body, UTF8, "http://h/")


@pytest.mark.parametrize("start", [-1, 0, 3, 9, 10, 11, 1 << 40])
def test_a_walk_goes_on_where_it_stopped(native: NativeLinks, start: int) -> None:
    markup = b"<a href=x><b><!-- <a href=y> --><a href=z>"
    begin = max(0, start)
    wanted = run_to_end(html_walk.link_tags(markup[begin:]))
    found, at = native.tags(markup, start, 1)
    more, end = native.tags(markup, at, 9)
    assert wanted == found + more
    assert max(len(markup), begin) == end or not wanted


def test_a_long_page_is_walked_in_turns(native: NativeLinks) -> None:
    markup = b"<a href=x>" * (3 * html_walk.WALK_TAGS)
    turns = list(html_walk.link_tags(markup, native))
    assert 3 == len(turns)
    assert run_to_end(html_walk.link_tags(markup, native)) == run_to_end(html_walk.link_tags(markup))


def test_a_tag_that_was_read_natively_is_remembered(native: NativeLinks) -> None:
    extractor = LinkExtractor(Limits(), native=native)
    for _ in range(2):
        assert ["http://h/d/x", "http://h/d/y"] == extractor.extract(b"<a href='x'><a href=y>", UTF8, PAGE).links
    assert {b"a href='x'>": "http://h/d/x", b"a href=y>": "http://h/d/y"} == {
        tag: meaning for known in extractor._remembered.values() for tag, meaning in known.items()
    }


@pytest.mark.parametrize("tag", [*PLAIN, *NOT_PLAIN])
def test_the_tags_that_need_no_parser_are_the_same(native: NativeLinks, tag: str) -> None:
    found = html_links._PLAIN.fullmatch(tag.encode())
    wanted = canonical(found[2].decode(), PAGE) if found and found[2] else None
    fresh, others = native.plain([tag.encode()], PAGE, "kadcrawl")
    if wanted is not None and wanted.startswith(("http://h/", "http://g/")):
        assert ({tag.encode(): wanted}, []) == (fresh, others)
    elif fresh:
        read, _ = html_links._read(tag.encode(), PAGE, "utf-8", "kadcrawl", None)
        assert ({tag.encode(): read}, []) == (fresh, others)
    else:
        assert [tag.encode()] == others


ORDERLY = [
    '<a href="i?a=1&amp;b=2&c=3#f&g" rel=external>',
    "<A title='&' HREF='p?q=&#38;' data-x=1><a href=x/y/>",
    '<a class="c" href="issue?&#64;action=redirect&amp;bpo=7">',
    '<area alt="a&b" coords="1,2" href="Axis.html"/>',
    '<a href="x" href="y"><a rel="tag" href="n" rel="nofollow">',
    '<a href="https://g/p" rel="NoFollow noopener">',
    '<link rel="next" href="n.html" title="Part\N{NO-BREAK SPACE}VI" />',
    '<link rel="stylesheet alternate" href="s.css"><link rel=canonical href=c>',
    '<a href="mailto:m@h"><a href="JavaScript:void(0)"><link rel="canonical" href="file:///f">',
]
"""Tags that need no parser although they are not plain."""
DISORDERLY = [
    '<a href="x&copy">',
    '<a href="x&#35;y">',
    '<a href="x&#9;y">',
    '<A href="x#f\N{LATIN SMALL LETTER E WITH ACUTE}">',
    '<a href="x" rel="no&#102;ollow">',
    "<a href=x&amp;y>",
    '<a href = "x">',
    '<a href="x"rel="y">',
    '<a href="http:x">',
]
"""Tags that are left to Python."""


@pytest.mark.parametrize("markup", ORDERLY)
def test_an_orderly_tag_is_read_natively(native: NativeLinks, markup: str) -> None:
    wanted = LinkExtractor(Limits(), native=None).extract(markup.encode(), UTF8, "http://h/d/")
    with patch.object(html_links, "_read", None):
        assert wanted == LinkExtractor(Limits(), native=native).extract(markup.encode(), UTF8, "http://h/d/")


@pytest.mark.parametrize("markup", DISORDERLY)
def test_a_tag_that_needs_a_parser_is_left_to_python(native: NativeLinks, markup: str) -> None:
    extractor = LinkExtractor(Limits(), native=native)
    wanted = LinkExtractor(Limits(), native=None).extract(markup.encode(), UTF8, "http://h/d/")
    with patch.object(html_links, "_read", wraps=html_links._read) as read:
        assert wanted == extractor.extract(markup.encode(), UTF8, "http://h/d/")
    assert read.called


@pytest.mark.parametrize("body", [b"<a href='x'>", b"<a href=x>", b"<a href='x'><a href=x rel=nofollow>"])
def test_ordinary_pages_are_never_walked_in_python(native: NativeLinks, body: bytes) -> None:
    with patch.object(html_walk, "LINK_TAG", None):
        assert LinkExtractor(Limits(), native=native).extract(body, UTF8, PAGE).links


@pytest.mark.parametrize(
    "call",
    [
        lambda native: native.tags("text", 0, 1),
        lambda native: native.tags(b"text"),
        lambda native: native.tags(b"text", 0, 1 << 99),
        lambda native: native.join(b"http://h/", b"x"),
        lambda native: native.join("http://h/", "x"),
        lambda native: native.join("http://h/\ud800", b"x"),
        lambda native: native.meanings(b"<a href=x>", {}, None, "http://h/", "1", "agent"),
        lambda native: native.meanings(b"<a href=x>", [], None, "http://h/", 1, "agent"),
        lambda native: native.plain((b"a>",), "http://h/", "agent"),
        lambda native: native.plain(["a>"], "http://h/", "agent"),
        lambda native: native.meanings("", {}, None, "http://h/", 1, "agent"),
    ],
)
def test_an_argument_of_another_type_is_an_exception(
    native: NativeLinks, call: Callable[[NativeLinks], object]
) -> None:
    with pytest.raises((TypeError, SystemError, UnicodeEncodeError, OverflowError)):
        call(native)


def test_references_are_given_back(native: NativeLinks) -> None:
    """Each call leaves as many references to its arguments as it found."""
    markup, url = b"<a href='x'><a href=y><a id=z><a href=n rel=nofollow><base>", "http://h/" + "d/" * 9
    nothing = html_links._NOTHING
    known: dict[bytes, object] = {b"a href=y>": nothing, b"a id=z>": "http://h/u"}
    tags = [b"a href='x'>", b"a href=y>", b"a id=z>"]
    values = (markup, nothing, url, tags, *tags, known, known[b"a id=z>"], None)
    before = [sys.getrefcount(value) for value in values]
    for _ in range(100):
        native.tags(markup, 0, 10)
        native.join(url, markup[9:10])
        native.meanings(markup, known, nothing, url, 10, "agent")
        native.meanings(markup[:-6], known, nothing, url, 10, "agent")
        native.meanings(markup, known, nothing, url, 1, "agent")
        native.plain(tags, url, "agent")
    after = [sys.getrefcount(value) for value in values]
    assert before[:-1] == after[:-1]
    assert abs(before[-1] - after[-1]) < 50, "None"


@pytest.mark.parametrize(("value", "loads"), [("", True), ("0", True), ("1", False), ("yes", False)])
def test_a_variable_switches_it_off(native: NativeLinks, value: str, loads: bool) -> None:
    program = "from kadcrawl.crawl.content.native_links import NATIVE; print(NATIVE is not None)"
    environment = {**os.environ, native_links.PURE: value}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert f"{loads}\n" == run.stdout


def test_without_the_module_python_does_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_links, "MODULE", "kadcrawl.crawl.content._nowhere")
    assert native_links.load() is None
