"""Pages made to hurt who reads them: each gives the links it honestly has, in bounded memory, and has its line."""

import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from aiohttp import web

from kadcrawl.crawl.content import html_walk
from kadcrawl.crawl.content.canonical_link import named_by_header
from kadcrawl.crawl.content.charset import decode, encoding_of
from kadcrawl.crawl.content.html_links import HTML_BYTES_MAX, LinkExtractor
from kadcrawl.crawl.content.native_links import NativeLinks
from kadcrawl.crawl.content.simhash import simhash
from kadcrawl.settings.limits import Limits
from kadcrawl.urls import canonical
from tests.support.native import ENGINES, engine
from tests.support.sites.foreign_addresses import CrawlSeeds
from tests.support.sites.web import Web, html

PAGE = "http://h/d/p"
MANY = 100_000
LIMITS = Limits(links_per_page_max=1_000)
X = ["/x"]
UNKNOWN = "%EF%BF%BD"
"""U+FFFD, escaped."""


@dataclass(frozen=True)
class Row:
    """A page and its links. Links to its own site are only paths."""

    make: Callable[[], bytes | str]
    links: list[str] | int
    """The links, or only their number if there are many."""
    content_type: str = "text/html; charset=utf-8"

    @property
    def body(self) -> bytes:
        body = self.make()
        return body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")


def of(body: bytes | str, *links: str, content_type: str = "text/html; charset=utf-8") -> Row:
    return Row(lambda: body, list(links), content_type)


