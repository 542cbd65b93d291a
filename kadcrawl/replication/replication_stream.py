"""`ReplicationStream` queues the changes and notices that travel to one peer, in their order.

`Replicator` (replicator.py) delivers them. A change that nobody waits for travels with the next calm batch. A batch is
urgent if a page waits for its changes, or if it holds clocks of sites, or if a notice waits for it. It hurries if it is
full, or if nothing else is left to do. Right after a batch of changes travel the notices about cells that have no
further change by then.

Tests: tests/replication/test_replicator.py
"""

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from math import inf

from kadcrawl.keys import Cell, Key
from kadcrawl.link.wire.messages import BATCH_MAX, CellSummary, Contact
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.system.event import Event

SILENT_S = 1.0
"""Time for which a delivery has been under way after which the stream counts as silent."""
REFUSED_MAX = 5
"""Refused runs of a cell after which its pages are told by their keys. Each costs a request, and single records change
places by a comparison."""
BATCHES_PER_DELIVERY = 4
"""Batches that travel at the same time if so many changes wait. Each costs a commit here and one at the peer, so one at
a time would bound a crawl of two peers to some three thousand new URLs a second."""
CANCELLED_LEAST = 64
"""Waiting calls among which those that were cancelled are looked for. A look at each call would cost a square."""
SILENT_MAX_S = 20.0
"""Longest time for which a silent stream holds up the crawl of its cells: a live peer may accept nothing."""


@dataclass(frozen=True, slots=True)
class CopySpacing:
    """The least times between two deliveries to one peer, in seconds. A delivery after a pause leaves at once."""

    hurried_s: float
    """While this peer has no URL to fetch, so that only the copies hold up the crawl. Also between changes and notices.
    """
    urgent_s: float
    has_time_s: float
    """As `urgent_s`, while this peer has enough to do until its pages are finished."""
    calm_s: float


