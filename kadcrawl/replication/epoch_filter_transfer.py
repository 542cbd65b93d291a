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
    EPOCH_FILTER_BYTES_MAX,
    EPOCH_FILTER_WHOLE_BYTES_MAX,
    EPOCH_FILTERS_MAX,
    CellEpochFilters,
    Contact,
    EpochFilterLabel,
    EpochFilterRecord,
    GetEpochFilters,
    GetFilterPart,
    GotEpochFilters,
    GotFilterPart,
    KeepFilterPart,
)
from kadcrawl.replication.epoch_filter_chunks import Assembly, Outgoing, PartError, Sent
from kadcrawl.store.bloom.cell_filters import EncodedFilter, Label, both_of
from kadcrawl.store.cell_digest import DIGEST_BYTES
from kadcrawl.store.store import Store

SLICE_DEADLINE_S = 30.0
FAILURES_MAX = 3
"""Of one slice in parts, which goes on where it stopped; then the sync of the cell begins anew."""

log = logging.getLogger(__name__)


class Portion(NamedTuple):
    """What of some slices of a cell goes into a message."""

    records: list[EpochFilterRecord]
    large: list[int]
    """Grains of those that go in parts."""
    through: int
    """How many of the grains asked for are dealt with so; what is not there any more is as well."""


def records(store: Store, cell: Cell, epochs: Sequence[int], room: int | None = None) -> Portion:
    """Return slices of a cell as they travel, in the order of `grains`, as many as go into so many bytes."""
    room = EPOCH_FILTER_BYTES_MAX if room is None else room
    portion = Portion([], [], len(epochs))
    for number, grain in enumerate(epochs):
        large = store.expiring_filters.large(cell, grain) if store.expiring_filters is not None else None
        if large is None:
            continue
        size = large.pieces.size
        if size > EPOCH_FILTER_WHOLE_BYTES_MAX:
            log.warning("epoch_filter.too_large cell=%d grain=%d bytes=%d", cell, grain, size)
            continue
        if size > EPOCH_FILTER_BYTES_MAX:
            portion.large.append(grain)
            continue
        room -= size
        if room < 0 or len(portion.records) == EPOCH_FILTERS_MAX:
            return portion._replace(through=number)
        portion.records.append(EpochFilterRecord(_label(grain, large.label), large.pieces.cut(0, size)))
    return portion


def packed(store: Store, wanted: Mapping[Cell, Sequence[int]]) -> tuple[list[CellEpochFilters], dict[Cell, Portion]]:
    """Return slices of cells as they travel, as many as go into one message, and how far each cell is through."""
    cells: list[CellEpochFilters] = []
    through: dict[Cell, Portion] = {}
    room = EPOCH_FILTER_BYTES_MAX
    for cell, grains in wanted.items():
        through[cell] = found = records(store, cell, grains, room)
        room -= sum(len(one.bits) for one in found.records)
        if found.records:
            cells.append(CellEpochFilters(cell, found.records))
        if found.through < len(grains):
            break
    return cells, through


def in_parts(store: Store, cell: Cell, epoch: int) -> Outgoing | None:
    """Return a slice that is to be sent in parts; None if there is none any more."""
    large = store.expiring_filters.large(cell, epoch) if store.expiring_filters is not None else None
    return None if large is None else Outgoing(large, EPOCH_FILTER_BYTES_MAX)


def part_message(owner: Contact, cell: Cell, epoch: int, outgoing: Outgoing) -> KeepFilterPart:
    """Return the next part of a slice as it travels to a backup."""
    label = _label(epoch, outgoing.label)
    return KeepFilterPart(owner, cell, label, outgoing.size, outgoing.at, outgoing.part())


def sent_by(message: KeepFilterPart) -> Sent:
    """Return which slice a part is of."""
    told = EncodedFilter(message.label.epoch, _parse_label(message.label), b"")
    return Sent(message.owner.id, Cell(message.cell), told, message.size)


def encoded_filters(slices: Iterable[EpochFilterRecord]) -> list[EncodedFilter]:
    """Return slices that have arrived, as the store takes them."""
    return [EncodedFilter(one.label.epoch, _parse_label(one.label), one.bits) for one in slices]


