"""Orders about sites reach all peers, hold back requests, and stand until a person lifts them."""

import asyncio
import logging
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kadcrawl import Config, ConfigError, Leaf
from kadcrawl.cli.local.orders_at_rest import give_at_rest
from kadcrawl.link.wire.order_messages import StandingOrder
from scripts.kadcrawl_run import LoggedPage
from tests.support.sites.owned_sites import SITES, answered, sites_of
from tests.support.sites.web import Web, html, slow
from tests.support.swarm.crash import crash
from tests.support.swarm.peers import QUICK, MakePeer, finish, swarm
from tests.support.waiting import until

PAGES = 30


class Sites:
    """Some sites with many pages each, all seeds."""

    def __init__(self, site: Web, sites: int) -> None:
        self.site = site
        site.fallback = slow(lambda request: html(), 0.02)
        self.urls = [site.url(f"/{page}", number) for number in range(sites) for page in range(PAGES)]

    def name(self, number: int) -> str:
        return self.site.url("/", number)[7:-1]

    def fetched(self, number: int) -> int:
        return sum(self.site.fetched[self.site.url(f"/{page}", number)] for page in range(PAGES))

    def asked(self, number: int) -> int:
        return sum(f"//{self.name(number)}/" in url for _, url in self.site.requests)


async def rested(sites: Sites, number: int) -> None:
    """Return when the requests to a site that were under way are over."""
    while True:
        before = sites.asked(number)
        await asyncio.sleep(0.5)
        if sites.asked(number) == before:
            return


@pytest.mark.parametrize("partition", ["host", "domain", "url"])
async def test_no_peer_asks_a_paused_site_until_it_goes_on(make_peer: MakePeer, partition: str) -> None:
    async with Web(6) as site:
        sites = Sites(site, 6)
        peers = await swarm(make_peer, "abc", partition=partition)
        await peers[0].crawl(sites.urls[:1])
        for number in (1, 2):
            name = sites.name(number) if partition != "domain" else f"127.0.0.{number + 2}"
            assert 0 == await peers[number].pause_site(name)
        await peers[0].crawl(sites.urls)
        await until(lambda: all(sites.fetched(number) == PAGES for number in (0, 3, 4, 5)))
        await asyncio.sleep(5)
        assert [0, 0] == [sites.asked(number) for number in (1, 2)]
        assert not any(peer.ended for peer in peers), "their URLs are pending"
        assert 2 * PAGES == sum(peer.row().pending for peer in peers)
        for number in (1, 2):
            name = sites.name(number) if partition != "domain" else f"127.0.0.{number + 2}"
            assert 0 == await peers[0].resume_site(name)
        await finish(peers)
        assert {1} == {site.fetched[url] for url in sites.urls}


async def test_a_site_is_paused_in_mid_crawl_at_all_peers(make_peer: MakePeer) -> None:
    async with Web(4) as site:
        sites = Sites(site, 4)
        peers = await swarm(make_peer, "ab", delay_s=0.2)
        await peers[0].crawl(sites.urls)
        await until(lambda: all(sites.fetched(number) for number in range(4)))
        await peers[1].pause_site(sites.name(0))
        await rested(sites, 0)
        before = sites.asked(0)
        assert before < PAGES
        await until(lambda: all(sites.fetched(number) == PAGES for number in (1, 2, 3)))
        assert before == sites.asked(0)
        await peers[0].resume_site(sites.name(0))
        await finish(peers)
        assert set() == site.repeated


async def test_a_peer_that_no_wave_has_reached_hears_an_order_by_heartbeats(make_peer: MakePeer) -> None:
    peers = await swarm(make_peer, "abc")
    runtime = peers[0].runtime
    order = StandingOrder("pause", "a.example", 1.0)
    runtime.hear_orders(runtime.standing_orders.give([order], runtime.contact.id, runtime.resources.clock.now()))
    await until(lambda: all(peer.orders for peer in peers))
    assert peers[0].orders == peers[2].orders


