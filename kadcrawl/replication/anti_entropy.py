"""`AntiEntropy` makes two peers' copies of a cell equal: only records that differ travel, in bounded batches.

The asker divides the keys of a large cell into windows, and asks which windows differ (`CompareDigests`). Each side
reads the cell once for that. For the windows that differ the asker sends the keys, and gets the records that it lacks
and a list of those that the other lacks (`Reconcile`). If one side holds nothing, all records move without a
comparison. At most a batch of merged records waits for the disk, so after an interruption the next comparison
begins from there. Range-based set reconciliation (Meyer 2022), one level deep.

After a crash a few records of each cell differ, spread over all of its keys. So the windows are as small as one message
allows: large windows would nearly all differ, and each would be read again on both sides.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kadcrawl.keys import Cell, Key
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import (
    BATCH_MAX,
    COMPARED_MAX,
    Batch,
    CellSummary,
    CompareDigests,
    Contact,
    DigestsCompared,
    LaterState,
    Reconcile,
    Reconciled,
    Replicate,
    Replicated,
    Window,
)
from kadcrawl.replication.epoch_filter_transfer import EpochFilterSync
from kadcrawl.store.cell_digest import DIGEST_BYTES, EMPTY, digest_records
from kadcrawl.store.schema import DONE, PENDING
from kadcrawl.store.store import Store

RECONCILE_DEADLINE_S = 30.0
BATCHES_COMPARED_MIN = 2
"""A cell with more batches of keys here than this is compared by digests first."""
WINDOW_KEYS_MIN = 32
"""Fewest keys of a window: to compare it costs as much as to send some keys."""


@dataclass(slots=True)
class Exchange:
    """One cell on its way to be equal."""

    other: Contact
    cell: Cell
    push: bool
    """True if the other side gets what it lacks."""
    trust_done: bool
    unsaved: int = 0
    """Records merged that may not be on disk."""
    wanted: list[Key] = field(default_factory=list)
    """Keys whose records the other side lacks."""


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The keys of a cell beyond one key, up to and with another. None is an end of the cell."""

    after: Key | None
    last: Key | None
    keys: int
    """Number of our keys in it."""


