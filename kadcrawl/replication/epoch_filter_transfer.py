"""`EpochFilterSync` moves the epoch filters of a cell that differ between two holders, whole or in parts.

The owner asks every holder it syncs with for the filters that differ there, and merges them into its own. Filters that
then differ at a backup travel there by the stream of copies (replicator.py), which keeps the order: a key sent as DONE
before is in the filter, and a key that comes later is found in it. A filter that is too large for one message travels
in parts (epoch_filter_chunks.py). The answering peer keeps no state between two parts, so they may be of different
moments. Every bit in them is right, but if the filter has changed meanwhile, the union is incomplete and gets a label
of its own.
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

EPOCH_FILTER_DEADLINE_S = 30.0
FAILURES_MAX = 3
"""Failures of one filter in parts, which continues where it stopped. Then the sync of the cell begins anew."""

log = logging.getLogger(__name__)


class Portion(NamedTuple):
    """The epoch filters of a cell that go into one message."""

    records: list[EpochFilterRecord]
    large: list[int]
    """Epochs of the filters that travel in parts."""
    through: int
    """Number of requested epochs that are dealt with, including expired epochs."""


def records(store: Store, cell: Cell, epochs: Sequence[int], room: int | None = None) -> Portion:
    """Return epoch filters of a cell as they travel, in the order of `epochs`, up to `room` bytes."""
    room = EPOCH_FILTER_BYTES_MAX if room is None else room
    portion = Portion([], [], len(epochs))
    for number, epoch in enumerate(epochs):
        large = store.expiring_filters.large(cell, epoch) if store.expiring_filters is not None else None
        if large is None:
            continue
        size = large.pieces.size
        if size > EPOCH_FILTER_WHOLE_BYTES_MAX:
            log.warning("epoch_filter.too_large cell=%d epoch=%d bytes=%d", cell, epoch, size)
            continue
        if size > EPOCH_FILTER_BYTES_MAX:
            portion.large.append(epoch)
            continue
        room -= size
        if room < 0 or len(portion.records) == EPOCH_FILTERS_MAX:
            return portion._replace(through=number)
        portion.records.append(EpochFilterRecord(_label(epoch, large.label), large.pieces.cut(0, size)))
    return portion


def packed(store: Store, wanted: Mapping[Cell, Sequence[int]]) -> tuple[list[CellEpochFilters], dict[Cell, Portion]]:
    """Return epoch filters of cells as they travel, up to one message, and how far each cell is through."""
    cells: list[CellEpochFilters] = []
    through: dict[Cell, Portion] = {}
    room = EPOCH_FILTER_BYTES_MAX
    for cell, epochs in wanted.items():
        through[cell] = found = records(store, cell, epochs, room)
        room -= sum(len(one.bits) for one in found.records)
        if found.records:
            cells.append(CellEpochFilters(cell, found.records))
        if found.through < len(epochs):
            break
    return cells, through


def in_parts(store: Store, cell: Cell, epoch: int) -> Outgoing | None:
    """Return an epoch filter that is to be sent in parts, or None if it has expired."""
    large = store.expiring_filters.large(cell, epoch) if store.expiring_filters is not None else None
    return None if large is None else Outgoing(large, EPOCH_FILTER_BYTES_MAX)


def part_message(owner: Contact, cell: Cell, epoch: int, outgoing: Outgoing) -> KeepFilterPart:
    """Return the next part of an epoch filter as it travels to a backup."""
    label = _label(epoch, outgoing.label)
    return KeepFilterPart(owner, cell, label, outgoing.size, outgoing.at, outgoing.part())


def sent_by(message: KeepFilterPart) -> Sent:
    """Return the epoch filter to which a part belongs."""
    encoded = EncodedFilter(message.label.epoch, _parse_label(message.label), b"")
    return Sent(message.owner.id, Cell(message.cell), encoded, message.size)


def encoded_filters(records: Iterable[EpochFilterRecord]) -> list[EncodedFilter]:
    """Return received epoch filters in the form of the store."""
    return [EncodedFilter(one.label.epoch, _parse_label(one.label), one.bits) for one in records]


class EpochFilterSync:
    """Both ends of the comparison of epoch filters, for one peer."""

    def __init__(
        self,
        client: LinkClient,
        store: Store,
        join: Callable[[Cell, Sequence[EncodedFilter]], Awaitable[None]],
        put: Callable[[Contact, Cell, Iterable[int]], None],
    ) -> None:
        """Ask nothing yet.

        `join` merges the filters of another holder. `put` sends filters of this peer, in order with its copies.
        """
        self._client = client
        self._store = store
        self._join = join
        self._put = put
        self._fetching = asyncio.Lock()
        """Limits the filters received in parts to one at a time, as each is in memory."""

    async def reconcile(self, other: Contact, cell: Cell, *, push: bool) -> None:
        """Merge the differing filters of another holder. With `push` send those it lacks. Raises RemoteError."""
        seen = self._store.expiring_filters
        if seen is None:
            return
        after = -1
        room = EPOCH_FILTER_WHOLE_BYTES_MAX
        # An answer brings at least one filter, of those that live and as many ahead.
        for _ in range(2 * seen.period.epochs + 1):
            have = self._labels(cell, after)
            got = await self._client.ask(
                other, GetEpochFilters(cell, after, have), GotEpochFilters, EPOCH_FILTER_DEADLINE_S
            )
            theirs = encoded_filters(got.epoch_filters)
            if theirs:
                await self._join(cell, theirs)
                await self._store.journal.durable()
            labels = {one.epoch: one.label for one in theirs}
            for epoch in sorted(set(got.large)):
                if not after < epoch <= (epoch if got.upto is None else got.upto) or not seen.may_live(epoch):
                    continue  # Each epoch is worth one request at most.
                large = await self._fetch(other, cell, epoch, room)
                if large is not None:
                    encoded, labels[epoch] = large
                    room -= len(encoded.bits)
                    await self._join(cell, [encoded])
                    await self._store.journal.durable()
            if push:
                ours = seen.labels(cell)
                self._put(other, cell, [epoch for epoch in got.differing if epoch in ours])
                unlike = [epoch for epoch, label in labels.items() if epoch in ours and ours[epoch] != label]
                self._put(other, cell, unlike)
            if got.upto is None or got.upto <= after:
                return  # Done, or no progress: the digests will show that records are missing.
            after = got.upto

    async def _fetch(self, other: Contact, cell: Cell, epoch: int, room: int) -> tuple[EncodedFilter, Label] | None:
        """Fetch an epoch filter of up to `room` bytes in parts. Return it and its label at the other peer at the end.

        None if the filter has expired, is too large, or has changed its size meanwhile. Raises RemoteError.
        """
        failures = 0
        begun: Label | None = None
        assembly = Assembly(room, EPOCH_FILTER_BYTES_MAX)
        async with self._fetching:
            while True:
                question = GetFilterPart(cell, epoch, len(assembly.bits))
                try:
                    got = await self._client.ask(other, question, GotFilterPart, EPOCH_FILTER_DEADLINE_S)
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
        """Send all epoch filters of a cell to a backup that holds nothing of it."""
        if self._store.expiring_filters is not None:
            self._put(other, cell, list(self._store.expiring_filters.labels(cell)))

    async def answer(self, question: GetEpochFilters) -> GotEpochFilters:
        """Return the epoch filters that differ here, up to one message."""
        self._store.check(question.cell)
        cell = Cell(question.cell)
        theirs = {one.epoch: one for one in question.have}
        ours = {one.epoch: one for one in self._labels(cell, -1)}
        unlike = [epoch for epoch, label in theirs.items() if ours.get(epoch) != label]
        differing = sorted(
            epoch for epoch, label in ours.items() if epoch > question.after and theirs.get(epoch) != label
        )
        found = records(self._store, cell, differing)
        if found.records:
            await self._store.journal.durable()  # No peer hears DONE before it is on this disk, as with all copies.
        upto = None if found.through == len(differing) else differing[found.through - 1]
        return GotEpochFilters(found.records, unlike, upto, found.large)

    async def part(self, question: GetFilterPart) -> GotFilterPart:
        """Return a part of an epoch filter."""
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
        return [_label(epoch, label) for epoch, label in sorted(labels.items()) if epoch > after][:EPOCH_FILTERS_MAX]


def _parse_label(label: EpochFilterLabel) -> Label:
    return Label(label.keys, int.from_bytes(label.digest, "big"))


def _label(epoch: int, label: Label) -> EpochFilterLabel:
    return EpochFilterLabel(epoch, label.keys, label.digest.to_bytes(DIGEST_BYTES, "big"))
