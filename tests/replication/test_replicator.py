"""Copies of every change at the backups: in order, acknowledged only once journaled there, bounded, and never stuck."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from kadcrawl.errors import RemoteError
from kadcrawl.keys import Cell, Key
from kadcrawl.link.wire.messages import (
    BATCH_MAX,
    AssignReplica,
    Batch,
    CellSummary,
    Contact,
    ReplicaAssigned,
    Replicate,
    Replicated,
    SiteRecord,
)
from kadcrawl.replication import replication_stream, replicator
from kadcrawl.replication.events import ReplicationEvents
from kadcrawl.replication.peer_tasks import NotRunningError, PeerTasks
from kadcrawl.replication.placement.holdings import Holdings
from kadcrawl.replication.placement.placement import FIRST_BACKUP, OWNER, SECOND_BACKUP
from kadcrawl.replication.replication_stream import BATCHES_PER_DELIVERY, CopySpacing, ReplicationStream
from kadcrawl.replication.replicator import HAS_TIME_S, Replicator, digest_of
from kadcrawl.store.cell_digest import EMPTY
from kadcrawl.store.store import Store
from kadcrawl.system.spaced_batches import BUSY_S
from sim.loop import world
from tests.support.swarm.live_overlay import ME, A, B, LiveOverlay

BITS = 8
SPACING_S = 0.05
PATIENCE_S = 600.0
"""Virtual: by then everything has happened that will."""


CELL, OTHER = Cell(0), Cell(1)


def cell_key(number: int, cell: Cell = CELL) -> Key:
    return Key(bytes([cell]) + number.to_bytes(19, "big"))


class ReplicaClient:
    """Simulate other peers that note the messages and answer after a while, or not."""

    def __init__(self) -> None:
        self.told: list[tuple[Contact, Any]] = []
        """The messages that have arrived, in order."""
        self.down: set[Contact] = set()
        self.lost: list[int] = []
        """The numbers of the messages that get no answer, counted from 0."""
        self._count = 0
        self.takes_s = 0.01
        self.unlike: list[CellSummary] = []
        self.unlike_runs: list[int] = []
        """The answer to the next batch alone."""
        self.under_way = self.under_way_max = 0

    async def ask(self, to: Contact, message: Any, expected: Any, deadline_s: float) -> Any:
        peer = next(one for one in (A, B) if one == to)
        self.under_way += 1
        self.under_way_max = max(self.under_way_max, self.under_way)
        number, self._count = self._count, self._count + 1
        try:
            await asyncio.sleep(self.takes_s)
            if peer in self.down or number in self.lost:
                raise RemoteError(peer, "does not answer")
            self.told.append((peer, message))
            if expected is not Replicated:
                return ReplicaAssigned(self.unlike)
            unlike, self.unlike_runs = self.unlike_runs, []
            return Replicated(unlike)
        finally:
            self.under_way -= 1

    def keys(self, peer: Contact = A) -> list[Key]:
        return [Key(one) for message in self.batches(peer) for one in message.batch.done]

    def batches(self, peer: Contact = A) -> list[Replicate]:
        return [message for to, message in self.told if to == peer and isinstance(message, Replicate)]

    def notices(self, peer: Contact = A) -> list[AssignReplica]:
        return [message for to, message in self.told if to == peer and isinstance(message, AssignReplica)]


class StreamsBench:
    """A replicator of one peer that owns two cells: the first has backups at A and B, the second at A alone."""

    def __init__(self, directory: Path) -> None:
        self.store = Store(directory, 0.0, lambda fds: None)
        self.store.begin(BITS)
        self.overlay = LiveOverlay()
        self.client = ReplicaClient()
        client: Any = self.client
        self.holdings = Holdings(ME.number, BITS)
        self.holdings.own(CELL, 0.0).open = True
        self.holdings.back_up_at(CELL, [A, B])
        self.holdings.own(OTHER, 0.0).open = True
        self.holdings.back_up_at(OTHER, [A])
        self.made: list[list[Key]] = []
        self.has_time = False
        self.tasks = PeerTasks()
        self.events = ReplicationEvents()
        self.replicator = Replicator(
            *(self.overlay, client, self.store, self.holdings, self.make_batch, SPACING_S),
            spawn=self.tasks.spawn,
            events=self.events,
            has_time=lambda: self.has_time,
        )

    def make_batch(self, keys: Sequence[Key], sites: Sequence[str]) -> Batch:
        self.made.append(list(keys))
        return Batch(list(keys), [], [SiteRecord(site, 0.0, 1.0) for site in sites], [])

    def lose_unreachable_peers(self) -> list[Contact]:
        """Give every unreachable peer up, as the overlay does. Return the list that these peers are added to."""
        dead: list[Contact] = []
        self.events.peer_unreachable += [dead.append, lambda contact: self.replicator.lost(contact.id)]
        return dead

    def go_on(self) -> None:
        """Have a URL to crawl, so that copies that nobody waits for are no hurry."""
        self.store.accept(cell_key(999, Cell(9)), "b.example", "http://b.example/", 0, 0)

    def change(self, *numbers: int, cell: Cell = CELL) -> None:
        for number in numbers:
            self.replicator.changed(cell, cell_key(number, cell))


@pytest.fixture
def streams_bench(tmp_path: Path) -> Iterator[StreamsBench]:
    bench = StreamsBench(tmp_path)
    yield bench
    bench.store.close()


def run_replicator(bench: StreamsBench, scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Play a scenario in virtual time. At its end no task may be running any more."""

    async def play() -> None:
        committer = asyncio.create_task(bench.store.journal.run())
        async with asyncio.timeout(PATIENCE_S), bench.tasks.running():
            await scenario()
        committer.cancel()

    with world(0) as loop:
        loop.run_until_complete(play())


