"""An order to drop a site ends the URLs that are pending where it arrives, each once, and no later ones."""

import asyncio
import logging
from pathlib import Path

import pytest

from kadcrawl import ConfigError
from kadcrawl.link.wire.order_messages import StandingOrder
from scripts.kadcrawl_run import page_lines
from tests.support.sites.owned_sites import SITES, answered, sites_of
from tests.support.sites.web import Web, html
from tests.support.swarm.crash import crash
from tests.support.swarm.peers import MakePeer, finish, swarm
from tests.support.waiting import until

PAGES = 12


def urls(site: Web, number: int, first: int = 0, count: int = PAGES) -> list[str]:
    return [site.url(f"/{page}", number) for page in range(first, first + count)]


def named(site: Web, number: int, partition: str = "host") -> str:
    return f"127.0.0.{number + 2}" if partition == "domain" else site.url("/", number)[7:-1]


def dropped(data: Path) -> list[str]:
    return sorted(page.url for page in page_lines(data) if page.failed == "site_dropped")


@pytest.mark.parametrize("partition", ["host", "domain", "url"])
async def test_pending_urls_end_once_and_later_ones_are_fetched(
    make_peer: MakePeer, tmp_path: Path, partition: str
) -> None:
    async with Web(3) as site:
        site.fallback = lambda request: html()
        peers = await swarm(make_peer, "abc", partition=partition)
        await peers[0].pause()
        await peers[0].crawl([*urls(site, 0), *urls(site, 1)])
        result = await peers[1].drop_site(named(site, 1, partition), user="ann")
        assert (PAGES, 0, 0) == (result.urls, result.cells_left, result.parts_missing)
        assert PAGES == (await peers[2].status()).pending
        assert [] == peers[2].orders, "the order is over"
        await peers[2].crawl(urls(site, 1, PAGES, 3))
        await peers[0].resume()
        await asyncio.gather(*(peer.wait_done() for peer in peers))
        assert sorted(urls(site, 1)) == dropped(tmp_path)
        assert {1} == {site.fetched[url] for url in (*urls(site, 0), *urls(site, 1, PAGES, 3))}
        assert {0} == {site.fetched[url] for url in urls(site, 1)}
        assert {"site_dropped": PAGES} == (await peers[0].retry(["site_dropped"])).urls
        await finish(peers)
        assert {1} == {site.fetched[url] for url in urls(site, 1)}, "the order does not apply to them again"


async def test_a_paused_site_is_dropped_and_stays_paused(make_peer: MakePeer) -> None:
    async with Web(2) as site:
        site.fallback = lambda request: html()
        peer = await make_peer("a")
        await peer.pause_site(named(site, 1))
        await peer.crawl(urls(site, 1))
        assert PAGES == (await peer.drop_site(named(site, 1).partition(":")[0])).urls
        await finish([peer])
        assert [] == site.requests
        assert 1 == len(peer.orders)


async def test_an_order_heard_late_spares_what_was_found_where_it_was_known(make_peer: MakePeer) -> None:
    """The owner that takes a cell over drops the URLs that its former owner accepted without knowing the order."""
    async with Web(1) as site:
        site.fallback = lambda request: html()
        peer = await make_peer("a")
        await peer.begin()
        await peer.pause()
        await peer.crawl(urls(site, 0, 0, 3))
        runtime = peer.runtime
        [order] = runtime.standing_orders.give(
            [StandingOrder("drop", named(site, 0), 1.0)], runtime.contact.id, runtime.resources.clock.now()
        )
        runtime.hear_orders([order])
        await peer.crawl(urls(site, 0, 3, 3))
        runtime.hear_orders([order])
        await until(lambda: not runtime.parts.dropping.looks.left)
        newcomer = await make_peer("b", join=peer)
        await peer.leave()
        assert 3 == newcomer.pending
        await newcomer.resume()
        await finish([newcomer])
        assert {1} == {site.fetched[url] for url in urls(site, 0, 3, 3)}
        assert {0} == {site.fetched[url] for url in urls(site, 0, 0, 3)}


async def test_an_order_outlives_a_crash_in_the_middle(make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Web(1) as site:
        site.fallback = lambda request: html()
        peer = await make_peer("a")
        await peer.begin()
        await peer.pause()
        await peer.crawl(urls(site, 0))
        dropping = peer.runtime.parts.dropping
        monkeypatch.setattr(dropping, "_look", lambda cell: None)
        runtime = peer.runtime
        order = StandingOrder("drop", named(site, 0), 1.0)
        runtime.hear_orders(runtime.standing_orders.give([order], runtime.contact.id, runtime.resources.clock.now()))
        await peer.store.journal.durable()
        await crash(peer)
        again = await make_peer("a")
        await until(lambda: not again.pending)
        await again.resume()
        await finish([again])
        assert [] == site.requests
        assert {"site_dropped": PAGES} == again.figures().failed


async def test_lent_urls_that_come_back_are_dropped(make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Web(SITES) as site:
        site.fallback = answered
        lender = await make_peer("a", delay_s=1.0, update_s=3600.0)
        borrower = await make_peer("b", join=lender)
        [number] = sites_of(lender, borrower, site, 1)
        name = site.url("/", number)[7:-1]
        await lender.crawl(urls(site, number, 0, 30))
        await until(lambda: lender.balancing.loans.lender.sites_with_spare_connections())
        monkeypatch.setattr(borrower.balancing.policy, "accept", lambda *_: True)
        assert await lender.balancing.loans.lender.lend(borrower.contact, name, 20)
        await until(lambda: lender.balancing.loans.lender.done >= 2)
        before = len(site.requests)
        await borrower.drop_site(name)
        await finish([lender, borrower])
        assert len(site.requests) <= before + 2, "those in flight end as usual"
        assert {"site_dropped"} == set(lender.figures().failed), "its owner alone drops them"
        assert 30 == lender.figures().failed["site_dropped"] + len(
            {url for _, url in site.requests if "/robots" not in url}
        )


async def test_an_order_to_drop_cannot_be_lifted(make_peer: MakePeer, caplog: pytest.LogCaptureFixture) -> None:
    peer = await make_peer("a")
    await peer.begin()
    orders = peer.runtime.standing_orders
    with pytest.raises(ConfigError, match="is over at once"):
        orders.give([StandingOrder("drop", "a.example", None)], bytes(20), 0.0)
    with caplog.at_level(logging.INFO):
        assert 0 == (await peer.drop_site("a.example", user="ann")).urls
        await asyncio.sleep(0)
    assert any("order.heard kind=drop about=a.example" in one.getMessage() for one in caplog.records)
