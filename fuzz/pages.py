"""Fuzzing of HTTP: encoded bodies, pages, robots.txt and sitemaps, as the crawler reads them."""

import sys
import zlib
from collections.abc import Iterator
from gzip import compress
from itertools import islice

import brotlicffi

from fuzz.target import Bites, Target, plain
from kadcrawl.crawl.content.canonical_link import may_replace, named_by_header
from kadcrawl.crawl.content.charset import decode, encoding_of
from kadcrawl.crawl.content.html_links import LinkExtractor
from kadcrawl.crawl.content.html_walk import link_tags, markup_of
from kadcrawl.crawl.content.simhash import BITS, simhash
from kadcrawl.crawl.content.sitemap import Sitemap, read
from kadcrawl.crawl.content.tag_parser import parsed
from kadcrawl.crawl.fetch.content_encoding import BodyError, decoded
from kadcrawl.crawl.robots.rules import SITEMAPS_MAX, Rules, parse, verdict
from kadcrawl.crawl.scope.sitemap_urls import AHEAD_S, named_like_one, of_origin
from kadcrawl.crawl.scope.traps import without_session
from kadcrawl.settings.limits import Limits
from kadcrawl.system.cooperative import run_to_end
from kadcrawl.urls import canonical

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PAGE = "https://www.example.org/a/b?c=d"
TYPES = ("text/html", "text/html; charset=utf-8", "text/html; charset=windows-1252", "text/html; charset=shift_jis", "")
LIMITS = Limits(links_per_page_max=500)
TAGS_LOOKED_AT = 16
NOW = 1_800_000_000.0
SITEMAP_URLS_MAX = 300
CONTENT_BYTES_MAX = 256 * 1024
CODINGS = ("gzip", "deflate", "br", "gzip, br", "x-gzip, deflate", "zstd", "br, gzip, gzip", "identity", "\u0130")

# --- pages -------------------------------------------------------------------------------------------------------


def html(data: bytes) -> None:
    """Process a page as the crawler does: links (with and without native code), text, SimHash, and the URLs of its
    Link header."""
    bites = Bites(data)
    content_type = TYPES[bites.number() % len(TYPES)]
    body = bites.swollen()
    extractor = LinkExtractor(LIMITS)
    found = extractor.extract(body, content_type, PAGE)
    assert found == extractor.extract(body, content_type, PAGE), "what is remembered of a page changes what it means"
    assert found == LinkExtractor(LIMITS, native=None).extract(body, content_type, PAGE), "native code sees other links"
    markup = run_to_end(markup_of(body, encoding_of(body, content_type)))
    tags = dict.fromkeys(run_to_end(link_tags(markup)))
    assert all(parsed(tag)[0] for tag in islice(tags, TAGS_LOOKED_AT)), "walk and parser do not see the same tags"
    assert len(found.links) == len(set(found.links)) <= LIMITS.links_per_page_max
    assert found.cut >= 0
    for link in found.links:
        assert canonical(link) == link
        assert canonical(without_session(link)) == without_session(link)
    text, _ = decode(body, content_type)
    assert len(text) <= len(body)
    likeness = simhash(body)
    assert likeness is None or 0 <= likeness < 1 << BITS
    header = body[:8192].decode("latin-1")
    extractor.extract(b"<a href=x>", header, PAGE, header)
    for url in named_by_header(header, PAGE):
        assert may_replace(url, PAGE) in (True, False)