def test_a_change_reaches_every_backup_of_its_cell_and_nobody_else(streams_bench: StreamsBench) -> None:
    async def scenario() -> None:
        streams_bench.change(1)
        streams_bench.change(2, cell=OTHER)
        assert [True, True] == [await streams_bench.replicator.delivered(peer) for peer in (A, B)]
        assert [cell_key(1), cell_key(2, OTHER)] == streams_bench.client.keys(A)
        assert [cell_key(1)] == streams_bench.client.keys(B)
        assert all(ME == message.sender for _, message in streams_bench.client.told)

    run_replicator(streams_bench, scenario)


def test_a_change_of_a_cell_not_owned_here_goes_nowhere(streams_bench: StreamsBench) -> None:
    async def scenario() -> None:
        streams_bench.replicator.changed(Cell(9), cell_key(1, Cell(9)))
        streams_bench.replicator.site_changed(Cell(9), "a.example")
        assert 0 == streams_bench.replicator.unacknowledged
        assert await streams_bench.replicator.delivered(A)

    run_replicator(streams_bench, scenario)
    assert [] == streams_bench.client.told


def test_changes_travel_in_their_order_in_some_bounded_batches_at_a_time(streams_bench: StreamsBench) -> None:
    """One batch at a time would bound the crawl, as each waits for two disks."""
    count = BATCHES_PER_DELIVERY * BATCH_MAX + 1

    async def scenario() -> None:
        streams_bench.change(*range(count), cell=OTHER)
        await streams_bench.replicator.delivered(A)

    run_replicator(streams_bench, scenario)
    assert [cell_key(number, OTHER) for number in range(count)] == streams_bench.client.keys()
    assert [BATCH_MAX] * BATCHES_PER_DELIVERY + [1] == [
        len(message.batch.done) for message in streams_bench.client.batches()
    ]
    assert BATCHES_PER_DELIVERY == streams_bench.client.under_way_max


def test_the_changes_of_a_cell_travel_in_one_batch_if_several_go_at_a_time(streams_bench: StreamsBench) -> None:
    """The run of a batch does not match at the peer while pages between its pages are done by another batch."""

    async def scenario() -> None:
        for number in range(BATCH_MAX):
            streams_bench.change(number)
            streams_bench.change(number, cell=OTHER)
        await streams_bench.replicator.delivered(A)

    run_replicator(streams_bench, scenario)
    cells = [{Cell(key[0]) for key in message.batch.done} for message in streams_bench.client.batches()]
    assert [{CELL}, {OTHER}] == cells


def test_a_batch_that_is_lost_travels_again_alone_and_all_are_acknowledged_after_it(
    streams_bench: StreamsBench,
) -> None:
    async def scenario() -> None:
        streams_bench.client.lost = [2]
        streams_bench.replicator.site_changed(OTHER, "a.example")
        streams_bench.change(*range(4 * BATCH_MAX), cell=OTHER)
        delivered = asyncio.create_task(streams_bench.replicator.delivered(A))
        await asyncio.sleep(replicator.REPLICATE_RETRY_S)
        assert 3 == len(streams_bench.client.batches())
        assert not delivered.done()
        assert await delivered

    run_replicator(streams_bench, scenario)
    batches = streams_bench.client.batches()
    assert [Key(key) for key in batches[-1].batch.done] == [
        cell_key(number, OTHER) for number in range(2 * BATCH_MAX, 3 * BATCH_MAX)
    ]
    assert [1, 0, 0, 0] == [len(message.batch.sites) for message in batches]
    assert 4 * BATCH_MAX == len(set(streams_bench.client.keys()))


def test_clocks_travel_again_if_their_batch_is_lost(streams_bench: StreamsBench) -> None:
    async def scenario() -> None:
        streams_bench.client.lost = [0]
        streams_bench.replicator.site_changed(OTHER, "a.example")
        streams_bench.change(*range(2 * BATCH_MAX), cell=OTHER)
        assert await streams_bench.replicator.delivered(A)

    run_replicator(streams_bench, scenario)
    assert [0, 1] == [len(message.batch.sites) for message in streams_bench.client.batches()]


