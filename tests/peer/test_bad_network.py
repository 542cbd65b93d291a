"""Whole peers whose network to the sites is bad: their share is fetched by others, and nothing fails for all."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from aiohttp import web

from kadcrawl import Peer
from kadcrawl.crawl.reach import network_health, self_test
from kadcrawl.link.wire.peer_state import PeerState
from scripts.kadcrawl_run import LoggedPage
from tests.support.sites.web import Web, html, slow, tree
from tests.support.swarm.peers import QUICK, MakePeer, finish, swarm
from tests.support.waiting import until

Lines = Callable[[], dict[str, LoggedPage]]
SITES = 20
"""So many that each of two peers owns some, whatever the ports and IDs are."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_test, "LOOK_S", 0.01)
    monkeypatch.setattr(network_health, "TEST_LEAST_S", 0.05)


async def two(make_peer: MakePeer, **job: object) -> tuple[Peer, Peer]:
    """Return a peer that may ask the sites, and a peer that may not."""
    good = await make_peer("good", **job)
    return good, await make_peer("bad", join=good, networks=())


@pytest.mark.parametrize("partition", ["host", "domain", "url"])
async def test_a_peer_without_allow_network_fails_no_url_of_its_share(
    make_peer: MakePeer, lines: Lines, partition: str
) -> None:
    async with Web(SITES) as site:
        site.fallback = tree(150, SITES)(site)
        good, bad = await two(make_peer, partition=partition)
        await good.crawl([site.url("/0")])
        await finish([good, bad])
        assert dict.fromkeys(site.numbered(150), (200, None)) == {
            url: (line.status, line.failed) for url, line in lines().items()
        }
        assert set() == site.repeated
        by_other = [line for line in lines().values() if "via" in line.fields]
        assert {good.contact.id.hex()[:16]} == {line.fields["via"] for line in by_other}
        assert {bad.contact.id.hex()[:16]} == {line.fields["peer"] for line in by_other}


@pytest.mark.parametrize(
    "job",
    [
        {"history": "bloom"},
        {"max_depth": 20},
        {"max_pages": 500},
        {"recrawl_after_s": 3600.0},
        {"balance": "off"},
    ],
)
async def test_the_share_of_a_bad_network_is_fetched_in_every_kind_of_job(
    make_peer: MakePeer, lines: Lines, job: dict[str, object]
) -> None:
    async with Web(SITES) as site:
        site.fallback = tree(80, SITES)(site)
        good, bad = await two(make_peer, **job)
        await good.crawl([site.url("/0")])
        if "recrawl_after_s" in job:
            await until(lambda: good.activity.resting and bad.activity.resting)
        else:
            await finish([good, bad])
        await bad.store.journal.durable()
        await good.store.journal.durable()
        assert {200} == {line.status for line in lines().values()}
        assert 80 == len(lines())


async def test_a_site_that_two_peers_cannot_reach_fails_and_says_how_many_tried(
    make_peer: MakePeer, lines: Lines
) -> None:
    async with Web() as site:
        site.pages["/0"] = lambda request: html("http://127.0.0.1:9/a", "http://127.0.0.1:9/b")
        peers = await swarm(make_peer, "ab", retries=0)
        await peers[0].crawl([site.url("/0")])
        await finish(peers)
        failed = {url: (line.failed, line.fields.get("tried_by", 1)) for url, line in lines().items() if line.failed}
        assert {"http://127.0.0.1:9/a": ("connect", 2), "http://127.0.0.1:9/b": ("connect", 2)} == failed


async def test_the_only_peer_of_a_swarm_fails_what_it_cannot_reach(make_peer: MakePeer, lines: Lines) -> None:
    async with Web() as site:
        site.pages["/0"] = lambda request: html("http://127.0.0.1:9/a")
        peer = await make_peer(retries=0)
        await peer.crawl([site.url("/0")])
        await finish([peer])
        line = lines()["http://127.0.0.1:9/a"]
        assert ("connect", 1) == (line.failed, line.fields.get("tried_by", 1))


async def test_a_page_of_many_megabytes_comes_through_another_peer_whole(make_peer: MakePeer, lines: Lines) -> None:
    large = b"<p>" + b"x" * (5 << 20)
    async with Web(SITES) as site:
        site.pages["/0"] = lambda request: html(*(site.url("/large", number) for number in range(SITES)))
        site.pages["/large"] = lambda request: web.Response(body=large, content_type="text/html")
        good, bad = await two(make_peer)
        await good.crawl([site.url("/0")])
        await finish([good, bad])
        found = [line for url, line in lines().items() if url.endswith("/large")]
        assert [(200, len(large), None)] * SITES == [(line.status, line.fields["bytes"], line.failed) for line in found]
        assert [line for line in found if "via" in line.fields]


async def test_a_failing_peer_says_so_and_finds_out_when_its_network_works(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Web(40) as site:
        site.fallback = slow(tree(4000, 40)(site), 0.05)
        good, bad = await two(make_peer)
        await good.crawl([site.url("/0")])
        await until(lambda: bad.state == "network failing: others fetch for it")
        states = {row.contact.id: row.state for row in (await good.census()).rows}
        assert {good.contact.id: PeerState.CRAWLING, bad.contact.id: PeerState.NETWORK_FAILING} == states
        monkeypatch.setattr("kadcrawl.crawl.fetch.address_guard.Guard.permits", lambda guard, address: True)
        await until(lambda: bad.state == "crawling")
        assert not bad.components.reach.health.is_failing


async def test_a_swarm_without_network_waits_and_goes_on_when_the_network_is_back(
    make_peer: MakePeer, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Web(SITES) as site:
        for number in range(1, 60):
            site.pages[f"/{number}"] = lambda request: html()
        with monkeypatch.context() as cut:
            cut.setattr("kadcrawl.crawl.fetch.address_guard.Guard.permits", lambda guard, address: False)
            peers = await swarm(make_peer, "ab", network_wait_s=3600.0, limits=replace(QUICK, robots_retry_s=5))
            await peers[0].crawl([site.url(f"/{number}", number % SITES) for number in range(1, 60)])
            await until(lambda: {"paused: network unreachable"} == {peer.state for peer in peers})
        await finish(peers)
        assert 59 == len(lines())
        assert {None} == {line.failed for line in lines().values()}


async def test_a_swarm_without_network_fails_its_urls_after_the_wait(make_peer: MakePeer, lines: Lines) -> None:
    peers = await swarm(make_peer, "ab", network_wait_s=0.1, limits=replace(QUICK, connect_timeout_s=1))
    await peers[0].crawl([f"http://127.0.0.{number}:9/" for number in range(2, 30)])
    await finish(peers)
    assert {"connect"} == {line.failed for line in lines().values()}
    assert 28 == len(lines())
