"""Slices travel only where they are unlike, in bounded messages, and then both ends have the same."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kadcrawl.config import Limits
from kadcrawl.history import slices as slices_module
from kadcrawl.history.placement import NoSuchCellError
from kadcrawl.history.seen import Period
from kadcrawl.history.seen_cells import Told
from kadcrawl.history.slices import SliceExchange, packed, records, told_by
from kadcrawl.history.store import DONE, Store
from kadcrawl.keys import Cell, Key, id_bytes
from kadcrawl.link.codec import pack, unpack
from kadcrawl.link.messages import Contact, GetSlices, GotSlices
from tests.history.test_store import accept, key, line

HOUR = 3_600.0
CELL = Cell(0)


class Side:
    """One of two peers."""

    now = 1_000 * HOUR
    other: "Side"

    def __init__(self, directory: Path, number: int, period: Period | None) -> None:
        directory.mkdir()
        self.contact = Contact(id_bytes(number), f"10.0.0.{number}", 4160)
        self.store = Store(directory, 0.0, lambda fds: None)
        self.store.begin(16, period, lambda: self.now)
        self.asked: list[GetSlices] = []
        self.put: list[int] = []
        """Grains that are to be sent to the other."""
        client: Any = self
        self.exchange = SliceExchange(client, self.store, self.join, self.note)

    def finish(self, *numbers: int) -> None:
        for number in numbers:
            self.store.finish(accept(self.store, number), line(number))

    async def join(self, cell: Cell, told: Sequence[Told]) -> None:
        self.store.join_slices(cell, told, adopt=False)

    def note(self, to: Contact, cell: Cell, grains: Iterable[int]) -> None:
        assert (to, cell) == (self.other.contact, CELL)
        self.put += grains

    async def ask(self, to: Contact, message: GetSlices, expected: Any, deadline_s: float) -> Any:
        bytes_max = Limits().message_bytes_max
        self.asked.append(message)
        self.store._dirty.set()
        await self.other.store.commit()
        answer = await self.other.exchange.answer(unpack(pack(message), GetSlices, bytes_max))
        return unpack(pack(answer), expected, bytes_max)

    async def reconcile(self, *, push: bool = True) -> None:
        committed = self.store.durable
        self.store.durable = lambda: _done(committed())  # type: ignore[method-assign]
        await self.exchange.reconcile(self.other.contact, CELL, push=push)

    def deliver(self) -> None:
        """What the stream of copies does with what was put."""
        self.other.store.join_slices(CELL, told_by(records(self.store, CELL, sorted(set(self.put)))), adopt=True)


def _done(future: Any) -> Any:
    if not future.done():
        future.set_result(None)
    return future


Sides = Callable[..., tuple[Side, Side]]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Sides]:
    made: list[Side] = []

    def sides(*, grains: int = 3, keeps: bool = True) -> tuple[Side, Side]:
        period = Period(HOUR, grains) if keeps else None
        one, other = (Side(tmp_path / f"{number}", number, period) for number in (1, 2))
        one.other, other.other = other, one
        made.extend([one, other])
        return one, other

    yield sides
    for side in made:
        side.store.close()


async def test_both_come_to_know_what_either_knew(make: Sides) -> None:
    one, other = make()
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


async def test_who_is_no_backup_is_asked_and_told_nothing(make: Sides) -> None:
    one, other = make()
    one.finish(1)
    other.finish(2)
    await one.reconcile(push=False)
    assert [] == one.put
    assert one.store.state(key(2)) == DONE


async def test_what_is_alike_does_not_travel(make: Sides) -> None:
    one, other = make()
    for side in (one, other):
        side.finish(1, 2)
        side.now += HOUR
    one.finish(3)
    got = await other.exchange.answer(GetSlices(CELL, -1, one.exchange._labels(CELL, -1)))
    assert ([], [1_001]) == (got.slices, got.unlike)
    await one.reconcile()
    assert [1_001] == one.put


async def test_a_backup_that_has_nothing_gets_all(make: Sides) -> None:
    one, other = make()
    one.finish(1)
    one.now += HOUR
    one.finish(2)
    one.exchange.push_all(other.contact, CELL)
    other.now = one.now
    one.deliver()
    assert one.store.cells == other.store.cells


async def test_more_than_a_message_travels_in_several(make: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices_module, "SLICE_BYTES_MAX", 110)
    one, other = make(grains=10)
    for number in range(5):
        other.finish(number, number + 10)
        one.now = other.now = other.now + HOUR
    await one.reconcile()
    assert [-1, 1_001, 1_003] == [question.after for question in one.asked]
    assert one.store.cells == other.store.cells
    assert [] == one.put


async def test_a_stream_takes_as_many_cells_as_go_into_a_message(make: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = make(grains=10)
    cells = [Cell(0), Cell(1), Cell(2)]
    for hour in range(2):
        for cell in cells:
            for number in (100 + 2 * hour, 101 + 2 * hour):
                one.store.learn_done(Key(cell.to_bytes(2, "big") + number.to_bytes(18, "big")))
        one.now += HOUR
    one.store.learn_done(Key(b"\0\1" + bytes(17) + b"\7"))
    for number in range(30):  # Too large to travel at all.
        one.store.learn_done(Key(b"\0\1" + bytes(17) + bytes([number])))
    sizes = {grain: len(told.bits) for grain in (1_000, 1_002) if (told := one.store.seen.told(cells[1], grain))}  # type: ignore[union-attr]
    assert sizes[1_002] > 3 * sizes[1_000]
    monkeypatch.setattr(slices_module, "SLICE_BYTES_MAX", 3 * sizes[1_000])
    left = {cell: [1_000, 1_001, 1_002] for cell in cells}  # Of two of them there is no third.
    sent: list[tuple[Cell, int]] = []
    messages = 0
    while left:
        told, through = packed(one.store, left)
        messages += bool(told)
        sent += [(Cell(cell.cell), record.label.grain) for cell in told for record in cell.slices]
        assert sum(len(record.bits) for cell in told for record in cell.slices) <= 3 * sizes[1_000]
        left = {cell: rest for cell, grains in left.items() if (rest := grains[len(through.get(cell, ())) :])}
    assert [(cell, grain) for cell in cells for grain in (1_000, 1_001)] == sent
    assert 2 == messages


async def test_a_slice_beyond_a_message_stays_where_it_is(
    make: Sides, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = make()
    other.finish(*range(20))
    monkeypatch.setattr(slices_module, "SLICE_BYTES_MAX", 100)
    await one.reconcile()
    assert {} == one.store.cells
    assert "slices.too_large" in caplog.text


async def test_a_job_that_keeps_keys_asks_nothing_and_has_none(make: Sides) -> None:
    one, other = make(keeps=False)
    one.finish(1)
    await one.reconcile()
    assert ([], GotSlices([], [], None)) == (one.asked, await other.exchange.answer(GetSlices(CELL, -1, [])))


async def test_a_cell_that_is_none_is_refused(make: Sides) -> None:
    with pytest.raises(NoSuchCellError):
        await make()[0].exchange.answer(GetSlices(2**17, -1, []))
