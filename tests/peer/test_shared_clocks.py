"""Whole peers whose sites share clocks: the server's own log shows the delay of an address, or of a host."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any, cast

import pytest
from aiohttp import web
from msgspec import structs

from kadcrawl import ConfigError, Job, Peer
from kadcrawl.crawl.clocks.clock_names import REST_S
from kadcrawl.link.wire.messages import TakeOver, TakeOverAnswer
from kadcrawl.replication.owner.sync_progress import SyncAttempt
from kadcrawl.settings.site_rules import SiteRule
from scripts.kadcrawl_run import LoggedPage
from tests.support.sites.web import Web, html
from tests.support.swarm.crash import crash
from tests.support.swarm.peers import QUICK, MakePeer, finish
from tests.support.waiting import until

Lines = Callable[[], dict[str, LoggedPage]]
SITES = 6
PAGES = 24
DELAY_S = 0.2
SPACED_S = 0.98 * DELAY_S
"""The least distance of two requests in the log of a server, which sees them a little later than they were sent."""
NAMES = {f"s{number}.test": ("127.0.0.2",) for number in range(SITES)}


def named(site: Web, page: int) -> str:
    return f"http://s{page % SITES}.test:{site.port}/{page}"


def serve(site: Web, pages: int = PAGES) -> set[str]:
    """Serve pages on all names, each with links to all others. Return their URLs."""
    urls = {named(site, page) for page in range(pages)}
    site.fallback = lambda request: html(*sorted(urls))
    return urls


async def three(make_peer: MakePeer, **job: object) -> list[Peer]:
    """Return three peers that know the names."""
    first = await make_peer("a", hosts=NAMES, **job)
    return [first, *[await make_peer(name, join=first, hosts=NAMES) for name in "bc"]]


def spacings(site: Web) -> list[float]:
    """Return the seconds between two requests, robots.txt included, as the server saw them."""
    return [later - earlier for (earlier, _), (later, _) in pairwise(site.requests)]


@pytest.mark.parametrize("partition", ["host", "domain", "url"])
async def test_names_on_one_address_share_its_delay_over_the_swarm(
    partition: str, make_peer: MakePeer, lines: Lines
) -> None:
    async with Web() as site:
        urls = serve(site)
        peers = await three(make_peer, per_ip=True, partition=partition, delay_s=DELAY_S)
        await peers[0].crawl([named(site, 0)])
        await finish(peers)
        assert urls == {url for url, line in lines().items() if line.status == 200}
        assert min(spacings(site)) >= SPACED_S


async def test_a_peer_that_cannot_look_up_names_lets_others_lease_the_clock(make_peer: MakePeer, lines: Lines) -> None:
    async with Web() as site:
        urls = serve(site)
        first = await make_peer("a", hosts=NAMES, per_ip=True, delay_s=DELAY_S)
        others = [await make_peer("b", join=first, hosts={}), await make_peer("c", join=first, hosts=NAMES)]
        await first.crawl([named(site, 0)])
        await finish([first, *others])
        assert urls == {url for url, line in lines().items() if line.status == 200}
        assert min(spacings(site)) >= SPACED_S


@pytest.mark.parametrize("job", [{"per_ip": True}, {"partition": "url"}])
async def test_a_killed_peer_breaks_no_delay_of_a_shared_clock(
    job: dict[str, object], make_peer: MakePeer, lines: Lines
) -> None:
    async with Web() as site:
        urls = serve(site, 60)
        if "per_ip" not in job:
            urls = {site.url(f"/{page}") for page in range(60)}
            site.fallback = lambda request: html(*sorted(urls))
        peers = await three(make_peer, delay_s=DELAY_S, **job)
        await peers[0].crawl([min(urls)])
        await until(lambda: len(site.requests) > 15)
        keepers = [peer for peer in peers if len(peer.runtime.parts.clock_host)]
        assert keepers
        await crash(keepers[0])
        await finish([peer for peer in peers if peer is not keepers[0]])
        assert urls <= site.fetched.keys()
        assert min(spacings(site)) >= SPACED_S


async def test_requests_without_a_delay_keep_to_the_connections_of_an_address(make_peer: MakePeer) -> None:
    async with Web() as site:
        urls, under_way, most = {named(site, page) for page in range(120)}, 0, 0

        async def page(request: web.BaseRequest) -> web.StreamResponse:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.05)
            under_way -= 1
            return html(*sorted(urls))

        site.fallback = page
        peers = await three(make_peer, per_ip=True, delay_s=0.0)
        await peers[0].crawl([named(site, 0)])
        await finish(peers)
        assert urls <= site.fetched.keys()
        assert 1 < most <= QUICK.site_connections_max


@pytest.mark.parametrize("rule", [{"connections": 2}, {"delay_s": DELAY_S}])
async def test_a_rule_of_a_host_holds_for_all_its_urls(rule: dict[str, float], make_peer: MakePeer) -> None:
    async with Web() as site:
        urls, under_way, most = {site.url(f"/{page}") for page in range(30)}, 0, 0

        async def page(request: web.BaseRequest) -> web.StreamResponse:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(
                0.2
            )  # The crawl takes long beside the half second for which questions wait for company.
            under_way -= 1
            return html(*sorted(urls))

        site.fallback = page
        rules = (SiteRule(match=("127.0.0.2",), **cast(Any, rule)),)
        peers = await three(make_peer, partition="url", delay_s=0.0, sites=rules)
        await peers[0].crawl([site.url("/0")])
        await finish(peers)
        assert urls <= site.fetched.keys()
        assert (2 if "connections" in rule else 1) == most
        assert "connections" in rule or min(spacings(site)) >= SPACED_S


async def test_a_crawl_delay_holds_for_the_address(make_peer: MakePeer) -> None:
    async with Web() as site:
        urls = serve(site, 12)
        site.pages["/robots.txt"] = lambda request: web.Response(text=f"User-agent: *\nCrawl-delay: {5 * DELAY_S}\n")
        peers = await three(make_peer, per_ip=True, delay_s=DELAY_S)
        await peers[0].crawl([named(site, 0)])
        await finish(peers)
        assert urls <= site.fetched.keys()
        assert min(spacings(site)) >= SPACED_S
        after_pages = [
            later - earlier for (earlier, url), (later, _) in pairwise(site.requests) if not url.endswith("/robots.txt")
        ]
        assert min(after_pages) >= 5 * SPACED_S


async def test_a_host_that_refuses_its_robots_txt_is_left_alone_by_the_urls_of_all_peers(make_peer: MakePeer) -> None:
    wait_s = 2
    async with Web() as site:
        urls = {site.url(f"/{page}") for page in range(12)}
        site.fallback = lambda request: html(*sorted(urls))
        site.pages["/robots.txt"] = lambda request: web.Response(status=503, headers={"Retry-After": str(wait_s)})
        peers = await three(make_peer, partition="url", delay_s=0.0)
        await peers[0].crawl(sorted(urls))
        await finish(peers)
        hurried = [seconds for seconds in spacings(site) if seconds < 0.98 * wait_s]
        assert len(hurried) <= 1, "the request of another peer may have been under way as the host first refused"
        assert not site.fetched


async def test_after_a_restart_of_all_the_clock_rests(make_peer: MakePeer, lines: Lines) -> None:
    async with Web() as site:
        urls = serve(site)
        peers = await three(make_peer, per_ip=True, delay_s=DELAY_S)
        await peers[0].crawl([named(site, 0)])
        await until(lambda: len(site.requests) > 8)
        for peer in peers:
            await peer.__aexit__(None, None, None)
        asked = len(site.requests)
        first = await make_peer("a", hosts=NAMES, per_ip=True, delay_s=DELAY_S)
        others = [await make_peer(name, join=first, hosts=NAMES) for name in "bc"]
        await finish([first, *others])
        assert urls == {url for url, line in lines().items() if line.status == 200}
        assert min(spacings(site)) >= SPACED_S
        assert spacings(site)[asked - 1] >= REST_S


@pytest.mark.parametrize("job", [{"max_pages": 10}, {"history": "bloom"}, {"recrawl_after_s": 3600.0}])
async def test_an_address_has_one_pace_in_every_kind_of_job(job: dict[str, object], make_peer: MakePeer) -> None:
    async with Web() as site:
        urls = serve(site)
        peers = await three(make_peer, per_ip=True, delay_s=DELAY_S, **job)
        await peers[0].crawl([named(site, 0)])
        most = cast(int, job.get("max_pages", len(urls)))
        await until(lambda: len(site.fetched) >= most)
        assert min(spacings(site)) >= SPACED_S


async def test_a_host_that_no_name_server_knows_fails_as_ever(make_peer: MakePeer, lines: Lines) -> None:
    async with Web() as site:
        site.fallback = lambda request: html("http://nowhere.test/")
        peers = await three(make_peer, per_ip=True, delay_s=0.0, retries=0)
        await peers[0].crawl([named(site, 0)])
        await finish(peers)
        line = lines()["http://nowhere.test/"]
        assert "dns" == line.failed
        assert cast(int, line.fields["tried_by"]) >= 2


def test_proxies_look_up_addresses_themselves() -> None:
    with pytest.raises(ConfigError, match="per_ip cannot go with proxies"):
        Job(per_ip=True, proxies=("http://192.0.2.1:8080",), proxy_judge="http://judge.example/")


async def test_a_peer_that_lost_another_lately_says_so_to_the_next_owner_of_a_clock(make_peer: MakePeer) -> None:
    first, second, third = await three(make_peer, per_ip=True)
    question = TakeOver(second.contact, [1])
    take_over = first.cells.handlers()[TakeOver]
    assert [None] == [state.lost_s for state in cast(TakeOverAnswer, await take_over(question)).cells]
    third_id = third.contact.id
    await crash(third)
    await until(lambda: not first.overlay.is_live(third_id))
    [state] = cast(TakeOverAnswer, await take_over(question)).cells
    assert state.lost_s is not None
    attempt = SyncAttempt(0.0, 0, 0, left_closed=False)
    assert attempt.lost_s() is None
    attempt.answers = {first.contact.id: state, second.contact.id: structs.replace(state, lost_s=0.5)}
    assert min(0.5, state.lost_s) == attempt.lost_s()
