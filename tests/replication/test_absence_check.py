"""A peer that was away asks its siblings, and closes its cells only if one of them has noticed or is silent."""

import asyncio
from typing import Any

from kadcrawl.keys import Cell
from kadcrawl.link.wire.messages import Contact, WasAway
from kadcrawl.replication.absence_check import DOUBT_MAX_S
from kadcrawl.replication.placement.placement import OWNER
from tests.support.swarm.sync_cells import CELLS
from tests.support.swarm.sync_swarm import FakePeer, Play, SyncSwarm, swarm_of

SETTLED_S = 30.0
"""Seconds after which no newcomer of the swarm is a reason to close anything."""


def stall(peer: FakePeer, seconds: float) -> None:
    """Let a peer notice that it did not run for so long."""
    peer.cells._beat_at = peer.swarm.loop.time() - seconds
    assert peer.cells.is_stalled()


def cells_of(peer: FakePeer) -> list[Cell]:
    return [cell for cell in CELLS if peer.frontier.is_open(cell)]


async def sure(peer: FakePeer) -> float:
    """Return the seconds until the peer is sure of its cells."""
    began = peer.swarm.loop.time()
    await peer.cells.sure()
    return peer.swarm.loop.time() - began


def test_an_absence_that_nobody_noticed_closes_no_cell(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        await asyncio.sleep(SETTLED_S)
        before = {peer: (cells_of(peer), peer.frontier._openings) for peer in swarm.peers.values()}
        for peer in swarm.peers.values():  # All stop together, as in one process.
            stall(peer, 2.0)
        for peer in swarm.peers.values():
            assert await sure(peer) < 1.0
        assert before == {peer: (cells_of(peer), peer.frontier._openings) for peer in swarm.peers.values()}
        await swarm.settle()

    play(scenario)


def test_a_peer_in_doubt_starts_nothing_and_leases_nothing(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        await asyncio.sleep(SETTLED_S)
        peer = swarm.holders(CELLS[3])[OWNER]
        stall(peer, 2.0)
        assert peer.cells.in_doubt
        assert peer.cells.is_stalled()
        await sure(peer)
        assert not peer.cells.is_stalled()

    play(scenario)


def test_an_absence_that_a_sibling_noticed_closes_all_cells(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        await asyncio.sleep(SETTLED_S)
        sleeper = swarm.holders(CELLS[3])[OWNER]
        await swarm.freeze(sleeper)
        await asyncio.sleep(3.0)
        swarm.thaw(sleeper)
        await asyncio.sleep(1.0)
        stall(sleeper, 4.0)
        opened = sleeper.frontier._openings
        await sure(sleeper)
        assert [] == cells_of(sleeper)
        await swarm.settle()
        assert sleeper.frontier._openings > opened
        assert {1, 0} >= {len(swarm.open_at(cell)) for cell in CELLS}

    play(scenario)


def test_a_sibling_that_lives_and_is_silent_may_have_noticed(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 4)
        await asyncio.sleep(SETTLED_S)
        sleeper, other, *_ = swarm.peers.values()
        other.silent = True
        stall(sleeper, 2.0)
        assert DOUBT_MAX_S <= await sure(sleeper) <= DOUBT_MAX_S + 10
        assert [] == cells_of(sleeper)
        other.silent = False
        await swarm.settle()

    play(scenario)


def test_a_further_absence_voids_the_answers_to_the_first(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 4)
        await asyncio.sleep(SETTLED_S)
        sleeper = swarm.holders(CELLS[3])[OWNER]
        gate, held = asyncio.Event(), asyncio.Event()
        asked: list[float] = []

        async def hold(sender: Contact, address: tuple[str, int], message: Any) -> None:
            if isinstance(message, WasAway):
                asked.append(message.away_s)
                held.set()
                await gate.wait()

        swarm.hooks.append(hold)
        stall(sleeper, 2.0)
        await held.wait()
        count = len(asked)
        stall(sleeper, 5.0)
        gate.set()
        await sure(sleeper)
        assert [3, 3] == [count, len(asked) - count]
        assert all(away_s >= 2.0 for away_s in asked)

    play(scenario)


def test_the_last_of_a_swarm_closes_its_cells_as_it_may_be_cut_off(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 1)
        (peer,) = swarm.peers.values()
        stall(peer, 2.0)
        await sure(peer)
        await swarm.settle(3.0)

    play(scenario)


def test_a_peer_that_stalls_as_it_ends_closes_its_cells_and_asks_nobody(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 3)
        await asyncio.sleep(SETTLED_S)
        peer = swarm.holders(CELLS[3])[OWNER]
        assert peer.task is not None
        peer.task.remove_done_callback(swarm._ended)
        peer.task.cancel()
        await asyncio.wait([peer.task])
        assert cells_of(peer)
        peer.cells._beat_at = swarm.loop.time() - 2.0
        assert not peer.cells.is_stalled()
        assert [] == cells_of(peer)
        await swarm.kill(peer)

    play(scenario)