def test_what_changes_alone_goes_at_once(streams_bench: StreamsBench) -> None:
    async def scenario() -> None:
        streams_bench.change(1, cell=OTHER)
        began = asyncio.get_running_loop().time()
        await streams_bench.replicator.delivered(A)
        assert asyncio.get_running_loop().time() == pytest.approx(began + streams_bench.client.takes_s, abs=1e-3)

    run_replicator(streams_bench, scenario)


def test_what_changes_soon_after_travels_together_and_once(streams_bench: StreamsBench) -> None:
    async def scenario() -> None:
        streams_bench.change(1, cell=OTHER)
        await streams_bench.replicator.delivered(A)
        streams_bench.change(2, 3, 2, cell=OTHER)
        await asyncio.sleep(SPACING_S / 2)
        streams_bench.change(4, 2, cell=OTHER)
        assert 3 == streams_bench.replicator.unacknowledged
        await streams_bench.replicator.delivered(A)

    run_replicator(streams_bench, scenario)
    assert [[cell_key(1, OTHER)], [cell_key(number, OTHER) for number in (2, 3, 4)]] == streams_bench.made


def test_changes_that_nobody_waits_for_travel_together_while_the_crawl_goes_on(streams_bench: StreamsBench) -> None:
    streams_bench.go_on()

    async def scenario() -> None:
        for number in range(8):
            streams_bench.change(number, cell=OTHER)
            await asyncio.sleep(0.22 * replicator.CALM_S)
        await asyncio.sleep(replicator.CALM_S)
        assert 0 == streams_bench.replicator.unacknowledged

    run_replicator(streams_bench, scenario)
    assert [[0], [1, 2, 3, 4], [5, 6, 7]] == [[key[-1] for key in keys] for keys in streams_bench.made]


def _awaited(bench: StreamsBench) -> None:
    async def waiting() -> None:
        assert await bench.replicator.delivered(A)

    bench.tasks.spawn(waiting(), "waiting")


def _with_a_clock(bench: StreamsBench) -> None:
    bench.replicator.site_changed(OTHER, "a.example")


def _with_a_notice(bench: StreamsBench) -> None:
    bench.replicator.keep(A, OTHER, FIRST_BACKUP)


def _full(bench: StreamsBench) -> None:
    bench.change(*range(3, BATCH_MAX + 3), cell=OTHER)


def _at_the_end_of_the_crawl(bench: StreamsBench) -> None:
    bench.store.learn_done(cell_key(999, Cell(9)))
    bench.change(3)


@pytest.mark.parametrize(
    ("hurry", "wait_s"),
    [
        (_awaited, BUSY_S),
        (_with_a_clock, BUSY_S),
        (_with_a_notice, BUSY_S),
        (_full, SPACING_S),
        (_at_the_end_of_the_crawl, SPACING_S),
    ],
)
def test_an_urgent_batch_takes_the_waiting_changes_along(
    streams_bench: StreamsBench, hurry: Callable[[StreamsBench], object], wait_s: float
) -> None:
    streams_bench.go_on()

    async def scenario() -> None:
        streams_bench.change(1, cell=OTHER)
        await asyncio.sleep(0.1)
        streams_bench.change(2, cell=OTHER)
        await asyncio.sleep(0.1)
        assert [cell_key(1, OTHER)] == streams_bench.client.keys()
        hurry(streams_bench)
        await asyncio.sleep(wait_s + SPACING_S)
        assert any(cell_key(2, OTHER) in message.batch.done for message in streams_bench.client.batches())

    run_replicator(streams_bench, scenario)


@pytest.mark.parametrize(
    ("hurry", "wait_s"),
    [(_awaited, HAS_TIME_S), (_with_a_clock, HAS_TIME_S), (_full, SPACING_S), (_at_the_end_of_the_crawl, SPACING_S)],
)
def test_urgent_batches_of_a_peer_that_has_time_are_a_second_apart(
    streams_bench: StreamsBench, hurry: Callable[[StreamsBench], object], wait_s: float
) -> None:
    streams_bench.has_time = True
    streams_bench.go_on()

    def has_left() -> bool:
        return any(cell_key(2, OTHER) in message.batch.done for message in streams_bench.client.batches())

    async def scenario() -> None:
        streams_bench.change(1, cell=OTHER)
        await asyncio.sleep(0.01)
        streams_bench.change(2, cell=OTHER)
        hurry(streams_bench)
        await asyncio.sleep(wait_s - 0.02)
        assert not has_left()
        await asyncio.sleep(2 * SPACING_S)
        assert has_left()

    run_replicator(streams_bench, scenario)


def test_nothing_is_acknowledged_before_it_is_journaled_there(streams_bench: StreamsBench) -> None:
    async def scenario() -> None:
        streams_bench.change(1)
        delivered = asyncio.create_task(streams_bench.replicator.delivered(A))
        await asyncio.sleep(streams_bench.client.takes_s / 2)
        assert (False, 2) == (delivered.done(), streams_bench.replicator.unacknowledged)
        await delivered
        assert [cell_key(1)] == streams_bench.client.keys(A)

    run_replicator(streams_bench, scenario)
    assert 0 == streams_bench.replicator.unacknowledged