class EpochFilterSync:
    """Both ends of the owner's question, for one peer."""

    def __init__(
        self,
        client: LinkClient,
        store: Store,
        join: Callable[[Cell, Sequence[EncodedFilter]], Awaitable[None]],
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
        seen = self._store.expiring_filters
        if seen is None:
            return
        after = -1
        room = EPOCH_FILTER_WHOLE_BYTES_MAX
        # An answer brings at least one slice, and there are no more than those that live, and as many ahead.
        for _ in range(2 * seen.period.epochs + 1):
            have = self._labels(cell, after)
            got = await self._client.ask(other, GetEpochFilters(cell, after, have), GotEpochFilters, SLICE_DEADLINE_S)
            theirs = encoded_filters(got.epoch_filters)
            if theirs:
                await self._join(cell, theirs)
                await self._store.journal.durable()
            labels = {one.epoch: one.label for one in theirs}
            for grain in sorted(set(got.large)):
                if not after < grain <= (grain if got.upto is None else got.upto) or not seen.may_live(grain):
                    continue  # Each is worth one look at most.
                large = await self._fetch(other, cell, grain, room)
                if large is not None:
                    told, labels[grain] = large
                    room -= len(told.bits)
                    await self._join(cell, [told])
                    await self._store.journal.durable()
            if push:
                ours = seen.labels(cell)
                self._put(other, cell, [grain for grain in got.differing if grain in ours])
                unlike = [grain for grain, label in labels.items() if grain in ours and ours[grain] != label]
                self._put(other, cell, unlike)
            if got.upto is None or got.upto <= after:
                return  # Or it makes no progress: the digests will show that something is missing.
            after = got.upto

    async def _fetch(self, other: Contact, cell: Cell, epoch: int, room: int) -> tuple[EncodedFilter, Label] | None:
        """Return a slice of up to `room` bytes that comes in parts, and its label there at the end.

        None if it is not there any more, or too large, or has come to be of another size meanwhile.
        """
        failures = 0
        begun: Label | None = None
        assembly = Assembly(room, EPOCH_FILTER_BYTES_MAX)
        async with self._fetching:
            while True:
                question = GetFilterPart(cell, epoch, len(assembly.bits))
                try:
                    got = await self._client.ask(other, question, GotFilterPart, SLICE_DEADLINE_S)
                except RemoteError:
                    failures += 1
                    if failures == FAILURES_MAX:
                        raise
                    continue
                if got.label is None or got.label.epoch != epoch:
                    return None
                now = _parse_label(got.label)
                if begun is None and 0 < got.size <= room:
                    begun, assembly = now, Assembly(got.size, EPOCH_FILTER_BYTES_MAX)
                if begun is None or got.size != assembly.size:
                    return None
                try:
                    assembly.take(question.offset, got.bits)
                except PartError as error:
                    log.warning("epoch_filter.bad_part from=%s why=%s", other, error)
                    return None
                if assembly.is_whole:
                    return EncodedFilter(
                        epoch, begun if begun == now else both_of(begun, now), bytes(assembly.bits)
                    ), now

    def push_all(self, other: Contact, cell: Cell) -> None:
        """Send all slices of a cell to a backup that has nothing of it."""
        if self._store.expiring_filters is not None:
            self._put(other, cell, list(self._store.expiring_filters.labels(cell)))

    async def answer(self, question: GetEpochFilters) -> GotEpochFilters:
        """Say which slices are unlike here."""
        self._store.check(question.cell)
        cell = Cell(question.cell)
        theirs = {one.epoch: one for one in question.have}
        ours = {one.epoch: one for one in self._labels(cell, -1)}
        unlike = [grain for grain, label in theirs.items() if ours.get(grain) != label]
        differing = sorted(
            grain for grain, label in ours.items() if grain > question.after and theirs.get(grain) != label
        )
        found = records(self._store, cell, differing)
        if found.records:
            await self._store.journal.durable()  # As with copies: nobody hears DONE before it is on our disk.
        upto = None if found.through == len(differing) else differing[found.through - 1]
        return GotEpochFilters(found.records, unlike, upto, found.large)

    async def part(self, question: GetFilterPart) -> GotFilterPart:
        """Give some of a slice."""
        self._store.check(question.cell)
        cell, seen = Cell(question.cell), self._store.expiring_filters
        large = seen.large(cell, question.epoch) if seen is not None else None
        if large is None or large.pieces.size > EPOCH_FILTER_WHOLE_BYTES_MAX:
            return GotFilterPart(None, 0, b"")
        bits = large.pieces.cut(question.offset, EPOCH_FILTER_BYTES_MAX)
        await self._store.journal.durable()
        return GotFilterPart(_label(question.epoch, large.label), large.pieces.size, bits)

    def _labels(self, cell: Cell, after: int) -> list[EpochFilterLabel]:
        labels = self._store.expiring_filters.labels(cell) if self._store.expiring_filters is not None else {}
        return [_label(grain, label) for grain, label in sorted(labels.items()) if grain > after][:EPOCH_FILTERS_MAX]


def _parse_label(label: EpochFilterLabel) -> Label:
    return Label(label.keys, int.from_bytes(label.digest, "big"))


def _label(epoch: int, label: Label) -> EpochFilterLabel:
    return EpochFilterLabel(epoch, label.keys, label.digest.to_bytes(DIGEST_BYTES, "big"))
