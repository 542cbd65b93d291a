"""`AntiEntropy` makes two peers' copies of a cell equal: only records that differ travel, in bounded batches.

The asker divides its keys into windows. For a large cell it first asks which windows differ (`CompareDigests`). For
each of these it sends the keys, and gets the records that it lacks and a list of those that the other lacks
(`Reconcile`). If one side holds nothing, all records move without a comparison. Each batch is journaled before
the next, so after an interruption the next comparison begins from there. Range-based set reconciliation (Meyer 2022),
one level deep.
"""

import asyncio
from collections.abc import Callable, Sequence

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
WINDOWS_COMPARED_MIN = 3
"""Windows from which on digests are compared first."""


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
        windows = await self._windows(cell)
        if len(windows) >= WINDOWS_COMPARED_MIN and held.keys > BATCH_MAX:
            windows = await self._differing(other, cell, windows)
        for after, last in windows:
            await self._reconcile_window(other, cell, after, last, push, trust_done)

    async def _windows(self, cell: Cell) -> list[tuple[Key | None, Key | None]]:
        """Return the bounds of windows of up to BATCH_MAX of our keys: beyond the first key, up to the second."""
        if self._store.cells.get(cell, EMPTY).keys <= BATCH_MAX:
            return [(None, None)]
        ends: list[Key] = []
        while rows := self._store.scan.records(cell, _beyond(ends[-1] if ends else None), BATCH_MAX):
            self.examined += len(rows)
            ends.append(rows[-1][0])
            await asyncio.sleep(0)  # A cell may have millions.
        return list(zip([None, *ends[:-1]], [*ends[:-1], None], strict=True))

    async def _differing(
        self, other: Contact, cell: Cell, windows: list[tuple[Key | None, Key | None]]
    ) -> list[tuple[Key | None, Key | None]]:
        differing = []
        for start in range(0, len(windows), COMPARED_MAX):
            some = windows[start : start + COMPARED_MAX]
            ours = [self._window(cell, *window) for window in some]
            compared = await self._client.ask(
                other, CompareDigests(cell, some[0][0], ours), DigestsCompared, RECONCILE_DEADLINE_S
            )
            differing += [some[index] for index in compared.differing if index < len(some)]
        return differing

    def _window(self, cell: Cell, after: Key | None, last: Key | None) -> Window:
        digest = self._store.scan.digest_between(cell, _beyond(after), _beyond(last) if last is not None else None)
        self.examined += digest.keys
        return Window(last, digest.keys, digest.digest.to_bytes(DIGEST_BYTES, "big"))

    async def _reconcile_window(
        self, other: Contact, cell: Cell, after: Key | None, last: Key | None, push: bool, trust_done: bool
    ) -> None:
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
                other, Reconcile(cell, after, upto, done, pending, later), Reconciled, RECONCILE_DEADLINE_S
            )
            batch = exchanged.batch
            self.moved += len(batch.done) + len(batch.pending) + len(batch.visits)
            self._merge(exchanged.batch, cell, trust_done)
            if push:
                ours = {key for key, _ in rows}
                wanted = [Key(key) for key in exchanged.wanted if key in ours]
                await self._push(other, [*wanted, *self._refused(batch, cell)][:BATCH_MAX])
            await self._store.journal.durable()
            reached = exchanged.upto if exchanged.upto is not None else upto
            if reached is None or (last is not None and reached >= last):
                return
            if after is not None and reached <= after:
                return  # No progress: the digests will show that records are missing.
            after = Key(reached)

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
