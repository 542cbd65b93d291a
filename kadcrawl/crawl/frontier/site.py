"""One active site of the frontier: its window of entries, its politeness clock, its requests.

Invariant: an entry is either in `ready`, in `waiting`, or `out` with the crawler or another peer, never in two of them;
what is in `loaded` is still wanted, so an entry that was removed, or whose cell was closed, while it was out does not
come back. Pure: the frontier gives the time (wall-clock seconds) and reads the store.

Tests: tests/crawl/frontier/test_frontier.py
"""

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from kadcrawl.keys import Cell, Key
from kadcrawl.store.frontier_entry import FrontierEntry


@dataclass(slots=True)
class Site:
    """One active site."""

    name: str
    cell: Cell
    next_at: float
    """Second before which it must not be asked."""
    delay_s: float
    received_at: float = 0.0
    """Second by which it had received its last request."""
    ready: list[FrontierEntry] = field(default_factory=list)
    """Heap: entries that may be fetched now."""
    waiting: list[tuple[float, FrontierEntry]] = field(default_factory=list)
    """Heap by due time: entries postponed after a passing fault."""
    loaded: set[int] = field(default_factory=set)
    """Sequence numbers of all entries taken from the store, neither finished nor removed."""
    out: set[Key] = field(default_factory=set)
    """Keys of the entries with the crawler; not their numbers, which change if a cell is dropped and taken anew."""
    in_flight: int = 0
    """Requests under way."""
    answers: bool | None = None
    """Whether it answered the last request that is over; None before there was one."""
    connections_max: int = 1
    """Requests that may be under way at a time, here and at other peers, if it has no delay."""
    lent: int = 0
    """Connections, of those it may have at a time, that other peers use just now with entries of ours."""
    more: bool = False
    """The store may have entries of this site that are not loaded."""
    closed: bool = False
    """Its cell is closed: it is here only for what is out or blocked."""
    blocked: bool = False
    """Its robots.txt is being fetched; nothing else may be."""
    queued_at: float | None = None
    """Its time in the frontier's order, if it has a place there."""

    @property
    def idle(self) -> bool:
        """Whether nothing is left that it could be active for."""
        return not (self.loaded or self.out or self.blocked or self.more or self.lent)

    @property
    def _most(self) -> int:
        return 1 if self.delay_s > 0 else self.connections_max

    @property
    def may_start(self) -> bool:
        """Whether a request may be made, as soon as its clock allows."""
        most = 1 if self.answers is False else self._most
        return not self.blocked and not self.closed and self.in_flight < min(most, self._most - self.lent)

    @property
    def next_is_unproven(self) -> bool:
        """Whether one more request would be: to a site that is not known to answer, or beside others of its own."""
        return self.in_flight > 0 or not self.answers

    @property
    def unproven(self) -> int:
        """How many of its requests under way are."""
        return max(0, self.in_flight - 1) if self.answers else self.in_flight

    @property
    def connections_overcommitted(self) -> bool:
        """Whether requests are under way by connections that were lent meanwhile: none may be used there yet."""
        return self.in_flight > 0 and self.in_flight + self.lent > self._most

    @property
    def has_free(self) -> bool:
        """Whether a connection is neither in use here nor lent."""
        return self.in_flight + self.lent < self._most

    @property
    def spare_connections(self) -> int:
        """How many connections may be lent now.

        With a delay it has one, so all of the site goes; of one that does not answer one is enough. Else those that
        are not in use; if all are, one less is used from now on, as long as one is left.
        """
        if self.blocked or self.closed or not self.ready:
            return 0
        if self.delay_s > 0 or self.answers is False:
            return int(self.in_flight + self.lent == 0)
        left = self.connections_max - self.lent
        return max(left - self.in_flight, int(left > 1))

    @property
    def crowded(self) -> bool:
        """Whether all its connections are in use here, and more entries wait: others could help with some of them."""
        return self.delay_s == 0 and self.spare_connections > 0 and not self.may_start

    def due(self, window: int) -> float | None:
        """Return the second from which on it has something to fetch, or to look for in the store; None for nothing."""
        if self.ready or (self.more and len(self.waiting) < window):
            return self.next_at
        return max(self.next_at, self.waiting[0][0]) if self.waiting else None

    def load(self, entry: FrontierEntry, now: float, wait_max_s: float) -> None:
        """Take up an entry from the store."""
        self.loaded.add(entry.seq)
        if entry.due > now:
            # The clock of an earlier run may have been ahead of this one's.
            heappush(self.waiting, (min(entry.due, now + wait_max_s), entry))
        else:
            heappush(self.ready, entry)

    def ripen(self, now: float) -> None:
        """Let what was postponed until now be ready."""
        while self.waiting and self.waiting[0][0] <= now:
            heappush(self.ready, heappop(self.waiting)[1])

    def take(self) -> FrontierEntry:
        """Give the first ready entry to the crawler, for a request."""
        entry = heappop(self.ready)
        self.in_flight += 1
        self.out.add(entry.key)
        return entry

    def lend(self, count: int, connections: int) -> list[FrontierEntry]:
        """Give the first ready entries, `count` at most, to another peer, with so many connections."""
        entries = [heappop(self.ready) for _ in range(min(count, len(self.ready)))]
        self.out.update(entry.key for entry in entries)
        self.lent += connections
        return entries

    def came_back(self, entry: FrontierEntry) -> bool:
        """The crawler is through with the entry for now; say whether it is still wanted here."""
        self.out.discard(entry.key)
        if entry.seq in self.loaded:
            return True
        # If its cell was closed and opened meanwhile, the store knows whether it is still to be crawled.
        self.more = not self.closed
        return False

    def finished(self, entry: FrontierEntry) -> None:
        """The entry is done."""
        self.out.discard(entry.key)
        self.loaded.discard(entry.seq)

    def remove(self, seq: int) -> None:
        """This entry is not wanted any more."""
        inside = len(self.ready) + len(self.waiting)
        self.ready = [one for one in self.ready if one.seq != seq]
        self.waiting = [one for one in self.waiting if one[1].seq != seq]
        if len(self.ready) + len(self.waiting) < inside:
            heapify(self.ready)
            heapify(self.waiting)
        self.loaded.discard(seq)

    def close(self) -> None:
        """Forget everything but that something is out."""
        self.closed, self.more, self.queued_at = True, False, None
        self.ready.clear()
        self.waiting.clear()
        self.loaded.clear()

    def reopen(self) -> None:
        """Look in the store for what there is, beside what is out."""
        self.closed, self.more = False, True
