"""Peers that have missed a wave, or were told otherwise, come to do as the others."""

import asyncio

from kadcrawl.config import SEEDS_MAX
from kadcrawl.link.messages import Command, NewSeeds, Ok, Order
from kadcrawl.peer.concord import WAITING_MAX
from tests.peer.conftest import MakePeer, swarm, until

SEED = "http://127.0.0.2:9/"


async def test_who_has_missed_an_order_hears_it_from_the_others(make_peer: MakePeer) -> None:
    peers = await swarm(make_peer, "abc")
    peers[0].obey(peers[0].concord.course.order("pause"))
    await until(lambda: all(peer.paused for peer in peers))
    peers[1].obey(peers[1].concord.course.order("resume"))
    await until(lambda: not any(peer.paused for peer in peers))
    peers[2].obey(peers[2].concord.course.order("pause"))
    await until(lambda: all(peer.paused for peer in peers))
    assert {3} == {peer.concord.course.serial for peer in peers}
    assert ["paused"] * 3 == [peer.state for peer in peers]


async def test_an_order_that_was_given_before_changes_nothing(make_peer: MakePeer) -> None:
    peer = await make_peer()
    await peer.client.ask(peer.contact, Command("pause"), Ok, 5)
    paused = Order("pause", peer.concord.course.serial)
    await peer.client.ask(peer.contact, Command("resume"), Ok, 5)
    peer.obey(paused)
    assert not peer.paused


async def test_who_has_missed_seeds_hears_of_them(make_peer: MakePeer) -> None:
    one, other = await swarm(make_peer, "ab", scope="host")
    one.obey(one.concord.course.order("pause"))
    one._service.respond(NewSeeds([SEED]))
    other._service.respond(NewSeeds(["http://127.0.0.3:9/"]))
    await until(lambda: {*one.job.seeds} == {*other.job.seeds} == {SEED, "http://127.0.0.3:9/"})
    assert other.paused
    assert one.concord.fingerprint == other.concord.fingerprint != 0


async def test_seeds_that_are_too_many_together_are_asked_for_once(make_peer: MakePeer) -> None:
    one, other = await swarm(make_peer, "ab")
    for peer, host in ((one, "a"), (other, "b")):
        peer._service.respond(NewSeeds([f"http://{host}.example/{number}" for number in range(SEEDS_MAX - 1)]))
    await until(lambda: one.concord.asked and other.concord.asked)
    await asyncio.sleep(20)
    assert (1, 1) == (one.concord.asked, other.concord.asked)
    assert (SEEDS_MAX - 1,) * 2 == (len(one.job.seeds), len(other.job.seeds))


async def test_who_says_ever_another_course_is_asked_once_a_second(make_peer: MakePeer) -> None:
    one, other = await swarm(make_peer, "ab")
    for number in range(1, 100):
        one.concord.heard(other.contact, number)
        await asyncio.sleep(0.1)
    assert 5 <= one.concord.asked <= 10
    assert not one.paused
    for number in range(1000):
        one.concord.heard(other.contact.__class__(number.to_bytes(20, "big"), "127.0.0.1", 9), 7)
    assert len(one.concord._waiting) <= WAITING_MAX


async def test_peers_of_one_course_ask_each_other_nothing(make_peer: MakePeer) -> None:
    peers = await swarm(make_peer, "abc")
    await peers[1].client.ask(peers[1].contact, Command("pause"), Ok, 5)
    await asyncio.sleep(30)
    assert sum(peer.concord.asked for peer in peers) <= 2, "a heartbeat may cross the wave"
    assert all(peer.paused for peer in peers)
