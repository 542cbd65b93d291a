"""Cells on the move: peers come, go, die, freeze and come back, and each cell ends open at one peer and whole at three.

The peers here are real but for what crawls, the overlay and the link: those are small, in memory and in virtual time.
"""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from kadcrawl.crawl.scope.partitioner import UrlLocation
from kadcrawl.errors import KadcrawlError, RemoteError
from kadcrawl.keys import Cell, anchor, id_bytes
from kadcrawl.link.wire.messages import (
    AssignReplica,
    Batch,
    CellsHeld,
    CellSummary,
    CompareDigests,
    Contact,
    FindMyCells,
    Link,
    MyCells,
    Reconcile,
    Replicate,
    TakeOver,
)
from kadcrawl.replication import holder_side
from kadcrawl.replication.owner import catch_up, repair_pace
from kadcrawl.replication.owner.catch_up import RELEASE_POLL_MOST_S, CatchUp
from kadcrawl.replication.owner.sync import FIND_MY_CELLS_INTERVAL_S
from kadcrawl.replication.owner.sync_progress import SyncProgress
from kadcrawl.replication.placement.placement import FIRST_BACKUP, HOLDERS, OWNER, placement_keys
from kadcrawl.replication.record_codec import UNFINISHED_WAIT_S
from kadcrawl.replication.replicator import CALM_S, held_of
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.store import DONE, PENDING
from kadcrawl.system.spaced_batches import BUSY_S
from tests.support.swarm.sync_cells import BITS, CELLS, SITES, key, url
from tests.support.swarm.sync_swarm import (
    DELAY_S,
    SILENT_S,
    FakePeer,
    Play,
    SyncSwarm,
    swarm_of,
)

# --- coming -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("peers", [1, 2, 3, 6])
def test_each_cell_is_open_at_its_owner_and_held_by_three(play: Play, peers: int) -> None:
    """Fewer than three peers hold as many copies as there are peers."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, peers)
        assert {1} == set(swarm.open_at_once.values())

    play(scenario)


def test_a_newcomer_takes_its_cells_and_no_cell_is_ever_open_twice(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        await swarm.join()
        await swarm.settle()
        assert {1} == set(swarm.open_at_once.values())

    play(scenario)


def test_the_clocks_of_a_cell_come_with_it(play: Play) -> None:
    """A site asked just before its cell moved is left alone for the rest of its delay."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm.join(1)
        cell = Cell(15)
        await swarm.offer(cell, range(3))
        asked_at = swarm.loop.time()
        await swarm.crawl_one(cell)
        newcomer = await swarm.join((1 << 160) - 1)
        while swarm.open_at(cell) != [newcomer]:
            await asyncio.sleep(0.01)
        assert swarm.loop.time() < asked_at + DELAY_S, "it moved too late to show anything"
        while newcomer.fetch(cell) is None:
            await asyncio.sleep(0.01)
        assert swarm.loop.time() >= asked_at + DELAY_S

    play(scenario)


