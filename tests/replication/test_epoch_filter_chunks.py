"""Test that an epoch filter in parts arrives whole or not at all, resumes after any failure, and costs little."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kadcrawl.errors import RemoteError
from kadcrawl.keys import Cell, Key
from kadcrawl.link.wire.messages import Batch, KeepFilterPart, KeptFilterPart
from kadcrawl.replication import epoch_filter_transfer
from kadcrawl.replication.epoch_filter_chunks import IDLE_S, SENT_MAX, IncomingEpochFilters, Outgoing, PartError, Sent
from kadcrawl.replication.epoch_filter_transfer import sent_by
from kadcrawl.replication.events import ReplicationEvents
from kadcrawl.replication.peer_tasks import PeerTasks
from kadcrawl.replication.placement.holdings import Holdings
from kadcrawl.replication.replicator import Replicator
from kadcrawl.store.bloom.cell_filters import EncodedFilter, Label, Large
from kadcrawl.store.bloom.encoding import Pieces, to_bytes
from kadcrawl.store.bloom.expiring_filter import ExpiringFilter, Period
from kadcrawl.store.store import DONE, Store
from sim.loop import world
from tests.support.stores import key, site_keys
from tests.support.swarm.live_overlay import ME, A, LiveOverlay

HOUR = 3_600.0
CELL = Cell(0)
PART = 1_000
LABEL = Label(700, 5)


def large(count: int = 700) -> Large:
    seen = ExpiringFilter(Period(HOUR, 3))
    for one in site_keys("large", count):
        seen.add(one, 0.0)
    return Large(LABEL, Pieces(seen))


def sent(sender: bytes = b"a", size: int = 2_500, digest: int = 5) -> Sent:
    return Sent(sender, CELL, EncodedFilter(0, Label(700, digest), b""), size)


def test_it_arrives_whole_part_by_part() -> None:
    outgoing, incoming = Outgoing(large(), PART), IncomingEpochFilters(PART)
    parts = []
    while not outgoing.is_over:
        parts.append(outgoing.part())
        upto = incoming.take(sent(size=outgoing.size), outgoing.at, parts[-1], 0.0)
        outgoing.kept(upto)
    assert [PART] * (len(parts) - 1) == [len(part) for part in parts[:-1]]
    assert EncodedFilter(0, LABEL, b"".join(parts)) == incoming.whole(b"a")
    assert large().pieces.cut(0, 10**6) == b"".join(parts)


def test_keys_added_in_transit_are_sent_later_but_further_filters_are_not() -> None:
    seen = ExpiringFilter(Period(HOUR, 3))
    first = site_keys("first", 1_000)
    for one in first:
        seen.add(one, 0.0)
    before, pieces = to_bytes(seen, 0.0), Pieces(seen)
    outgoing = Outgoing(Large(LABEL, pieces), PART)
    told = b""
    for number in range(3):
        told += outgoing.part()
        outgoing.kept(len(told))
        for one in site_keys(number, 100):
            seen.add(one, 0.0)
    assert (True, len(before)) == (outgoing.is_over, len(told))
    assert all(new & old == old for new, old in zip(told, before, strict=True)), "no bit is lost"


def test_a_sender_goes_on_from_the_receivers_position_or_gives_up() -> None:
    outgoing = Outgoing(large(), PART)
    parts = -(-outgoing.size // PART)
    outgoing.kept(PART)
    outgoing.failed()
    assert PART == outgoing.at
    outgoing.kept(0)  # It has started anew.
    for _ in range(SENT_MAX * parts - 3):
        assert not outgoing.is_over
        outgoing.kept(0)
    assert outgoing.is_over
    refused = Outgoing(large(), PART)
    refused.kept(None)
    assert refused.is_over


def test_a_repeat_and_a_part_out_of_turn_change_nothing() -> None:
    incoming = IncomingEpochFilters(PART)
    assert PART == incoming.take(sent(), 0, bytes(PART), 0.0)
    assert PART == incoming.take(sent(), 0, bytes(PART), 0.0)
    assert PART == incoming.take(sent(), 2 * PART, bytes(500), 0.0)
    assert 2 * PART == incoming.take(sent(), PART, bytes(PART), 0.0)
    assert 2_500 == incoming.take(sent(), 2 * PART, bytes(500), 0.0)
    assert bytes(2_500) == incoming.whole(b"a").bits


@pytest.mark.parametrize("length", [0, 1, PART - 1, PART + 1])
def test_parts_are_as_long_as_they_can_be_so_that_nobody_drips(length: int) -> None:
    incoming = IncomingEpochFilters(PART)
    with pytest.raises(PartError):
        incoming.take(sent(), 0, bytes(length), 0.0)


def test_epoch_filters_of_several_senders_come_side_by_side_and_one_of_each() -> None:
    incoming = IncomingEpochFilters(PART)
    assert PART == incoming.take(sent(b"a"), 0, bytes(PART), 0.0)
    assert PART == incoming.take(sent(b"b"), 0, bytes(PART), 1.0)
    assert 2 * PART == incoming.take(sent(b"a"), PART, bytes(PART), 2.0)
    assert PART == incoming.take(sent(b"b", digest=6), 0, bytes(PART), 3.0), "its sender has begun another"
    assert 2 * PART == incoming.take(sent(b"b", digest=6), PART, bytes(PART), 3.0)
    assert 2_500 == incoming.take(sent(b"a"), 2 * PART, bytes(500), 4.0)
    assert 2_500 == len(incoming.whole(b"a").bits)
    assert 0 == incoming.take(sent(b"a"), PART, bytes(PART), 4.0), "there is room for its next"


def test_beyond_the_memory_of_all_an_epoch_filter_waits_until_a_stalled_one_gives_way() -> None:
    incoming = IncomingEpochFilters(PART, bytes_max=5_000)
    assert PART == incoming.take(sent(b"a"), 0, bytes(PART), 0.0)
    assert incoming.take(sent(b"b", size=2_501), 0, bytes(PART), 1.0) is None
    assert PART == incoming.take(sent(b"b"), 0, bytes(PART), 1.0), "at the limit"
    assert incoming.take(sent(b"c"), 0, bytes(PART), 1.0) is None
    assert 2 * PART == incoming.take(sent(b"a"), PART, bytes(PART), IDLE_S - 1)
    assert incoming.take(sent(b"c"), 0, bytes(PART), IDLE_S) is None
    assert PART == incoming.take(sent(b"c"), 0, bytes(PART), IDLE_S + 1)
    assert incoming.take(sent(b"b"), PART, bytes(PART), IDLE_S + 1) is None
    incoming.let_go(2 * IDLE_S + 1)
    assert PART == incoming.take(sent(b"d", size=9_999), 0, bytes(PART), 2 * IDLE_S + 1), "alone, it may be larger"


def test_the_filter_of_a_lost_sender_gives_way_at_once() -> None:
    incoming = IncomingEpochFilters(PART, bytes_max=2_500)
    assert PART == incoming.take(sent(b"a"), 0, bytes(PART), 0.0)
    assert incoming.take(sent(b"b"), 0, bytes(PART), 0.0) is None
    incoming.lost(b"a")
    assert PART == incoming.take(sent(b"b"), 0, bytes(PART), 0.0)


# --- by the stream of copies -----------------------------------------------------------------------------------------


class Backup:
    """Simulate a peer that keeps parts. `upset` happens before each part."""

    def __init__(self) -> None:
        self.incoming = IncomingEpochFilters(PART)
        self.upset: list[Callable[[], None]] = []
        self.told: list[Any] = []
        self.whole: list[EncodedFilter] = []

    async def ask(self, address: tuple[str, int], message: Any, expected: Any, deadline_s: float) -> Any:
        await asyncio.sleep(0.01)
        self.told.append(message)
        assert isinstance(message, KeepFilterPart)
        if self.upset:
            self.upset.pop(0)()
        now = asyncio.get_running_loop().time()
        upto = self.incoming.take(sent_by(message), message.offset, message.bits, now)
        if upto == message.size:
            self.whole.append(self.incoming.whole(message.owner.id))
        return KeptFilterPart(upto)

    def restart(self) -> None:
        self.incoming = IncomingEpochFilters(PART)


@pytest.fixture
def store_with_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr(epoch_filter_transfer, "EPOCH_FILTER_BYTES_MAX", PART)
    store = Store(tmp_path, 0.0, lambda fds: None)
    store.begin(16, Period(HOUR, 3), lambda: 1_000 * HOUR)
    for number in range(700):
        store.learn_done(key(number))
    yield store
    store.close()


def no_batch(keys: Sequence[Key], sites: Sequence[str]) -> Batch:
    raise AssertionError("only slices travel")


def deliver_epochs(store: Store, backup: Backup) -> Replicator:
    """Send the epoch filters of a cell. Return when all have been delivered."""

    async def play() -> Replicator:
        client: Any = backup
        tasks = PeerTasks()
        copies = Replicator(
            *(LiveOverlay(), client, store, Holdings(ME.number, 16), no_batch, 0.05),
            spawn=tasks.spawn,
            events=ReplicationEvents(),
        )
        committer = asyncio.create_task(store.journal.run())
        async with asyncio.timeout(600), tasks.running():
            copies.put_epochs(A, CELL, [1_000, 1_001])
            assert await copies.delivered(A)
        committer.cancel()
        return copies

    with world(0) as loop:
        return loop.run_until_complete(play())


def test_a_large_epoch_filter_arrives_although_the_receiver_starts_anew(store_with_keys: Store) -> None:
    backup = Backup()

    def down() -> None:
        raise RemoteError(A, "does not answer")

    backup.upset = [lambda: None, down, lambda: None, backup.restart]
    copies = deliver_epochs(store_with_keys, backup)
    assert store_with_keys.expiring_filters is not None
    assert [store_with_keys.expiring_filters.encoded(CELL, 1_000)] == backup.whole
    assert [0, PART, PART, 2 * PART, 0, PART, 2 * PART] == [message.offset for message in backup.told]
    assert 0 == copies.unacknowledged


def test_a_backup_that_never_has_enough_does_not_hold_up_its_stream(store_with_keys: Store) -> None:
    backup = Backup()
    backup.upset = [backup.restart] * 100
    copies = deliver_epochs(store_with_keys, backup)
    assert [] == backup.whole
    assert SENT_MAX * 3 == len(backup.told)
    assert 0 == copies.unacknowledged


def test_who_is_busy_with_another_epoch_filter_is_asked_again_later(store_with_keys: Store) -> None:
    backup = Backup()
    backup.incoming = IncomingEpochFilters(PART, bytes_max=2_500)
    backup.incoming.take(sent(b"other"), 0, bytes(PART), 0.0)
    deliver_epochs(store_with_keys, backup)
    assert 1 == len(backup.told)


def test_keys_done_in_transit_of_an_epoch_filter_come_with_it_or_after(store_with_keys: Store) -> None:
    backup = Backup()
    backup.upset = [lambda number=number: store_with_keys.learn_done(key(number)) for number in (700, 701)]  # type: ignore[misc]
    deliver_epochs(store_with_keys, backup)
    assert 701 not in [told.label.keys for told in backup.whole], "its name is that of its beginning"
    assert [700] == [told.label.keys for told in backup.whole]
    assert store_with_keys.state(key(701)) == DONE
