"""--max-time over the whole swarm: all peers stop together, nothing is lost, and a longer time goes on."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from aiohttp import web

from kadcrawl import Peer
from kadcrawl.crawl.time_count import CRAWL_TIME, JOURNAL_S, TICK_S
from kadcrawl.link.wire.messages import Order
from kadcrawl.overlay.liveness import Liveness
from scripts.kadcrawl_run import LoggedPage
from tests.support.sites.web import Web, html, slow, tree
from tests.support.swarm.crash import crash
from tests.support.swarm.peers import MakePeer, finish, swarm
from tests.support.waiting import until

Lines = Callable[[], dict[str, LoggedPage]]
SITES = 6
PAGES = 120
LIMIT_S = 6.0


def counted_s(peer: Peer) -> float:
    return peer.runtime.crawl_ms / 1000


def urls_of(peers: Sequence[Peer]) -> tuple[int, int, int]:
    """Return the URLs that these peers found, finished, and have left."""
    counters = [peer.counters for peer in peers]
    left = sum(peer.row().pending for peer in peers)
    return sum(one.urls for one in counters), sum(one.done for one in counters), left


async def test_all_peers_end_together_nothing_is_lost_and_a_longer_time_goes_on(
    make_peer: MakePeer, lines: Lines
) -> None:
    async with Web(SITES) as site:
        site.fallback = tree(PAGES, SITES)(site)
        peers = await swarm(make_peer, "abc", max_time_s=LIMIT_S, delay_s=1.0)
        await peers[0].crawl([site.url("/0")])
        await finish(peers)
        found, done, left = urls_of(peers)
        assert 0 < done == sum(site.fetched.values()) < PAGES
        assert found == done + left
        assert ["time"] * 3 == [peer.row().limit for peer in peers]
        assert [LIMIT_S] * 3 == [counted_s(peer) for peer in peers]
        for peer in peers:
            await peer.__aexit__(None, None, None)
        peers = await swarm(make_peer, "abc", max_time_s=50 * LIMIT_S, delay_s=1.0)
        assert LIMIT_S <= counted_s(peers[0]) < 50 * LIMIT_S, "the time of the first run counts"
        await finish(peers)
        assert [""] * 3 == [peer.row().limit for peer in peers]
        assert PAGES == len(lines()) == sum(site.fetched.values())


async def test_pages_under_way_are_finished_and_no_request_starts_after_the_limit(
    make_peer: MakePeer, lines: Lines
) -> None:
    async with Web(SITES) as site:
        site.fallback = slow(tree(PAGES, SITES)(site), 2.5)
        peer = await make_peer(max_time_s=LIMIT_S)
        await peer.crawl([site.url("/0")])
        await until(lambda: bool(peer.limit_reached))
        fetched = sum(site.fetched.values())
        assert peer.row().in_flight, "the limit came while pages were under way"
        await finish([peer])
        assert fetched == sum(site.fetched.values()) == len(lines())
        assert not [line for line in lines().values() if line.failed]


async def test_a_peer_that_joins_late_has_the_time_of_the_others(make_peer: MakePeer) -> None:
    async with Web(SITES) as site:
        site.fallback = tree(PAGES, SITES)(site)
        first = await make_peer("a", max_time_s=LIMIT_S, delay_s=1.0)
        await first.crawl([site.url("/0")])
        await until(lambda: counted_s(first) >= LIMIT_S / 2)
        late = await make_peer("b", join=first)
        assert counted_s(late) >= LIMIT_S / 2
        await finish([first, late])
        fetched = sum(site.fetched.values())
        later = await make_peer("c", join=first)
        await until(lambda: bool(later.limit_reached))
        await finish([first, late, later])
        assert 0 == later.counters.pages
        assert fetched == sum(site.fetched.values()) < PAGES


async def test_heartbeats_tell_a_longer_time(make_peer: MakePeer) -> None:
    one, other = await swarm(make_peer, "ab", max_time_s=1000.0)
    one.runtime.hear_time(700_000)
    await until(lambda: counted_s(other) >= 700.0)
    assert not other.limit_reached


async def test_a_crash_forgets_a_few_seconds_of_time_at_most(make_peer: MakePeer, lines: Lines) -> None:
    async with Web(SITES) as site:
        site.fallback = tree(PAGES, SITES)(site)
        peer = await make_peer("a", max_time_s=2 * LIMIT_S, delay_s=1.0)
        await peer.crawl([site.url("/0")])
        await until(lambda: counted_s(peer) >= LIMIT_S)
        before_s = counted_s(peer)
        await crash(peer)
        again = await make_peer("a", max_time_s=2 * LIMIT_S, delay_s=1.0)
        assert before_s - JOURNAL_S - TICK_S <= counted_s(again) <= before_s + TICK_S
        await finish([again])
        assert ("time", 2 * LIMIT_S) == (again.limit_reached, counted_s(again))
        assert len(lines()) < PAGES


async def test_no_time_counts_while_the_swarm_is_paused_or_has_no_work(make_peer: MakePeer) -> None:
    async with Web() as site:
        site.fallback = tree(5)(site)
        peer = await make_peer(max_time_s=1000.0, delay_s=1.0)
        await asyncio.sleep(4 * TICK_S)
        assert 0.0 == counted_s(peer), "no seed yet"
        await peer.crawl([site.url("/0")])
        await until(lambda: counted_s(peer) > 0.0)
        peer.obey(Order("pause", 1))
        await asyncio.sleep(2 * TICK_S)
        paused_s = counted_s(peer)
        await asyncio.sleep(20 * TICK_S)
        assert paused_s == counted_s(peer)
        peer.obey(Order("resume", 2))
        await finish([peer])
        await asyncio.sleep(2 * TICK_S)
        done_s = counted_s(peer)
        await asyncio.sleep(20 * TICK_S)
        assert 0.0 < paused_s <= done_s == counted_s(peer)
        assert not peer.limit_reached


@pytest.mark.parametrize("history", ["exact", "bloom"])
async def test_a_recrawl_ends_by_its_time_and_does_not_rest(make_peer: MakePeer, history: str) -> None:
    async with Web() as site:
        site.fallback = slow(tree(4)(site), 0.5)
        peer = await make_peer(max_time_s=LIMIT_S, delay_s=0.5, recrawl_after_s=7.0, history=history)
        await peer.crawl([site.url("/0")])
        await until(lambda: peer.ended)
        assert ("time", None) == (peer.limit_reached, peer.row().due_s)
        fetched = sum(site.fetched.values())
        await asyncio.sleep(20.0)
        assert fetched == sum(site.fetched.values()) > 4
        assert peer.ended


async def test_a_limit_that_is_heard_of_while_the_swarm_rests_ends_it(make_peer: MakePeer) -> None:
    async with Web() as site:
        site.fallback = tree(4)(site)
        peers = await swarm(make_peer, "abc", max_time_s=1000.0, recrawl_after_s=5000.0)
        await peers[0].crawl([site.url("/0")])
        await until(lambda: all(peer.resources.activity.resting for peer in peers))
        peers[1].runtime.hear_time(1_000_000)
        await until(lambda: all(peer.ended and peer.limit_reached == "time" for peer in peers))


async def test_a_peer_that_has_no_more_to_fetch_tells_its_time_at_once(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another peer that begins a moment later counts on from there, and not beside it."""
    one, other = await swarm(make_peer, "ab", max_time_s=1000.0)
    monkeypatch.setattr(Liveness, "due", lambda *_: [])
    activity = one.resources.activity
    activity.settle(idle=False)
    activity.armed = True
    await asyncio.sleep(4 * TICK_S)
    activity.settle(idle=True)
    await until(lambda: 0.0 < counted_s(one) == counted_s(other))


async def test_a_retry_after_the_limit_waits_for_a_longer_time(make_peer: MakePeer, lines: Lines) -> None:
    async with Web() as site:
        site.pages["/gone"] = lambda request: web.Response(status=404)
        site.pages["/0"] = lambda request: html("/gone", "/1")
        site.fallback = lambda request: html(f"/{int(request.path.strip('/')) + 1}")
        peer = await make_peer(max_time_s=LIMIT_S, delay_s=1.0)
        await peer.crawl([site.url("/0")])
        await until(lambda: peer.ended)
        fetched = sum(site.fetched.values())
        assert {"http_404": 1} == (await peer.retry()).urls
        await until(lambda: peer.ended)
        assert (fetched, 2) == (sum(site.fetched.values()), peer.row().pending)


async def test_the_time_stands_in_the_journal(make_peer: MakePeer, tmp_path: Path) -> None:
    peer = await make_peer(max_time_s=1000.0)
    peer.runtime.hear_time(700_000)
    await peer.__aexit__(None, None, None)
    again = await make_peer(max_time_s=800.0)
    assert 700.0 == counted_s(again)
    assert b"700000" == again.store.meta.get(CRAWL_TIME)