def test_a_cell_moves_only_when_its_requests_are_over(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        old = await swarm.join(1)
        cell = Cell(15)
        await swarm.offer(cell, range(3))
        entry = old.fetch(cell)
        assert entry is not None
        newcomer = await swarm.join((1 << 160) - 1)
        await asyncio.sleep(20.0)
        assert [] == swarm.open_at(cell), "neither may begin anything while a request is under way"
        old.finish(entry)
        await swarm.settle(5.0)
        assert DONE == newcomer.store.state(entry.key)

    play(scenario)


@pytest.mark.parametrize("backups", ["before", "after"])
def test_a_cell_that_waits_for_its_last_requests_is_copied_meanwhile(play: Play, backups: str) -> None:
    """The first peer accepted links before any peer could take copies, and a request may take minutes.

    The backups of the cell come before its next owner, or after.
    """

    async def scenario(swarm: SyncSwarm) -> None:
        first = await swarm.join(1)
        cell = Cell(15)
        await swarm.offer(cell, range(3))
        assert first.fetch(cell) is not None
        ids = [None, None, None, None]
        newcomers = [*ids, (1 << 160) - 1] if backups == "before" else [(1 << 160) - 1, *ids]
        joined = {number: await swarm.join(number) for number in newcomers}
        newcomer = joined[(1 << 160) - 1]
        await asyncio.sleep(5.0)
        assert [] == swarm.open_at(cell)
        knowing = [one for one in swarm.peers.values() if one.store.state(key(cell, 0)) is not None]
        assert newcomer in knowing
        assert HOLDERS <= len(knowing)
        await swarm.kill(first)
        await swarm.settle()
        assert [newcomer] == swarm.open_at(cell)

    play(scenario)


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_a_page_in_hand_when_its_cell_moves_is_left_to_whoever_has_it(play: Play, known: bool) -> None:
    """Also if the new owner has it from somebody else, who could say nothing of that."""

    async def scenario(swarm: SyncSwarm) -> None:
        old = await swarm.join(1)
        cell = Cell(15)
        await swarm.offer(cell, range(2))
        entry = old.fetch(cell)
        assert entry is not None
        now = old.clock.now()
        old.frontier.release(entry, now, now)  # Fetched; its links are on their way.
        newcomer = await swarm.join((1 << 160) - 1)
        if known:
            for number in range(2):
                newcomer.take(cell, number)
        released_at = swarm.loop.time()
        while (other := newcomer.fetch(cell)) is None:
            await asyncio.sleep(0.1)
        assert other.key != entry.key
        newcomer.finish(other)
        assert swarm.loop.time() < released_at + UNFINISHED_WAIT_S / 2, "it moved too late to show anything"
        while (again := newcomer.fetch(cell)) is None:
            await asyncio.sleep(0.1)
        assert (entry.key, True) == (again.key, swarm.loop.time() >= released_at + UNFINISHED_WAIT_S)

    play(scenario)


@pytest.mark.parametrize("untold", [True, False])
def test_sites_of_a_crawled_cell_without_clocks_are_left_alone(play: Play, untold: bool) -> None:
    """The answers of other peers do not matter: the owner may have asked the site since."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm.join(1)
        other = await swarm.join(2)
        cell = Cell(15)
        await swarm.offer(cell, range(3))
        await swarm.settle()
        answer = other.cells.holder_side.answer

        def cannot(question: TakeOver) -> Any:
            synced = answer(question)
            return replace(synced, cells=[replace(one, clocks_incomplete=untold) for one in synced.cells])

        other.cells.holder_side.answer = cannot  # type: ignore[method-assign]
        newcomer = await swarm.join((1 << 160) - 1)
        while swarm.open_at(cell) != [newcomer]:
            await asyncio.sleep(0.01)
        opened_at = swarm.loop.time()
        while newcomer.fetch(cell) is None:
            await asyncio.sleep(0.01)
        assert (swarm.loop.time() >= opened_at + DELAY_S - 0.1) is untold

    play(scenario)


def test_a_peer_that_appears_during_a_takeover_is_heard_before_the_opening(play: Play) -> None:
    """The peer that appears may be crawling the cell."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 6)
        cell = Cell(15)
        newcomer_id = anchor(cell, BITS) ^ 1
        late = next(peer for peer in swarm.peers.values() if peer not in swarm.holders(cell))
        asked: list[bool] = []

        async def named(sender: Contact, address: tuple[str, int], message: Any) -> None:
            if sender.number == newcomer_id and isinstance(message, CompareDigests | Reconcile) and not asked:
                asked.append(False)
                newcomer.cells.sync.want(cell, late.contact)
            if sender.number == newcomer_id and isinstance(message, TakeOver) and address == late.contact.address:
                asked.extend([cell in message.cells] * bool(asked))

        swarm.hooks.append(named)
        newcomer = await swarm.join(newcomer_id)
        while swarm.open_at(cell) != [newcomer]:
            await asyncio.sleep(0.001)
        assert asked[:1] == [False], "nothing was to be compared"
        assert True in asked

    play(scenario)


def test_whoever_is_lost_is_not_waited_for_by_what_is_being_released(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 3)
        one, other, _ = swarm.peers.values()
        lost: list[FakePeer] = []
        one.cells.holder_side.lost = lambda: lost.append(other)  # type: ignore[method-assign]
        await swarm.kill(other)
        await swarm.settle()
        assert [other] == lost

    play(scenario)


def test_who_finds_that_another_still_crawls_its_cell_stops(play: Play) -> None:
    """The other peer began while nobody knew, e.g. because the next owner at its release had gone.

    The owner waits until the other peer has finished.
    """

    async def scenario(swarm: SyncSwarm) -> None:
        old = await swarm.join(1)
        cell = Cell(15)
        await swarm.offer(cell, range(2))
        entry = old.fetch(cell)
        assert entry is not None
        newcomer = await swarm.join((1 << 160) - 1)
        while newcomer.contact.id not in old.overlay.known:
            await asyncio.sleep(0.01)
        # As if it had opened the cell without having heard of the old owner.
        newcomer.cells.holdings.own(cell, 0.0).open = True
        newcomer.cells.crawl.open(cell, hold=False)
        await asyncio.sleep(10.0)
        assert [] == swarm.open_at(cell)
        old.finish(entry)
        await swarm.settle(10.0)
        assert [newcomer] == swarm.open_at(cell)

    play(scenario)


def test_two_that_come_into_one_range_at_once_agree(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 4)
        near = swarm.holders(CELLS[5])[OWNER].contact.number
        await asyncio.gather(swarm.join(near ^ 1 << 100), swarm.join(near ^ 1 << 101), swarm.join())
        await swarm.settle()
        assert {1} == set(swarm.open_at_once.values())

    play(scenario)


def test_links_offered_while_a_cell_moves_are_not_lost(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 4)

        async def offer_on(cell: Cell) -> None:
            for number in range(100, 130):
                await swarm.offer(cell, [number])
                await asyncio.sleep(swarm.random.uniform(0, 0.2))

        async with asyncio.TaskGroup() as group:
            for cell in CELLS:
                group.create_task(offer_on(cell))
            for _ in range(3):
                await swarm.join()
                await asyncio.sleep(1.0)
        await swarm.settle()
        assert {1} == set(swarm.open_at_once.values())

    play(scenario)


# --- going --------------------------------------------------------------------------------------------------------


def test_who_leaves_hands_everything_over(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        leaver = swarm.holders(CELLS[3])[OWNER]
        began = swarm.loop.time()
        await swarm.leave(leaver)
        assert swarm.loop.time() < began + 20.0
        await swarm.settle()
        assert {1} == set(swarm.open_at_once.values())

    play(scenario)


def test_all_but_one_may_leave_at_once(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 4)
        await asyncio.gather(*(swarm.leave(peer) for peer in list(swarm.peers.values())[1:]))
        await swarm.settle()

    play(scenario)


def test_who_leaves_and_is_killed_meanwhile_takes_nothing_away(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        leaver = swarm.holders(CELLS[3])[OWNER]
        leaving = swarm.loop.create_task(swarm.leave(leaver))
        await asyncio.sleep(swarm.random.uniform(0, 0.6))
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        if leaver.contact.id in swarm.peers:
            await swarm.kill(leaver)
        await swarm.settle()

    play(scenario)


def test_a_leaving_peer_tells_each_successor_in_full_batches_and_looks_nothing_up(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1 1.3.2: the firstdiff map decides which peer gets which cells."""
    monkeypatch.setattr(holder_side, "BATCH_MAX", 2)

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        leaver = swarm.holders(CELLS[3])[OWNER]
        others = [peer.contact for peer in swarm.peers.values() if peer is not leaver]
        expected = Counter(min(others, key=lambda one: one.number ^ anchor(cell, BITS)) for cell in leaver.store.cells)
        looked_up: list[int] = []

        async def nearest(target: int, count: int) -> list[Contact]:
            looked_up.append(target)
            return leaver.overlay.nearest_known(target, count)

        monkeypatch.setattr(leaver.overlay, "nearest", nearest)
        swarm.sent.clear()
        await swarm.leave(leaver)
        told: Counter[tuple[str, int]] = Counter()
        named: set[int] = set()
        repeated: set[int] = set()
        for sender, address, message in swarm.sent:
            if isinstance(message, CellsHeld) and sender == leaver.contact:
                # An owner that has just told the leaver to keep a copy hears of it once more.
                cells = {held.cell for held in message.cells}
                told[address] += not named.issuperset(cells)
                repeated |= cells & named
                named |= cells
        assert sum(expected.values()) > len(expected) + 2, "too few cells to show anything"
        assert {one.address: -(-count // 2) for one, count in expected.items()} == told
        assert set(looked_up) <= {anchor(Cell(cell), BITS) for cell in repeated}
        await swarm.settle()

    play(scenario)


# --- dying --------------------------------------------------------------------------------------------------------


def test_a_dead_owner_is_followed_by_the_next(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        await swarm.kill(swarm.holders(CELLS[3])[OWNER])
        await swarm.settle(30.0)
        assert {1} == set(swarm.open_at_once.values())

    play(scenario)


@pytest.mark.parametrize("roles", [(0, 1), (0, 2), (1, 2)], ids=["owner+first", "owner+second", "both backups"])
def test_two_holders_dead_at_once_lose_nothing(play: Play, roles: tuple[int, int]) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 6)
        them = swarm.holders(CELLS[3])
        await swarm.kill(*(them[role] for role in roles))
        await swarm.settle(30.0)

    play(scenario)


@pytest.mark.parametrize("copies", [2, 3, 4, 5])
@pytest.mark.parametrize("spared", ["owner", "last"])
def test_all_holders_but_one_dead_at_once_lose_nothing(play: Play, copies: int, spared: str) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        swarm.copies = copies
        await swarm_of(swarm, 8)
        them = swarm.holders(CELLS[3])
        assert copies == len(them)
        await swarm.kill(*(them[1:] if spared == "owner" else them[:-1]))
        await swarm.settle(30.0)

    play(scenario)


@pytest.mark.parametrize("peers", [1, 2, 4])
def test_fewer_peers_than_copies_hold_as_many_as_there_are(play: Play, peers: int) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        swarm.copies = 5
        await swarm_of(swarm, peers)
        assert {1} == set(swarm.open_at_once.values())
        await swarm.join()
        await swarm.settle()
        assert peers + 1 == len(swarm.holders(CELLS[3]))

    play(scenario)


@pytest.mark.parametrize(("before", "after"), [(3, 5), (5, 2)])
def test_a_crawl_may_go_on_with_another_number_of_copies(play: Play, before: int, after: int) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        swarm.copies = before
        await swarm_of(swarm, 6)
        ended = list(swarm.peers.values())
        await swarm.kill(*ended)
        swarm.copies = after
        for peer in ended:
            await swarm.join(peer.contact.number, directory=peer.directory)
        await swarm.settle()
        assert after == len(swarm.holders(CELLS[3]))

    play(scenario)


def test_after_a_crash_each_site_is_left_alone_for_a_full_delay(play: Play) -> None:
    """Nobody could tell when the dead owner asked it last."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 3)
        cell = CELLS[7]
        await swarm.kill(swarm.holders(cell)[OWNER])
        await swarm.settle(30.0)
        heir = swarm.holders(cell)[OWNER]
        opened_at = swarm.loop.time()
        assert heir.frontier.wait_s(SITES[cell], heir.clock.now()) <= DELAY_S
        while heir.fetch(cell) is None:
            assert swarm.loop.time() < opened_at + 3 * DELAY_S
            await asyncio.sleep(0.05)

    play(scenario)


@pytest.mark.parametrize("died", [False, True])
def test_after_a_crash_a_site_nobody_knows_is_left_alone_as_well(play: Play, died: bool) -> None:
    """The dead owner may have asked the site before another peer had a URL of the site. If nobody died, no wait is
    needed."""

    async def scenario(swarm: SyncSwarm) -> None:
        for _ in range(3):
            await swarm.join()
            await asyncio.sleep(0.5)
        await swarm.settle()
        cell = CELLS[7]
        if died:
            await swarm.kill(swarm.holders(cell)[OWNER])
            await swarm.settle(30.0)
        asked_at = swarm.loop.time()
        await swarm.offer(cell, [0])
        await swarm.crawl_one(cell)
        assert died is (swarm.loop.time() >= asked_at + DELAY_S)

    play(scenario)


def test_a_chain_of_crashes_each_after_the_swarm_has_healed_loses_nothing(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 7)
        while len(swarm.peers) > 2:
            await swarm.kill(swarm.random.choice(list(swarm.peers.values())))
            await swarm.settle(30.0)

    play(scenario)


def test_what_was_acknowledged_survives_any_two_that_die_then_and_there(play: Play) -> None:
    """Links are offered all the time. Two peers die at any moment, a third at the next quiet moment."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 6, urls=1)

        async def offer_on(cell: Cell) -> None:
            for number in range(100, 120):
                await swarm.offer(cell, [number])
                await asyncio.sleep(swarm.random.uniform(0, 0.5))

        async with asyncio.TaskGroup() as group:
            for cell in CELLS:
                group.create_task(offer_on(cell))
            await asyncio.sleep(swarm.random.uniform(0.5, 3))
            await swarm.kill(*swarm.random.sample(list(swarm.peers.values()), 2))
        await swarm.settle()

    play(scenario)


def test_a_backup_replaced_during_its_first_records_is_told_to_drop_them(play: Play) -> None:
    """The backup had nothing when it was asked, so no other peer would ever tell it to drop the records."""

    async def scenario(swarm: SyncSwarm) -> None:
        for _ in range(3):
            await swarm.join()
            await asyncio.sleep(0.5)
        cell = CELLS[3]
        _, backup, _ = swarm.holders(cell)
        gate = asyncio.Event()

        async def hold_records(sender: Contact, address: tuple[str, int], message: Any) -> None:
            if isinstance(message, Replicate) and address == backup.contact.address:
                await gate.wait()

        swarm.hooks.append(hold_records)
        offering = asyncio.create_task(swarm.offer(cell, range(3)))
        await asyncio.sleep(2.0)
        await swarm.join(placement_keys(cell, BITS)[FIRST_BACKUP] ^ 1)
        await asyncio.sleep(3.0)
        gate.set()
        await offering
        await swarm.settle(20.0)

    play(scenario)


def test_a_source_is_told_to_drop_only_when_the_backups_have_what_it_had(play: Play) -> None:
    """Else the new owner's death alone would lose it."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        cell = CELLS[3]
        them = swarm.holders(cell)
        stray = next(peer for peer in swarm.peers.values() if peer not in them)
        slow = them[1]
        gate = asyncio.Event()

        async def hold_records(sender: Contact, address: tuple[str, int], message: Any) -> None:
            if isinstance(message, Replicate) and address == slow.contact.address:
                await gate.wait()

        swarm.hooks.append(hold_records)
        # A page finished late, long after its cell has moved: only the stray knows of it.
        stray.store.learn_done(key(cell, 77))
        swarm.acknowledged[key(cell, 77)] = DONE
        await asyncio.sleep(20.0)
        assert slow.store.state(key(cell, 77)) is None
        assert DONE == stray.store.state(key(cell, 77)), "dropped before both backups had it"
        gate.set()
        await swarm.settle()

    play(scenario)


# --- coming back --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noticed", [True, False], ids=["noticed", "unnoticed"])
@pytest.mark.parametrize("disk", ["same", "old", "none"])
def test_a_peer_restarted_catches_up_before_it_crawls(play: Play, disk: str, noticed: bool) -> None:
    """The test runs with peers that noticed the absence, and with peers that did not."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        cell = CELLS[3]
        peer = swarm.holders(cell)[OWNER]
        snapshot = swarm.snapshot(peer)
        await swarm.offer(cell, range(10, 20))
        await swarm.crawl_one(cell)
        await asyncio.sleep(CALM_S)
        await swarm.kill(peer)
        if noticed:
            await swarm.settle()
            # What it thinks to be PENDING is done meanwhile.
            await swarm.crawl_one(cell)
            await swarm.offer(cell, range(20, 30))
        back = await swarm.join(
            peer.contact.number, directory={"same": peer.directory, "old": snapshot, "none": None}[disk]
        )
        assert [] == [one for one in CELLS if back.cells.holdings.is_open(one)]
        await swarm.settle(SILENT_S)

    play(scenario)


def test_a_peer_that_restarts_at_once_costs_a_question_for_each_of_its_cells_and_no_sync_of_others(play: Play) -> None:
    """All cells at once are compared then, so each comparison more holds up the first page."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 2, urls=30)
        peer = swarm.holders(CELLS[3])[OWNER]
        own = [cell for cell in CELLS if swarm.holders(cell)[OWNER] is peer]
        await asyncio.sleep(CALM_S)
        await swarm.kill(peer)
        (other,) = swarm.peers.values()
        syncs, examined, sent = other.cells.sync.syncs, other.cells.anti_entropy.examined, len(swarm.sent)
        back = await swarm.join(peer.contact.number, directory=peer.directory)
        await swarm.settle()
        asked = Counter(
            cell for _, _, message in swarm.sent[sent:] if isinstance(message, TakeOver) for cell in message.cells
        )
        assert dict.fromkeys(own, 1) == asked
        assert len(own) == back.cells.sync.syncs
        assert (syncs, examined) == (other.cells.sync.syncs, other.cells.anti_entropy.examined)

    play(scenario)


def test_a_backup_that_restarts_at_once_without_its_records_gets_them_again(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 2, urls=30)
        owner, backup = swarm.holders(CELLS[3])
        before = dict(backup.store.cells)
        await swarm.kill(backup)
        back = await swarm.join(backup.contact.number)
        await asyncio.sleep(5.0)  # Long before the next repair.
        assert before == dict(back.store.cells)
        await swarm.settle()
        assert owner.cells.holdings.owned[CELLS[3]].whole

    play(scenario)


def test_what_owner_and_backup_lack_of_each_other_travels_by_one_comparison(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 2)
        cell = CELLS[3]
        owner, backup = swarm.holders(cell)
        for number, peer in ((70, owner), (71, backup)):
            peer.cells.records.merging = True  # As by another way than from the owner to its backup.
            peer.take(cell, number)
            peer.cells.records.merging = False
        sent = len(swarm.sent)
        owner.cells.sync.want(cell)
        await asyncio.sleep(1.0)
        assert 1 == sum(isinstance(message, Reconcile) for _, _, message in swarm.sent[sent:])
        assert owner.store.cells[cell] == backup.store.cells[cell]

    play(scenario)


def test_a_peer_that_was_away_crawls_nothing_before_it_has_synced_again(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        sleeper = swarm.holders(CELLS[3])[OWNER]
        await swarm.freeze(sleeper)
        await swarm.offer(CELLS[3], range(50, 60))
        await asyncio.sleep(10.0)
        swarm.thaw(sleeper)
        sleeper.cells._beat_at = swarm.loop.time() - 10.0  # It was stopped, so its beat was too.
        assert sleeper.cells.is_stalled()
        await sleeper.cells.sure()
        assert [] == [cell for cell in CELLS if sleeper.frontier.is_open(cell)]
        await swarm.settle()

    play(scenario)


def test_a_backup_that_lacks_the_notice_to_keep_a_cell_gets_it_without_a_sync(play: Play) -> None:
    """In an overloaded swarm changes of a cell arrive long before the notice, and each cell would be synced again."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        cell = CELLS[3]
        owner, backup, _ = swarm.holders(cell)
        sent, syncs = len(swarm.sent), owner.cells.sync.syncs
        owner.cells.sync.cells_held(CellsHeld(backup.contact, [held_of(backup.store, cell)]))
        await asyncio.sleep(1.0)
        told = [
            to for who, to, message in swarm.sent[sent:] if isinstance(message, AssignReplica) and who == owner.contact
        ]
        assert backup.contact.address in told
        assert syncs == owner.cells.sync.syncs

    play(scenario)


def test_a_backup_that_knows_a_nearer_backup_has_the_cell_synced(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        cell = CELLS[3]
        owner, backup, _ = swarm.holders(cell)
        owned = owner.cells.holdings.owned[cell]
        stranger = next(peer for peer in swarm.peers.values() if peer not in swarm.holders(cell))
        owner.cells.holdings.back_up_at(cell, (backup.contact, stranger.contact))
        sent = len(swarm.sent)
        owner.cells.sync.cells_held(CellsHeld(backup.contact, [held_of(backup.store, cell)]))
        await asyncio.sleep(1.0)
        assert tuple(peer.contact for peer in swarm.holders(cell)[FIRST_BACKUP:]) == owned.backups
        notices = [(to, message) for _, to, message in swarm.sent[sent:] if isinstance(message, AssignReplica)]
        roles = [
            message.role
            for to, message in notices
            if to == stranger.contact.address and cell in [held.cell for held in message.cells]
        ]
        assert {OWNER} == set(roles)  # It was told to drop its copy, and never to keep one.
        await swarm.settle()

    play(scenario)


def test_a_backup_with_a_record_that_the_owner_lacks_is_synced(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        cell = CELLS[3]
        owner, backup, _ = swarm.holders(cell)
        backup.take(cell, 77)
        owner.cells.sync.cells_held(CellsHeld(backup.contact, [held_of(backup.store, cell)]))
        await asyncio.sleep(2.0)
        assert PENDING == owner.store.state(key(cell, 77))
        swarm.acknowledged[key(cell, 77)] = PENDING
        await swarm.settle()

    play(scenario)


def test_a_returning_peer_without_answers_goes_on_alone_after_a_while(play: Play) -> None:
    """The peer is more likely cut off than the last of the swarm.

    The others may have done much of the work in its copies.
    """

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 3)
        sleeper, *others = swarm.peers.values()
        sleeper.cells.sync.close_all()
        woke_at = swarm.loop.time()
        await swarm.kill(*others)
        while not any(sleeper.cells.holdings.is_open(cell) for cell in CELLS):
            await asyncio.sleep(0.5)
        assert 60.0 <= swarm.loop.time() - woke_at <= 63.0
        await swarm.settle()

    play(scenario)


def test_a_peer_that_was_away_and_alone_before_goes_on_at_once(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 1)
        (sleeper,) = swarm.peers.values()
        sleeper.cells.sync.close_all()
        await swarm.settle(3.0)

    play(scenario)


def test_a_sync_begun_before_a_stall_opens_nothing_after_it(play: Play) -> None:
    """The earlier answers of the others may be out of date, so the peer asks again."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 4)
        cell = CELLS[3]
        owner, backup, _ = swarm.holders(cell)
        gate, reached = asyncio.Event(), asyncio.Event()

        async def hold_exchange(sender: Contact, address: tuple[str, int], message: Any) -> None:
            if isinstance(message, Reconcile) and message.cell == cell and sender == owner.contact:
                reached.set()
                await gate.wait()

        swarm.hooks.append(hold_exchange)
        backup.cells.records.merging = True
        backup.store.learn_done(key(cell, 0))
        backup.cells.records.merging = False
        swarm.acknowledged[key(cell, 0)] = DONE
        owner.cells.sync.close_all()
        await reached.wait()
        owner.cells.sync.close_all()
        asked = len(swarm.sent)
        gate.set()
        while not owner.cells.holdings.is_open(cell):
            await asyncio.sleep(0.01)
        syncs = [
            message
            for sender, _, message in swarm.sent[asked:]
            if isinstance(message, TakeOver) and sender == owner.contact and cell in message.cells
        ]
        assert syncs

    play(scenario)


def test_two_halves_that_crawled_alone_merge(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 6)
        peers = list(swarm.peers.values())
        halves = peers[:3], peers[3:]
        parted = True

        async def cut(sender: Contact, address: tuple[str, int], message: Any) -> None:
            side = [any(peer.contact == sender for peer in half) for half in halves]
            if parted and not any(peer.contact.address == address for peer in halves[side.index(True)]):
                raise RemoteError(address, "unreachable")

        swarm.hooks.append(cut)
        for half, others in (halves, halves[::-1]):
            for peer in half:
                for other in others:
                    peer.overlay.lose(other.contact)
        await asyncio.sleep(20.0)
        for cell in CELLS:
            # A half without any of its three holders knows nothing of a cell.
            for number, owner in enumerate(swarm.open_at(cell), 100):
                owner.store.accept(key(cell, number), SITES[cell], url(cell, number), 0, 0)
                swarm.acknowledged[key(cell, number)] = PENDING
        assert 2 in {len(swarm.open_at(cell)) for cell in CELLS}
        parted = False
        for half, others in (halves, halves[::-1]):
            for peer in half:
                for other in others:
                    peer.overlay.hear(other.contact)
        await swarm.settle()

    play(scenario)


# --- late, silent, unlike -----------------------------------------------------------------------------------------


def test_the_owner_learns_of_a_page_finished_after_its_cell_was_dropped(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        cell = CELLS[3]
        late = next(peer for peer in swarm.peers.values() if peer not in swarm.holders(cell))
        entry = FrontierEntry(1, 10**6, key(cell, 0), SITES[cell], url(cell, 0), 0, 0, 0.0)
        late.store.finish(entry, b"{}\n")
        swarm.acknowledged[entry.key] = DONE
        await swarm.settle(10.0)

    play(scenario)


def test_a_copy_that_differs_is_found_by_the_repair(play: Play) -> None:
    """The cause of the difference does not matter: here a backup loses records, and another backup knows more."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        cell = CELLS[3]
        _, first, second = swarm.holders(cell)
        first.store.forget_cell(cell, 2)
        second.cells.records.merging = True
        second.store.learn_done(key(cell, 0))
        second.cells.records.merging = False
        swarm.acknowledged[key(cell, 0)] = DONE
        await swarm.settle(2 * repair_pace.REPAIR_S)

    play(scenario)


def test_a_backup_that_hears_nothing_from_its_owner_asks_who_it_is(play: Play) -> None:
    """The owner died and nobody told the backup: they did not know each other."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        cell = CELLS[3]
        owner, first, second = swarm.holders(cell)
        await swarm.kill(owner)
        for peer in swarm.peers.values():
            peer.overlay.known.pop(owner.contact.id)  # No callback.
        await swarm.settle(SILENT_S)
        assert first.cells.holdings.is_open(cell) or second.cells.holdings.is_open(cell) or swarm.open_at(cell)

    play(scenario)


def test_a_silent_backup_delays_acknowledgement_until_it_is_lost(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        cell = CELLS[3]
        backup = swarm.holders(cell)[1]
        backup.silent = True
        offering = swarm.loop.create_task(swarm.offer(cell, [99]))
        await asyncio.sleep(8.0)
        assert not offering.done()
        await swarm.kill(backup)
        await offering
        await swarm.settle()

    play(scenario)


@pytest.mark.parametrize("by_url", [True, False])
def test_the_cells_of_a_crawl_by_url_open_together_with_one_message_to_each_peer(play: Play, by_url: bool) -> None:
    """By URL the cells beside each other get their first links at nearly the same time."""

    async def scenario(swarm: SyncSwarm) -> None:
        swarm.by_url = by_url
        for _ in range(5):
            await swarm.join()
            await asyncio.sleep(0.5)
        cell = CELLS[3]
        owner = swarm.holders(cell)[OWNER]
        own = [one for one in CELLS if swarm.holders(one)[OWNER] is owner]
        await swarm.settle()
        swarm.sent.clear()
        await swarm.offer(cell, [1])
        await asyncio.sleep(2.0)
        assert (own if by_url else [cell]) == [one for one in CELLS if owner.cells.holdings.is_open(one)]
        asked = Counter(
            to for sender, to, message in swarm.sent if sender == owner.contact and isinstance(message, TakeOver)
        )
        assert set(asked.values()) <= {1}
        await swarm.settle()

    play(scenario)


def _links(cells: Iterable[Cell], number: int) -> list[tuple[Link, UrlLocation]]:
    """Return a link of each cell as its owner accepts it."""
    return [(Link(url(cell, number), 1, 0), UrlLocation(SITES[cell], key(cell, number), cell)) for cell in cells]


def _cells_of_one_owner(swarm: SyncSwarm) -> tuple[FakePeer, list[Cell]]:
    """Return a peer with cells that have different backups, and these cells."""
    for owner in swarm.peers.values():
        cells = {frozenset(swarm.holders(cell)[1:]): cell for cell in CELLS if swarm.holders(cell)[OWNER] is owner}
        if len(cells) > 1:
            return owner, list(cells.values())
    raise AssertionError("no peer owns two cells with different backups")


def test_links_of_several_cells_wait_for_all_their_backups_at_the_same_time(play: Play) -> None:
    """With a crawl by URL an offer has links of many cells, and each cell has other backups."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 6)
        owner, cells = _cells_of_one_owner(swarm)
        await asyncio.sleep(5.0)
        assert [] == await owner.cells.accept(_links(cells, 98), owner.intake.accept)
        silent = swarm.holders(cells[0])[1]
        silent.silent = True
        accepting = swarm.loop.create_task(owner.cells.accept(_links(cells, 99), owner.intake.accept))
        await asyncio.sleep(BUSY_S + 0.2)
        for cell in cells:
            for backup in swarm.holders(cell)[1:]:
                assert backup is silent or PENDING == backup.store.state(key(cell, 99))
        silent.silent = False
        await accepting
        swarm.acknowledged.update({key(cell, number): PENDING for cell in cells for number in (98, 99)})
        await swarm.settle()

    play(scenario)


def test_a_silent_backup_sends_no_link_of_another_cell_back(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 6)
        owner, cells = _cells_of_one_owner(swarm)
        backups = [set(swarm.holders(cell)[1:]) for cell in cells]
        silent = next(iter(backups[0] - backups[1] or backups[1] - backups[0]))
        silent.silent = True
        again = await owner.cells.accept(_links(cells, 99), owner.intake.accept)
        assert [index for index, cell in enumerate(cells) if silent in swarm.holders(cell)] == again
        assert len(again) < len(cells)
        silent.silent = False
        swarm.acknowledged.update({key(cell, 99): PENDING for cell in cells})
        await swarm.settle()

    play(scenario)


def test_a_link_of_an_open_cell_does_not_wait_for_a_closed_cell_of_the_same_offer(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 6)
        owner, (first, second, *_) = _cells_of_one_owner(swarm)
        await asyncio.sleep(5.0)
        assert [] == await owner.cells.accept(_links([second], 98), owner.intake.accept)
        owner.cells.holdings.let_go(first)
        for backup in swarm.holders(first)[1:]:
            backup.silent = True
        accepting = swarm.loop.create_task(owner.cells.accept(_links([first, second], 99), owner.intake.accept))
        await asyncio.sleep(0.1)
        assert PENDING == owner.store.state(key(second, 99))
        await asyncio.sleep(BUSY_S)
        for backup in swarm.holders(second)[1:]:
            assert backup.silent or PENDING == backup.store.state(key(second, 99)), "its copies do not wait either"
        assert owner.store.state(key(first, 99)) is None
        for backup in swarm.holders(first)[1:]:
            backup.silent = False
        swarm.acknowledged.update({key(second, number): PENDING for number in (98, 99)})
        await accepting
        await swarm.settle()

    play(scenario)


@pytest.mark.parametrize("copies", [2, 5])
def test_a_link_is_acknowledged_only_when_the_last_backup_has_it(play: Play, copies: int) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        swarm.copies = copies
        await swarm_of(swarm, 7)
        cell = CELLS[3]
        last = swarm.holders(cell)[-1]
        last.silent = True
        offering = swarm.loop.create_task(swarm.offer(cell, [99]))
        await asyncio.sleep(8.0)
        assert not offering.done()
        last.silent = False
        await offering
        assert PENDING == last.store.state(key(cell, 99))

    play(scenario)


def test_nothing_stays_unacknowledged_for_a_backup_that_is_gone(play: Play) -> None:
    """Changes between its death and the next backups: else the swarm would never know that it is done."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        cell = CELLS[3]
        owner, backup, _ = swarm.holders(cell)
        await swarm.kill(backup)
        for _ in range(30):
            owner.store.accept(
                key(cell, (number := len(swarm.acknowledged) + 1000)), SITES[cell], url(cell, number), 0, 0
            )
            swarm.acknowledged[key(cell, number)] = PENDING
            await asyncio.sleep(0.1)
        await swarm.settle()

    play(scenario)


def test_nobody_waits_for_ever_for_a_cell_that_is_not_ours(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 3)
        cell = CELLS[3]
        other = swarm.holders(cell)[1]
        assert set() == await other.cells.sync.opened([cell], 4.0)
        owner = swarm.holders(cell)[OWNER]
        assert {cell} == await owner.cells.sync.opened([cell], 4.0)

    play(scenario)


def test_waiting_in_vain_leaves_nothing_behind(play: Play) -> None:
    """A cell that does not open for a long time is waited for again and again."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 3)
        cell = CELLS[3]
        owner, backup, _ = swarm.holders(cell)
        backup.silent = True
        owner.cells.sync.close_all()
        for _ in range(20):
            assert set() == await owner.cells.sync.opened([cell], 0.2)
        assert len(owner.cells.sync.opener._waiting.get(cell, [])) <= 1
        backup.silent = False
        await swarm.settle()

    play(scenario)


def test_peers_that_come_and_go_at_once_for_a_while_end_whole(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 6)
        for _ in range(12):
            peer = swarm.random.choice(list(swarm.peers.values()))
            match swarm.random.choice(["join", "join", "kill", "leave", "offer"]):
                case "join":
                    await swarm.join()
                case "kill" if len(swarm.peers) > 4:
                    await swarm.kill(peer)
                    await asyncio.sleep(8.0)
                case "leave" if len(swarm.peers) > 4:
                    await swarm.leave(peer)
                case _:
                    for cell in swarm.random.sample(CELLS, 4):
                        await swarm.offer(cell, [swarm.random.randrange(1_000)])
            await asyncio.sleep(swarm.random.uniform(0, 2))
        await swarm.settle()

    play(scenario)


# --- what costs what ----------------------------------------------------------------------------------------------


def test_a_join_moves_what_the_newcomer_is_to_hold_and_little_else(play: Play) -> None:
    """Records travel to the newcomer and to backups that lack them. A backup that has all of them receives none."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5, urls=60)
        before = {peer: dict(peer.store.cells) for peer in swarm.peers.values()}
        sent = len(swarm.sent)
        newcomer = await swarm.join()
        await swarm.settle()
        missing = sum(
            tally.keys - before.get(peer, {}).get(cell, tally._replace(keys=0)).keys
            for peer in swarm.peers.values()
            for cell, tally in peer.store.cells.items()
        )
        pushed = sum(
            len(message.batch.done) + len(message.batch.pending)
            for _, _, message in swarm.sent[sent:]
            if isinstance(message, Replicate)
        )
        assert newcomer.store.cells
        assert pushed <= missing

    play(scenario)


def test_a_swarm_where_nothing_happens_compares_and_moves_nothing(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 5)
        await asyncio.sleep(2 * repair_pace.REPAIR_S)
        sent, examined = len(swarm.sent), [peer.cells.anti_entropy.examined for peer in swarm.peers.values()]
        await asyncio.sleep(repair_pace.REPAIR_S * repair_pace.RECHECK_REPAIRS)
        assert set() == {Replicate, Reconcile, CompareDigests, CellsHeld} & {
            type(message) for _, _, message in swarm.sent[sent:]
        }
        assert examined == [peer.cells.anti_entropy.examined for peer in swarm.peers.values()]

    play(scenario)


# --- whoever asks -------------------------------------------------------------------------------------------------


STRANGER = Contact(id_bytes(12345), "10.9.9.9", 4160)
NOWHERE = 1 << BITS
EMPTY_DIGEST = CellSummary(NOWHERE, 1, 1, bytes(16))


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(CellsHeld(STRANGER, [EMPTY_DIGEST]), id="CellsHeld"),
        pytest.param(TakeOver(STRANGER, [NOWHERE]), id="TakeOver"),
        pytest.param(AssignReplica(STRANGER, 0, [EMPTY_DIGEST]), id="Settle drop"),
        pytest.param(AssignReplica(STRANGER, 1, [EMPTY_DIGEST]), id="Settle keep"),
        pytest.param(Reconcile(NOWHERE, None, None, [], []), id="Reconcile"),
        pytest.param(CompareDigests(NOWHERE, None, []), id="CompareDigests"),
    ],
)
def test_a_cell_that_does_not_exist_harms_nobody(play: Play, message: Any) -> None:
    """The wire allows 24 bits, the job fewer. No peer may end, now or when the owner of the cell falls silent."""

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 3)
        for peer in list(swarm.peers.values()):
            try:
                await peer.answer(message)
            except KadcrawlError:
                pass
            assert not [cell for cell in [*peer.cells.holdings.backed, *peer.cells.holdings.owned] if cell >= NOWHERE]
        await asyncio.sleep(SILENT_S)
        await swarm.settle()

    play(scenario)


@pytest.mark.parametrize("kind", ["CellsHeld", "TakeOver", "keep", "drop", "Replicate"])
def test_a_message_that_seems_to_come_from_ourselves_changes_nothing(play: Play, kind: str) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 3)
        cell = CELLS[3]
        owner = swarm.holders(cell)[OWNER]
        tally = owner.store.cells[cell]
        held = CellSummary(cell, tally.keys, tally.pending, tally.digest.to_bytes(16, "big"))
        message = {
            "CellsHeld": CellsHeld(owner.contact, [held]),
            "TakeOver": TakeOver(owner.contact, [cell]),
            "keep": AssignReplica(owner.contact, 1, [held]),
            "drop": AssignReplica(owner.contact, 0, [held]),
            "Replicate": Replicate(owner.contact, Batch([], [], [], [])),
        }[kind]
        try:
            await owner.answer(message)
        except KadcrawlError:
            pass
        assert [owner] == swarm.open_at(cell)
        assert tally == owner.store.cells[cell]
        await swarm.settle(5.0)

    play(scenario)


def test_cells_there_are_none_of_in_an_answer_end_nobody(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 3)
        for peer in swarm.peers.values():
            peer.cells.sync.find_my_cells = lambda message: MyCells(b"\xff" * 8)  # type: ignore[method-assign]
        newcomer = await swarm.join()
        await asyncio.sleep(10.0)
        assert newcomer.contact.id in swarm.peers
        assert not newcomer.task.done()  # type: ignore[union-attr]
        await swarm.settle()

    play(scenario)


def test_a_live_silent_sibling_delays_a_newcomer_only_for_a_while(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 3)
        mute = next(iter(swarm.peers.values()))

        async def say_nothing(sender: Contact, address: tuple[str, int], message: Any) -> None:
            if isinstance(message, FindMyCells) and address == mute.contact.address:
                raise RemoteError(address[0], "no answer")

        swarm.hooks.append(say_nothing)
        newcomer = await swarm.join()
        await asyncio.sleep(60.0)
        assert not newcomer.cells.sync._join_handshake.done.is_set()
        await asyncio.sleep(40.0)
        assert newcomer.cells.sync._join_handshake.done.is_set()
        await swarm.settle()

    play(scenario)


def test_the_peers_that_claim_to_hold_cells_are_bounded(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 3)
        cell = CELLS[3]
        owner = swarm.holders(cell)[OWNER]
        for number in range(3_000):
            stranger = Contact(id_bytes(number + 1), "10.9.9.9", 4160)
            await owner.answer(CellsHeld(stranger, [CellSummary(cell, 1, 1, bytes(16))]))
        assert len(owner.cells.sync._catch_up.providers.of(cell)) <= 1_000
        await swarm.settle(300.0)

    play(scenario)


def test_who_takes_long_to_release_a_cell_is_asked_ever_more_seldom(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 3, urls=7)
        cell = CELLS[3]
        owner, backup, _ = swarm.holders(cell)
        assert 0 == owner.cells.pending_closed
        swarm.sent.clear()
        backup.cells.crawl.is_busy = lambda one: one == cell  # type: ignore[assignment, method-assign]
        owner.cells.sync.want(cell)
        await asyncio.sleep(60.0)
        asked = [
            message
            for _, address, message in swarm.sent
            if isinstance(message, TakeOver) and address == backup.contact.address and cell in message.cells
        ]
        assert 30 <= len(asked) <= 60 / RELEASE_POLL_MOST_S + 50
        assert not owner.cells.holdings.is_open(cell)
        assert 7 == owner.cells.pending_closed
        del backup.cells.crawl.is_busy
        await asyncio.sleep(RELEASE_POLL_MOST_S + 0.1)
        assert owner.cells.holdings.is_open(cell)
        await swarm.settle()

    play(scenario)


def test_a_peer_is_told_once_a_second_at_most_which_cells_are_its_own(play: Play) -> None:
    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 3)
        peer, *others = swarm.peers.values()
        await asyncio.sleep(FIND_MY_CELLS_INTERVAL_S)
        for _ in range(3):
            for other in others:
                await peer.answer(FindMyCells(other.contact))
                for _ in range(5):
                    with pytest.raises(KadcrawlError):
                        await peer.answer(FindMyCells(other.contact))
            await asyncio.sleep(FIND_MY_CELLS_INTERVAL_S)
        for number in range(1000):
            await peer.answer(FindMyCells(Contact(id_bytes(number + 1), "10.9.9.9", 4160)))
            await asyncio.sleep(0.1)
        assert len(peer.cells.sync._asked_for_cells_at) <= FIND_MY_CELLS_INTERVAL_S / 0.1 + 1
        await swarm.settle(300.0)

    play(scenario)


def test_a_sync_is_cut_off_without_a_word_when_its_world_ends(play: Play) -> None:
    """There is no loop any more by then: a kill in the simulated world, or a program that ends in a hurry."""
    begun: list[Coroutine[Any, Any, bool]] = []

    async def scenario(swarm: SyncSwarm) -> None:
        await swarm_of(swarm, 3)
        cell = CELLS[3]
        owner = swarm.holders(cell)[OWNER]
        owner.cells.holdings.owned[cell].open = False
        begun.append(owner.cells.sync._catch_up.once(SyncProgress(cell)))
        begun[0].send(None)
        await asyncio.sleep(1.0)
        owner.cells.holdings.owned[cell].open = True

    play(scenario)
    begun[0].close()


@pytest.mark.parametrize(("keys", "merges", "least", "most"), [(1, 16, 4, 4), (100, 16, 5, 16), (100, 6, 5, 6)])
def test_cells_are_merged_some_at_a_time_and_large_cells_few(
    play: Play, monkeypatch: pytest.MonkeyPatch, keys: int, merges: int, least: int, most: int
) -> None:
    """So the first of them opens long before the last."""
    monkeypatch.setattr(catch_up, "LARGE_KEYS", keys)
    monkeypatch.setattr(catch_up, "MERGES_MAX", merges)
    merge, largest = CatchUp._merge_answers, 0
    merging: Counter[CatchUp] = Counter()

    async def merge_slowly(self: CatchUp, *arguments: Any) -> None:
        nonlocal largest
        merging[self] += 1
        largest = max(largest, merging[self])
        await asyncio.sleep(0.1)
        await merge(self, *arguments)
        merging[self] -= 1

    async def scenario(swarm: SyncSwarm) -> None:
        nonlocal largest
        await swarm.join()
        for cell in CELLS:
            await swarm.offer(cell, range(3))
        await swarm.settle()
        largest = 0
        await swarm.join()
        await swarm.settle()
        assert least <= largest <= most
        assert 0 == merging.total()

    monkeypatch.setattr(CatchUp, "_merge_answers", merge_slowly)
    play(scenario)