class AntiEntropy:
    """Both ends of the conversation, for one peer."""

    def __init__(
        self,
        me: Callable[[], Contact],
        client: LinkClient,
        store: Store,
        make_batch: Callable[[Sequence[Key]], Batch],
        merge: Callable[[Batch, Cell, bool], object],
        filter_sync: EpochFilterSync | None = None,
        refused: Callable[[Batch, Cell], list[Key]] = lambda batch, cell: [],
    ) -> None:
        """Send nothing yet.

        Args:
            me: returns the contact of this peer.
            client: asks other peers.
            store: the records of this peer.
            make_batch: returns records as they are now, with their sites and robots.txt.
            merge: merges the records of a cell; the last argument says whether DONE records count.
            filter_sync: moves epoch filters, if the job keeps them.
            refused: returns the keys of a batch that are PENDING there and DONE here by an epoch filter.
        """
        self._me = me
        self._client = client
        self._store = store
        self._make_batch = make_batch
        self._merge = merge
        self._filter_sync = filter_sync
        self._refused = refused
        self.examined = 0
        """Records read here to be compared or sent."""
        self.moved = 0
        """Records received and sent by this peer as the asker."""

    # --- asking --------------------------------------------------------------------------------------------------

    async def reconcile(self, other: Contact, held: CellSummary, *, push: bool, trust_done: bool = True) -> None:
        """Fetch the records of a cell that this peer lacks. With `push` send those that `other` lacks.

        Without `trust_done` only PENDING records are merged. Raises RemoteError.
        """
        cell = Cell(held.cell)
        if held.keys == 0:
            if push:
                if self._filter_sync is not None:
                    self._filter_sync.push_all(other, cell)
                await self._push_all(other, cell)
            return
        # DONE first: a key that is PENDING there may be DONE in a filter.
        if self._filter_sync is not None and trust_done:
            await self._filter_sync.reconcile(other, cell, push=push)
        exchange = Exchange(other, cell, push, trust_done)
        for window in await self._differing(other, held):
            await self._reconcile_window(exchange, window.after, window.last)
        while exchange.wanted:
            await self._push_some(exchange)

    async def _differing(self, other: Contact, held: CellSummary) -> list[KeyRange]:
        """Return the parts of a cell that may differ, by a look at the digests of windows if the cell is large."""
        cell, keys = Cell(held.cell), self._store.cells.get(Cell(held.cell), EMPTY).keys
        if keys <= BATCHES_COMPARED_MIN * BATCH_MAX or held.keys <= BATCH_MAX:
            return [KeyRange(None, None, keys)]
        size = window_keys(keys)
        differing: list[KeyRange] = []
        windows: list[tuple[KeyRange, Window]] = []
        after: Key | None = None
        rows = self._store.scan.records(cell, b"", size)
        while rows:
            self.examined += len(rows)
            following = self._store.scan.records(cell, _beyond(rows[-1][0]), size)
            last = rows[-1][0] if following else None
            digest = digest_records(rows)
            window = Window(last, digest.keys, digest.digest.to_bytes(DIGEST_BYTES, "big"))
            windows.append((KeyRange(after, last, len(rows)), window))
            if len(windows) == COMPARED_MAX or not following:
                question = CompareDigests(cell, windows[0][0].after, [window for _, window in windows])
                compared = await self._client.ask(other, question, DigestsCompared, RECONCILE_DEADLINE_S)
                found = frozenset(compared.differing)
                differing += (one for index, (one, _) in enumerate(windows) if index in found)
                windows.clear()
            else:
                await asyncio.sleep(0)  # A cell may have millions.
            after, rows = last, following
        return joined(differing)

    async def _reconcile_window(self, exchange: Exchange, after: Key | None, last: Key | None) -> None:
        cell = exchange.cell
        while True:
            rows = self._store.scan.records(cell, _beyond(after), BATCH_MAX)
            rows = [row for row in rows if last is None or row[0] <= last]
            # A window that has grown meanwhile goes in parts.
            upto = rows[-1][0] if len(rows) == BATCH_MAX and rows[-1][0] != last else last
            self.examined += len(rows)
            done: list[bytes] = [key for key, state in rows if state == DONE]
            pending: list[bytes] = [key for key, state in rows if state == PENDING]
            later = [LaterState(key, state) for key, state in rows if state > DONE]
            exchanged = await self._client.ask(
                exchange.other, Reconcile(cell, after, upto, done, pending, later), Reconciled, RECONCILE_DEADLINE_S
            )
            await self._merge_answer(exchange, exchanged, {key for key, _ in rows})
            reached = exchanged.upto if exchanged.upto is not None else upto
            if reached is None or (last is not None and reached >= last):
                return
            if after is not None and reached <= after:
                return  # No progress: the digests will show that records are missing.
            after = Key(reached)

    async def _merge_answer(self, exchange: Exchange, exchanged: Reconciled, ours: set[Key]) -> None:
        """Merge what the other side sent, and note what it wants of these keys of ours."""
        batch = exchanged.batch
        moved = len(batch.done) + len(batch.pending) + len(batch.visits)
        self.moved += moved
        self._merge(batch, exchange.cell, exchange.trust_done)
        if exchange.push:
            wanted = [Key(key) for key in exchanged.wanted if key in ours]
            exchange.wanted += [*wanted, *self._refused(batch, exchange.cell)][:BATCH_MAX]
            while len(exchange.wanted) >= BATCH_MAX:
                await self._push_some(exchange)
        exchange.unsaved += moved
        if exchange.unsaved >= BATCH_MAX:
            await self._store.journal.durable()
            exchange.unsaved = 0

    async def _push_some(self, exchange: Exchange) -> None:
        """Send a batch of what the other side lacks."""
        keys = exchange.wanted[:BATCH_MAX]
        del exchange.wanted[:BATCH_MAX]
        await self._push(exchange.other, keys)

    async def _push_all(self, other: Contact, cell: Cell) -> None:
        after: Key | None = None
        while rows := self._store.scan.records(cell, _beyond(after), BATCH_MAX):
            self.examined += len(rows)
            after = rows[-1][0]
            await self._push(other, [key for key, _ in rows])

    async def _push(self, other: Contact, keys: Sequence[Key]) -> None:
        if keys:
            batch = self._make_batch(keys)
            await self._store.journal.durable()  # No peer hears DONE before it is on this disk, as with all copies.
            await self._client.ask(other, Replicate(self._me(), batch), Replicated, RECONCILE_DEADLINE_S)
            self.moved += len(keys)

    # --- answering -----------------------------------------------------------------------------------------------

    async def answer_compare(self, question: CompareDigests) -> DigestsCompared:
        """Return which windows differ here. Other work gets its turn between two windows."""
        self._store.check(question.cell)
        cell, after = Cell(question.cell), question.after
        differing = []
        for index, window in enumerate(question.windows):
            # One row more than the asker has suffices to show a difference.
            rows = self._store.scan.records(cell, _beyond(after), min(window.keys, BATCH_MAX) + 1)
            digest = digest_records(row for row in rows if window.last is None or row[0] <= window.last)
            self.examined += len(rows)
            if (digest.keys, digest.digest.to_bytes(DIGEST_BYTES, "big")) != (window.keys, window.digest):
                differing.append(index)
            after = window.last
            await asyncio.sleep(0)
        return DigestsCompared(differing)

    async def answer_reconcile(self, question: Reconcile) -> Reconciled:
        """Return up to a batch of records that the asker lacks in a window, and keys that this peer lacks."""
        self._store.check(question.cell)
        cell, last = Cell(question.cell), question.last
        theirs = dict.fromkeys(question.pending, PENDING) | dict.fromkeys(question.done, DONE)
        theirs |= {one.key: one.state for one in question.later}
        rows = self._store.scan.records(cell, _beyond(question.after), BATCH_MAX)
        upto = rows[-1][0] if len(rows) == BATCH_MAX else None
        rows = [row for row in rows if last is None or row[0] <= last]
        if upto is not None and last is not None and upto >= last:
            upto = None
        self.examined += len(rows)
        lacking = [key for key, state in rows if theirs.get(key, 0) < state]
        ours: dict[bytes, int] = dict(rows)
        wanted = [key for key, state in theirs.items() if (upto is None or key <= upto) and ours.get(key, 0) < state]
        batch = self._make_batch(lacking)
        if lacking:
            await self._store.journal.durable()
        return Reconciled(batch, wanted[:BATCH_MAX], upto)


def _beyond(key: bytes | None) -> bytes:
    """Return the least bytes above a key. The least of all for None."""
    return b"" if key is None else key + b"\0"


def window_keys(keys: int) -> int:
    """Return the number of keys of a window in a cell with `keys` keys: as few as one message takes, within bounds."""
    return min(BATCH_MAX, max(WINDOW_KEYS_MIN, -(-keys // COMPARED_MAX)))


def joined(ranges: Sequence[KeyRange]) -> list[KeyRange]:
    """Return these ranges, in order, with neighbors made one as long as their keys fit a message."""
    found: list[KeyRange] = []
    for one in ranges:
        if found and found[-1].last == one.after and found[-1].keys + one.keys <= BATCH_MAX:
            found[-1] = KeyRange(found[-1].after, one.last, found[-1].keys + one.keys)
        else:
            found.append(one)
    return found
