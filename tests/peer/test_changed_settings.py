"""A person changes settings of the job while the crawl runs, at all peers, leaves and peers to come."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path

import pytest

from kadcrawl import Config, ConfigError, Leaf, Peer
from tests.support.sites.web import Web, html
from tests.support.swarm.crash import crash
from tests.support.swarm.peers import QUICK, MakePeer, finish, swarm
from tests.support.waiting import until

PAGES = 30


def urls(site: Web, sites: int = 1) -> list[str]:
    return [site.url(f"/{page}", number) for number in range(sites) for page in range(PAGES)]


async def test_the_delay_changes_at_all_peers_and_at_those_that_join(make_peer: MakePeer) -> None:
    async with Web(2) as site:
        site.fallback = lambda request: html()
        peers = await swarm(make_peer, "ab", delay_s=20.0)
        await peers[0].crawl(urls(site, 2))
        await until(lambda: len(site.requests) >= 2)
        assert 0 == await peers[1].change_setting("delay", 2.0, user="ann")
        peers.append(await make_peer("c", join=peers[0]))
        assert {2.0} == {peer.components.site_settings.delay_s("new.example") for peer in peers}
        assert [("set", "delay", 2.0, "ann")] == [
            (order.kind, order.about, order.value, order.user) for order in peers[2].orders
        ]
        await until(lambda: len(site.requests) > 20)
        times = [at for at, url in site.requests if f"//{site.url('/', 1)[7:-1]}/" in url][4:]
        assert min(later - earlier for earlier, later in pairwise(times)) >= 2.0 - 1e-3
        await peers[0].change_setting("delay", None)
        assert {20.0} == {peer.components.site_settings.delay_s("new.example") for peer in peers}
        assert [] == peers[1].orders


async def test_a_swarm_goes_on_with_a_larger_budget_and_ends_with_a_smaller(make_peer: MakePeer) -> None:
    async with Web(2) as site:
        site.fallback = lambda request: html()
        peers = await swarm(make_peer, "ab", max_pages=5)
        await peers[0].crawl(urls(site, 2))
        await asyncio.gather(*(peer.wait_done() for peer in peers))
        assert 5 == sum(peer.counters.pages for peer in peers)
        await peers[1].change_setting("max-pages", 12.0)
        await until(lambda: sum(peer.counters.pages for peer in peers) >= 12)
        await asyncio.gather(*(peer.wait_done() for peer in peers))
        assert 12 == sum(peer.counters.pages for peer in peers)
        await peers[0].change_setting("max-pages", 6.0)
        await finish(peers)
        assert 12 == sum(peer.counters.pages for peer in peers), "what is granted stays granted"


async def test_a_crawl_has_more_time_than_it_began_with(make_peer: MakePeer) -> None:
    async with Web(1) as site:
        site.fallback = lambda request: html()
        peer = await make_peer("a", max_time_s=2.0, delay_s=1.0)
        await peer.crawl(urls(site))
        await peer.wait_done()
        assert "time" == peer.limit_reached
        before = peer.counters.pages
        await peer.change_setting("max-time", 3_600.0)
        await until(lambda: peer.counters.pages >= before + 5)
        assert "" == peer.limit_reached


async def test_a_change_outlives_a_crash(make_peer: MakePeer) -> None:
    peer = await make_peer("a", retries=1)
    await peer.begin()
    await peer.change_setting("retries", 7.0)
    await crash(peer)
    again = await make_peer("a", retries=1)
    await again.begin()
    assert 7 == again.components.site_settings.retries("http://a.example/")


@pytest.mark.parametrize(
    ("order", "delay_s"),
    [
        (lambda peer, delay_s: peer.change_setting("delay", delay_s), 1.0),
        (lambda peer, delay_s: peer.slow_site("a.example", delay_s), 900.0),
    ],
    ids=["a changed delay", "a slowed site"],
)
async def test_a_leaf_has_the_delay_that_its_peers_have(
    make_peer: MakePeer, tmp_path: Path, order: Callable[[Peer, float | None], Awaitable[object]], delay_s: float
) -> None:
    async with Web(1) as site:
        site.fallback = lambda request: html()
        peer = await make_peer("a", delay_s=600.0)
        await peer.crawl(urls(site))
        config = Config(data=tmp_path / "leaf", allow_networks=("127.0.0.0/8",), limits=QUICK)
        async with Leaf(config) as leaf:
            await leaf.join([peer.contact.address])
            await order(peer, delay_s)
            await until(lambda: leaf.work.components.site_settings.delay_s("a.example") == delay_s)
            await order(peer, None)
            await until(lambda: leaf.work.components.site_settings.delay_s("a.example") == 600.0)
            await leaf.finish()


async def test_a_setting_that_cannot_change_is_refused(make_peer: MakePeer) -> None:
    peer = await make_peer("a")
    await peer.begin()
    for name, why in (("max-pages", "began without --max-pages"), ("max-depth", "cannot change while")):
        with pytest.raises(ConfigError, match=why):
            await peer.change_setting(name, 5.0)
    assert [] == peer.orders
