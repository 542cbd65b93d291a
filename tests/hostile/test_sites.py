"""Sites that lead a crawler round in circles or bury it: it ends, has one line for each URL, and keeps to the rules."""

import gzip
from collections import Counter
from collections.abc import Generator
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import pairwise

import pytest
from aiohttp import web

from kadcrawl.crawl.content import sitemap
from kadcrawl.crawl.content.sitemap import Sitemap
from tests.support.sites.foreign_addresses import CrawlSeeds
from tests.support.sites.hostile_site import Endless, HostileSite
from tests.support.sites.scripted_site import GZIPPED, HANG, KEEP, OK, RESET, Step, length
from tests.support.sites.web import Web, html
from tests.support.swarm.peers import QUICK

HOPS = QUICK.redirects_max
DEPTH = 15
SILENT_S = 5.0
"""Seconds without a byte after which a server is given up. A busy machine stands still for less."""


def to(location: str) -> web.Response:
    return web.Response(status=302, headers={"Location": location})


def next_query(request: web.BaseRequest) -> str:
    return f"{request.path}?{int(request.query_string or 0) + 1}"


def refreshed(request: web.BaseRequest) -> web.Response:
    text = f"<meta http-equiv=refresh content='0; url={next_query(request)}'>"
    return web.Response(text=text, content_type="text/html")


async def test_redirects_end_whatever_they_lead_to(crawl: CrawlSeeds) -> None:
    async with Web() as site:
        site.pages |= {
            "/itself": lambda request: to("/itself"),
            "/nothing": lambda request: to(""),
            "/nowhere": lambda request: to("http://["),
            "/long": lambda request: to("/" + "x" * 9_000),
            "/longer-than-wanted": lambda request: to("/" + "x" * 3_000),
            "/a": lambda request: to("/b"),
            "/b": lambda request: to("/a"),
            "/new": lambda request: to(next_query(request)),
            "/refreshed": refreshed,
            "/wide": lambda request: to(f"/{int(request.query_string or 0) % 3}/wide?1"),
            "/escaping": lambda request: to("/../../../../etc/passwd"),
            "/etc/passwd": lambda request: web.Response(text="root", content_type="text/plain"),
        }
        site.fallback = lambda request: to("/wide")
        starts = [
            "/itself",
            "/nothing",
            "/nowhere",
            "/long",
            "/longer-than-wanted",
            "/a",
            "/new",
            "/refreshed",
            "/wide",
            "/escaping",
        ]
        lines = await crawl(*map(site.url, starts), max_depth=DEPTH)
    expected: dict[str, str | None] = dict.fromkeys([*starts, "/b", "/0/wide?1", "/etc/passwd"])
    expected |= {"/nowhere": "bad_redirect", "/long": "bad_redirect"}
    expected |= dict.fromkeys(("/itself", "/nothing", "/b", "/0/wide?1"), "redirect_loop")
    expected |= {f"/new?{hop}": None for hop in range(1, HOPS)} | {f"/new?{HOPS}": "redirect_limit"}
    expected |= {f"/refreshed?{depth}": None for depth in range(1, DEPTH + 1)}
    assert {site.url(path): failed for path, failed in expected.items()} == {
        url: line.failed for url, line in lines.items()
    }
    assert set(site.fetched.values()) == {1}


LEFT_ALONE = "robots_unreachable"


def moved(location: bytes) -> bytes:
    return b"HTTP/1.1 302 Found\r\nLocation: " + location + b"\r\nContent-Length: 0\r\n\r\n"


