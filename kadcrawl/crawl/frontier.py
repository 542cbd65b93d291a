"""Which URL is next: the PENDING ones of this peer, by site, breadth first, each site at its own pace.

Owns the *work area*, the part of the frontier held in memory: for each active site a bounded window of entries, its
politeness clock and its requests in flight. The rest waits in the store and is read window by window. Invariant: two
requests to one site are at least its delay apart, counted from the moment the first was surely received, and with a
delay there is never more than one in flight. All times are wall-clock seconds given by the caller; no await here.
"""

import heapq
from dataclasses import dataclass, field

from kadcrawl.config import Limits
from kadcrawl.history.entry import Entry
from kadcrawl.history.store import Store

HOLD_JOURNALED_S = 10.0
"""A wait longer than this is journaled, so that it also holds after a restart."""
CLOCKS_MAX = 10_000
"""Clocks of sites with nothing to do kept before the expired ones are swept."""


@dataclass(slots=True)
class Site:
    """One active site: its window, its clock, its requests."""

    name: str
    next_at: float
    """Second before which it must not be asked."""
    delay_s: float
    received_at: float = 0.0
    """Second by which it had received its last request."""
    ready: list[Entry] = field(default_factory=list)
    """Heap: entries that may be fetched now."""
    waiting: list[tuple[float, Entry]] = field(default_factory=list)
    """Heap by due time: entries postponed after a passing fault."""
    loaded: set[int] = field(default_factory=set)
    """Sequence numbers of all entries taken from the store, neither finished nor removed."""
    in_flight: int = 0
    """Requests under way."""
    out: int = 0
    """Entries taken by `next` and neither finished nor given back."""
    more: bool = False
    """The store has entries of this site that are not loaded."""
    blocked: bool = False
    """Its robots.txt is being fetched; nothing else may be."""
    queued_at: float | None = None
    """Its time in the frontier's order, if it has a place there."""


