"""Test which peers are trusted to say that a page is done: no peer far from the cell."""

import asyncio

import pytest

from kadcrawl.keys import Cell, anchor, id_bytes
from kadcrawl.link.wire.messages import (
    AssignReplica,
    Batch,
    CellSummary,
    Contact,
    DoneRun,
    PendingRecord,
    Replicate,
    Replicated,
    VisitRecord,
)
from kadcrawl.replication.done_runs import done_run
from kadcrawl.replication.owner.trust import SETTLING_S, TrustPolicy
from kadcrawl.replication.placement.holdings import Holdings
from kadcrawl.replication.placement.placement import HOLDERS, OWNER, placement_keys
from kadcrawl.store.store import DONE, PENDING
from tests.support.swarm.sync_cells import BITS, CELLS, key, url
from tests.support.swarm.sync_overlay import SwarmOverlay
from tests.support.swarm.sync_swarm import SILENT_S, FakePeer, Play, SyncSwarm, swarm_of

PEERS = 24
CELL = CELLS[3]


def far_from(swarm: SyncSwarm, cell: Cell) -> FakePeer:
    """Return a peer that is not near to any place of a cell."""
    contacts = [peer.contact for peer in swarm.peers.values()]
    near = {
        contact.id
        for place in placement_keys(cell, BITS)
        for contact in sorted(contacts, key=lambda one: one.number ^ place)[: HOLDERS + 1]
    }
    return next(peer for peer in swarm.peers.values() if peer.contact.id not in near)


def test_it_is_believed_who_is_near_and_at_first_everybody() -> None:
    contacts = [Contact(id_bytes((number << 155) + 1), "10.0.0.1", 4160) for number in range(32)]
    by_distance = sorted(contacts, key=lambda one: one.number ^ anchor(CELL, BITS))
    overlay = SwarmOverlay(by_distance[10])
    for contact in contacts:
        overlay.hear(contact)
    holdings = Holdings(overlay.me.number, BITS)
    belief = TrustPolicy(overlay, holdings, BITS)

    def believed(now: float = 0.0) -> list[Contact]:
        return [one for one in by_distance if belief.trusts(one, CELL, now)]

    assert by_distance[:HOLDERS] == believed()
    overlay.lose(by_distance[0])
    assert by_distance[: HOLDERS + 1] == believed(), "also one that it does not know"
    overlay.hear(by_distance[0])
    holdings.back_up_for(CELL, by_distance[1], 1, 0.0)
    assert by_distance[:2] == believed()
    overlay.lose(by_distance[1])
    assert by_distance[: HOLDERS + 1] == believed(), "whom it kept a copy for is gone"
    overlay.hear(by_distance[1])
    holdings.own(CELL, 1000.0)
    assert by_distance == believed(1000.0 + SETTLING_S - 0.1)
    holdings.own(CELL, 2000.0)  # It is its owner already.
    assert by_distance[:HOLDERS] == believed(1000.0 + SETTLING_S)
    holdings.let_go(CELL)
    holdings.own(CELL, 2000.0)
    assert by_distance == believed(2000.0)


def states(peer: FakePeer, numbers: range) -> list[int | None]:
    return [peer.store.state(key(CELL, number)) for number in numbers]


@pytest.mark.worlds
@pytest.mark.parametrize("is_late", [False, True], ids=["at first", "later"])
def test_an_owner_does_not_believe_a_copy_from_far_once_it_has_settled(play: Play, is_late: bool) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, PEERS)
        far = far_from(swarm, CELL)
        if is_late:
            await asyncio.sleep(SETTLING_S)
        for number in range(6):  # Three of them nobody has found yet.
            if (entry := far.store.entry(key(CELL, number))) is None:
                far.take(CELL, number)
                entry = far.store.entry(key(CELL, number))
            assert entry is not None
            if number != 5:
                far.store.learn_done(entry.key)
        far.cells.holder_side.notify_owner(CELL)
        async with asyncio.timeout(30):
            while far.store.cells.get(CELL) is not None:
                await asyncio.sleep(0.1)
        for peer in swarm.holders(CELL):
            expected = [PENDING] * 3 + [None] * 2 if is_late else [DONE] * 5
            assert [*expected, PENDING] == states(peer, range(6))
        await swarm.settle()

    play(scenario)


def false_batches() -> list[Batch]:
    """Pages that are done, put off, and done for ever: some that are pending, and one that nobody has found yet."""
    put_off = [PendingRecord(url(CELL, number), 1, 0, 200, 86_400.0) for number in (0, 4)]
    odd = "x"
    for_ever = [VisitRecord(url(CELL, number), 1, 4, 200, 0.0, None, 1e6, odd, odd, odd, odd, 0) for number in (1, 5)]
    return [
        Batch([key(CELL, number) for number in (2, 3)], [], [], []),
        Batch([], put_off, [], []),
        Batch([], [], [], [], for_ever),
    ]


def false_run(holder: FakePeer) -> list[DoneRun]:
    """Return a run of pages that the holder has in this order, and that nobody has fetched."""
    first = holder.store.entry(key(CELL, 0))
    assert first is not None
    return [done_run(holder.store.frontier.keys_from(first, 2))]


@pytest.mark.worlds
def test_nobody_believes_records_from_far(play: Play) -> None:
    """The same holds for a peer that the owner trusts and that would pass the records on."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, PEERS)
        await asyncio.sleep(SETTLING_S)
        holders = swarm.holders(CELL)
        place = placement_keys(CELL, BITS)[OWNER]
        by_distance = sorted(swarm.peers.values(), key=lambda one: one.contact.number ^ place)
        next_one = next(peer for peer in by_distance if peer not in holders)
        far = far_from(swarm, CELL)
        other = next(peer for peer in reversed(by_distance) if peer not in (*holders, far))
        for told in (other, next_one, *reversed(holders)):
            await told.answer(AssignReplica(far.contact, 1, [CellSummary(CELL, 1, 0, bytes(16))]))
            backed = told.cells.holdings.backed.get(CELL)
            assert backed is None or backed.owner != far.contact or told not in holders, "it keeps it for who is nearer"
            for lie in false_batches():
                await told.answer(Replicate(far.contact, lie))
            if told in holders:
                assert Replicated([]) == await told.answer(
                    Replicate(far.contact, Batch([], [], [], []), false_run(told))
                )
            await asyncio.sleep(SILENT_S)
        for holder in holders:
            assert [PENDING] * 3 == states(holder, range(3))
            assert {None, PENDING} >= {*states(holder, range(3, 6))}
            for number in range(2):
                entry = holder.store.entry(key(CELL, number))
                assert entry is not None
                assert (0, 0.0) == (entry.tries, entry.due)
        await swarm.settle()

    play(scenario)


def test_who_did_all_alone_is_believed_by_however_many_come_at_once(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 1)
        first = next(iter(swarm.peers.values()))
        for cell in CELLS:
            for _ in range(2):
                await swarm.crawl_one(cell)
        await asyncio.sleep(SETTLING_S)
        for _ in range(PEERS):
            await swarm.join()
        await swarm.settle()
        done = [one for one, state in swarm.acknowledged.items() if state == DONE]
        assert 2 * len(CELLS) == len(done)
        for cell in CELLS:
            owner = swarm.holders(cell)[OWNER]
            held = [owner.store.state(key(cell, number)) for number in range(3)]
            assert [PENDING, DONE, DONE] == sorted(held, key=lambda state: state or 0), (owner, first)

    play(scenario)
