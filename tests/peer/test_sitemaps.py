"""Real crawls by sitemaps and canonical links: pages nothing else leads to are found, and none is lost on the way."""

import asyncio
import gzip
from collections.abc import Callable

import pytest
from aiohttp import web

from scripts.kadcrawl_run import LoggedPage
from tests.support.sites.web import Page, Web, html
from tests.support.swarm.crash import crash
from tests.support.swarm.peers import MakePeer, finish, swarm
from tests.support.waiting import until

Lines = Callable[[], dict[str, LoggedPage]]
SPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def dated_sites(body: str | bytes, content_type: str) -> Page:
    content = body.encode() if isinstance(body, str) else body
    return lambda request: web.Response(body=content, content_type=content_type)


def dated_urlset(*urls: str) -> str:
    entries = "".join(
        f"<url><loc>{url}</loc><lastmod>2024-05-01</lastmod><changefreq>always</changefreq></url>" for url in urls
    )
    return f'<?xml version="1.0" encoding="UTF-8"?><urlset {SPACE}>{entries}</urlset>'


def mapped(site: Web) -> set[str]:
    """Make two sites with orphans, and return the URLs that only their sitemaps lead to, sitemaps included.

    The first site's robots.txt names an index, whose two parts are packed and plain; the second's names none.
    """

    def robots(request: web.BaseRequest) -> web.StreamResponse:
        if request.host.startswith("127.0.0.2"):
            return web.Response(text=f"user-agent: *\ndisallow: /no\nSitemap: {site.url('/maps/index')}\n")
        return web.Response(status=404)

    parts = "".join(f"<sitemap><loc>{site.url(path)}</loc></sitemap>" for path in ("/maps/1.xml.gz", "/maps/2.xml"))
    packed = gzip.compress(dated_urlset(site.url("/orphan/1"), site.url("/orphan/2"), site.url("/no/3")).encode())
    other = dated_urlset(site.url("/orphan/5", site=1), site.url("/orphan/4"))
    site.pages |= {
        "/robots.txt": robots,
        "/": lambda request: html(site.url("/", site=1), "/page"),
        "/page": lambda request: html(),
        "/maps/index": dated_sites(f"<sitemapindex {SPACE}>{parts}</sitemapindex>", "application/xml"),
        "/maps/1.xml.gz": dated_sites(packed, "application/octet-stream"),
        "/maps/2.xml": dated_sites(dated_urlset(site.url("/orphan/4")), "text/xml"),
        "/orphan/1": lambda request: html("/orphan/1/child"),
        "/sitemap.xml": dated_sites(other, "application/xml"),
    }
    site.fallback = lambda request: html()
    paths = ["/maps/index", "/maps/1.xml.gz", "/maps/2.xml", *(f"/orphan/{n}" for n in ("1", "1/child", "2", "4"))]
    return {*map(site.url, paths), site.url("/sitemap.xml", site=1), site.url("/orphan/5", site=1)}


async def test_pages_that_only_sitemaps_lead_to_are_crawled_by_whoever_owns_them(
    make_peer: MakePeer, lines: Lines
) -> None:
    async with Web(2) as site:
        only_mapped = mapped(site)
        linked = {site.url(path, site=number) for path in ("/", "/page") for number in (0, 1)}
        peers = await swarm(make_peer, "abc", sitemaps=True)
        await peers[0].crawl([site.url()])
        await finish(peers)
        assert only_mapped | linked == set(site.fetched)
        assert {1} == set(site.fetched.values())
    found = lines()
    assert only_mapped | linked | {site.url("/no/3")} == set(found)
    assert {site.url("/no/3"): "robots"} == {url: line.failed for url, line in found.items() if line.failed}
    index = found[site.url("/maps/index")]
    assert (1, 2) == (index.fields["depth"], index.fields["links"])
    assert 3 == found[site.url("/orphan/1")].fields["depth"], "by two sitemaps"


async def test_without_the_option_no_sitemap_is_asked_for(make_peer: MakePeer) -> None:
    async with Web(2) as site:
        only_mapped = mapped(site)
        peer = await make_peer()
        await peer.crawl([site.url()])
        await finish([peer])
        assert not only_mapped & set(site.fetched)


