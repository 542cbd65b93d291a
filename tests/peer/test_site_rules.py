"""Real crawls by rules for single sites, with each partition, more peers, and a peer that joins later."""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pytest
from aiohttp import web

from kadcrawl.settings.site_rules import SiteRule
from kadcrawl.urls import Partition
from scripts.kadcrawl_run import LoggedPage
from tests.support.sites.web import Web, html
from tests.support.swarm.peers import MakePeer, finish, swarm

Lines = Callable[[], dict[str, LoggedPage]]
OFF, SLOW, MAPPED, PLAIN = "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"
PAGES = 8
DELAY_S = 0.1
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
