"""One active site of the frontier: its window of entries, its politeness clock and its requests.

Invariant: an entry is in `ready`, in `waiting`, or `out` with the crawler or another peer, and never in two of them.
`loaded` holds the entries still wanted: an entry that was removed while it was out, or whose cell was closed, does not
come back. A decision: the frontier gives the time (wall-clock seconds) and reads the store. The frontier also sets the
clocks and flags of its sites: no other module sees a site, and a setter per field would cost calls per page.

Tests: tests/crawl/frontier/test_frontier.py
"""

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from math import inf

from kadcrawl.keys import Cell, Key
from kadcrawl.settings.steering import Steering
from kadcrawl.store.back_off import NO_REFUSALS, BackOff
from kadcrawl.store.frontier_entry import FrontierEntry

REQUESTS_AVERAGED = 8
"""Requests whose seconds count for `request_s`, as it is a figure for a person who watches the site."""
STORED_LOOK_S = 10.0
"""Longest time between two looks at the entries that wait in the store for another try. Only those that were in memory
have told when they are due."""


@dataclass(slots=True)
class Site:
    """One active site."""

    name: str
    cell: Cell
    next_at: float
    """Second before which the site must not be asked."""
    delay_s: float
    told_s: float = 0.0
    """The delay in the journal, at least the delay itself, so that other holders never hurry the site."""
    least_s: float = 0.0
    """The delay without regard to the time of answers."""
    ordered_s: float = 0.0
    """The delay by the job and by the orders of a person, as they were followed last."""
    must_learn: bool = False
    """The delay may be one that a person has made shorter. An own request learns from robots.txt what is left of it."""
    adaptive_s: float = 0.0
    """The delay by the time of the last answer. 0 in a job without a delay factor."""
    received_at: float = 0.0
    """Second by which the site had received its last request."""
    asked_until: float = 0.0
    """Second until which the site must be left alone by a Retry-After of an answer that is no refusal."""
    ready: list[FrontierEntry] = field(default_factory=list)
    """Heap: entries that may be fetched now."""
    waiting: list[tuple[float, FrontierEntry]] = field(default_factory=list)
    """Heap by due time: entries postponed after a passing fault."""
    loaded: set[int] = field(default_factory=set)
    """Sequence numbers of all entries taken from the store, neither finished nor removed."""
    out: set[Key] = field(default_factory=set)
    """Keys of the entries with the crawler. The sequence numbers would change if a cell is dropped and taken again."""
    in_flight: int = 0
    """Requests in flight."""
    request_s: float = 0.0
    """Seconds that a request takes lately, a moving average. 0 before the first request is over."""
    answers: bool | None = None
    """The site answered its last finished request. None before the first request is over."""
    status: int = 0
    """Status of the last answer, or 0 before the first."""
    back_off: BackOff = NO_REFUSALS
    """The refusals of the site."""
    given_up_until: float = 0.0
    """Second until which entries of the site are given out without a request, as the site refused too often."""
    connections_max: int = 1
    """Requests that may be in flight at a time, here and at other peers, if the site has no delay."""
    is_lent: bool = True
    """The entries of the site may be lent. A site whose cookies are kept is fetched by its owner alone."""
    lent: int = 0
    """Connections that other peers use now with entries lent by this peer."""
    more: bool = False
    """The store may have entries of this site that are not loaded."""
    later_at: float = 0.0
    """Second of the next look at the entries that wait in the store for another try, as too many did so here, or 0."""
    round_seq: int = 0
    """Number of the last entry of this round, or 0 if all entries of this round are loaded (frontier.py)."""
    closed: bool = False
    """The cell of the site is closed: the site is active only for entries that are out or blocked."""
    blocked: bool = False
    """The robots.txt of the site is being fetched, so no other request may start."""
    parked: bool = False
    """The site waits for its turn on a shared clock (crawl/clocks/), so no request may start."""
    put_off_until: float = 0.0
    """Second before which no entry is given out, also none that would end without a request."""
    excluded: bool = False
    """A person excluded the site, so its entries are given out to be finished without a request."""
    paused: bool = False
    """A person paused the site, so no request may start."""
    queued_at: float | None = None
    """The time of the site's place in the order of the frontier, if there is one place."""

    @property
    def idle(self) -> bool:
        """No work is left for which the site is active."""
        return not (self.loaded or self.out or self.blocked or self.more or self.lent or self.later_at)

    @property
    def has_stored(self) -> bool:
        """The store may have entries of this site that are not loaded, due or not."""
        return self.more or self.later_at > 0

    @property
    def _most(self) -> int:
        return 1 if self.delay_s > 0 else self.connections_max

    @property
    def may_start(self) -> bool:
        """A request may start as soon as the clock allows."""
        if self.parked or self.blocked or self.closed or self.paused:
            return False
        in_flight, most = self.in_flight, 1 if self.delay_s > 0 else self.connections_max
        if in_flight >= most - self.lent:
            return False
        return not in_flight or (in_flight < most and self.answers is not False and not self.back_off.refusals)

    @property
    def has_request(self) -> bool:
        """The site has entries for requests, or may have them in the store, a connection that is not lent, and no
        person stopped it."""
        has_entries = bool(self.ready or self.waiting or self.more)
        return has_entries and self.has_free and not (self.closed or self.paused or self.excluded)

    @property
    def next_is_unproven(self) -> bool:
        """One more request would be unproven: the site is not known to answer, or has other requests in flight."""
        return self.in_flight > 0 or not self.answers

    @property
    def unproven(self) -> int:
        """Unproven requests in flight."""
        return max(0, self.in_flight - 1) if self.answers else self.in_flight

    @property
    def connections_overcommitted(self) -> bool:
        """Requests in flight still use connections that were lent meanwhile, so no borrower may use those yet."""
        return self.in_flight > 0 and self.in_flight + self.lent > self._most

    @property
    def has_free(self) -> bool:
        """A connection is neither in use here nor lent."""
        return self.in_flight + self.lent < self._most

    @property
    def lendable_connections(self) -> int:
        """Connections that may be lent now, also while the site waits for its turn on a shared clock.

        A site with a delay has one connection, which is lent only whole. Of a site that does not answer, one connection
        is lent. Otherwise the unused connections are spare. If all are in use, one connection less is used from now on,
        as long as one is left. A site that refuses requests is not lent: its owner alone finds out when it is ready.
        It also learns the delay first, if that may be shorter now: a borrower would keep the longer delay.
        """
        if not self.is_lent or self.must_learn or self.blocked or self.closed or self.paused or self.excluded:
            return 0
        if not self.ready or self.back_off.refusals:
            return 0
        if self.delay_s > 0 or self.answers is False:
            return int(self.in_flight + self.lent == 0)
        left = self.connections_max - self.lent
        return max(left - self.in_flight, int(left > 1))

    @property
    def spare_connections(self) -> int:
        """Connections with which another full peer could ask the site now. A site that waits for its turn has none."""
        return 0 if self.parked else self.lendable_connections

    @property
    def crowded(self) -> bool:
        """All connections of the site are in use here, and more entries wait: other peers could help with some of
        them."""
        return self.delay_s == 0 and self.spare_connections > 0 and not self.may_start

    def due(self) -> float | None:
        """Return the second from which the site has an entry to fetch, or entries to look for in the store. None if
        there are none.
        """
        is_without_request = self.given_up_until or self.excluded
        next_at = self.put_off_until if is_without_request else max(self.next_at, self.put_off_until)
        if self.ready or self.more:
            return next_at
        if not self.waiting:
            return max(next_at, self.later_at) if self.later_at else None
        first = self.waiting[0][0]
        return max(next_at, min(first, self.later_at) if self.later_at else first)

    def set_back_off(self, back_off: BackOff, refusals_max: int) -> None:
        """Set the refusals, and give the site up for its wait from `refusals_max` refusals in a row, unless it is 0."""
        self.back_off = back_off
        self.given_up_until = back_off.until if 0 < refusals_max <= back_off.refusals else 0.0

    def gives_up(self, now: float) -> bool:
        """Return whether entries are given out without a request now."""
        if self.excluded:
            return True
        if self.given_up_until <= now:
            self.given_up_until = 0.0
        return self.given_up_until > 0

    def load(self, entry: FrontierEntry, now: float, wait_max_s: float) -> None:
        """Add an entry from the store."""
        self.loaded.add(entry.seq)
        if entry.due > now:
            # The wall clock of an earlier run may have been ahead of the clock now.
            heappush(self.waiting, (min(entry.due, now + wait_max_s), entry))
        else:
            heappush(self.ready, entry)

    def ripen(self, now: float) -> None:
        """Make entries ready that were postponed until now."""
        if 0 < self.later_at <= now:
            self.later_at, self.more = 0.0, True
        while self.waiting and self.waiting[0][0] <= now:
            heappush(self.ready, heappop(self.waiting)[1])

    def put_down(self, most: int, now: float) -> None:
        """Leave the entries to the store that wait longest for another try, so that at most so many wait here."""
        self.waiting.sort()
        put_down, self.waiting = self.waiting[most:], self.waiting[:most]  # A sorted list is a heap.
        self.loaded.difference_update(entry.seq for _, entry in put_down)
        if put_down:
            self.later_at = min(self.later_at or inf, put_down[0][0], now + STORED_LOOK_S)

    def take(self) -> FrontierEntry:
        """Give the first ready entry to the crawler, for a request."""
        entry = heappop(self.ready)
        self.in_flight += 1
        self.out.add(entry.key)
        return entry

    def lend(self, count: int, connections: int) -> list[FrontierEntry]:
        """Give the first ready entries, at most `count`, to another peer with this number of connections."""
        entries = [heappop(self.ready) for _ in range(min(count, len(self.ready)))]
        self.out.update(entry.key for entry in entries)
        self.lent += connections
        return entries

    def time_request(self, seconds: float) -> None:
        """Note the seconds that a request took."""
        self.request_s += (seconds - self.request_s) / REQUESTS_AVERAGED if self.request_s else seconds

    def came_back(self, entry: FrontierEntry) -> bool:
        """Take an entry back from the crawler, and return whether the entry is still wanted here."""
        self.out.discard(entry.key)
        if entry.seq in self.loaded:
            return True
        # If the cell was closed and opened meanwhile, the store knows whether the entry is still PENDING.
        self.more = not self.closed
        return False

    def finished(self, entry: FrontierEntry) -> None:
        """Forget an entry that is done."""
        self.out.discard(entry.key)
        self.loaded.discard(entry.seq)

    def remove(self, seq: int) -> None:
        """Forget an entry that is not wanted any more."""
        inside = len(self.ready) + len(self.waiting)
        self.ready = [entry for entry in self.ready if entry.seq != seq]
        self.waiting = [(due, entry) for due, entry in self.waiting if entry.seq != seq]
        if len(self.ready) + len(self.waiting) < inside:
            heapify(self.ready)
            heapify(self.waiting)
        self.loaded.discard(seq)

    def close(self) -> None:
        """Forget all entries, except that some are out."""
        self.closed, self.queued_at = True, None
        self.unload()

    def steer(self, steering: Steering) -> None:
        """Pause or exclude the site, or let it go on, as a person ordered."""
        self.excluded, self.paused = steering.is_excluded(self.name), steering.is_paused(self.name)

    def unload(self) -> None:
        """Leave all entries that are not out to the store."""
        self.more, self.later_at = False, 0.0
        self.ready.clear()
        self.waiting.clear()
        self.loaded.clear()

    def reopen(self) -> None:
        """Look for entries in the store again, beside the entries that are out."""
        self.closed, self.more = False, True
