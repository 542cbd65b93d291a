"""Slices travel only where they are unlike, in bounded messages, and then both ends have the same."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kadcrawl.errors import RemoteError
from kadcrawl.keys import Cell, Key, NoSuchCellError, id_bytes
from kadcrawl.link.wire.codec import pack, unpack
from kadcrawl.link.wire.messages import (
    Contact,
    EpochFilterLabel,
    GetEpochFilters,
    GetFilterPart,
    GotEpochFilters,
    GotFilterPart,
)
from kadcrawl.replication import epoch_filter_transfer
from kadcrawl.replication.epoch_filter_chunks import IncomingEpochFilters
from kadcrawl.replication.epoch_filter_transfer import (
    EpochFilterSync,
    encoded_filters,
    in_parts,
    packed,
    part_message,
    records,
    sent_by,
)
from kadcrawl.settings.limits import Limits
from kadcrawl.store.bloom.cell_filters import EncodedFilter
from kadcrawl.store.bloom.expiring_filter import Period
from kadcrawl.store.store import DONE, Store
from tests.support.stores import accept, key, line

HOUR = 3_600.0
CELL = Cell(0)


class FilterSide:
    """One of two peers."""

    now = 1_000 * HOUR
    other: "FilterSide"

    def __init__(self, directory: Path, number: int, period: Period | None) -> None:
        directory.mkdir()
        self.contact = Contact(id_bytes(number), f"10.0.0.{number}", 4160)
        self.store = Store(directory, 0.0, lambda fds: None)
        self.store.begin(16, period, lambda: self.now)
        self.asked: list[GetEpochFilters] = []
        self.parts: list[GetFilterPart] = []
        self.meanwhile: list[Callable[[], object]] = []
        """The functions to call before each part is given."""
        self.put: list[int] = []
        """Grains that are to be sent to the other."""
        client: Any = self
        self.exchange = EpochFilterSync(client, self.store, self.join, self.note)

    def finish(self, *numbers: int) -> None:
        for number in numbers:
            self.store.finish(accept(self.store, number), line(number))

    async def join(self, cell: Cell, told: Sequence[EncodedFilter]) -> None:
        self.store.join_epoch_filters(cell, told, adopt=False)

    def note(self, to: Contact, cell: Cell, grains: Iterable[int]) -> None:
        assert (to, cell) == (self.other.contact, CELL)
        self.put += grains

    async def ask(self, to: Contact, message: Any, expected: Any, deadline_s: float) -> Any:
        bytes_max = Limits().message_bytes_max
        self.store.journal._dirty.set()
        await self.other.store.journal.commit()
        if isinstance(message, GetEpochFilters):
            self.asked.append(message)
            answer: Any = await self.other.exchange.answer(unpack(pack(message), GetEpochFilters, bytes_max))
        else:
            self.parts.append(message)
            if self.meanwhile:
                self.meanwhile.pop(0)()
            committed = self.other.store.journal.durable
            self.other.store.journal.durable = lambda: _resolved(committed())  # type: ignore[method-assign]
            answer = await self.other.exchange.part(unpack(pack(message), GetFilterPart, bytes_max))
        return unpack(pack(answer), expected, bytes_max)

    async def reconcile(self, *, push: bool = True) -> None:
        committed = self.store.journal.durable
        self.store.journal.durable = lambda: _resolved(committed())  # type: ignore[method-assign]
        await self.exchange.reconcile(self.other.contact, CELL, push=push)

    def deliver_large(self) -> None:
        """The same of a slice in parts."""
        incoming = IncomingEpochFilters(1_000)
        for grain in set(self.put):
            outgoing = in_parts(self.store, CELL, grain)
            assert outgoing is not None
            while not outgoing.is_over:
                message = part_message(self.contact, CELL, grain, outgoing)
                outgoing.kept(incoming.take(sent_by(message), message.offset, message.bits, 0.0))
            self.other.store.join_epoch_filters(CELL, [incoming.whole(message.owner.id)], adopt=True)
        self.put.clear()

    def deliver(self) -> None:
        """Deliver the queued epoch filters, as the replication stream does."""
        self.other.store.join_epoch_filters(
            CELL, encoded_filters(records(self.store, CELL, sorted(set(self.put))).records), adopt=True
        )


def _resolved(future: Any) -> Any:
    if not future.done():
        future.set_result(None)
    return future


def _fails() -> None:
    raise RemoteError("other", "does not answer")


Sides = Callable[..., tuple[FilterSide, FilterSide]]


@pytest.fixture
def make_sides(tmp_path: Path) -> Iterator[Sides]:
    made: list[FilterSide] = []

    def sides(*, grains: int = 3, keeps: bool = True) -> tuple[FilterSide, FilterSide]:
        period = Period(HOUR, grains) if keeps else None
        one, other = (FilterSide(tmp_path / f"{number}", number, period) for number in (1, 2))
        one.other, other.other = other, one
        made.extend([one, other])
        return one, other

    yield sides
    for side in made:
        side.store.close()


async def test_both_come_to_know_what_either_knew(make_sides: Sides) -> None:
    one, other = make_sides()
    one.finish(1, 2)
    other.finish(2, 3)
    for side in (one, other):
        side.now += HOUR
    one.finish(4)
    other.finish(5)
    await one.reconcile()
    one.deliver()
    for side in (one, other):
        assert all(side.store.state(key(number)) == DONE for number in range(1, 6))
    assert one.store.cells == other.store.cells


async def test_who_is_no_backup_is_asked_and_told_nothing(make_sides: Sides) -> None:
    one, other = make_sides()
    one.finish(1)
    other.finish(2)
    await one.reconcile(push=False)
    assert [] == one.put
    assert one.store.state(key(2)) == DONE


async def test_what_is_alike_does_not_travel(make_sides: Sides) -> None:
    one, other = make_sides()
    for side in (one, other):
        side.finish(1, 2)
        side.now += HOUR
    one.finish(3)
    got = await other.exchange.answer(GetEpochFilters(CELL, -1, one.exchange._labels(CELL, -1)))
    assert ([], [1_001]) == (got.epoch_filters, got.differing)
    await one.reconcile()
    assert [1_001] == one.put


async def test_a_backup_that_has_nothing_gets_all(make_sides: Sides) -> None:
    one, other = make_sides()
    one.finish(1)
    one.now += HOUR
    one.finish(2)
    one.exchange.push_all(other.contact, CELL)
    other.now = one.now
    one.deliver()
    assert one.store.cells == other.store.cells


async def test_more_than_a_message_travels_in_several(make_sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epoch_filter_transfer, "EPOCH_FILTER_BYTES_MAX", 110)
    one, other = make_sides(grains=10)
    for number in range(5):
        other.finish(number, number + 10)
        one.now = other.now = other.now + HOUR
    await one.reconcile()
    assert [-1, 1_001, 1_003] == [question.after for question in one.asked]
    assert one.store.cells == other.store.cells
    assert [] == one.put


async def test_a_stream_takes_as_many_cells_as_go_into_a_message(
    make_sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = make_sides(grains=10)
    cells = [Cell(0), Cell(1), Cell(2)]
    for hour in range(2):
        for cell in cells:
            for number in (100 + 2 * hour, 101 + 2 * hour):
                one.store.learn_done(Key(cell.to_bytes(2, "big") + number.to_bytes(18, "big")))
        one.now += HOUR
    one.store.learn_done(Key(b"\0\1" + bytes(17) + b"\7"))
    for number in range(30):  # Too large for a message.
        one.store.learn_done(Key(b"\0\1" + bytes(17) + bytes([number])))
    sizes = {
        grain: len(told.bits)
        for grain in (1_000, 1_002)
        if (told := one.store.expiring_filters.encoded(cells[1], grain))  # type: ignore[union-attr]
    }
    assert sizes[1_002] > 3 * sizes[1_000]
    monkeypatch.setattr(epoch_filter_transfer, "EPOCH_FILTER_BYTES_MAX", 3 * sizes[1_000])
    left = {cell: [1_000, 1_001, 1_002] for cell in cells}  # Of two of them there is no third.
    sent: list[tuple[Cell, int]] = []
    large: list[tuple[Cell, int]] = []
    messages = 0
    while left:
        told, portions = packed(one.store, left)
        messages += bool(told)
        sent += [(Cell(cell.cell), record.label.epoch) for cell in told for record in cell.epoch_filters]
        assert sum(len(record.bits) for cell in told for record in cell.epoch_filters) <= 3 * sizes[1_000]
        large += [(cell, grain) for cell, portion in portions.items() for grain in portion.large]
        through = {cell: portion.through for cell, portion in portions.items()}
        left = {cell: rest for cell, grains in left.items() if (rest := grains[through.get(cell, 0) :])}
    assert [(cell, grain) for cell in cells for grain in (1_000, 1_001)] == sent
    assert [(cells[1], 1_002)] == large
    assert 2 == messages


# --- in parts --------------------------------------------------------------------------------------------------------


async def test_an_epoch_filter_beyond_a_message_travels_in_parts_and_is_the_same(
    make_sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = make_sides()
    other.finish(*range(700))
    monkeypatch.setattr(epoch_filter_transfer, "EPOCH_FILTER_BYTES_MAX", 1_000)
    one.meanwhile = [lambda: None, _fails, lambda: None, _fails]
    await one.reconcile()
    told = [side.store.expiring_filters.encoded(CELL, 1_000) for side in (one, other)]  # type: ignore[union-attr]
    assert told[0] == told[1]
    assert told[0] is not None
    assert [*range(0, len(told[0].bits), 1_000)] == sorted({part.offset for part in one.parts})
    assert 2 == len(one.parts) - len({part.offset for part in one.parts}), "only the failed parts were asked for again"
    assert one.store.cells == other.store.cells
    assert [] == one.put


async def test_after_three_failures_the_sync_begins_anew(make_sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = make_sides()
    other.finish(*range(700))
    monkeypatch.setattr(epoch_filter_transfer, "EPOCH_FILTER_BYTES_MAX", 1_000)
    one.meanwhile = [lambda: None, _fails, _fails, _fails]
    with pytest.raises(RemoteError):
        await one.reconcile()
    assert {} == one.store.cells


async def test_an_epoch_filter_that_grows_in_transit_keeps_its_beginning(
    make_sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = make_sides()
    other.finish(*range(500))
    monkeypatch.setattr(epoch_filter_transfer, "EPOCH_FILTER_BYTES_MAX", 1_000)
    one.meanwhile = [lambda number=number: other.finish(number) for number in range(500, 503)]  # type: ignore[misc]
    await one.reconcile()
    assert all(one.store.state(key(number)) == DONE for number in range(500))
    assert one.store.cells != other.store.cells
    assert [1_000] == one.put
    one.deliver_large()
    await one.reconcile()
    one.deliver_large()
    assert one.store.cells == other.store.cells
    assert all(side.store.state(key(number)) == DONE for side in (one, other) for number in range(503))


async def test_an_epoch_filter_that_grows_too_large_in_transit_comes_later(
    make_sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = make_sides()
    other.finish(*range(1_000))
    monkeypatch.setattr(epoch_filter_transfer, "EPOCH_FILTER_BYTES_MAX", 1_000)
    one.meanwhile = [lambda: None, lambda: other.finish(*range(1_000, 1_100))]
    await one.reconcile()
    assert {} == one.store.cells
    await one.reconcile()
    assert one.store.cells == other.store.cells


async def test_epoch_filters_beyond_one_exchange_wait_for_the_next(
    make_sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = make_sides()
    other.finish(*range(300))
    one.now = other.now = other.now + HOUR
    other.finish(*range(300, 600))
    monkeypatch.setattr(epoch_filter_transfer, "EPOCH_FILTER_BYTES_MAX", 1_000)
    monkeypatch.setattr(epoch_filter_transfer, "EPOCH_FILTER_WHOLE_BYTES_MAX", 5_000)
    await one.reconcile()
    assert 1 == len(one.store.expiring_filters.labels(CELL))  # type: ignore[union-attr]
    await one.reconcile()
    assert one.store.cells == other.store.cells


class Liar:
    """Simulate a peer that answers anything."""

    def __init__(self, side: FilterSide, answer: Callable[[Any], Any]) -> None:
        self.asked = 0
        self._answer = answer
        client: Any = self
        side.exchange._client = client

    async def ask(self, address: tuple[str, int], message: Any, expected: Any, deadline_s: float) -> Any:
        self.asked += 1
        return self._answer(message)


LABEL = EpochFilterLabel(1_000, 5, bytes(16))


@pytest.mark.parametrize(
    ("part", "asked"),
    [
        (lambda at: GotFilterPart(None, 0, b""), 1),
        (lambda at: GotFilterPart(LABEL, 0, b""), 1),
        (lambda at: GotFilterPart(LABEL, 2**28 + 1, bytes(100)), 1),
        (lambda at: GotFilterPart(LABEL, 1_000, b"x"), 1),
        (lambda at: GotFilterPart(LABEL, 1_000, bytes(101)), 1),
        (lambda at: GotFilterPart(LABEL, 1_000 + at, bytes(100)), 2),
        (lambda at: GotFilterPart(EpochFilterLabel(1_000 + at, 5, bytes(16)), 1_000, bytes(100)), 2),
        (lambda at: GotFilterPart(LABEL, 1_000, bytes(100)), 10),
    ],
    ids=["none", "empty", "too large", "a drop", "too much", "another size", "another grain", "rubbish"],
)
async def test_who_lies_about_parts_costs_a_known_number_of_messages(
    part: Callable[[int], GotFilterPart], asked: int, make_sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = make_sides()
    monkeypatch.setattr(epoch_filter_transfer, "EPOCH_FILTER_BYTES_MAX", 100)
    dead, far = 1_000 - 3, 1_000 + 4
    liar = Liar(
        one,
        lambda message: (
            GotEpochFilters([], [], None, [dead, 1_000, 1_000, far])
            if isinstance(message, GetEpochFilters)
            else part(message.offset)
        ),
    )
    await one.reconcile()
    assert 1 + asked == liar.asked
    assert {} == one.store.cells


async def test_who_goes_on_for_ever_is_not_listened_to_for_ever(make_sides: Sides) -> None:
    one, _ = make_sides(grains=3)
    liar = Liar(
        one,
        lambda message: (
            GotEpochFilters([], [], max(message.after, 997) + 1, [*range(990, 1_010)])
            if isinstance(message, GetEpochFilters)
            else GotFilterPart(None, 0, b"")
        ),
    )
    await one.reconcile()
    assert 2 * 3 + 1 + 2 * 3 == liar.asked, "and each slice there can be is asked for once"


async def test_a_job_that_keeps_keys_asks_nothing_and_has_none(make_sides: Sides) -> None:
    one, other = make_sides(keeps=False)
    one.finish(1)
    await one.reconcile()
    assert ([], GotEpochFilters([], [], None)) == (
        one.asked,
        await other.exchange.answer(GetEpochFilters(CELL, -1, [])),
    )


async def test_a_cell_that_is_none_is_refused(make_sides: Sides) -> None:
    with pytest.raises(NoSuchCellError):
        await make_sides()[0].exchange.answer(GetEpochFilters(2**17, -1, []))