RULES = b"user-agent: *\ndisallow: /secret\n"
ROBOTS: dict[str, tuple[list[Step], str | None, str | None, int]] = {
    # its robots.txt: (the steps, what becomes of its page, and of the one it forbids, how often it is asked for)
    "whole": ([length(len(RULES)) + RULES], None, "robots", 1),
    "of 1 GB": ([OK + b"\r\n" + RULES, Endless(b"# x\n" * 16_000)], None, "robots", 1),
    "of one line": ([OK + b"\r\n" + RULES + b"disallow: /", Endless(b"x" * 64_000)], None, "robots", 1),
    "of bytes": ([OK + b"\r\n" + RULES + bytes(range(256)) * 9], None, "robots", 1),
    "reset": ([length(1_000) + RULES, RESET], LEFT_ALONE, LEFT_ALONE, QUICK.robots_tries_max),
    "cut off": ([length(1_000) + RULES], LEFT_ALONE, LEFT_ALONE, QUICK.robots_tries_max),
    "silent": ([length(1_000) + RULES, HANG], LEFT_ALONE, LEFT_ALONE, QUICK.robots_tries_max),
    "gzip cut off": ([GZIPPED + gzip.compress(RULES, mtime=0)[:-9]],
                     LEFT_ALONE, LEFT_ALONE, QUICK.robots_tries_max),
    "gzip bomb": ([GZIPPED + gzip.compress(RULES + bytes(3_000_000), mtime=0)],
                  LEFT_ALONE, LEFT_ALONE, 1),
    "gzip of 1 GB": ([GZIPPED, Endless(gzip.compress(RULES, mtime=0) * 900)], LEFT_ALONE, LEFT_ALONE, 1),
    "unknown coding": ([OK + b"Content-Encoding: lzma\r\n\r\nxyz"], LEFT_ALONE, LEFT_ALONE, 1),
    "broken head": ([OK + b"\0\r\n\r\n"], "protocol", "protocol", 1),
    "missing, and cut off": ([b"HTTP/1.1 404 No\r\nContent-Length: 9\r\n\r\nx"], None, None, 1),
    "redirected to itself": ([moved(b"/robots.txt"), KEEP], None, None, 6),
    "redirected to a file": ([moved(b"file:///etc/passwd")], None, None, 1),
    "redirected to metadata": ([moved(b"http://169.254.169.254/robots.txt")], "address_refused", "address_refused", 1),
}  # fmt: skip


async def test_no_robots_txt_is_taken_for_one_that_forbids_nothing(crawl: CrawlSeeds) -> None:
    """A file without end counts as far as the crawler reads it. A file that broke off may forbid anything."""
    limits = replace(QUICK, body_bytes_max=1_000_000, inflated_bytes_max=2_000_000, idle_timeout_s=SILENT_S)
    async with AsyncExitStack() as stack:
        sites = {name: await stack.enter_async_context(HostileSite().serving()) for name in ROBOTS}
        for name, site in sites.items():
            site.answers = {"/robots.txt": ROBOTS[name][0], "/": [length(2) + b"ok"], "/secret": [length(2) + b"no"]}
        seeds = [site.url(path) for site in sites.values() for path in ("/", "/secret")]
        lines = await crawl(*seeds, allowed="127.0.0.1", limits=limits)
        link_finder = {
            name: (lines[site.url("/")].failed, lines[site.url("/secret")].failed, len(site.requests["/robots.txt"]))
            for name, site in sites.items()
        }
        for site in sites.values():
            assert isinstance(site, HostileSite)
            assert site.sent < 16_000_000
    assert {name: row[1:] for name, row in ROBOTS.items()} == link_finder
    assert len(seeds) == len(lines)


async def test_robots_txt_that_leads_to_ever_new_ones_is_given_up(crawl: CrawlSeeds) -> None:
    async with Web() as site:
        site.pages["/robots.txt"] = lambda request: to(next_query(request))
        site.pages["/"] = lambda request: html()
        lines = await crawl(site.url())
        asked = [url for _, url in site.requests]
    assert [site.url(path) for path in ("/robots.txt", *(f"/robots.txt?{n}" for n in range(1, 6)), "/")] == asked
    assert [None] == [line.failed for line in lines.values()]


async def test_robots_txt_of_one_site_cannot_use_up_the_hops_of_another(crawl: CrawlSeeds) -> None:
    """A robots.txt whose last hop redirects to the robots.txt of another site says nothing about that site."""
    async with Web() as victim, Web() as evil:
        victim.pages |= {
            "/robots.txt": lambda request: to("/rules.txt"),
            "/rules.txt": lambda request: web.Response(text="user-agent: *\ndisallow: /secret"),
            "/secret": lambda request: html(),
        }

        def leads_there(request: web.BaseRequest) -> web.Response:
            return to(victim.url("/robots.txt") if request.query_string == "4" else next_query(request))

        evil.pages |= {"/robots.txt": leads_there, "/": lambda request: html(victim.url("/secret"))}
        lines = await crawl(evil.url())
        assert victim.url("/secret") not in [url for _, url in victim.requests]
    assert {evil.url(): None, victim.url("/secret"): "robots"} == {url: line.failed for url, line in lines.items()}


def index(*locations: str) -> str:
    return f"<sitemapindex>{''.join(f'<sitemap><loc>{loc}</loc></sitemap>' for loc in locations)}</sitemapindex>"