def pages() -> Iterator[bytes]:
    """Yield pages with every tag that the crawler reads, well and badly written, and pages known to be slow
    elsewhere."""
    for content in (
        b"<!doctype html><title>T</title><a href=\"x\">one</a> <a HREF='/y?z#f' rel=nofollow>two</a>",
        b'<base href="//b.example/c/"><area href=x><frame src=f><iframe src="g"></iframe>',
        b'<meta name=robots content="noindex, nofollow"><meta name=kadcrawl content=none><a href=x>',
        b"<meta http-equiv=refresh content=\"5; url='next'\"><link rel=canonical href=/><link rel=next href=f>",
        b'<meta charset=shift_jis><a href="?\x83\x65\x83\x58\x83\x67=1">\x83\x65</a>',
        b'<?xml version="1.0" encoding="iso-8859-2"?><html><a href="&eacute;&#x20AC;?q=\xe9">',
        b"<!-- <a href=no> --><script>'<a href=no>'</script><style><a href=no></style><textarea><a href=no></textarea>",
        b'<a title="a>b" href=x><a href="x\ny"><a/href=z/><a href=javascript:void(0)><a href=mailto:m@x.example>',
        b'<a href="/s;jsessionid=0123456789abcdef0123?sid=0123456789abcdef0123456789">',
        b'<https://www.example.org/>; rel="canonical", </b>; rel=next; anchor="#x"',
        b"\xff\xfe<\0a\0 \0h\0r\0e\0f\0=\0x\0>\0",
        b"the quick brown fox jumps over the lazy dog and is seen no more <p>one two three four",
    ):
        yield b"\0" + plain(content)
    for head, tail in ((b"<a ", b"b=c "), (b"", b"<b id=1>"), (b"", b"<!--"), (b"<script>", b"</scrip"), (b"<a", b"<")):
        yield bytes((0, 255, len(head))) + head + tail


# --- robots.txt --------------------------------------------------------------------------------------------------


def robots(data: bytes) -> None:
    """Read a robots.txt, keep it as a peer does, and ask it about some URLs."""
    body = Bites(data).swollen()
    rules = parse(body, "kadcrawl")
    assert rules == verdict(200, body, "kadcrawl")
    kept = Rules.from_bytes(rules.to_bytes())
    assert kept.rules == rules.rules, "rules change when they are kept"
    assert kept.sitemaps == rules.sitemaps
    assert kept.crawl_delay_s == rules.crawl_delay_s
    assert len(rules.sitemaps) <= SITEMAPS_MAX
    assert all(canonical(url) == url for url in rules.sitemaps)
    assert rules.crawl_delay_s is None or 0 <= rules.crawl_delay_s < float("inf")
    patterns = [pattern.replace("*", "x").replace("$", "") for _, pattern in rules.rules[:4]]
    for path in (PAGE, "https://www.example.org/", *patterns, "/" + "a" * 2000 + "/index.html?x=" + "y" * 2000):
        if (url := canonical(path, PAGE)) is not None:
            assert rules.allowed(url) == kept.allowed(url)


def files() -> Iterator[bytes]:
    """Yield files with each field, as they should be and as people write them (after robotstxt-spec-test's cases)."""
    for content in (
        b"User-agent: *\nDisallow: /a\nAllow: /a/b$\nCrawl-delay: 1.5\nSitemap: https://www.example.org/s.xml\n",
        b"\xef\xbb\xbfuser-agent: KadCrawl\r\nuser agent: other\rdisallow: /*?*c=\nallow: /x/index.html # why\n",
        b"User-agent: a\nUser-agent: *\nDisallow:\n\nUser-agent: kadcrawl/1.0\nDissalow /x\nDisallow: /\xc3\xa9%c3%a9",
        b"site-map:/s.xml\ncrawl-delay: nan\nuser-agent:*\ncrawl-delay: 1e400\ncrawl-delay: -1\ncrawl-delay: 7\n",
        b"disallow: /before\nuser-agent: * # all\nallow: *\ndisallow: $\nallow: /$\ndisallow: /a*b*c*$\n",
        b"<html><body>not a robots.txt</body></html>",
    ):
        yield plain(content)
    for head, tail in ((b"user-agent:*\ndisallow:/", b"*a"), (b"user-agent:*\n", b"disallow:/*a*b\n")):
        yield bytes((255, len(head))) + head + tail


# --- sitemaps ----------------------------------------------------------------------------------------------------


