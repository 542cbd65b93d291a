"""How the slices of a cell travel (seen_cells): only those that are unlike, whole, each in one piece.

The owner asks everybody it syncs with for what is unlike there and joins it to its own; what is then unlike at a backup
goes there by the stream of copies, which keeps the order: a key whose DONE was sent before is in the slice, and one
that comes after it is found in it. A slice too large for one message does not travel: what it has is forgotten on a
move, and its pages may come again.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from kadcrawl.history.seen_cells import Label, Told
from kadcrawl.history.store import Store
from kadcrawl.history.tally import DIGEST_BYTES
from kadcrawl.keys import Cell
from kadcrawl.link.client import LinkClient
from kadcrawl.link.messages import (
    SLICE_BYTES_MAX,
    SLICES_MAX,
    CellSlices,
    Contact,
    GetSlices,
    GotSlices,
    SliceLabel,
    SliceRecord,
)

DEADLINE_S = 30.0

log = logging.getLogger(__name__)


def records(store: Store, cell: Cell, grains: Iterable[int], room: int | None = None) -> list[SliceRecord]:
    """Return slices of a cell as they travel, in the order of `grains`, as many as go into so many bytes."""
    room = SLICE_BYTES_MAX if room is None else room
    found: list[SliceRecord] = []
    for grain in grains:
        told = store.seen.told(cell, grain) if store.seen is not None else None
        if told is None:
            continue
        if len(told.bits) > SLICE_BYTES_MAX:
            log.warning("slices.too_large cell=%d grain=%d bytes=%d", cell, grain, len(told.bits))
            continue
        room -= len(told.bits)
        if room < 0 or len(found) == SLICES_MAX:
            break
        found.append(SliceRecord(_label(grain, told.label), told.bits))
    return found


def packed(store: Store, wanted: Mapping[Cell, Sequence[int]]) -> tuple[list[CellSlices], dict[Cell, Sequence[int]]]:
    """Return slices of cells as they travel, as many as go into one message, and the grains that are through with that.

    What is not there any more, and what is too large, is through as well.
    """
    cells: list[CellSlices] = []
    through: dict[Cell, Sequence[int]] = {}
    room = SLICE_BYTES_MAX
    for cell, grains in wanted.items():
        found = records(store, cell, grains, room)
        room -= sum(len(one.bits) for one in found)
        if found:
            cells.append(CellSlices(cell, found))
        reached = grains.index(found[-1].label.grain) + 1 if found else 0
        # Is there more of it, which had no room? What never has any is no reason to wait.
        while reached < len(grains) and not records(store, cell, grains[reached : reached + 1]):
            reached += 1
        through[cell] = grains[:reached]
        if reached < len(grains):
            break
    return cells, through


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

    async def reconcile(self, other: Contact, cell: Cell, *, push: bool) -> None:
        """Take up what `other` has of a cell and we lack; with `push` send it what it lacks. Raises RemoteError."""
        if self._store.seen is None:
            return
        after: int | None = -1
        while after is not None:
            have = self._labels(cell, after)
            got = await self._client.ask(other, GetSlices(cell, after, have), GotSlices, DEADLINE_S)
            if got.slices:
                await self._join(cell, told_by(got.slices))
                await self._store.durable()
            if push:
                ours = self._store.seen.labels(cell)
                self._put(other, cell, [grain for grain in got.unlike if grain in ours])
                theirs = {one.label.grain: _told(one.label) for one in got.slices}
                unlike = [grain for grain, label in theirs.items() if grain in ours and ours[grain] != label]
                self._put(other, cell, unlike)
            if got.upto is not None and got.upto <= after:
                return  # It makes no progress: the digests will show that something is missing.
            after = got.upto

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
        slices = records(self._store, cell, differing)
        if slices:
            await self._store.durable()  # As with copies: nobody hears DONE before it is on our disk.
        last = slices[-1].label.grain if slices else None
        is_all = last is None or last == differing[-1]
        return GotSlices(slices, unlike, None if is_all else last)

    def _labels(self, cell: Cell, after: int) -> list[SliceLabel]:
        labels = self._store.seen.labels(cell) if self._store.seen is not None else {}
        return [_label(grain, label) for grain, label in sorted(labels.items()) if grain > after][:SLICES_MAX]


def _told(label: SliceLabel) -> Label:
    return Label(label.keys, int.from_bytes(label.digest, "big"))


def _label(grain: int, label: Label) -> SliceLabel:
    return SliceLabel(grain, label.keys, label.digest.to_bytes(DIGEST_BYTES, "big"))