class ReplicationStream:
    """The changes and notices on their way to one peer."""

    def __init__(self, contact: Contact, spacing: CopySpacing) -> None:
        self.contact = contact
        self._spacing = spacing
        self.keys: dict[Key, Cell] = {}
        self.in_flight: frozenset[Key] = frozenset()
        """The keys of the delivery under way."""
        self.places: dict[Key, FrontierEntry] = {}
        """The former entries of those queued keys that are done and that the peer has as PENDING."""
        self.known: set[Key] = set()
        """Those queued keys whose pages the peer has fetched itself, so that it knows that they are done."""
        self.refused: Counter[Cell] = Counter()
        """Cell -> runs that the peer had in another order."""
        self.sites: dict[str, None] = {}
        self.epochs: dict[Cell, set[int]] = {}
        """Cell -> epochs whose filters differ at the peer, if the job keeps epoch filters. They go first."""
        self.notices: dict[Cell, tuple[int, CellSummary | None]] = {}
        """Cell -> role, and the digest at the peer. None stands for the digest here."""
        self._is_noticed = False
        """True if a notice was queued since the last delivery of changes, so that the next one is urgent."""
        self._was_of_changes = False
        """True if the last delivery was of changes."""
        self.queued = 0
        """Changes ever queued."""
        self.delivered = 0
        """Changes journaled at the peer."""
        self._hurries = False
        """True if a peer without work waits for the next delivery."""
        self.hurried = Event()
        """Set when the next delivery may have become urgent."""
        self._began_at = -inf
        """Second at which the last delivery began."""
        self._changes_at = -inf
        """Second at which the last delivery of changes began."""
        self._moved_at: float | None = None
        """Second at which the delivery under way began or last moved on, or None between two deliveries."""
        self.waiting: list[tuple[int, asyncio.Future[bool]]] = []
        self._look_above = CANCELLED_LEAST
        """Waiting calls above which those that were cancelled are looked for."""
        self.failures = 0
        """Failed deliveries in a row."""
        self.lost = False
        self.task: asyncio.Task[None] | None = None

    @property
    def empty(self) -> bool:
        return not (self.keys or self.sites or self.epochs or self.notices)

    @property
    def is_urgent(self) -> bool:
        """True if the next batch is not to wait long for company."""
        is_awaited = any(not future.done() for _, future in self.waiting)
        return is_awaited or bool(self.sites) or (self._is_noticed and bool(self.notices))

    @property
    def _is_full(self) -> bool:
        return len(self.keys) >= BATCH_MAX

    def lacks(self, keys: Iterable[Key]) -> bool:
        """Return whether the peer may lack changes of these keys, or epoch filters."""
        if self.queued - self.delivered > len(self.keys) + len(self.in_flight):
            return True
        return any(key in self.keys or key in self.in_flight for key in keys)

    def put_epoch(self, cell: Cell, epoch: int) -> None:
        epochs = self.epochs.setdefault(cell, set())
        if epoch not in epochs:
            epochs.add(epoch)
            self.queued += 1

    def put(self, key: Key, cell: Cell) -> None:
        self.known.discard(key)
        if key not in self.keys:
            self.keys[key] = cell
            self.queued += 1
            if len(self.keys) == BATCH_MAX:
                self.hurried.set()

    def put_place(self, cell: Cell, entry: FrontierEntry) -> None:
        """Note the place of a page that is done. `put` follows."""
        if not (self.refused[cell] >= REFUSED_MAX or entry.key in self.keys or entry.key in self.in_flight):
            self.places[entry.key] = entry

    def note_known(self, key: Key) -> None:
        """Note that the peer has reported the last change of a key. Only of a plain page its record surely agrees."""
        if key in self.places:
            self.known.add(key)

    def put_site(self, site: str) -> None:
        self.sites[site] = None
        self.hurried.set()

    def put_notice(self, cell: Cell, role: int, held: CellSummary | None) -> None:
        self.notices[cell] = (role, held)
        self._is_noticed = True
        self.hurried.set()

    def wait_s(self, now: float, *, is_hurried: bool, has_time: bool = False) -> float:
        """Return the seconds until the next delivery may begin."""
        if self.lost:
            return 0.0
        spacing = self._spacing
        hurried_wait_s = self._began_at + spacing.hurried_s - now
        if is_hurried or self._hurries or self._is_full or self.is_turn_of_notices:
            return hurried_wait_s
        urgent_s = spacing.has_time_s if has_time else spacing.urgent_s
        spacing_s = urgent_s if self.is_urgent else spacing.calm_s
        return max(hurried_wait_s, self._changes_at + spacing_s - now)

    def begin(self, now: float) -> None:
        """Note that a delivery begins."""
        self._began_at = self._moved_at = now
        if not self.is_turn_of_notices:
            self._changes_at = now
        self._hurries = False

    def end(self) -> None:
        """Note that a delivery is over."""
        self._moved_at, self.in_flight = None, frozenset()

    def is_silent(self, now: float) -> bool:
        """Return whether a delivery takes so long that the peer may be lost, and the overlay may not know it yet."""
        return self._moved_at is not None and SILENT_S <= now - self._moved_at < SILENT_MAX_S

    @property
    def is_turn_of_notices(self) -> bool:
        """True if notices are to travel before more changes, about cells without changes in the queue.

        They take turns with changes. Else changes that never end would hold them up, and each backup would ask the
        owner of each cell.
        """
        if not self.notices or self.epochs or (not self._was_of_changes and (self.keys or self.sites)):
            return False
        changed = set(self.keys.values())
        return any(cell not in changed for cell in self.notices)

    def take(self) -> tuple[dict[Key, Cell], dict[Key, FrontierEntry], list[str]]:
        """Take the changes of the next delivery: keys with their cells, places of done pages, and sites.

        What the peer knows is `in_flight` as well, and is not among the keys.
        """
        self._is_noticed, self._was_of_changes = False, True
        keys = dict(islice(self.keys.items(), BATCHES_PER_DELIVERY * BATCH_MAX))
        sites = list(islice(self.sites, BATCH_MAX))
        for key in keys:
            del self.keys[key]
        places = {key: self.places.pop(key) for key in keys if key in self.places}
        self.in_flight = frozenset(keys)
        for key in self.known & self.in_flight:
            del keys[key], places[key]
        self.known -= self.in_flight
        for site in sites:
            del self.sites[site]
        return keys, places, sites

    @staticmethod
    def batches(keys: dict[Key, Cell]) -> list[list[Key]]:
        """Divide the keys of a delivery into batches. The keys of a cell stay together, or its runs would not match."""
        ordered = list(keys) if len(keys) <= BATCH_MAX else sorted(keys, key=lambda key: keys[key])
        return [ordered[start : start + BATCH_MAX] for start in range(0, len(ordered), BATCH_MAX)]

    def take_epochs(self) -> dict[Cell, list[int]]:
        """Take the epochs of the next cells from the queue, oldest first for each cell."""
        taken = {cell: sorted(epochs) for cell, epochs in islice(self.epochs.items(), BATCH_MAX)}
        for cell in taken:
            del self.epochs[cell]
        return taken

    def take_notices(self) -> tuple[int, dict[Cell, CellSummary | None]]:
        """Take the next notices of one role from the queue. Those about cells with changes in the queue follow them."""
        self._was_of_changes = False
        changed = set(self.keys.values())
        ready = {cell: notice for cell, notice in self.notices.items() if cell not in changed}
        role = next(iter(ready.values()))[0]
        taken = {cell: held for cell, (its, held) in islice(ready.items(), BATCH_MAX) if its == role}
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
        self._moved_at = now
        still = []
        for target, future in self.waiting:
            if self.delivered < target:
                still.append((target, future))
            elif not future.done():
                future.set_result(True)
        self.waiting = still

    def wait(self, future: asyncio.Future[bool], *, hurries: bool = False) -> None:
        """Set the result of `future` when all changes queued so far are delivered, or the peer is lost.

        With `hurries` the next delivery does not wait for company.
        """
        self._hurries |= hurries
        if len(self.waiting) >= self._look_above:
            self.waiting = [waiting for waiting in self.waiting if not waiting[1].done()]  # Some were cancelled.
            self._look_above = max(CANCELLED_LEAST, 2 * len(self.waiting))
        self.waiting.append((self.queued, future))
        self.hurried.set()

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
        self.hurried.set()
        for _, future in self.waiting:
            if not future.done():
                future.set_result(False)
        self.waiting.clear()
        self.keys.clear()
        self.places.clear()
        self.known.clear()
        self.sites.clear()
        self.epochs.clear()
        self.notices.clear()