class Frontier:
    """The work area over a `Store`."""

    def __init__(self, store: Store, limits: Limits, delay_s: float, now: float) -> None:
        """Take up what the store has pending; a resumed site first waits out a full delay, as its clock is unknown."""
        self._store = store
        self._limits = limits
        self._delay_s = delay_s
        self._sites: dict[str, Site] = {}
        self._order: list[tuple[float, str]] = []
        self._clocks: dict[str, float] = {}
        self._cursor = ""
        self._frozen: set[str] = set()
        self._inactive = store.pending > 0
        """The store may have sites that are not active."""
        self._resumed_at = now if store.pending else None
        self._activate_more(now)

    @property
    def pending(self) -> int:
        """URLs accepted and not finished, those in flight included."""
        return self._store.pending

    def add(self, entry: Entry, now: float) -> None:
        """Take up an entry just accepted by the store."""
        site = self._sites.get(entry.site)
        if site is None:
            if len(self._sites) >= self._limits.active_sites_max:
                self._inactive = True
                return
            site = self._activate(entry.site, now)
        if site.more or len(site.loaded) >= self._limits.site_window:
            site.more = True
        else:
            self._load(site, entry, now)
        self._queue(site, now)

    def next(self, now: float) -> Entry | None:
        """Return an entry that may be fetched now, and count it as in flight; None if there is none."""
        while self._order and self._order[0][0] <= now:
            at, name = heapq.heappop(self._order)
            site = self._sites.get(name)
            if site is None or site.queued_at != at:
                continue  # A place given up for an earlier one.
            site.queued_at = None
            entry = self._take(site, now)
            self._queue(site, now)
            if entry is not None:
                return entry
        return None

    def next_due(self) -> float | None:
        """Return the second at which `next` may have something; None if only a release can change that."""
        return self._order[0][0] if self._order else None

    def release(self, entry: Entry, received_at: float, now: float, hold_s: float = 0.0) -> None:
        """The request of `entry` is over; the site had it by `received_at` and asks to be left for `hold_s`."""
        site = self._sites[entry.site]
        site.in_flight -= 1
        site.received_at = max(site.received_at, received_at)
        self._hold(site, max(received_at + site.delay_s, now + hold_s), now)
        self._queue(site, now)

    def give_up_slot(self, entry: Entry, now: float) -> None:
        """No request was made for `entry` after all."""
        site = self._sites[entry.site]
        site.in_flight -= 1
        self._queue(site, now)

    def put_back(self, entry: Entry, now: float) -> None:
        """The entry was not fetched after all; it is ready again, unless it was removed meanwhile."""
        site = self._sites[entry.site]
        site.out -= 1
        if entry.seq in site.loaded:
            heapq.heappush(site.ready, entry)
        self._settle(site, now)

    def postpone(self, entry: Entry, due: float, now: float) -> Entry:
        """The entry's fetch failed in a passing way: try it again at `due`, unless it was removed meanwhile.

        Return it as it now is.
        """
        entry = entry._replace(tries=entry.tries + 1, due=due)
        self._store.postpone(entry)
        site = self._sites[entry.site]
        site.out -= 1
        if entry.seq in site.loaded:
            heapq.heappush(site.waiting, (due, entry))
        self._settle(site, now)
        return entry

    def finish(self, entry: Entry, now: float) -> None:
        """The entry, taken by `next`, is done."""
        site = self._sites[entry.site]
        site.out -= 1
        site.loaded.discard(entry.seq)
        self._settle(site, now)

    def remove(self, entry: Entry, now: float) -> None:
        """The entry is somebody else's now, or done elsewhere: it will not come (again)."""
        site = self._sites.get(entry.site)
        if site is None:
            return
        inside = len(site.ready) + len(site.waiting)
        site.ready = [one for one in site.ready if one.seq != entry.seq]
        site.waiting = [one for one in site.waiting if one[1].seq != entry.seq]
        if len(site.ready) + len(site.waiting) < inside:
            heapq.heapify(site.ready)
            heapq.heapify(site.waiting)
        site.loaded.discard(entry.seq)
        self._settle(site, now)

    def freeze(self, name: str) -> None:
        """Start nothing at this site, active or not, until `thaw`: its URLs are moving to another peer."""
        self._frozen.add(name)

    def thaw(self, name: str, now: float) -> None:
        self._frozen.discard(name)
        if name in self._sites:
            self._queue(self._sites[name], now)

    def out(self, name: str) -> int:
        """Return how many of the site's entries are with the crawler."""
        site = self._sites.get(name)
        return site.out if site else 0

    def block(self, name: str) -> None:
        """Start nothing at this site until `unblock`: its robots.txt is being fetched."""
        self._sites[name].blocked = True

    def unblock(self, name: str, now: float) -> None:
        site = self._sites[name]
        site.blocked = False
        self._settle(site, now)

    def is_blocked(self, name: str) -> bool:
        return self._sites[name].blocked

    def set_delay(self, name: str, delay_s: float, now: float) -> None:
        """Set a site's delay (the larger of the job's and what its robots.txt asks), from its last request on."""
        site = self._sites.get(name)
        if site is None:
            self.hold(name, now + delay_s, now)  # Let go meanwhile; who comes back to it will set the delay again.
        elif site.delay_s != delay_s:
            site.delay_s = delay_s
            self._hold(site, site.received_at + delay_s, now)
            self._store.set_site(name, site.next_at, delay_s)

    def hold(self, name: str, until: float, now: float) -> None:
        """Leave the site alone until `until`, if that is later than what holds already."""
        site = self._sites.get(name)
        if site is not None:
            self._hold(site, until, now)
        else:
            self._clocks[name] = max(self._clocks.get(name, 0.0), until)

    def wait_s(self, name: str, now: float) -> float:
        """Return for how many seconds the site must still be left alone."""
        site = self._sites.get(name)
        at = site.next_at if site else self._clocks.get(name, 0.0)
        return max(0.0, at - now)

    def waits(self, now: float) -> dict[str, float]:
        """Return for how many seconds each site that must still be left alone must be, with work or without."""
        at = self._clocks | {name: site.next_at for name, site in self._sites.items()}
        return {name: next_at - now for name, next_at in sorted(at.items()) if next_at > now}

    def learn_wait(self, name: str, wait_s: float, now: float) -> None:
        """A former owner says how long the site must still be left alone; the later instant wins."""
        self.hold(name, now + wait_s, now)

    def _hold(self, site: Site, until: float, now: float) -> None:
        if until > site.next_at:
            site.next_at = until
            if until - now > HOLD_JOURNALED_S:
                self._store.set_site(site.name, until, site.delay_s)

    def _take(self, site: Site, now: float) -> Entry | None:
        while site.waiting and site.waiting[0][0] <= now:
            heapq.heappush(site.ready, heapq.heappop(site.waiting)[1])
        if not site.ready and site.more:
            self._refill(site, now)
            self._settle(site, now)
        if not site.ready or not self._may_start(site) or site.next_at > now:
            return None
        site.in_flight += 1
        site.out += 1
        return heapq.heappop(site.ready)

    def _may_start(self, site: Site) -> bool:
        most = 1 if site.delay_s > 0 else self._limits.site_connections_max
        return not site.blocked and site.in_flight < most and site.name not in self._frozen

    def _settle(self, site: Site, now: float) -> None:
        """Let a site go that has nothing left; else see that it has its place in the order."""
        if not site.loaded and not site.out and not site.blocked and not site.more:
            self._deactivate(site, now)
        else:
            self._queue(site, now)

    def _queue(self, site: Site, now: float) -> None:
        """Give the site its place in the order, if it can use one and has no earlier one."""
        if not self._may_start(site):
            return
        if site.ready or (site.more and len(site.waiting) < self._limits.site_window):
            at = site.next_at
        elif site.waiting:
            at = max(site.next_at, site.waiting[0][0])
        else:
            return
        if site.queued_at is None or at < site.queued_at:
            site.queued_at = at
            heapq.heappush(self._order, (at, site.name))

    def _load(self, site: Site, entry: Entry, now: float) -> None:
        site.loaded.add(entry.seq)
        if entry.due > now:
            # The clock of an earlier run may have been ahead of this one's.
            due = min(entry.due, now + self._limits.retry_after_max_s)
            heapq.heappush(site.waiting, (due, entry))
        else:
            heapq.heappush(site.ready, entry)

    def _refill(self, site: Site, now: float) -> None:
        # Entries in flight or waiting stand first in the store's order, so look beyond them.
        count = self._limits.site_window + len(site.loaded)
        entries = self._store.window(site.name, count)
        for entry in entries:
            if entry.seq not in site.loaded:
                self._load(site, entry, now)
        site.more = len(entries) == count

    def _activate(self, name: str, now: float) -> Site:
        not_before, delay_s = self._store.site(name) or (0.0, 0.0)
        delay_s = max(delay_s, self._delay_s)
        not_before = min(not_before, now + max(delay_s, self._limits.retry_after_max_s))
        if self._resumed_at is not None:
            not_before = max(not_before, self._resumed_at + delay_s)
        next_at = max(not_before, self._clocks.pop(name, 0.0))
        site = self._sites[name] = Site(name=name, next_at=next_at, delay_s=delay_s)
        return site

    def _activate_more(self, now: float) -> None:
        """Fill free places with sites that wait in the store, in turn."""
        misses = 0
        while self._inactive and len(self._sites) < self._limits.active_sites_max:
            name = self._store.next_site(self._cursor)
            if name is None:
                self._cursor = ""
                misses += 1
                # Two full rounds without a free site: all that have URLs are active.
                if misses == 2:
                    self._inactive = False
                continue
            self._cursor = name
            if name not in self._sites:
                site = self._activate(name, now)
                self._refill(site, now)
                self._queue(site, now)

    def _deactivate(self, site: Site, now: float) -> None:
        if self._sites.pop(site.name, None) is None:
            return
        if site.next_at > now:
            if len(self._clocks) >= CLOCKS_MAX:
                self._clocks = {name: at for name, at in self._clocks.items() if at > now}
            self._clocks[site.name] = site.next_at
        self._activate_more(now)