async def test_a_peer_that_joins_hears_the_orders_with_the_job(make_peer: MakePeer) -> None:
    peer = await make_peer("a")
    await peer.pause_site("a.example", user="ann")
    await peer.slow_site("b.example", 5)
    newcomer = await make_peer("b", join=peer)
    assert peer.orders == newcomer.orders
    said = [(order.kind, order.about, order.value, order.user, order.peer) for order in newcomer.orders]
    identity = peer.contact.id.hex()
    assert [("delay", "b.example", 5.0, "", identity), ("pause", "a.example", 1.0, "ann", identity)] == said
    assert newcomer.components.site_settings.steering.is_paused("a.example"), "before it starts a request"


async def test_orders_outlive_the_death_of_all_peers(make_peer: MakePeer) -> None:
    async with Web(2) as site:
        sites = Sites(site, 2)
        peers = await swarm(make_peer, "ab")
        await peers[0].pause_site(sites.name(1))
        await peers[0].crawl(sites.urls)
        for peer in peers:
            await crash(peer)
        again = await make_peer("a")
        await until(lambda: all(site.fetched[site.url(f"/{page}")] for page in range(PAGES)))
        assert 0 == sites.asked(1)
        assert [sites.name(1)] == [order.about for order in again.orders]
        await again.resume_site(sites.name(1))
        other = await make_peer("b", join=again)
        await finish([again, other])
        assert PAGES == sites.fetched(1)


async def test_a_slow_site_has_the_delay_of_the_order_and_its_own_again(make_peer: MakePeer) -> None:
    async with Web(2) as site:
        sites = Sites(site, 2)
        site.fallback = lambda request: html()
        peers = await swarm(make_peer, "ab")
        await peers[0].slow_site(sites.name(1), 3.0)
        await peers[0].crawl(sites.urls)
        await until(lambda: sites.asked(1) >= 6)
        times = [at for at, url in site.requests if f"//{sites.name(1)}/" in url]
        assert min(later - earlier for earlier, later in pairwise(times)) >= 3.0 - 1e-3
        assert PAGES == sites.fetched(0), "the other site has its own delay"
        await peers[1].slow_site(sites.name(1), 3600.0)
        await rested(sites, 1)
        before = sites.asked(1)
        await asyncio.sleep(30)
        assert before == sites.asked(1)
        await peers[0].slow_site(sites.name(1), None)
        # A peer that is told the clock of the site may keep its delay once more, up to what robots.txt may ask for.
        async with asyncio.timeout(4 * peers[0].config.limits.crawl_delay_max_s):
            await asyncio.gather(*(peer.wait_done() for peer in peers))
        assert [] == peers[1].orders


async def test_an_order_for_a_domain_holds_for_its_hosts_and_a_narrower_one_wins(make_peer: MakePeer) -> None:
    peer = await make_peer("a")
    steering = peer.components.site_settings.steering
    await peer.pause_site("*.Example.org")
    await peer.resume_site("https://www.example.org/")
    paused = [steering.is_paused(name) for name in ("example.org", "a.b.example.org:81", "www.example.org", "org")]
    assert [True, True, False, False] == paused
    await peer.pause_site("*.example.org")
    assert steering.is_paused("www.example.org"), "the wide order takes the place of the narrow ones"
    await peer.resume_site("*.example.org")
    assert [] == peer.orders


@pytest.mark.parametrize(
    ("name", "partition", "why"),
    [
        ("*", "host", "pauses the whole swarm"),
        ("example.org/path", "host", "without a scheme or a path"),
        ("https://example.org/path", "host", "name example.org$"),
        ("www.example.org", "domain", "name example.org"),
    ],
)
async def test_what_is_no_site_is_refused(make_peer: MakePeer, name: str, partition: str, why: str) -> None:
    peer = await make_peer("a", partition=partition)
    with pytest.raises(ConfigError, match=why):
        await peer.pause_site(name)
    assert [] == peer.orders


async def test_the_whole_swarm_is_paused_by_a_program(make_peer: MakePeer) -> None:
    peers = await swarm(make_peer, "ab")
    await peers[0].pause()
    assert [True, True] == [peer.paused for peer in peers]
    await peers[1].resume()
    assert [False, False] == [peer.paused for peer in peers]