def test_who_waits_waits_for_no_later_change(streams_bench: StreamsBench) -> None:
    async def scenario() -> None:
        streams_bench.change(1)
        delivered = asyncio.create_task(streams_bench.replicator.delivered(A))
        await asyncio.sleep(streams_bench.client.takes_s / 2)
        streams_bench.change(2)
        assert await delivered
        assert [cell_key(1)] == streams_bench.client.keys(A)

    run_replicator(streams_bench, scenario)


def test_who_waits_for_a_record_waits_for_no_other(streams_bench: StreamsBench) -> None:
    """Most links that are offered are known, and their records are at the backups: they hurry no batch."""
    streams_bench.go_on()

    async def scenario() -> None:
        streams_bench.change(1)
        assert await streams_bench.replicator.delivered(A)
        streams_bench.change(2)
        async with asyncio.timeout(0):
            assert await streams_bench.replicator.delivered(A, [cell_key(1)])
        assert [cell_key(1)] == streams_bench.client.keys()
        # Until it is journaled there, a record is waited for: in the queue, and on its way.
        waiting = [asyncio.create_task(streams_bench.replicator.delivered(A, [cell_key(2)]))]
        await asyncio.sleep(SPACING_S - streams_bench.client.takes_s / 2)
        waiting.append(asyncio.create_task(streams_bench.replicator.delivered(A, [cell_key(2)])))
        await asyncio.sleep(0)
        assert [False, False] == [one.done() for one in waiting]
        assert [True, True] == await asyncio.gather(*waiting)
        assert [cell_key(1), cell_key(2)] == streams_bench.client.keys()

    run_replicator(streams_bench, scenario)


def test_a_change_while_the_record_is_under_way_travels_again(streams_bench: StreamsBench) -> None:
    async def scenario() -> None:
        streams_bench.change(1)
        await asyncio.sleep(streams_bench.client.takes_s / 2)
        streams_bench.change(1)
        assert await streams_bench.replicator.delivered(A)
        assert [cell_key(1), cell_key(1)] == streams_bench.client.keys(A)

    run_replicator(streams_bench, scenario)


def test_a_silent_peer_is_tried_until_it_answers_in_order(streams_bench: StreamsBench) -> None:
    async def scenario() -> None:
        streams_bench.client.down.add(A)
        streams_bench.change(1)
        delivered = asyncio.create_task(streams_bench.replicator.delivered(A))
        await asyncio.sleep(20.0)
        streams_bench.change(2)
        assert not delivered.done()
        streams_bench.client.down.clear()
        assert await delivered

    run_replicator(streams_bench, scenario)
    assert [cell_key(1), cell_key(2)] == streams_bench.client.keys(A)
    assert A in streams_bench.overlay.suspected
    assert 1 == len(set(streams_bench.overlay.suspected))


def test_one_silent_peer_delays_no_other(streams_bench: StreamsBench) -> None:
    async def scenario() -> None:
        streams_bench.client.down.add(A)
        streams_bench.change(1)
        async with asyncio.timeout(1.0):
            assert await streams_bench.replicator.delivered(B)
        streams_bench.replicator.lost(A.id)

    run_replicator(streams_bench, scenario)


def test_a_cell_whose_backups_take_nothing_is_unheard_but_not_for_ever(streams_bench: StreamsBench) -> None:
    copies = streams_bench.replicator
    silent_s, silent_max_s = replication_stream.SILENT_S, replication_stream.SILENT_MAX_S

    async def scenario() -> None:
        assert not copies.no_backup_reachable(CELL)
        streams_bench.client.down |= {A, B}
        streams_bench.change(1)
        await asyncio.sleep(silent_s - 0.01)
        assert not copies.no_backup_reachable(CELL)
        await asyncio.sleep(0.02)
        assert copies.no_backup_reachable(CELL)
        assert copies.no_backup_reachable(OTHER)  # What goes the same way would not arrive either.
        streams_bench.change(2)
        assert copies.no_backup_reachable(CELL)
        await asyncio.sleep(silent_max_s - silent_s)
        assert not copies.no_backup_reachable(CELL)
        copies.lost(A.id)
        copies.lost(B.id)

    run_replicator(streams_bench, scenario)


@pytest.mark.parametrize("heard", [A, B])
def test_a_cell_is_heard_as_long_as_one_backup_takes_what_comes(streams_bench: StreamsBench, heard: Contact) -> None:
    async def scenario() -> None:
        streams_bench.client.down |= {A, B} - {heard}
        for number in range(40):
            streams_bench.change(number)
            await asyncio.sleep(0.1)
            assert not streams_bench.replicator.no_backup_reachable(CELL)
        streams_bench.replicator.lost(A.id)
        streams_bench.replicator.lost(B.id)

    run_replicator(streams_bench, scenario)