def sitemap(data: bytes) -> None:
    """Read a sitemap, with and without the name of a sitemap."""
    bites = Bites(data)
    flags = bites.number()
    content = bites.swollen()
    expected = bool(flags & 1)
    if flags & 2:
        content = compress(content, 1, mtime=0)
    mime = "application/xml" if flags & 4 else "text/plain"
    reading = read(
        content, mime, PAGE, expected=expected, now=NOW, urls_max=SITEMAP_URLS_MAX, bytes_max=CONTENT_BYTES_MAX
    )
    listed: Sitemap | None
    while True:
        try:
            next(reading)
        except StopIteration as end:
            listed = end.value
            break
    if listed is None:
        return
    assert len(listed.locations) <= SITEMAP_URLS_MAX
    assert listed.cut >= 0
    for url, changed in listed.locations.items():
        assert canonical(url) == url
        assert changed is None or 0 <= changed <= NOW + AHEAD_S
        assert named_like_one(url) in (True, False)
        assert of_origin(url, ())


def lists() -> Iterator[bytes]:
    """Yield sitemaps of each kind, and the usual attacks on XML parsers."""
    entry = b"<url><loc>/p</loc><lastmod>2026-01-02T03:04:05+01:00</lastmod></url>"
    namespace = b'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    for content in (
        b'<?xml version="1.0" encoding="UTF-8"?><urlset ' + namespace + b">" + entry + b"</urlset>",
        b"<sitemapindex><sitemap><loc> http://a.example/s2.xml </loc><lastmod>2026</lastmod></sitemap></sitemapindex>",
        b'<!DOCTYPE urlset [<!ENTITY a "b"><!ENTITY c "&a;&a;&a;">]><urlset><url><loc>&c;</loc></url></urlset>',
        b"\xff\xfe" + "<urlset><url><loc>/p</loc></url></urlset>".encode("utf-16-le"),
        b"https://www.example.org/1\r\nhttps://www.example.org/2\n\nftp://x.example/\n",
        b"\xef\xbb\xbf<urlset><url><loc><![CDATA[/q?a=1&b=2]]></loc><image><loc>/i.png</loc></image></url></urlset>",
    ):
        yield from (bytes((flags,)) + plain(content) for flags in (5, 7, 4, 1))
    for head, tail in (
        (b"<urlset>", entry),
        (b"<urlset>", b"<url>"),
        (b"<urlset><url><loc>", b"a"),
        (b"<a ", b"b='' "),
    ):
        yield bytes((5, 255, len(head))) + head + tail


# --- bodies ------------------------------------------------------------------------------------------------------


def body(data: bytes) -> None:
    """Decode a body. A decompression bomb must stop at the limit."""
    bites = Bites(data)
    coding = CODINGS[bites.number() % len(CODINGS)]
    received = bites.swollen()
    try:
        content = decoded(received, coding, CONTENT_BYTES_MAX)
    except BodyError:
        return
    assert len(content) <= CONTENT_BYTES_MAX


def bodies() -> Iterator[bytes]:
    """Yield bodies in each coding, whole, cut off, in several members, and bombs."""
    text = b"the quick brown fox jumps over the lazy dog " * 4
    raw = zlib.compressobj(wbits=-15)
    for number, coded in enumerate(
        (
            compress(text, mtime=0) + compress(b"more", mtime=0) + b"rest",
            zlib.compress(text),
            brotlicffi.compress(text),
            brotlicffi.compress(compress(text, mtime=0)),
            zlib.compress(compress(text, mtime=0)),
            zstd.compress(text),
        )
    ):
        yield bytes((number,)) + plain(coded)
        yield bytes((number,)) + plain(coded[: len(coded) // 2])
    yield b"\1" + plain(raw.compress(text) + raw.flush())
    bomb = bytes(4 * CONTENT_BYTES_MAX)
    yield b"\0" + plain(compress(bomb, mtime=0))
    yield b"\2" + plain(brotlicffi.compress(bomb))
    yield b"\5" + plain(zstd.compress(bomb))
    yield b"\0\xff\0" + compress(b"", mtime=0)


TARGETS = (
    Target("html", html, pages),
    Target("robots", robots, files),
    Target("sitemap", sitemap, lists),
    Target("body", body, bodies),
)
