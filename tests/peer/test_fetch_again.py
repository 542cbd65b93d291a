"""Named URLs are fetched again, also those that are done: once each, by their owners."""

import asyncio
from pathlib import Path

import pytest

from kadcrawl import ConfigError
from kadcrawl.link.wire.messages import AddAgain, AddedAgain
from kadcrawl.link.wire.retry_messages import FetchAgain, FetchedAgain
from kadcrawl.peer.swarm.fetch_again import AgainFetcher, fetch_again
from tests.peer.test_retry import SITES, crawled, visits
from tests.support.sites.web import Web, html
from tests.support.swarm.crash import crash
from tests.support.swarm.peers import MakePeer, finish
from tests.support.waiting import until


async def test_urls_that_are_done_are_fetched_again_by_the_order_of_any_peer(
    make_peer: MakePeer, tmp_path: Path
) -> None:
    async with Web(SITES) as site:
        peers, healing = await crawled(make_peer, site, "abc")
        healing.heal()
        named = healing.urls("/fine", "/gone")
        assert 2 * SITES == await peers[2].fetch_again(named)
        await finish(peers)
        assert {2} == {site.fetched[url] for url in named}
        assert {1} == {site.fetched[url] for url in healing.urls("/broken", "/below")}
        assert [(0, None), (1, None)] == visits(tmp_path, named[0])
        assert [(0, "http_404"), (1, None)] == visits(tmp_path, named[1])


async def test_only_those_that_failed_are_fetched_again_if_so_asked(make_peer: MakePeer) -> None:
    async with Web(SITES) as site:
        peers, healing = await crawled(make_peer, site, "ab")
        healing.heal()
        assert SITES == await peers[0].fetch_again(healing.urls("/fine", "/gone"), only_failed=True)
        await finish(peers)
        assert {1} == {site.fetched[url] for url in healing.urls("/fine")}
        assert {2} == {site.fetched[url] for url in healing.urls("/gone")}


async def test_an_order_may_come_as_soon_as_a_peer_has_begun(make_peer: MakePeer) -> None:
    async with Web() as site:
        peers, _ = await crawled(make_peer, site, "a")
        gone = site.url("/gone")
        await crash(peers[0])
        assert 1 == await (await make_peer("a", retries=0)).fetch_again([gone], only_failed=True)


async def test_what_is_pending_or_was_never_met_is_counted_and_left_alone(make_peer: MakePeer) -> None:
    async with Web() as site:
        site.fallback = lambda request: html()
        peer = await make_peer("a")
        peer.obey(peer.state_gossip.say("pause"))
        await peer.crawl([site.url("/waiting")])
        outcomes = await fetch_again(peer.runtime, [site.url("/waiting"), site.url("/never")])
        assert {"pending": 1, "unknown": 1} == dict(outcomes)


async def test_a_repeat_of_the_message_begins_no_second_round(make_peer: MakePeer) -> None:
    async with Web() as site:
        site.fallback = lambda request: html()
        peer = await make_peer("a")
        url = site.url("/page")
        await peer.crawl([url])
        await until(lambda: peer.ended)
        message = FetchAgain([url, "http://127.0.0.2/%", "nonsense"], 7, only_failed=False)
        for _ in range(2):
            answer = await peer.client.ask(peer.contact, message, FetchedAgain, 5)
            assert ["again", "unknown", "unknown"] == answer.outcomes
            await until(lambda: peer.ended)
        assert ["done"] == (await AgainFetcher(peer.runtime).answer(FetchAgain([url], 6, only_failed=False))).outcomes
        await finish([peer])
        assert 2 == site.fetched[url]


async def test_a_command_adds_the_new_and_has_the_others_fetched_again(make_peer: MakePeer) -> None:
    async with Web(SITES) as site:
        peers, _ = await crawled(make_peer, site, "ab", scope="host")
        new = site.url("/fine", SITES - 1)
        known = site.url("/fine")
        added = await peers[0].client.ask(peers[1].contact, AddAgain([known, new]), AddedAgain, 20)
        assert (1, 1) == (added.again, added.pending)
        await finish(peers)
        assert {known: 2, new: 1} == {url: site.fetched[url] for url in (known, new)}
        assert new in peers[0].job.seeds


async def test_two_orders_in_one_moment_are_two_orders(make_peer: MakePeer) -> None:
    async with Web() as site:
        site.fallback = lambda request: html()
        peer = await make_peer("a")
        await peer.crawl([site.url("/page")])
        for number in (2, 3):
            await until(lambda: peer.ended)
            assert 1 == await peer.fetch_again([site.url("/page")])
            await until(lambda number=number: site.fetched[site.url("/page")] == number)  # type: ignore[misc]
        await finish([peer])


async def test_the_totals_add_up_after_a_page_was_fetched_again(make_peer: MakePeer) -> None:
    from kadcrawl.cli.view.summary import add_up

    async with Web(SITES) as site:
        peers, healing = await crawled(make_peer, site, "ab")
        await peers[0].fetch_again(healing.urls("/fine", "/gone"))
        await finish(peers)
        total = add_up((peer.row() for peer in peers), 1.0, peers[0].job)
        assert total.urls_found == total.urls_done == 1 + 3 * SITES
        assert {"http_404": SITES, "http_500": SITES} == total.urls_failed


async def test_a_crawl_that_keeps_fingerprints_refuses(make_peer: MakePeer) -> None:
    peer = await make_peer("a", history="bloom")
    with pytest.raises(ConfigError, match="no URL that is done can be taken out"):
        await peer.fetch_again(["http://127.0.0.2/"])
    await asyncio.sleep(0)
