"""Peers that have missed a wave, or were told otherwise, come to do as the others, and lose nothing meanwhile."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from kadcrawl import Peer, RemoteError
from kadcrawl.link.wire.messages import Command, GetSwarmState, Link, NewSeeds, Ok, Order
from kadcrawl.peer.swarm import state_gossip
from kadcrawl.peer.swarm.state_gossip import SEEDS_FINGERPRINTS_MAX, STATE_REQUEST_INTERVAL_S, WAITING_MAX, StateGossip
from kadcrawl.settings.job import SEEDS_MAX
from tests.support.sites.web import Web, html
from tests.support.swarm.crash import crash
from tests.support.swarm.peers import MakePeer, finish, swarm
from tests.support.waiting import until

SEED = "http://127.0.0.2:9/"


def owns_url(peer: Peer, url: str) -> bool:
    return peer.overlay.owns(peer.components.partitioner.locate(url).cell)


async def test_who_has_missed_an_order_hears_it_from_the_others(make_peer: MakePeer) -> None:
    peers = await swarm(make_peer, "abc")
    peers[0].obey(peers[0].state_gossip.say("pause"))
    await until(lambda: all(peer.paused for peer in peers))
    peers[1].obey(peers[1].state_gossip.say("resume"))
    await until(lambda: not any(peer.paused for peer in peers))
    peers[2].obey(peers[2].state_gossip.say("pause"))
    await until(lambda: all(peer.paused for peer in peers))
    assert 1 == len({peer.runtime.swarm_state.stamp for peer in peers})
    assert ["paused"] * 3 == [peer.state for peer in peers]


async def test_an_order_that_was_given_before_changes_nothing(make_peer: MakePeer) -> None:
    peer = await make_peer()
    await peer.client.ask(peer.contact, Command("pause"), Ok, 5)
    paused = Order("pause", peer.runtime.swarm_state.stamp)
    await peer.client.ask(peer.contact, Command("resume"), Ok, 5)
    peer.obey(paused)
    assert not peer.paused


async def test_who_has_missed_seeds_hears_of_them(make_peer: MakePeer) -> None:
    one, other = await swarm(make_peer, "ab", scope="host")
    one.obey(one.state_gossip.say("pause"))
    one._wave_answers.respond(NewSeeds([SEED]))
    other._wave_answers.respond(NewSeeds(["http://127.0.0.3:9/"]))
    await until(lambda: {*one.job.seeds} == {*other.job.seeds} == {SEED, "http://127.0.0.3:9/"})
    assert other.paused
    assert one.runtime.state_fingerprint == other.runtime.state_fingerprint != 0


async def test_seeds_that_are_too_many_together_are_asked_for_a_few_times(make_peer: MakePeer) -> None:
    one, other = await swarm(make_peer, "ab")
    for peer, host in ((one, "a"), (other, "b")):
        peer._wave_answers.respond(NewSeeds([f"http://{host}.example/{number}" for number in range(SEEDS_MAX - 1)]))
    await until(lambda: one.state_gossip.asked and other.state_gossip.asked)
    await asyncio.sleep(20)
    assert 4 >= one.state_gossip.asked + other.state_gossip.asked
    assert (SEEDS_MAX,) * 2 == (len(one.job.seeds), len(other.job.seeds))


async def test_a_peer_with_ever_other_fingerprints_is_asked_once_a_second(make_peer: MakePeer) -> None:
    one, other = await swarm(make_peer, "ab")
    loop = asyncio.get_running_loop()
    began = loop.time()
    for number in range(1, 100):
        one.state_gossip.heard(other.contact, number, 0)
        await asyncio.sleep(0.1)
    assert 5 <= one.state_gossip.asked <= (loop.time() - began) / STATE_REQUEST_INTERVAL_S
    assert not one.paused
    for number in range(1000):
        one.state_gossip.heard(other.contact.__class__(number.to_bytes(20, "big"), "127.0.0.1", 9), 7, 0)
    assert len(one.state_gossip._waiting) <= WAITING_MAX


async def test_peers_of_one_swarm_state_ask_each_other_nothing(make_peer: MakePeer) -> None:
    peers = await swarm(make_peer, "abc")
    await peers[1].client.ask(peers[1].contact, Command("pause"), Ok, 5)
    await until(lambda: all(peer.paused for peer in peers))
    await asyncio.sleep(10)
    asked = [peer.state_gossip.asked for peer in peers]  # Heartbeats may cross the wave.
    await asyncio.sleep(20)
    assert asked == [peer.state_gossip.asked for peer in peers]


async def test_who_gets_no_answer_asks_again(make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = await swarm(make_peer, "ab")
    ask, lost = other.client.ask, 2

    async def unreliable(to: Any, message: Any, *rest: Any) -> Any:
        nonlocal lost
        if isinstance(message, GetSwarmState) and lost:
            lost -= 1
            raise RemoteError("a", "no answer within 5 s")
        return await ask(to, message, *rest)

    monkeypatch.setattr(other.client, "ask", unreliable)
    one.obey(one.state_gossip.say("pause"))
    await until(lambda: other.paused)
    assert 3 == other.state_gossip.asked


async def test_who_has_missed_a_pause_can_say_resume_to_all(make_peer: MakePeer) -> None:
    one, other = await swarm(make_peer, "ab")
    pause = one.state_gossip.say("pause")
    one.obey(pause)
    # The clocks of two machines are never the same, and the later order holds.
    await until(lambda: other.state_gossip.say("resume").stamp > pause.stamp)
    await other.state_gossip.order("resume")
    assert [False, False] == [one.paused, other.paused]
    await asyncio.sleep(10)
    assert [False, False] == [one.paused, other.paused]


async def test_a_nonsense_answer_about_the_swarm_state_ends_nobody(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = await swarm(make_peer, "ab")
    counted_too_far = msgspec.msgpack.encode(["Welcome", {"include": ["a{99999999999999999999}"]}, False, 1.0, 0])
    asked = 0

    async def lie(*_: Any) -> bytes:
        nonlocal asked
        asked += 1
        return counted_too_far

    monkeypatch.setattr(other.server, "_reply", lie)
    one.activity.armed = True
    one.state_gossip.heard(other.contact, 7, 0)
    await until(lambda: one.state_gossip.asked and asked)
    await asyncio.sleep(5)
    assert "crawling" == one.state
    assert not any(task.done() for task in one._tasks)


@pytest.mark.parametrize("depth", [0, 1])
async def test_a_link_of_a_seed_that_is_still_on_its_way_is_not_turned_away(make_peer: MakePeer, depth: int) -> None:
    one, other = await swarm(make_peer, "ab", scope="domain")
    one.obey(one.state_gossip.say("pause"))
    await until(lambda: other.paused)
    one._wave_answers.respond(NewSeeds(["http://example.com/"]))  # A wave that the other one misses.
    urls = [url for url in (f"http://h{n}.example.com/" for n in range(40)) if owns_url(other, url)]
    await one.components.forwarder.forward([Link(url, depth, 0) for url in urls], None).acknowledged
    assert len(urls) == other.store.pending > 0
    assert 0 == other.components.intake.rejected


async def test_what_seeds_do_not_reach_is_turned_away_after_a_while(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_gossip, "INSIST_S", 15.0)
    one, other = await swarm(make_peer, "ab", scope="domain")
    one.obey(one.state_gossip.say("pause"))
    one.components.scope.add_seeds(["http://a.example/"])  # Which it tells nobody.
    one.components.forwarder._seeds_fingerprint = lambda: 7
    await until(lambda: other.paused)
    url = next(url for url in (f"http://h{n}.a.example/" for n in range(40)) if owns_url(other, url))
    before = asyncio.get_running_loop().time()
    await one.components.forwarder.forward([Link(url, 1, 0)], None).acknowledged
    assert 15 <= asyncio.get_running_loop().time() - before < 30
    assert (0, 1) == (other.store.pending, other.components.intake.rejected)


async def test_a_url_handed_over_waits_for_the_seed_it_came_by(make_peer: MakePeer) -> None:
    async with Web(40) as site:
        site.fallback = lambda request: html()
        peers = one, other = await swarm(make_peer, "ab", scope="host")
        url = next(url for url in (site.url("/handed-over", n) for n in range(40)) if owns_url(other, url))
        one._wave_answers.respond(NewSeeds([url.replace("handed-over", "")]))  # A wave that the other one misses.
        place = other.components.partitioner.locate(url)
        await other.cells.sync.opened([place.cell], 5)
        other.components.intake.merge_pending(Link(url, 1, 0), place, other.clock.now(), 0, 0.0)
        await until(lambda: url in site.fetched)
        await finish(peers)


async def test_marks_that_are_made_up_fill_no_memory(make_peer: MakePeer) -> None:
    peer = await make_peer()
    for mark in range(1000):
        assert peer.state_gossip.may_know_more(mark)
    assert SEEDS_FINGERPRINTS_MAX >= len(peer.state_gossip._others)


async def test_a_newcomer_is_in_though_its_first_peer_dies_meanwhile(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = await swarm(make_peer, "ab")
    await until(lambda: one.overlay.contacts() == [other.contact])
    catch_up = StateGossip.catch_up

    async def late(self: StateGossip, bootstrap: Sequence[tuple[str, int]]) -> None:
        await crash(one)
        other.obey(other.state_gossip.say("pause"))
        await catch_up(self, bootstrap)

    monkeypatch.setattr(StateGossip, "catch_up", late)
    third = await make_peer("c", join=one)
    assert third.paused