LAUGHS = "".join(f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in pairwise("abcdefghij"))
LAUGHS = f'<!DOCTYPE urlset [<!ENTITY a "ha">{LAUGHS}]><urlset><url><loc>/&j;</loc></url></urlset>'
FILE = '<!DOCTYPE urlset [<!ENTITY x SYSTEM "file:///etc/passwd">]><urlset><url><loc>/&x;</loc></url></urlset>'
SITEMAPS: dict[str, tuple[str | bytes, str | None]] = {
    # its path: (what is there, what the page line has as `failed`)
    "/sitemap.xml": (
        index(
            "/sitemap.xml", "/sitemap1.xml", "/sitemap2.xml", "/bomb.xml.gz", "/sitemap-laughs.xml",
            "/sitemap-file.xml", "/sitemap-deep.xml", "/sitemap-open.xml", "/sitemap-many.xml", "/sitemap.txt",
            "//10.0.0.1/sitemap.xml"), None),
    "/sitemap1.xml": (index("/sitemap2.xml", "/sitemap1.xml"), None),
    "/sitemap2.xml": (index("/sitemap1.xml", "/sitemap.xml", "file:///etc/passwd"), None),
    "/bomb.xml.gz": (gzip.compress(b"<urlset>" + b" " * 3_000_000, mtime=0), "bad_sitemap"),
    "/sitemap-laughs.xml": (LAUGHS, None),
    "/sitemap-file.xml": (FILE, None),
    "/sitemap-deep.xml": ("<urlset>" + "<url>" * 9_999, "bad_sitemap"),
    "/sitemap-open.xml": ("<urlset><url><loc>/of-a-broken-one</loc></url><url><loc>/no", "bad_sitemap"),
    "/sitemap-many.xml": (f"<urlset>{''.join(f'<url><loc>/{n}</loc></url>' for n in range(500))}</urlset>", None),
    "/sitemap.txt": ("/relative\nnot a URL\n" + "x" * 9_999 + "\njavascript:x\n", None),
}  # fmt: skip


async def test_sitemaps_are_read_once_each_and_no_further_than_they_may(crawl: CrawlSeeds) -> None:
    limits = replace(QUICK, inflated_bytes_max=2_000_000, sitemap_urls_max=20)
    async with Web() as site:

        def answer(request: web.BaseRequest) -> web.StreamResponse:
            content = SITEMAPS.get(request.path, ("", None))[0]
            body = content if isinstance(content, bytes) else content.encode()
            return web.Response(body=body, content_type="application/xml" if request.path in SITEMAPS else "text/html")

        site.fallback = answer
        lines = await crawl(site.url(), limits=limits, sitemaps=True)
    expected: dict[str, str | None] = {path: failed for path, (_, failed) in SITEMAPS.items()}
    expected |= dict.fromkeys(["/", "/of-a-broken-one", *(f"/{n}" for n in range(20))])
    link_finder = {url: line.failed for url, line in lines.items()}
    assert "address_refused" == link_finder.pop("http://10.0.0.1/sitemap.xml")
    assert {site.url(path): failed for path, failed in expected.items()} == link_finder
    assert set(site.fetched.values()) == {1}


async def test_few_large_sitemaps_are_in_memory_at_a_time(crawl: CrawlSeeds, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is a few bytes on its way, and is read in turns with all the others."""
    limits = replace(QUICK, large_body_bytes=10_000, large_contents_max=2)
    whole = sitemap.read
    reading: list[str] = []
    most: Counter[str] = Counter()

    def read(
        content: bytes, mime: str, url: str, *, expected: bool, now: float, urls_max: int, bytes_max: int
    ) -> Generator[None, None, Sitemap | None]:
        is_small = "small" in url or url.endswith(("/", ".html"))
        reading.append("small" if is_small else "large")
        most["large"] = max(most["large"], reading.count("large"))
        most["all"] = max(most["all"], len(reading))
        for _ in range(50):
            yield
        reading.remove("small" if is_small else "large")
        return (
            yield from whole(content, mime, url, expected=expected, now=now, urls_max=urls_max, bytes_max=bytes_max)
        )

    monkeypatch.setattr(sitemap, "read", read)
    large = gzip.compress(b"<urlset>" + b"<a> </a>" * 10_000 + b"</urlset>", mtime=0)
    paths = [f"/{number}{name}" for name in (".xml.gz", "-sitemap.xml", "-small-sitemap.xml") for number in range(5)]
    async with Web() as site:
        site.pages["/"] = lambda request: html(*paths)

        def answer(request: web.BaseRequest) -> web.StreamResponse:
            is_small = "small" in request.path
            coded = {} if is_small or request.path.endswith(".gz") else {"Content-Encoding": "gzip"}
            return web.Response(body=b"<urlset/>" if is_small else large, content_type="text/xml", headers=coded)

        site.fallback = answer
        lines = await crawl(site.url(), limits=limits, sitemaps=True)
    assert not any(line.failed for line in lines.values())
    assert {site.url(path) for path in paths} <= lines.keys()
    assert 2 == most["large"] < most["all"]