def test_a_cell_is_heard_again_with_the_first_batch_that_arrives(streams_bench: StreamsBench) -> None:
    async def scenario() -> None:
        streams_bench.client.down.add(A)
        streams_bench.change(1, cell=OTHER)
        await asyncio.sleep(replication_stream.SILENT_S + 0.01)
        assert streams_bench.replicator.no_backup_reachable(OTHER)
        streams_bench.client.down.clear()
        assert await streams_bench.replicator.delivered(A)
        assert not streams_bench.replicator.no_backup_reachable(OTHER)
        streams_bench.change(2, cell=OTHER)
        assert not streams_bench.replicator.no_backup_reachable(OTHER)
        assert await streams_bench.replicator.delivered(A)

    run_replicator(streams_bench, scenario)


def test_a_cell_without_backups_waits_for_nobody(streams_bench: StreamsBench) -> None:
    async def scenario() -> None:
        streams_bench.holdings.own(Cell(2), 0.0)
        assert not streams_bench.replicator.no_backup_reachable(Cell(2))
        assert not streams_bench.replicator.no_backup_reachable(Cell(3))

    run_replicator(streams_bench, scenario)


def test_a_lost_peer_wakes_who_waits_and_leaves_nothing_behind(streams_bench: StreamsBench) -> None:
    async def scenario() -> None:
        streams_bench.client.down |= {A, B}
        streams_bench.change(1)
        waiting = [asyncio.create_task(streams_bench.replicator.delivered(A)) for _ in range(2)]
        await asyncio.sleep(1.0)
        streams_bench.replicator.lost(A.id)
        streams_bench.replicator.lost(B.id)
        assert [False, False] == await asyncio.gather(*waiting)
        assert 0 == streams_bench.replicator.unacknowledged

    run_replicator(streams_bench, scenario)
    assert [] == streams_bench.client.told


def test_a_cancelled_waiter_harms_nobody(streams_bench: StreamsBench) -> None:
    async def scenario() -> None:
        streams_bench.change(1)
        given_up = asyncio.create_task(streams_bench.replicator.delivered(A))
        waiting = asyncio.create_task(streams_bench.replicator.delivered(A))
        await asyncio.sleep(0)
        given_up.cancel()
        assert await waiting

    run_replicator(streams_bench, scenario)


class WatchedFuture(asyncio.Future[bool]):
    """A future that counts how often any was looked at."""

    looks = 0

    def done(self) -> bool:
        type(self).looks += 1
        return super().done()


@pytest.mark.parametrize("cancelled", [True, False])
def test_many_waiting_calls_are_kept_apart_from_cancelled_ones_at_little_cost(cancelled: bool) -> None:
    """Each offered link waits for its copies. A look at all waiting calls for each took 5 % of a long crawl's CPU."""
    stream = ReplicationStream(A, CopySpacing(SPACING_S, SPACING_S, SPACING_S, SPACING_S))
    calls = 20 * replication_stream.CANCELLED_LEAST

    async def scenario() -> None:
        WatchedFuture.looks = 0
        for number in range(calls):
            stream.put(cell_key(number), CELL)
            future = WatchedFuture()
            stream.wait(future)
            if cancelled:
                future.cancel()
        assert len(stream.waiting) <= (replication_stream.CANCELLED_LEAST if cancelled else calls)
        assert WatchedFuture.looks <= 4 * calls
        waited = [future for _, future in stream.waiting]
        stream.advance(calls, 0.0)
        assert all(future.done() for future in waited)
        assert [] == stream.waiting

    asyncio.run(scenario())


@pytest.mark.parametrize("live", [True, False], ids=["live", "unknown to the overlay"])
def test_a_silent_peer_counts_as_dead_only_if_the_overlay_lost_it(streams_bench: StreamsBench, live: bool) -> None:
    """Nobody will ever say that such a peer is lost: its stream must not stay, or the crawl never ends."""
    dead = streams_bench.lose_unreachable_peers()

    async def scenario() -> None:
        streams_bench.client.down.add(A)
        if not live:
            streams_bench.overlay.live.discard(A.id)
        streams_bench.change(1, cell=OTHER)
        delivered = asyncio.create_task(streams_bench.replicator.delivered(A))
        await asyncio.sleep(60.0)
        assert (not live) == delivered.done()
        streams_bench.replicator.lost(A.id)
        assert not await delivered

    run_replicator(streams_bench, scenario)
    assert ([] if live else [A]) == dead


def test_a_peer_that_comes_back_gets_what_changes_from_then_on(streams_bench: StreamsBench) -> None:
    async def scenario() -> None:
        streams_bench.client.down.add(A)
        streams_bench.change(1)
        await asyncio.sleep(1.0)
        streams_bench.replicator.lost(A.id)
        streams_bench.client.down.clear()
        streams_bench.change(2)
        assert await streams_bench.replicator.delivered(A)
        assert [cell_key(2)] == streams_bench.client.keys(A)

    run_replicator(streams_bench, scenario)