async def test_lent_pages_of_a_paused_site_come_back(make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Web(SITES) as site:
        site.fallback = answered
        lender = await make_peer("a", delay_s=1.0, update_s=3600.0)
        borrower = await make_peer("b", join=lender)
        [number] = sites_of(lender, borrower, site, 1)
        name = site.url("/", number)[7:-1]
        await lender.crawl([site.url(f"/{page}", number) for page in range(PAGES)])
        await until(lambda: lender.balancing.loans.lender.sites_with_spare_connections())
        monkeypatch.setattr(borrower.balancing.policy, "accept", lambda *_: True)
        assert await lender.balancing.loans.lender.lend(borrower.contact, name, 20)
        await until(lambda: lender.balancing.loans.lender.done >= 2)
        await borrower.pause_site(name)
        await until(lambda: not lender.balancing.loans.lender.urls)
        before = len(site.requests)
        await asyncio.sleep(10)
        assert before == len(site.requests)
        await lender.resume_site(name)
        await finish([lender, borrower])
        assert set() == site.repeated


async def test_a_leaf_asks_no_paused_site(make_peer: MakePeer, tmp_path: Path) -> None:
    async with Web(2) as site:
        sites = Sites(site, 2)
        peer = await make_peer("a", delay_s=0.5)
        config = Config(data=tmp_path / "leaf", allow_networks=("127.0.0.0/8",), limits=QUICK)
        async with Leaf(config) as leaf:
            await leaf.join([peer.contact.address])
            await peer.crawl(sites.urls)
            await until(lambda: leaf.counters.pages > 2)
            await peer.pause_site(sites.name(0))
            await rested(sites, 0)
            before = sites.asked(0)
            await until(lambda: sites.fetched(1) == PAGES)
            assert before == sites.asked(0)
            await peer.resume_site(sites.name(0))
            await finish([peer])
            await leaf.finish()


async def test_the_log_of_each_peer_says_who_ordered_what(
    make_peer: MakePeer, caplog: pytest.LogCaptureFixture
) -> None:
    peers = await swarm(make_peer, "ab")
    with caplog.at_level(logging.INFO):
        await peers[0].pause_site("a.example", user="ann")
        await peers[0].pause_site("a.example", user="bob")
    said = [one.getMessage() for one in caplog.records if one.getMessage().startswith("order.heard")]
    by = peers[0].contact.id.hex()
    for user in ("ann", "bob"):
        begin = f"order.heard kind=pause about=a.example value=1.0 by={by} user={user} stamp="
        assert 2 == sum(line.startswith(begin) for line in said), "once at each peer"


async def test_the_log_of_the_giver_says_each_kind_of_order_and_its_lift(
    make_peer: MakePeer, caplog: pytest.LogCaptureFixture
) -> None:
    peer = await make_peer("a")
    with caplog.at_level(logging.INFO):
        for delay_s in (90.0, None):
            await peer.slow_site("a.example", delay_s, user="ann")
            await peer.change_setting("delay", delay_s, user="ann")
    by = peer.contact.id.hex()
    said = [one.getMessage().partition(" stamp=")[0] for one in caplog.records if "order.heard" in one.getMessage()]
    orders = [
        (kind, about, value) for value in (90.0, None) for kind, about in (("delay", "a.example"), ("set", "delay"))
    ]
    wanted = [f"order.heard kind={kind} about={about} value={value} by={by} user=ann" for kind, about, value in orders]
    assert wanted == said


async def test_a_repeated_wave_is_no_news(make_peer: MakePeer, caplog: pytest.LogCaptureFixture) -> None:
    peer = await make_peer("a")
    await peer.pause_site("a.example")
    orders: list[Any] = peer.runtime.standing_orders.to_wire()
    fingerprint = peer.runtime.state_fingerprint
    with caplog.at_level(logging.INFO):
        peer.runtime.hear_orders(orders)
    assert not any("order.heard" in one.getMessage() for one in caplog.records)
    assert fingerprint == peer.runtime.state_fingerprint


async def test_a_paused_site_has_no_place_among_the_sites_in_memory(make_peer: MakePeer) -> None:
    from dataclasses import replace

    async with Web(4) as site:
        sites = Sites(site, 4)
        peer = await make_peer("a", limits=replace(QUICK, active_sites_max=2))
        for number in range(3):
            await peer.pause_site(sites.name(number))
        await peer.crawl(sites.urls)
        await until(lambda: sites.fetched(3) == PAGES)
        for number in range(3):
            await peer.resume_site(sites.name(number))
        await finish([peer])


async def test_an_excluded_site_ends_without_a_request_and_can_come_back(
    make_peer: MakePeer, lines: Callable[[], dict[str, LoggedPage]]
) -> None:
    async with Web(3) as site:
        sites = Sites(site, 3)
        peers = await swarm(make_peer, "ab", delay_s=3.0, scope="any")
        await peers[0].pause_site(sites.name(1))
        await peers[0].crawl(sites.urls[PAGES : 2 * PAGES])
        assert 0 == await peers[1].exclude_site(sites.name(1))
        site.pages["/"] = lambda request: html(site.url("/new", 1), site.url("/new", 2))
        await peers[0].crawl([site.url("/")])
        await until(lambda: all(peer.ended for peer in peers))
        await asyncio.gather(*(peer.store.journal.commit() for peer in peers))
        failed = [line.url for line in lines().values() if line.fields.get("failed") == "site_excluded"]
        assert sorted(sites.urls[PAGES : 2 * PAGES]) == sorted(failed)
        assert 0 == sites.asked(1)
        assert 1 == site.fetched[site.url("/new", 2)]
        assert [("exclude", 1.0), ("pause", 1.0)] == [(order.kind, order.value) for order in peers[0].orders]
        await peers[0].include_site(sites.name(1))
        await peers[0].resume_site(sites.name(1))
        assert {"site_excluded": PAGES} == (await peers[1].retry(["site_excluded"], site=sites.name(1))).urls
        await until(lambda: sites.fetched(1) >= 2)


async def test_a_peer_whose_sites_are_paused_gives_its_share_of_the_pages_back(make_peer: MakePeer) -> None:
    async with Web(SITES) as site:
        site.fallback = answered
        peers = await swarm(make_peer, "ab", max_pages=20, update_s=3600.0)
        [paused] = sites_of(peers[0], peers[1], site, 1)
        [other] = sites_of(peers[1], peers[0], site, 1)
        await peers[0].pause_site(site.url("/", paused)[7:-1])
        await peers[0].crawl([site.url(f"/{page}", number) for number in (paused, other) for page in range(PAGES)])
        await until(lambda: peers[1].counters.pages == 20)
        assert 0 == peers[0].counters.pages


async def test_an_order_at_rest_holds_in_the_next_run_and_travels_to_the_swarm(
    make_peer: MakePeer, tmp_path: Path
) -> None:
    async with Web(2) as site:
        site.fallback = lambda request: html()
        paused = site.url("/", 1)[7:-1]
        peers = await swarm(make_peer, "ab")
        await peers[0].crawl([site.url("/first")])
        await until(lambda: site.fetched[site.url("/first")] == 1)
        await peers[1].__aexit__(None, None, None)
        order = StandingOrder("pause", paused, 1.0, user="ann")
        await asyncio.to_thread(give_at_rest, [tmp_path / "b"], [order])
        peers[1] = await make_peer("b", join=peers[0])
        await until(lambda: [[(paused, "ann")]] * 2 == [[(one.about, one.user) for one in it.orders] for it in peers])
        await peers[0].crawl([site.url("/held", 1), site.url("/second")])
        await until(lambda: site.fetched[site.url("/second")] == 1)
        assert 0 == site.fetched[site.url("/held", 1)]
        await peers[0].resume_site(paused)
        await finish(peers)
        assert 1 == site.fetched[site.url("/held", 1)]
