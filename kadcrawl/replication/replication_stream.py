"""`ReplicationStream` queues the changes and notices that travel to one peer, in their order.

`Replicator` (replicator.py) delivers them.

Tests: tests/replication/test_replicator.py
"""

import asyncio
from itertools import islice

from kadcrawl.keys import Cell, Key
from kadcrawl.link.wire.messages import BATCH_MAX, CellSummary, Contact
from kadcrawl.system.min_interval import MinInterval

SILENT_S = 1.0
"""Time without a delivery, beside the stream's interval, after which the stream counts as silent."""
SILENT_MAX_S = 20.0
"""Longest time for which a silent stream holds up the crawl of its cells: a live peer may accept nothing."""


class ReplicationStream:
    """The changes and notices on their way to one peer."""

    def __init__(self, contact: Contact, min_interval: MinInterval) -> None:
        self.contact = contact
        self.min_interval = min_interval
        self.keys: dict[Key, Cell] = {}
        self.sites: dict[str, None] = {}
        self.epochs: dict[Cell, set[int]] = {}
        """Cell -> epochs whose filters differ at the peer, if the job keeps epoch filters. They go first."""
        self.notices: dict[Cell, tuple[int, CellSummary | None]] = {}
        """Cell -> role, and the digest at the peer. None stands for the digest here."""
        self.queued = 0
        """Changes ever queued."""
        self.delivered = 0
        """Changes journaled at the peer."""
        self.moved_at = 0.0
        """Second at which changes were last delivered, or at which the first was queued."""
        self.waiting: list[tuple[int, asyncio.Future[bool]]] = []
        self.failures = 0
        """Failed deliveries in a row."""
        self.lost = False
        self.task: asyncio.Task[None] | None = None

    @property
    def empty(self) -> bool:
        return not (self.keys or self.sites or self.epochs or self.notices)

    def put_epoch(self, cell: Cell, epoch: int, now: float) -> None:
        epochs = self.epochs.setdefault(cell, set())
        if epoch not in epochs:
            if self.delivered == self.queued:
                self.moved_at = now
            epochs.add(epoch)
            self.queued += 1

    def put(self, key: Key, cell: Cell, now: float) -> None:
        if key not in self.keys:
            if self.delivered == self.queued:
                self.moved_at = now
            self.keys[key] = cell
            self.queued += 1

    def is_silent(self, now: float) -> bool:
        """Return whether changes wait so long that the peer may be lost, and the overlay may not know it yet."""
        waited_s = now - self.moved_at - self.min_interval.interval_s
        return self.delivered < self.queued and SILENT_S <= waited_s < SILENT_MAX_S

    def take(self) -> tuple[dict[Key, Cell], list[str]]:
        """Take the next changes from the queue."""
        keys = dict(islice(self.keys.items(), BATCH_MAX))
        sites = list(islice(self.sites, BATCH_MAX))
        for key in keys:
            del self.keys[key]
        for site in sites:
            del self.sites[site]
        return keys, sites

    def take_epochs(self) -> dict[Cell, list[int]]:
        """Take the epochs of the next cells from the queue, oldest first for each cell."""
        taken = {cell: sorted(epochs) for cell, epochs in islice(self.epochs.items(), BATCH_MAX)}
        for cell in taken:
            del self.epochs[cell]
        return taken

    def take_notices(self) -> tuple[int, dict[Cell, CellSummary | None]]:
        """Take the next notices of one role from the queue."""
        role = next(iter(self.notices.values()))[0]
        taken = {cell: held for cell, (its, held) in islice(self.notices.items(), BATCH_MAX) if its == role}
        for cell in taken:
            del self.notices[cell]
        return role, taken

    def return_notices(self, role: int, taken: dict[Cell, CellSummary | None]) -> None:
        """Queue undelivered notices again, except for cells with a later notice."""
        for cell, held in taken.items():
            self.notices.setdefault(cell, (role, held))

    def advance(self, count: int, now: float) -> None:
        """Note that `count` more changes are journaled at the peer, and wake the waiting calls."""
        self.delivered += count
        self.moved_at = now
        still = []
        for target, future in self.waiting:
            if self.delivered < target:
                still.append((target, future))
            elif not future.done():
                future.set_result(True)
        self.waiting = still

    def wait(self, future: asyncio.Future[bool]) -> None:
        """Set the result of `future` when all changes queued so far are delivered, or the peer is lost."""
        self.waiting = [waiting for waiting in self.waiting if not waiting[1].done()]  # Some callers were cancelled.
        self.waiting.append((self.queued, future))

    def note_failure(self) -> int:
        """Count a failed delivery. Return the failures in a row."""
        self.failures += 1
        return self.failures

    def note_success(self) -> None:
        """Count a delivery that arrived."""
        self.failures = 0

    def give_up(self) -> None:
        """Drop the queue of a lost peer."""
        self.lost = True
        for _, future in self.waiting:
            if not future.done():
                future.set_result(False)
        self.waiting.clear()
        self.keys.clear()
        self.sites.clear()
        self.epochs.clear()
        self.notices.clear()