def test_a_change_after_all_was_delivered_is_delivered_too(streams_bench: StreamsBench) -> None:
    """The change comes at every instant around the end of a delivery, and no change may be left behind."""

    async def scenario() -> None:
        for number in range(40):
            streams_bench.change(number)
            await asyncio.sleep(SPACING_S + streams_bench.client.takes_s + (number - 20) * 1e-3)
        assert await streams_bench.replicator.delivered(A)
        assert 0 == streams_bench.replicator.unacknowledged
        assert [cell_key(number) for number in range(40)] == streams_bench.client.keys(A)

    run_replicator(streams_bench, scenario)


def test_clocks_of_sites_travel_with_the_changes_of_their_cell(streams_bench: StreamsBench) -> None:
    async def scenario() -> None:
        streams_bench.replicator.site_changed(OTHER, "a.example")
        await asyncio.sleep(1.0)

    run_replicator(streams_bench, scenario)
    assert ["a.example"] == [site.site for message in streams_bench.client.batches(A) for site in message.batch.sites]
    assert [] == streams_bench.client.batches(B)


# --- runs of done pages --------------------------------------------------------------------------------------------


def _crawl(bench: StreamsBench, *numbers: int) -> None:
    """Accept pages of the cell with one backup, or finish those that are known, as the cells of a peer do."""
    if not bench.store.events.record_changed:
        bench.store.events.page_done.append(lambda entry: bench.replicator.page_done(OTHER, entry))
        bench.store.events.record_changed.append(bench.replicator.changed)
    for number in numbers:
        key = cell_key(number, OTHER)
        if not bench.store.accept(key, "a.example", f"http://a.example/{number}", 0, 0):
            assert bench.store.learn_done(key)


def _told(bench: StreamsBench) -> list[tuple[list[int], list[int]]]:
    """Return the runs, by their lengths, and the keys of each batch."""
    return [
        ([run.count for run in message.runs], [key[-1] for key in message.batch.done])
        for message in bench.client.batches()
    ]


def test_pages_done_in_the_order_of_the_crawl_travel_as_a_run(streams_bench: StreamsBench) -> None:
    async def scenario() -> None:
        _crawl(streams_bench, 1, 2, 3, 4, 5, 6)
        assert await streams_bench.replicator.delivered(A)
        # One has come and gone since the last batch, so that the peer does not have it as PENDING.
        _crawl(streams_bench, 1, 2, 3, 5, 7)
        _crawl(streams_bench, 7)
        assert await streams_bench.replicator.delivered(A)

    run_replicator(streams_bench, scenario)
    assert [([], [1, 2, 3, 4, 5, 6]), ([3], [7, 5])] == _told(streams_bench)


def test_runs_that_a_peer_has_otherwise_come_by_their_keys_and_at_last_only_so(
    streams_bench: StreamsBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replication_stream, "REFUSED_MAX", 2)

    async def scenario() -> None:
        _crawl(streams_bench, 1, 2, 3, 4, 5, 6)
        assert await streams_bench.replicator.delivered(A)
        for first in (1, 3):
            streams_bench.client.unlike_runs = [0, 7]
            _crawl(streams_bench, first, first + 1)
            assert await streams_bench.replicator.delivered(A)
            assert [cell_key(number, OTHER) for number in (first, first + 1)] == streams_bench.client.keys()[-2:]
        _crawl(streams_bench, 5, 6)
        assert await streams_bench.replicator.delivered(A)

    run_replicator(streams_bench, scenario)
    told = _told(streams_bench)
    assert [([], [1, 2, 3, 4, 5, 6]), ([2], []), ([], [1, 2]), ([2], []), ([], [3, 4]), ([], [5, 6])] == told


def test_a_run_whose_answer_was_lost_comes_by_its_keys(streams_bench: StreamsBench) -> None:
    async def scenario() -> None:
        _crawl(streams_bench, 1, 2, 3, 4)
        assert await streams_bench.replicator.delivered(A)
        streams_bench.client.down.add(A)
        _crawl(streams_bench, 1, 2)
        await asyncio.sleep(replicator.CALM_S)
        streams_bench.client.down.clear()
        assert await streams_bench.replicator.delivered(A)
        _crawl(streams_bench, 3, 4)
        assert await streams_bench.replicator.delivered(A)

    run_replicator(streams_bench, scenario)
    assert [([], [1, 2, 3, 4]), ([], [1, 2]), ([2], [])] == _told(streams_bench)


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside others"])
def test_a_page_that_its_backup_has_reported_is_not_told_to_it(streams_bench: StreamsBench, beside: bool) -> None:
    async def scenario() -> None:
        _crawl(streams_bench, 1, 2, 3)
        assert await streams_bench.replicator.delivered(A)
        _crawl(streams_bench, 2)
        streams_bench.replicator.known_to(A, cell_key(2, OTHER))
        streams_bench.replicator.known_to(B, cell_key(2, OTHER))
        if beside:
            _crawl(streams_bench, 1, 3)
        assert await streams_bench.replicator.delivered(A)
        assert 0 == streams_bench.replicator.unacknowledged

    run_replicator(streams_bench, scenario)
    assert [([], [1, 2, 3]), *([([2], [])] if beside else [])] == _told(streams_bench)


