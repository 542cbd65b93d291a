"""Which URL is next: the PENDING ones of the open cells, by site, breadth first, each site at its own pace.

Owns the *work area*, the part of the frontier held in memory: for each active site a bounded window of entries, its
politeness clock and its requests in flight. The rest waits in the store and is read window by window. A cell is *open*
while this peer alone may crawl it; nothing starts at the sites of any other, whatever the store holds of them.
Invariants: two requests to one site are at least its delay apart, counted from the moment the first was surely
received, and with a delay there is never more than one in flight; every PENDING entry of an open cell is in memory, or
its site is active and has `more`, or its cell is `_unread` from before its site on. All times are wall-clock seconds
given by the caller, who wakes the crawler after a change; no await here.

So that sites that take requests and do not answer cannot have all that may be under way at a time, some are kept for
one request each to sites that answer. What is asked beyond that, or of any other site, is *doubtful*.
"""

import heapq
from collections.abc import Callable

from kadcrawl.crawl.frontier.active_sites import HOLD_LEAST_S, ActiveSites, ActiveStore
from kadcrawl.crawl.frontier.site import Site
from kadcrawl.crawl.frontier.unproven_quota import UnprovenQuota
from kadcrawl.keys import SITE_BYTES, Cell, Key
from kadcrawl.link.wire.messages import SMALL_MAX
from kadcrawl.settings.limits import Limits
from kadcrawl.store.frontier_entry import FrontierEntry

SITES_READ_MAX = 64
"""Sites looked up in the store at once."""


