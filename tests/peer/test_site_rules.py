"""Real crawls by rules for single sites, with each partition, more peers, and a peer that joins later."""

import gzip
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from aiohttp import web

from kadcrawl import StartError
from kadcrawl.settings.site_rules import SiteRule
from kadcrawl.urls import Partition
from scripts.kadcrawl_run import LoggedPage
from tests.support.sites.web import Web, html, slow
from tests.support.swarm.peers import MakePeer, finish, swarm

Lines = Callable[[], dict[str, LoggedPage]]
OFF, SLOW, MAPPED, PLAIN = "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"
PAGES = 8
DELAY_S = 0.1
ENOUGH_S = 10.0
"""Seconds in which also a machine that is busy elsewhere answers."""
RULES = (
    SiteRule(match=(OFF,), off=True),
    SiteRule(match=(SLOW,), delay_s=DELAY_S),
    SiteRule(match=(MAPPED,), sitemaps=True),
)


def serve(site: Web) -> set[str]:
    """Serve four sites, each page of which links to all others. Return their URLs."""
    site.fallback = lambda request: html(
        *(site.url(f"/{page}", site=number) for page in range(PAGES) for number in range(4))
    )

    def sitemap(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text=f"http://{request.host}/orphan\n", content_type="text/plain")

    site.pages |= {"/sitemap.xml": sitemap, "/orphan": lambda request: html()}
    return {site.url(f"/{page}", site=number) for page in range(PAGES) for number in range(4)}


def of_host(urls: set[str], host: str) -> set[str]:
    return {url for url in urls if url.startswith(f"http://{host}:")}


@pytest.mark.parametrize("partition", ["host", "domain", "url"])
async def test_rules_hold_on_every_peer_of_a_swarm(partition: Partition, make_peer: MakePeer, lines: Lines) -> None:
    async with Web(4) as site:
        urls = serve(site)
        peers = await swarm(make_peer, "abc", sites=RULES, partition=partition)
        await peers[0].crawl([site.url("/0", site=3)])
        await finish(peers)
        expected = urls - of_host(urls, OFF) | {site.url("/sitemap.xml", site=2), site.url("/orphan", site=2)}
        assert expected == lines().keys()
        assert not any(url.startswith(f"http://{OFF}") for _, url in site.requests)
        assert all(rule in peer.job.sites for peer in peers for rule in RULES)
        starts = [at for at, url in site.requests if url.startswith(f"http://{SLOW}:")]
    if partition != "url":
        assert min(later - earlier for earlier, later in pairwise(starts)) >= DELAY_S * 0.9


async def test_a_seed_on_a_site_that_is_off_is_recorded_and_not_asked(make_peer: MakePeer, lines: Lines) -> None:
    async with Web(1) as site:
        peer = await make_peer(sites=RULES)
        await peer.crawl([site.url("/")])
        await finish([peer])
        assert [] == site.requests
    assert {"site_off": 1} == Counter(line.fields["failed"] for line in lines().values())


@pytest.mark.parametrize("partition", ["host", "domain", "url"])
async def test_the_robots_txt_of_an_own_host_is_ignored_and_the_warc_says_so(
    partition: Partition, make_peer: MakePeer, lines: Lines, tmp_path: Path
) -> None:
    async with Web(2) as site:
        site.pages["/robots.txt"] = lambda request: web.Response(text="user-agent: *\ndisallow: /\n")
        site.fallback = lambda request: html("/1", "/2", site.url("/", site=1))
        own = SiteRule(match=(OFF,), robots="ignore")
        peers = await swarm(make_peer, "ab", sites=(own,), partition=partition, contact="you@a.test")
        await peers[0].crawl([site.url("/")])
        await finish(peers)
        assert {site.url("/"), site.url("/1"), site.url("/2")} == set(site.fetched)
        assert site.url("/robots.txt") not in {url for _, url in site.requests}
    assert {"robots": 1} == Counter(line.fields["failed"] for line in lines().values() if "failed" in line.fields)
    warcs = [gzip.decompress(path.read_bytes()) for path in tmp_path.rglob("*.warc.gz")]
    assert warcs
    assert all(b"robots: obey, but ignore for 127.0.0.2\r\n" in warc for warc in warcs)