def test_a_reported_record_that_changes_again_is_told(streams_bench: StreamsBench) -> None:
    async def scenario() -> None:
        _crawl(streams_bench, 1, 2)
        assert await streams_bench.replicator.delivered(A)
        _crawl(streams_bench, 2)
        streams_bench.replicator.known_to(A, cell_key(2, OTHER))
        streams_bench.change(2, cell=OTHER)
        assert await streams_bench.replicator.delivered(A)

    run_replicator(streams_bench, scenario)
    assert [([], [1, 2]), ([], [2])] == _told(streams_bench)


# --- notices -----------------------------------------------------------------------------------------------------


def test_notices_travel_only_after_all_changes(streams_bench: StreamsBench) -> None:
    """The owner compares the cells of a backup with its own cells. Changes on the way would look like a difference."""

    count = BATCHES_PER_DELIVERY * BATCH_MAX + 1

    async def scenario() -> None:
        streams_bench.replicator.keep(A, CELL, FIRST_BACKUP)
        streams_bench.change(*range(count))
        await asyncio.sleep(1.5 * streams_bench.client.takes_s)
        streams_bench.change(count)
        await asyncio.sleep(1.0)

    run_replicator(streams_bench, scenario)
    to_a = [type(message) for peer, message in streams_bench.client.told if peer == A]
    assert [Replicate] * (BATCHES_PER_DELIVERY + 1) + [AssignReplica] == to_a
    assert [cell_key(number) for number in range(count + 1)] == streams_bench.client.keys()


def test_changes_that_never_end_hold_up_no_notice_of_another_cell(streams_bench: StreamsBench) -> None:
    async def scenario() -> None:
        streams_bench.replicator.keep(A, OTHER, FIRST_BACKUP)
        streams_bench.replicator.keep(A, CELL, FIRST_BACKUP)
        for number in range(16):
            streams_bench.change(number)
            _awaited(streams_bench)
            await asyncio.sleep(SPACING_S / 2)
            streams_bench.change(number + 100)
            await asyncio.sleep(SPACING_S / 2)
        (notice,) = streams_bench.client.notices()
        assert [OTHER] == [held.cell for held in notice.cells]
        await asyncio.sleep(2.0)
        assert [[OTHER], [CELL]] == [[held.cell for held in one.cells] for one in streams_bench.client.notices()]

    run_replicator(streams_bench, scenario)


def test_a_notice_of_a_busy_cell_follows_its_changes_and_does_not_hurry_them_again(streams_bench: StreamsBench) -> None:
    streams_bench.go_on()
    changes, apart_s = 30, 0.4

    async def scenario() -> None:
        for number in range(changes):
            if number == 10:
                streams_bench.replicator.keep(A, CELL, FIRST_BACKUP)
            streams_bench.change(number)
            await asyncio.sleep(apart_s)

    run_replicator(streams_bench, scenario)
    to_a = [type(message) for peer, message in streams_bench.client.told if peer == A]
    assert 1 == to_a.count(AssignReplica)
    # The changes before the notice leave early, once.
    assert to_a.count(Replicate) <= changes * apart_s / replicator.CALM_S + 2


def test_changes_of_other_cells_do_not_wait_for_notices_to_end(streams_bench: StreamsBench) -> None:
    async def scenario() -> None:
        for number in range(20):
            streams_bench.replicator.keep(A, OTHER, FIRST_BACKUP)
            streams_bench.change(number)
            _awaited(streams_bench)
            await asyncio.sleep(BUSY_S / 2)

    run_replicator(streams_bench, scenario)
    kinds = [kind for kind, _ in groupby(type(message) for peer, message in streams_bench.client.told if peer == A)]
    assert kinds.count(Replicate) >= 4
    assert kinds.count(AssignReplica) >= 4


def test_a_keep_says_what_we_hold_when_it_travels(streams_bench: StreamsBench) -> None:
    async def scenario() -> None:
        streams_bench.replicator.keep(A, CELL, SECOND_BACKUP)
        streams_bench.store.accept(cell_key(1), "a.example", "http://a.example/", 0, 0)
        await asyncio.sleep(1.0)

    run_replicator(streams_bench, scenario)
    (notice,) = streams_bench.client.notices()
    assert (ME, SECOND_BACKUP) == (notice.owner, notice.role)
    assert [digest_of(CELL, streams_bench.store.cells[CELL])] == notice.cells


def test_a_notice_of_a_cell_given_away_meanwhile_stays_at_home(streams_bench: StreamsBench) -> None:
    async def scenario() -> None:
        streams_bench.replicator.keep(A, CELL, FIRST_BACKUP)
        streams_bench.holdings.let_go(CELL)
        await asyncio.sleep(1.0)

    run_replicator(streams_bench, scenario)
    assert streams_bench.client.told == [], "its new owner decides who keeps it"