class Frontier(ActiveSites):
    """The work area over a `Store`."""

    def __init__(
        self,
        store: ActiveStore,
        limits: Limits,
        delay_s: float,
        began_at: float = 0.0,
        connections: Callable[[str], int] | None = None,
        unproven_quota: UnprovenQuota | None = None,
    ) -> None:
        """No cell is open at first; `delay_s` is the job's, and so the least, between two requests to a site.

        `began_at`: second at which this run began, if there were earlier ones: each site is left alone for a full
        delay from then, as nobody may know what they asked last.
        """
        super().__init__(store, limits, delay_s, began_at, connections)
        self._open: dict[Cell, int] = {}
        """Open cells -> the number of the opening."""
        self._openings = 0
        self._order: list[tuple[float, str]] = []
        self._unproven = unproven_quota or UnprovenQuota(limits)
        self._parked: dict[str, None] = {}
        """Sites without a place in the order until there may be more doubtful requests."""
        self._unread: dict[Cell, bytes] = {}
        """Open cells whose sites may wait in the store, in turn -> the site hash after which they do."""

    @property
    def pending(self) -> int:
        """URLs of open cells accepted and not finished, those in flight included."""
        cells = self._store.cells
        return sum(cells[cell].pending for cell in cells.keys() & self._open.keys())

    # --- cells ---------------------------------------------------------------------------------------------------

    def open(self, cell: Cell, now: float, *, hold: bool) -> None:
        """Let the URLs of this cell be crawled from now on; `hold`: each site is first left alone for a full delay.

        Hold when nobody who knew them told the clocks of its sites.
        """
        if hold or cell not in self._open:
            self._openings += 1
            self._open[cell] = self._openings
        if hold:
            self._held[cell] = now
        for site in self._by_cell.get(cell, {}).values():
            site.reopen()
            if hold:
                site.received_at = max(site.received_at, now)
                self._hold(site, now + max(site.delay_s, HOLD_LEAST_S), now)
            self._queue(site)
        tally = self._store.cells.get(cell)
        if tally is not None and tally.pending:
            self._unread[cell] = b""

    def close(self, cell: Cell) -> None:
        """Start nothing more of this cell and forget its entries, but for those out, which do not come back."""
        self._open.pop(cell, None)
        self._unread.pop(cell, None)
        for site in list(self._by_cell.get(cell, {}).values()):
            site.close()
            if site.idle:
                self._deactivate(site)

    def is_open(self, cell: Cell) -> bool:
        return cell in self._open

    def opening(self, cell: Cell) -> int | None:
        """Return a number that is another one after the cell was closed, if only for a moment; None while it is."""
        return self._open.get(cell)

    # --- entries -------------------------------------------------------------------------------------------------

    def add(self, entry: FrontierEntry, now: float) -> None:
        """Take up an entry just accepted by the store, if its cell is open."""
        site = self._sites.get(entry.site)
        if site is None:
            cell = self._store.cell_of(entry.key)
            if cell not in self._open:
                return
            if len(self._sites) >= self._limits.active_sites_max:
                self._leave_unread(cell, entry.key)
                return
            site = self._activate(entry.site, cell, now)
        elif site.closed:
            return
        # What is out is fetched just now, in an earlier round; that will do for this one as well.
        if site.more or entry.key in site.out or len(site.loaded) >= self._limits.site_window:
            site.more = True
        else:
            site.load(entry, now, self._limits.retry_after_max_s)
        self._queue(site)

    def next(self, now: float) -> FrontierEntry | None:
        """Return an entry that may be fetched now, and count it as in flight; None if there is none."""
        if self._unread:
            self._read_sites(now)
        if self._parked and self._unproven.has_room:
            parked, self._parked = self._parked, {}
            for name in parked:
                if name in self._sites:
                    self._queue(self._sites[name])
        while self._order and self._order[0][0] <= now:
            at, name = heapq.heappop(self._order)
            site = self._sites.get(name)
            if site is None or site.queued_at != at:
                continue  # A place given up for an earlier one.
            site.queued_at = None
            if site.next_is_unproven and not self._unproven.has_room:
                self._parked[name] = None
                continue
            entry = self._take(site, now)
            self._queue(site)
            if entry is not None:
                return entry
        return None

    def next_due(self) -> float | None:
        """Return the second at which `next` may have something; None if only a release can change that."""
        if self._unread and len(self._sites) < self._limits.active_sites_max:
            return 0.0
        return self._order[0][0] if self._order else None

    def release(
        self, entry: FrontierEntry, received_at: float, now: float, hold_s: float = 0.0, answered: bool | None = None
    ) -> None:
        """The request of `entry` is over; the site had it by `received_at` and asks to be left for `hold_s`.

        `answered`: whether it answered in time; None if nobody knows.
        """
        site = self._sites[entry.site]
        self._end_request(site, site.answers if answered is None else answered)
        site.received_at = max(site.received_at, received_at)
        self._hold(site, max(received_at + site.delay_s, now + hold_s), now)
        self._queue(site)

    def give_up_slot(self, entry: FrontierEntry) -> None:
        """No request was made for `entry` after all."""
        site = self._sites[entry.site]
        self._end_request(site, site.answers)
        self._queue(site)

    def put_back(self, entry: FrontierEntry, now: float) -> None:
        """The entry was not fetched after all; it is ready again, unless it was removed or closed meanwhile."""
        site = self._sites[entry.site]
        if site.came_back(entry):
            heapq.heappush(site.ready, entry)
        self._settle(site, now)

    def postpone(self, entry: FrontierEntry, due: float, now: float) -> FrontierEntry:
        """The entry's fetch failed in a passing way: try it again at `due`, unless it was removed or closed meanwhile.

        Return it as it now is.
        """
        entry = entry._replace(tries=min(entry.tries + 1, SMALL_MAX), due=due)
        self._store.postpone(entry)
        site = self._sites[entry.site]
        if site.came_back(entry):
            heapq.heappush(site.waiting, (due, entry))
        self._settle(site, now)
        return entry

    def finish(self, entry: FrontierEntry, now: float) -> None:
        """The entry, taken by `next`, is done."""
        site = self._sites[entry.site]
        site.finished(entry)
        self._settle(site, now)

    def remove(self, entry: FrontierEntry, now: float) -> None:
        """The entry is done elsewhere: it will not come (again)."""
        site = self._sites.get(entry.site)
        if site is not None:
            site.remove(entry.seq)
            self._settle(site, now)

    # --- lending -------------------------------------------------------------------------------------------------

    def sites_with_spare_connections(self, now: float) -> list[tuple[str, int]]:
        """Return (site, entries ready in memory) of each site a connection of which may be lent to another peer now."""
        found = []
        for site in self._sites.values():
            site.ripen(now)
            if site.spare_connections:
                found.append((site.name, len(site.ready)))
        return found

    def has_free(self, name: str) -> bool:
        """Say whether nobody uses one of the connections of this active site."""
        return self._sites[name].has_free

    def lend(self, name: str, count: int, now: float) -> tuple[list[FrontierEntry], int]:
        """Take up to `count` ready entries of a lendable site for another peer; return them, and how many connections.

        Half of what may be lent, so that the next peer finds some as well, and no more than there are entries. While
        the site is `overdrawn` nobody may use them. The entries come back by `put_back` or `finish` one by one; the
        connections by `end_loan`.
        """
        site = self._sites[name]
        if len(site.ready) < count and site.more:
            self._refill(site, now)
            site.ripen(now)
        connections = min(-(-site.spare_connections // 2), count, len(site.ready))
        entries = site.lend(count, connections)
        self._queue(site)
        return entries, connections

    def connections_overcommitted(self, name: str) -> bool:
        """Say of an active site whether own requests still use connections that were lent."""
        return self._sites[name].connections_overcommitted

    def end_loan(self, name: str, connections: int, now: float) -> None:
        """The connections lent are this peer's again."""
        site = self._sites[name]
        site.lent -= connections
        self._settle(site, now)

    @property
    def is_crowded(self) -> bool:
        """Whether a site without a delay has more to fetch than this peer fetches by all connections it has of it."""
        return any(site.crowded for site in self._sites.values())

    def waiting(self, now: float) -> int:
        """Return how many URLs wait for this peer and not for their sites: of sites that may be asked now.

        Of a site without a delay requests under way count as well; of sites that are not whole in memory, or not at
        all, what else the store has in their cells.
        """
        count, read_on = 0, set(self._unread)
        for site in self._sites.values():
            if site.next_at <= now and (site.may_start or (site.delay_s == 0 and not site.blocked and not site.closed)):
                site.ripen(now)
                count += len(site.ready) + site.in_flight
                if site.more:
                    read_on.add(site.cell)
        for cell in read_on & self._store.cells.keys():
            loaded = sum(len(site.loaded) for site in self._by_cell.get(cell, {}).values())
            count += max(0, self._store.cells[cell].pending - loaded)
        return count

    # --- robots.txt under way ------------------------------------------------------------------------------------

    def block(self, name: str) -> None:
        """Start nothing at this active site until `unblock`: its robots.txt is being fetched."""
        self._sites[name].blocked = True

    def unblock(self, name: str, now: float) -> None:
        site = self._sites[name]
        site.blocked = False
        self._settle(site, now)

    def is_blocked(self, name: str) -> bool:
        """Say so of an active site."""
        return self._sites[name].blocked

    # --- inside --------------------------------------------------------------------------------------------------

    def _take(self, site: Site, now: float) -> FrontierEntry | None:
        site.ripen(now)
        if not site.ready and site.more:
            self._refill(site, now)
            self._settle(site, now)
        if not site.ready or site.next_at > now or not site.may_start:
            return None
        self._unproven.add(site.next_is_unproven)
        return site.take()

    def _end_request(self, site: Site, answers: bool | None) -> None:
        before = site.unproven
        site.in_flight -= 1
        site.answers = answers
        self._unproven.add(site.unproven - before)

    def _settle(self, site: Site, now: float) -> None:
        """Let a site go that has nothing left; else see that it has its place in the order."""
        if not site.idle:
            self._queue(site)
        elif site.name in self._sites:
            self._deactivate(site, now)
            self._sweep(now)

    def _queue(self, site: Site) -> None:
        """Give the site its place in the order, if it can use one and has no earlier one."""
        if not site.may_start:
            return
        at = site.due(self._limits.site_window)
        if at is not None and (site.queued_at is None or at < site.queued_at):
            site.queued_at = at
            heapq.heappush(self._order, (at, site.name))

    def _refill(self, site: Site, now: float) -> None:
        # Entries in flight or waiting stand first in the store's order, so look beyond them.
        count = self._limits.site_window + len(site.loaded) + len(site.out)
        entries = self._store.window(site.name, count)
        for entry in entries:
            if entry.seq not in site.loaded and entry.key not in site.out:
                site.load(entry, now, self._limits.retry_after_max_s)
        site.more = len(entries) == count

    def _leave_unread(self, cell: Cell, key: Key) -> None:
        """A URL of this key waits in the store for a free place."""
        number = int.from_bytes(key[:SITE_BYTES], "big")
        before = (number - 1).to_bytes(SITE_BYTES, "big") if number else b""
        self._unread[cell] = min(self._unread.get(cell, before), before)

    def _read_sites(self, now: float) -> None:
        """Fill free places with sites that wait in the store, cell by cell."""
        while self._unread and (free := self._limits.active_sites_max - len(self._sites)) > 0:
            cell = next(iter(self._unread))
            count = min(free, SITES_READ_MAX)
            found = self._store.pending_sites(cell, self._unread[cell], count)
            for _, name in found:
                site = self._sites.get(name) or self._activate(name, cell, now)
                site.more = True
                self._queue(site)
            if len(found) < count:
                del self._unread[cell]
            else:
                self._unread[cell] = found[-1][0]