ROWS = {
    "a million links": Row(lambda: "".join(f"<a href=/{n}>" for n in range(1_000_000)), 1_000),
    "a million times one link": Row(lambda: "<a href=/x>" * 1_000_000, X),
    "a million anchors": Row(lambda: "<a name=x>" * 1_000_000 + "<a href=/x>", 0),
    "tags nested 100,000 deep": Row(lambda: "<div>" * MANY + "<a href=/x>" + "</div>" * MANY, X),
    "formatting nested 100,000 deep": Row(lambda: "<b id=1><i><font>" * MANY + "<a href=/x>", X),
    "links nested 100,000 deep": Row(lambda: "<a href=/x>" * MANY + "</a>" * MANY, X),
    "an attribute of 10 MB": Row(lambda: "<a title='" + "x" * 10_000_000 + "' href=/y><a href=/x>", X),
    "an attribute name of 10 MB": Row(lambda: "<a " + "x" * 10_000_000 + " href=/y><a href=/x>", X),
    "a tag name of 10 MB": Row(lambda: "<a" + "x" * 10_000_000 + " href=/y><a href=/x>", X),
    "an href of 10 MB": Row(lambda: "<a href='/" + "x" * 10_000_000 + "'><a href=/x>", X),
    "100,000 attributes": Row(
        lambda: "<a " + " ".join(f"a{n}=b" for n in range(MANY)) + " href=/y><a href=/x>", X),
    "100,000 times one attribute": Row(lambda: "<a " + "href=/y " * MANY + "><a href=/x>", X),
    "a comment of 10 MB": Row(lambda: "<!--" + "<a href=/y>" * 900_000 + "--><a href=/x>", X),
    "100,000 comments": Row(lambda: "<!-- -- -->" * MANY + "<a href=/x>", X),
    "a link beyond what is read": Row(lambda: "<a href=/x>" + " " * HTML_BYTES_MAX + "<a href=/y>", X),
    "a link in windows-1251 beyond what is read": Row(
        lambda: b"<a href=/x>" + b"\xff" * HTML_BYTES_MAX + b"<a href=/y>", X, "text/html; charset=windows-1251"),
    "a link in UTF-8, undeclared, beyond what is read": Row(
        lambda: "<a href='/x?é'>" + " é" * (HTML_BYTES_MAX // 3) + "é<p>é<a href=/y>", ["/x?%C3%A9"], "text/html"),
    "100,000 bases": Row(lambda: "<base target=x>" * MANY + "<a href=/x>", X),
    "100,000 entities": Row(lambda: "<a href='/x?" + "&amp;" * 1_000 + "'>" + "&lt;" * MANY, ["/x?" + "&" * 1_000]),
    "nothing but less-than": Row(lambda: "<" * 1_000_000 + "a href=/x>", X),
    "nothing but quotes": Row(lambda: "<p a=" + "\"'" * 500_000 + "><a href=/x>", X),
    "nothing but NUL": Row(lambda: "\0" * 1_000_000 + "<a href=/x>", X),
    "nothing but bytes": Row(lambda: bytes(range(256)) * 10_000 + b"<a href=/x>", X, "text/html"),
    "an open comment": of("<a href=/x><!-- <a href=/y>", "/x"),
    "an open tag": of("<a href=/x><a href=/y", "/x"),
    "an open value": of("<a href=/x><a href='/y>", "/x"),
    "an open value in the middle": of("<a href=/x><a title='<a href=/y><p>", "/x"),
    "an open script": of("<a href=/x><script><a href=/y>", "/x"),
    "an open title": of("<a href=/x><title><a href=/y>", "/x"),
    "an open textarea": of("<a href=/x><textarea><a href=/y>", "/x"),
    "an open style": of("<a href=/x><style><a href=/y>", "/x"),
    "an open declaration": of("<a href=/x><!doctype <a href=/y", "/x"),
    "an open CDATA": of("<a href=/x><![CDATA[ <a href=/y>", "/x"),
    "an open base": of("<a href=/x><base href=http://evil.example/ ", "/x"),
    "base to a file": of("<base href=file:///etc/><a href=x>", "/d/x"),
    "base to a script": of("<base href=javascript:alert()//><a href=x>", "/d/x"),
    "base to data": of("<base href='data:text/html,<p>'><a href=x>", "/d/x"),
    "base to nothing": of("<base href=''><a href=x>", "/d/x"),
    "base inside": of("<base href=http://10.0.0.1/><a href=x>", "http://10.0.0.1/x"),
    "base with a user": of("<base href=http://h@10.0.0.1/><a href=x>", "http://10.0.0.1/x"),
    "base up and up": of("<base href=/a/../../../../><a href=../../x>", "/x"),
    "base too long": of(f"<base href='/{'x' * 9_000}/'><a href=x>", "/d/x"),
    "base that makes links too long": of(f"<base href='/{'b' * 8_100}/'><a href={'x' * 200}><a href=/x>", "/x"),
    "URLs too long": of(f"<a href=/{'x' * 8_200}><a href={'../' * 3_000}y><a href=/x>", "/x"),
    "a URL that grows too long": of(f"<a href='/{'é' * 2_000}'><a href=/x>", "/x"),
    "lone surrogates": of("<a href='/\ud800'><a href='/&#xD800;'><a href=/x>", f"/{UNKNOWN * 3}", f"/{UNKNOWN}", "/x"),
    "lone surrogates in UTF-16": of(
        "<a href='/\ud800'><a href=/x>".encode("utf-16-le", "surrogatepass"), f"/{UNKNOWN}", "/x",
        content_type="text/html; charset=utf-16le"),
    "invalid UTF-8": of(b"<a href='/\xff\xc0\xaf\xed\xa0\x80'><a href=/x>", f"/{UNKNOWN * 6}", "/x"),
    "UTF-7": of("+ADw-a href=/y+AD4-<a href=/x>", "/x", content_type="text/html; charset=utf-7"),
    "a charset that is no text": of("<a href=/x>", "/x", content_type="text/html; charset=zlib_codec"),
    "a charset that is a path": of("<a href=/x>", "/x", content_type="text/html; charset=../../../etc/passwd"),
    "two charsets": of(b"<meta charset=utf-16le><meta charset=x><a href=/x>", "/x", content_type="text/html"),
    "a second request": of("<a href='/x HTTP/1.1\r\nHost: evil\r\n\r\nGET /y'>", "/x%20HTTP/1.1Host:%20evilGET%20/y"),
    "a second request in entities": of("<a href='/x&#13;&#10;Host:evil&#0;'>", "/xHost:evil%EF%BF%BD"),
    "a second request in escapes": of("<a href='/x%0d%0aHost:evil%00'>", "/x%0D%0AHost:evil%00"),
    "a second line": of("<a href='/x&#10;{&quot;url&quot;:1}'>", "/x{%22url%22:1}"),
    "up and out": of("<a href=/../../../etc/passwd><a href='..\\..\\..\\etc\\shadow'>", "/etc/passwd", "/etc/shadow"),
    "up and out in escapes": of(
        "<a href=/%2e%2e/%2E%2E/etc/passwd><a href=/..%2f..%2fx>", "/etc/passwd", "/..%2F..%2Fx"),
    "schemes": of(
        "<a href=file:///x><a href=javascript:x><a href=data:,x><a href=ws://h/><a href=gopher://h/><a href=/x>", "/x"),
    "a frame in a frame": of("<iframe src=/x><iframe src=data:text/html,<a%20href=/y>>", "/x"),
    "a refresh without end": of(f"<meta http-equiv=refresh content='{'0' * 60_000};url=/y'><a href=/x>", "/y", "/x"),
    "a refresh in a refresh": of("<meta http-equiv=refresh content=\"0;url='/x';url=/y\">", "/x"),
}  # fmt: skip


@pytest.mark.parametrize("code", ENGINES)
@pytest.mark.parametrize("name", ROWS)
def test_a_page_has_the_links_it_has(name: str, code: str) -> None:
    row = ROWS[name]
    page = LinkExtractor(LIMITS, native=engine(code)).extract(row.body, row.content_type, PAGE)
    if isinstance(row.links, int):
        assert row.links == len(page.links)
    else:
        assert [canonical(link, PAGE) for link in row.links] == page.links
    for link in page.links:
        assert (link, True) == (canonical(link), link.isascii())


@pytest.mark.parametrize("name", ROWS)
def test_a_page_is_some_text_and_has_a_fingerprint(name: str) -> None:
    row = ROWS[name]
    body = row.body
    decode(body, row.content_type)[0].encode()
    fingerprint = simhash(body)
    assert fingerprint is None or 0 <= fingerprint < 2**64


@pytest.mark.parametrize("code", ENGINES)
@pytest.mark.parametrize("name", ["an attribute of 10 MB", "100,000 attributes", "an href of 10 MB"])
def test_a_page_costs_a_few_times_its_size(name: str, code: str) -> None:
    body = ROWS[name].body
    assert peak_of(body, engine(code)) < 4 * len(body)


@pytest.mark.parametrize("code", ENGINES)
@pytest.mark.parametrize("tag", [b"<a>", b"<a href=/x>", b"<p>"])
def test_markup_is_looked_at_up_to_a_number(tag: bytes, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else 16 MB of the shortest tags would be a list of 700 MB."""
    most = 100_000
    monkeypatch.setattr(html_walk, "MARKUP_MAX", most)
    body = tag * 5 * most
    assert peak_of(body, engine(code)) < 2 * len(body) + 200 * most
    head = tag * (most - 1)
    page = LinkExtractor(LIMITS, native=engine(code)).extract(head + b"<a href=/y>" + b"<a href=/z>" * 9, "", PAGE)
    assert "http://h/y" == page.links[-1]


def peak_of(body: bytes, native: NativeLinks | None) -> int:
    tracemalloc.start()
    try:
        LinkExtractor(LIMITS, native=native).extract(body, "text/html; charset=utf-8", PAGE)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


BLANKS = " " * 1_000_000
"""An algorithm of quadratic time takes hours of this text, and the time-out of the test notices."""


@pytest.mark.parametrize(
    "content_type",
    [
        f"text/html; charset={BLANKS};",
        f"text/html{';charset' * 100_000}",
        f"{BLANKS}charset{BLANKS}",
        "charset='" * 100_000,
    ],
    ids=["blanks", "names", "blanks around", "quotes"],
)
def test_a_long_type_is_read_in_one_walk(content_type: str) -> None:
    assert "utf-8" == encoding_of(b"x", content_type)


@pytest.mark.parametrize(
    "link",
    [
        f"<a>{BLANKS}",
        "<" * 1_000_000,
        "<a>;" * 250_000,
        f"<a>;rel={BLANKS}",
        "<a>" + ';a="b' * 100_000,
        f"<a>;a{BLANKS}x",
    ],
    ids=["blanks", "brackets", "parameters", "blank value", "open quotes", "blank name"],
)
def test_a_long_link_field_is_read_in_one_walk(link: str) -> None:
    assert [] == list(named_by_header(link, PAGE))


@pytest.mark.parametrize("content", ["<meta http-equiv=refresh content='0{}'>", "<a href=/y rel='{}'>", "<a{}href=/y>"])
def test_a_long_attribute_is_read_in_one_walk(content: str) -> None:
    page = LinkExtractor(LIMITS).extract(content.replace("{}", BLANKS).encode() + b"<a href=/x>", "", PAGE)
    assert "http://h/x" == page.links[-1]


async def test_a_site_of_such_pages_is_crawled_to_its_end(crawl: CrawlSeeds) -> None:
    """All pages are on one site, and each of their links is a URL with a line of its own."""
    pages = {f"/page/{number}": row for number, row in enumerate(ROWS.values()) if len(row.body) < 2_000_000}
    assert len(pages) > 40

    def answer(request: web.BaseRequest) -> web.StreamResponse:
        if (row := pages.get(request.path)) is None:
            return web.Response(text="x", content_type="text/plain")
        return web.Response(body=row.body, headers={"Content-Type": row.content_type})

    async with Web() as site:
        site.pages["/"] = lambda request: html(*pages)
        site.fallback = answer
        lines = await crawl(site.url(), canonical="honor")
    for path, row in pages.items():
        line = lines[site.url(path)]
        count = row.links if isinstance(row.links, int) else len(row.links)
        assert (200, None, count) == (line.status, line.failed, line.fields["links"]), path
    assert {None, "address_refused"} == {line.failed for line in lines.values()}
    assert set(site.fetched.values()) == {1}