def test_a_drop_says_what_the_owner_has_seen(streams_bench: StreamsBench) -> None:
    seen = CellSummary(CELL, 7, 3, b"d" * 16)

    async def scenario() -> None:
        streams_bench.replicator.drop(A, seen)
        await asyncio.sleep(1.0)

    run_replicator(streams_bench, scenario)
    assert [(OWNER, [seen])] == [(notice.role, notice.cells) for notice in streams_bench.client.notices()]


def test_notices_travel_per_role_and_the_latest_of_a_cell_wins(streams_bench: StreamsBench) -> None:
    async def scenario() -> None:
        streams_bench.replicator.drop(A, digest_of(CELL, EMPTY))
        streams_bench.replicator.keep(A, CELL, FIRST_BACKUP)
        streams_bench.replicator.keep(A, OTHER, SECOND_BACKUP)
        await asyncio.sleep(1.0)

    run_replicator(streams_bench, scenario)
    told = {(notice.role, held.cell) for notice in streams_bench.client.notices() for held in notice.cells}
    assert {(FIRST_BACKUP, CELL), (SECOND_BACKUP, OTHER)} == told


def test_a_peer_that_holds_something_else_is_told_of(streams_bench: StreamsBench) -> None:
    told = []

    async def scenario() -> None:
        streams_bench.events.copy_differs.append(lambda contact, cell: told.append((contact, cell)))
        streams_bench.client.unlike = [digest_of(CELL, EMPTY), digest_of(Cell(77), EMPTY)]
        streams_bench.replicator.keep(A, CELL, FIRST_BACKUP)
        await asyncio.sleep(1.0)

    run_replicator(streams_bench, scenario)
    assert [(A, CELL)] == told, "a cell that was not asked about is nobody's business"


def test_a_notice_that_does_not_arrive_stops_nothing(streams_bench: StreamsBench) -> None:
    async def scenario() -> None:
        streams_bench.client.down.add(A)
        streams_bench.replicator.keep(A, CELL, FIRST_BACKUP)
        await asyncio.sleep(1.0)
        streams_bench.client.down.clear()
        streams_bench.change(1)
        assert await streams_bench.replicator.delivered(A)

    run_replicator(streams_bench, scenario)


@pytest.mark.parametrize("live", [True, False], ids=["live", "unknown to the overlay"])
def test_a_notice_is_repeated_until_a_peer_unknown_to_the_overlay_counts_as_dead(
    streams_bench: StreamsBench, live: bool
) -> None:
    """A backup may leave while it is chosen, and then no sync and no overlay reports its loss."""
    dead = streams_bench.lose_unreachable_peers()

    async def scenario() -> None:
        streams_bench.client.down.add(A)
        if not live:
            streams_bench.overlay.live.discard(A.id)
        streams_bench.replicator.keep(A, CELL, FIRST_BACKUP)
        await asyncio.sleep(9.0)  # Shorter than the time between two repairs.

    run_replicator(streams_bench, scenario)
    assert ([] if live else [A]) == dead


def test_a_notice_that_returns_does_not_replace_a_later_notice() -> None:
    stream = ReplicationStream(A, CopySpacing(0.0, 0.0, 0.0, 0.0))
    stream.notices[CELL] = (FIRST_BACKUP, None)
    role, taken = stream.take_notices()
    stream.notices[CELL] = (SECOND_BACKUP, None)
    stream.return_notices(role, taken)
    assert {CELL: (SECOND_BACKUP, None)} == stream.notices


# --- bounds --------------------------------------------------------------------------------------------------------


def test_a_peer_that_does_not_keep_up_counts_as_lost(
    streams_bench: StreamsBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicator, "QUEUE_MAX", 10)
    dead = streams_bench.lose_unreachable_peers()

    async def scenario() -> None:
        streams_bench.client.down |= {A, B}
        streams_bench.change(*range(10), cell=OTHER)
        delivered = asyncio.create_task(streams_bench.replicator.delivered(A))
        await asyncio.sleep(0)
        assert [] == dead
        streams_bench.change(10, cell=OTHER)
        assert ([A], 0) == (dead, streams_bench.replicator.unacknowledged)
        assert not await delivered

    run_replicator(streams_bench, scenario)


def test_the_clocks_waiting_for_one_peer_are_bounded(
    streams_bench: StreamsBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicator, "QUEUE_MAX", 10)
    dead = streams_bench.lose_unreachable_peers()

    async def scenario() -> None:
        streams_bench.client.down |= {A, B}
        for number in range(11):
            streams_bench.replicator.site_changed(OTHER, f"s{number}.example")
        assert [A] == dead
        streams_bench.replicator.lost(A.id)

    run_replicator(streams_bench, scenario)


async def test_nothing_is_sent_before_somebody_runs_the_tasks(streams_bench: StreamsBench) -> None:
    with pytest.raises(NotRunningError, match="copies to"):
        streams_bench.change(1)