async def test_a_missing_sitemap_in_the_usual_place_is_an_ordinary_page_line(make_peer: MakePeer, lines: Lines) -> None:
    async with Web() as site:
        site.pages["/"] = lambda request: html()
        peer = await make_peer(sitemaps=True)
        await peer.crawl([site.url()])
        await finish([peer])
        line = lines()[site.url("/sitemap.xml")]
        assert (404, "http_404", 2) == (line.status, line.failed, len(lines()))


async def test_sitemaps_of_a_site_whose_seed_is_forbidden_are_followed(make_peer: MakePeer, lines: Lines) -> None:
    async with Web() as site:
        mapped(site)
        peer = await make_peer(sitemaps=True)
        await peer.crawl([site.url("/no/1")])
        await finish([peer])
        assert site.url("/orphan/2") in site.fetched
        assert "robots" == lines()[site.url("/no/1")].failed


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_crash_after_robots_txt_was_journaled_loses_no_sitemap(make_peer: MakePeer, lines: Lines) -> None:
    async with Web() as site:
        only_mapped = {url for url in mapped(site) if ".2:" in url}
        home = site.pages["/"]
        crashed = asyncio.Event()

        async def hanging(request: web.BaseRequest) -> web.StreamResponse:
            await crashed.wait()
            return html()

        site.pages["/"] = hanging
        peer = await make_peer(sitemaps=True)
        await peer.crawl([site.url()])
        await until(lambda: site.fetched[site.url()])
        await peer.store.journal.durable()
        await crash(peer)
        crashed.set()
        assert not only_mapped & set(site.fetched)
        site.pages["/"] = home
        site.pages["/robots.txt"] = lambda request: web.Response(status=500)  # It is journaled.
        again = await make_peer(sitemaps=True)
        await finish([again])
        assert only_mapped <= set(site.fetched)


async def test_depth_counts_by_way_of_sitemaps(make_peer: MakePeer) -> None:
    async with Web() as site:
        mapped(site)
        peer = await make_peer(sitemaps=True, max_depth=2, scope="host")
        await peer.crawl([site.url()])
        await finish([peer])
        assert {site.url(path) for path in ("/", "/page", "/maps/index", "/maps/1.xml.gz", "/maps/2.xml")} == set(
            site.fetched
        )


def shop_page(request: web.BaseRequest) -> web.StreamResponse:
    """Answer with a page whose canonical URL has no query, and that links to an item in several sort orders."""
    number = int(request.path[1:] or 0)
    onward = "".join(f'<a href="/{number + 1}?sort={sort}">x</a>' for sort in "abc") if number < 3 else ""
    text = f'<link rel=canonical href="{request.path}">{onward}<a href="{request.path}?sort=z">z</a>'
    return web.Response(text=text, content_type="text/html")


async def test_honored_canonical_links_lead_to_each_page_once_more_only(make_peer: MakePeer, lines: Lines) -> None:
    async with Web() as site:
        site.fallback = shop_page
        peer = await make_peer(canonical="honor")
        await peer.crawl([site.url()])
        await finish([peer])
        found = lines()
    plain = {site.url(f"/{number or ''}") for number in range(4)}
    assert plain == {url for url in found if "?" not in url}
    for url, line in found.items():
        assert line.fields.get("canonical") == (None if url in plain else url.partition("?")[0])
        assert line.fields["depth"] == min(int(url.rpartition("/")[2].partition("?")[0] or 0) + ("z" in url), 9)


async def test_of_pages_that_name_each_other_one_is_followed(make_peer: MakePeer) -> None:
    async with Web() as site:
        for path, named, link in (("/a", "/b", "/from-a"), ("/b", "/a", "/from-b")):
            text = f'<link rel=canonical href="{named}"><a href="{link}">x</a>'
            site.pages[path] = lambda request, text=text: web.Response(text=text, content_type="text/html")  # type: ignore[misc]
        site.pages["/"] = lambda request: html("/b", "/a")
        peer = await make_peer(canonical="honor")
        await peer.crawl([site.url()])
        await finish([peer])
        assert {*map(site.url, ("/", "/a", "/b", "/from-a"))} == set(site.fetched)
