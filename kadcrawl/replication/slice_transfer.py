"""How the slices of a cell travel (seen_cells): only those that are unlike, whole, each in one piece or in parts.

The owner asks everybody it syncs with for what is unlike there and joins it to its own; what is then unlike at a backup
goes there by the stream of copies, which keeps the order: a key whose DONE was sent before is in the slice, and one
that comes after it is found in it. A slice too large for one message travels in parts (slice_parts). Who is asked for
them keeps nothing between two, so they may be of different moments: every bit in them is right, but if it has changed
meanwhile they are not all it had, and go by a name of their own.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from kadcrawl.errors import RemoteError
from kadcrawl.keys import Cell
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import (
    SLICE_BYTES_MAX,
    SLICE_WHOLE_BYTES_MAX,
    SLICES_MAX,
    CellSlices,
    Contact,
    GetSlicePart,
    GetSlices,
    GotSlicePart,
    GotSlices,
    KeepSlicePart,
    SliceLabel,
    SliceRecord,
)
from kadcrawl.replication.slice_chunks import Assembly, Outgoing, PartError, Sent
from kadcrawl.store.bloom.cell_filters import Label, Told, both_of
from kadcrawl.store.cell_digest import DIGEST_BYTES
from kadcrawl.store.store import Store

DEADLINE_S = 30.0
FAILURES_MAX = 3
"""Of one slice in parts, which goes on where it stopped; then the sync of the cell begins anew."""

log = logging.getLogger(__name__)


class Portion(NamedTuple):
    """What of some slices of a cell goes into a message."""

    records: list[SliceRecord]
    large: list[int]
    """Grains of those that go in parts."""
    through: int
    """How many of the grains asked for are dealt with so; what is not there any more is as well."""


def records(store: Store, cell: Cell, grains: Sequence[int], room: int | None = None) -> Portion:
    """Return slices of a cell as they travel, in the order of `grains`, as many as go into so many bytes."""
    room = SLICE_BYTES_MAX if room is None else room
    portion = Portion([], [], len(grains))
    for number, grain in enumerate(grains):
        large = store.seen.large(cell, grain) if store.seen is not None else None
        if large is None:
            continue
        size = large.pieces.size
        if size > SLICE_WHOLE_BYTES_MAX:
            log.warning("slices.too_large cell=%d grain=%d bytes=%d", cell, grain, size)
            continue
        if size > SLICE_BYTES_MAX:
            portion.large.append(grain)
            continue
        room -= size
        if room < 0 or len(portion.records) == SLICES_MAX:
            return portion._replace(through=number)
        portion.records.append(SliceRecord(_label(grain, large.label), large.pieces.cut(0, size)))
    return portion


def packed(store: Store, wanted: Mapping[Cell, Sequence[int]]) -> tuple[list[CellSlices], dict[Cell, Portion]]:
    """Return slices of cells as they travel, as many as go into one message, and how far each cell is through."""
    cells: list[CellSlices] = []
    through: dict[Cell, Portion] = {}
    room = SLICE_BYTES_MAX
    for cell, grains in wanted.items():
        through[cell] = found = records(store, cell, grains, room)
        room -= sum(len(one.bits) for one in found.records)
        if found.records:
            cells.append(CellSlices(cell, found.records))
        if found.through < len(grains):
            break
    return cells, through


def in_parts(store: Store, cell: Cell, grain: int) -> Outgoing | None:
    """Return a slice that is to be sent in parts; None if there is none any more."""
    large = store.seen.large(cell, grain) if store.seen is not None else None
    return None if large is None else Outgoing(large, SLICE_BYTES_MAX)


def part_message(owner: Contact, cell: Cell, grain: int, outgoing: Outgoing) -> KeepSlicePart:
    """Return the next part of a slice as it travels to a backup."""
    label = _label(grain, outgoing.label)
    return KeepSlicePart(owner, cell, label, outgoing.size, outgoing.at, outgoing.part())


def sent_by(message: KeepSlicePart) -> Sent:
    """Return which slice a part is of."""
    told = Told(message.label.grain, _told(message.label), b"")
    return Sent(message.owner.id, Cell(message.cell), told, message.size)


def told_by(slices: Iterable[SliceRecord]) -> list[Told]:
    """Return slices that have arrived, as the store takes them."""
    return [Told(one.label.grain, _told(one.label), one.bits) for one in slices]


class SliceExchange:
    """Both ends of the owner's question, for one peer."""

    def __init__(
        self,
        client: LinkClient,
        store: Store,
        join: Callable[[Cell, Sequence[Told]], Awaitable[None]],
        put: Callable[[Contact, Cell, Iterable[int]], None],
    ) -> None:
        """`join` takes up what another holder has; `put` sends it our slices of some grains, in order with copies."""
        self._client = client
        self._store = store
        self._join = join
        self._put = put
        self._fetching = asyncio.Lock()
        """One slice in parts at a time is enough to have in memory."""

    async def reconcile(self, other: Contact, cell: Cell, *, push: bool) -> None:
        """Take up what `other` has of a cell and we lack; with `push` send it what it lacks. Raises RemoteError."""
        seen = self._store.seen
        if seen is None:
            return
        after = -1
        room = SLICE_WHOLE_BYTES_MAX
        # An answer brings at least one slice, and there are no more than those that live, and as many ahead.
        for _ in range(2 * seen.period.grains + 1):
            have = self._labels(cell, after)
            got = await self._client.ask(other, GetSlices(cell, after, have), GotSlices, DEADLINE_S)
            theirs = told_by(got.slices)
            if theirs:
                await self._join(cell, theirs)
                await self._store.durable()
            labels = {one.grain: one.label for one in theirs}
            for grain in sorted(set(got.large)):
                if not after < grain <= (grain if got.upto is None else got.upto) or not seen.may_live(grain):
                    continue  # Each is worth one look at most.
                large = await self._fetch(other, cell, grain, room)
                if large is not None:
                    told, labels[grain] = large
                    room -= len(told.bits)
                    await self._join(cell, [told])
                    await self._store.durable()
            if push:
                ours = seen.labels(cell)
                self._put(other, cell, [grain for grain in got.unlike if grain in ours])
                unlike = [grain for grain, label in labels.items() if grain in ours and ours[grain] != label]
                self._put(other, cell, unlike)
            if got.upto is None or got.upto <= after:
                return  # Or it makes no progress: the digests will show that something is missing.
            after = got.upto

    async def _fetch(self, other: Contact, cell: Cell, grain: int, room: int) -> tuple[Told, Label] | None:
        """Return a slice of up to `room` bytes that comes in parts, and its label there at the end.

        None if it is not there any more, or too large, or has come to be of another size meanwhile.
        """
        failures = 0
        begun: Label | None = None
        assembly = Assembly(room, SLICE_BYTES_MAX)
        async with self._fetching:
            while True:
                question = GetSlicePart(cell, grain, len(assembly.bits))
                try:
                    got = await self._client.ask(other, question, GotSlicePart, DEADLINE_S)
                except RemoteError:
                    failures += 1
                    if failures == FAILURES_MAX:
                        raise
                    continue
                if got.label is None or got.label.grain != grain:
                    return None
                now = _told(got.label)
                if begun is None and 0 < got.size <= room:
                    begun, assembly = now, Assembly(got.size, SLICE_BYTES_MAX)
                if begun is None or got.size != assembly.size:
                    return None
                try:
                    assembly.take(question.at, got.bits)
                except PartError as error:
                    log.warning("slices.bad_part from=%s why=%s", other, error)
                    return None
                if assembly.is_whole:
                    return Told(grain, begun if begun == now else both_of(begun, now), bytes(assembly.bits)), now

    def push_all(self, other: Contact, cell: Cell) -> None:
        """Send all slices of a cell to a backup that has nothing of it."""
        if self._store.seen is not None:
            self._put(other, cell, list(self._store.seen.labels(cell)))

    async def answer(self, question: GetSlices) -> GotSlices:
        """Say which slices are unlike here."""
        self._store.check(question.cell)
        cell = Cell(question.cell)
        theirs = {one.grain: one for one in question.have}
        ours = {one.grain: one for one in self._labels(cell, -1)}
        unlike = [grain for grain, label in theirs.items() if ours.get(grain) != label]
        differing = sorted(
            grain for grain, label in ours.items() if grain > question.after and theirs.get(grain) != label
        )
        found = records(self._store, cell, differing)
        if found.records:
            await self._store.durable()  # As with copies: nobody hears DONE before it is on our disk.
        upto = None if found.through == len(differing) else differing[found.through - 1]
        return GotSlices(found.records, unlike, upto, found.large)

    async def part(self, question: GetSlicePart) -> GotSlicePart:
        """Give some of a slice."""
        self._store.check(question.cell)
        cell, seen = Cell(question.cell), self._store.seen
        large = seen.large(cell, question.grain) if seen is not None else None
        if large is None or large.pieces.size > SLICE_WHOLE_BYTES_MAX:
            return GotSlicePart(None, 0, b"")
        bits = large.pieces.cut(question.at, SLICE_BYTES_MAX)
        await self._store.durable()
        return GotSlicePart(_label(question.grain, large.label), large.pieces.size, bits)

    def _labels(self, cell: Cell, after: int) -> list[SliceLabel]:
        labels = self._store.seen.labels(cell) if self._store.seen is not None else {}
        return [_label(grain, label) for grain, label in sorted(labels.items()) if grain > after][:SLICES_MAX]


def _told(label: SliceLabel) -> Label:
    return Label(label.keys, int.from_bytes(label.digest, "big"))


def _label(grain: int, label: Label) -> SliceLabel:
    return SliceLabel(grain, label.keys, label.digest.to_bytes(DIGEST_BYTES, "big"))