async def test_a_peer_does_not_ignore_a_robots_txt_for_nobody(make_peer: MakePeer) -> None:
    with pytest.raises(StartError, match="robots ignore needs a contact"):
        await make_peer(sites=(SiteRule(match=(OFF,), robots="ignore"),))


async def test_a_crawl_has_its_own_headers_and_name_and_obeys_what_is_said_to_it(
    make_peer: MakePeer, lines: Lines, tmp_path: Path
) -> None:
    seen: dict[str, set[tuple[str, ...]]] = {}

    def page(request: web.BaseRequest) -> web.StreamResponse:
        names = ("User-Agent", "X-All", "X-Own", "Accept-Language")
        seen.setdefault(request.host.partition(":")[0], set()).add(
            tuple(request.headers.get(name, "") for name in names)
        )
        return html("/forbidden", "/1", site.url("/", site=1), X_Robots_Tag="otherbot: nofollow")

    own = SiteRule(match=(SLOW,), headers=("X-Own: 1",), user_agent="Mozilla/5.0 (mybot)")
    async with Web(2) as site:
        rules = "user-agent: kadcrawl\ndisallow: /\n\nuser-agent: mybot\ndisallow: /forbidden\n"
        site.pages["/robots.txt"] = lambda request: web.Response(text=rules)
        site.fallback = page
        headers = ("X-All: yes", "Accept-Language: de")
        peers = await swarm(make_peer, "ab", user_agent="mybot/2", contact="me@a.test", headers=headers, sites=(own,))
        await peers[0].crawl([site.url("/")])
        await finish(peers)
        failed = {line.fields.get("failed") for url, line in lines().items() if "/forbidden" in url}
    assert {"robots"} == failed
    assert {
        OFF: {("mybot/2 (+me@a.test)", "yes", "", "de")},
        SLOW: {("Mozilla/5.0 (mybot) (+me@a.test)", "", "1", "")},
    } == seen
    warcs = b"".join(gzip.decompress(path.read_bytes()) for path in tmp_path.rglob("*.warc.gz"))
    assert b"http-header-user-agent: mybot/2 (+me@a.test)\r\n" in warcs
    assert b"Accept-Encoding: gzip" in warcs
    assert b"\r\nX-All: yes\r\nAccept-Language: de\r\n" in warcs


async def test_a_site_has_bounds_of_its_own_for_an_answer(make_peer: MakePeer, lines: Lines) -> None:
    bounds = (
        SiteRule(match=(OFF,), body_bytes_max=100),
        SiteRule(match=(SLOW,), fetch_timeout_s=ENOUGH_S, retries=0),
        SiteRule(match=(MAPPED,), retries=0),
    )
    async with Web(4) as site:
        site.pages |= {
            "/large": lambda request: web.Response(body=b"x" * 101),
            "/late": slow(lambda request: html(), 10 * ENOUGH_S),
            "/broken": lambda request: html(status=500),
        }
        peers = await swarm(make_peer, "ab", sites=bounds, retries=1)
        urls = [site.url("/large"), site.url("/large", site=1), site.url("/late", site=1)]
        urls += [site.url("/broken", site=2), site.url("/broken", site=3)]
        await peers[0].crawl(urls)
        await finish(peers)
        assert ["body_too_large", None, "timeout", "http_500", "http_500"] == [
            lines()[url].fields.get("failed") for url in urls
        ]
        assert [1, 2] == [site.fetched[url] for url in urls[3:]]


@pytest.mark.parametrize("partition", ["host", "domain"])
async def test_the_budget_of_a_site_holds_whichever_peer_owns_it(
    partition: Partition, make_peer: MakePeer, lines: Lines
) -> None:
    budgets = (
        SiteRule(match=(OFF,), site_pages_max=3),
        SiteRule(match=(PLAIN, SLOW), site_pages_max=5),
    )
    async with Web(4) as site:
        serve(site)
        peers = await swarm(make_peer, "abc", sites=budgets, partition=partition, site_pages_max=7)
        await peers[0].crawl([site.url("/0", site=3)])
        await finish(peers)
        hosts = Counter(url.split("/")[2].partition(":")[0] for url in lines())
    assert {OFF: 3, PLAIN: 5, SLOW: 5, MAPPED: 7} == hosts
