"""The frontier decides which URL is next: PENDING URLs of open cells, by site, breadth first, each site at its pace.

It owns the *work area*, the part of the frontier in memory: for each active site a bounded window of entries, a
politeness clock and the requests in flight. All other entries wait in the store. A cell is *open* while this peer alone
may crawl it; no request starts at the sites of any other cell.

If pages are fetched again, those of a site are taken in *rounds*: entries that arrive later than the first of a round
wait for the next round. Breadth first alone, pages far from the seeds would never have their turn at a site with more
pages than its pace fetches in one period, as those near the seeds are due again before.

Invariants: two requests to one site are at least the site's delay apart, counted from the moment the site surely had
the first request. With a delay there is never more than one request in flight. Every PENDING entry of an open cell is
in memory, or its site is active and has `more` or `later_at`, or its cell is in `_unread` from before its site. Times
are wall-clock seconds of the caller, which wakes the crawler after a change. A decision.
"""

import heapq
from collections.abc import Callable, Iterable
from math import inf

from kadcrawl.crawl.frontier.active_sites import SITES_LISTED_MAX, ActiveSites, ActiveStore
from kadcrawl.crawl.frontier.other_requests import OtherRequests
from kadcrawl.crawl.frontier.site import Site
from kadcrawl.crawl.frontier.unproven_quota import UnprovenQuota
from kadcrawl.keys import SITE_BYTES, Cell, Key
from kadcrawl.link.wire.messages import SMALL_MAX
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.frontier_table import SEQ_MAX


class Frontier(ActiveSites):
    """The work area over a store."""

    def __init__(
        self,
        store: ActiveStore,
        limits: Limits,
        site_settings: SiteSettings,
        others: OtherRequests | None = None,
        connections: Callable[[str], int] | None = None,
        unproven_quota: UnprovenQuota | None = None,
        last_seq: Callable[[], int] | None = None,
    ) -> None:
        """Begin with no open cell. `site_settings` has the least number of seconds between two requests to each site.

        `others` are the requests of an earlier run, after which each site is left alone for a full delay, and of other
        peers. `connections` limits the requests in flight to a site without a delay. The frontiers of a peer
        share `unproven_quota`. If the entries of a site are taken in rounds, `last_seq` returns the
        number of the entry that arrived last.
        """
        super().__init__(store, limits, site_settings, others, connections)
        self._open: dict[Cell, int] = {}
        """Open cells -> the number of the opening."""
        self._openings = 0
        self._order: list[tuple[float, str]] = []
        self._last_seq = last_seq
        self._unproven = unproven_quota or UnprovenQuota(limits)
        self._parked: dict[str, None] = {}
        """Sites outside the order, until there may be more unproven requests."""

    @property
    def pending(self) -> int:
        """URLs of open cells accepted and not finished, including URLs in flight."""
        cells = self._store.cells
        return sum(cells[cell].pending for cell in cells.keys() & self._open.keys())

    # --- cells ---------------------------------------------------------------------------------------------------

    def open(self, cell: Cell, now: float, *, hold: bool, unsure_since: float | None = None) -> None:
        """Let the URLs of this cell be crawled from now on.

        With `hold` each site is first left alone for a full delay. Hold if no earlier holder reported the clocks of the
        cell's sites. `unsure_since` is the last second at which another peer may have leased shared clocks of the cell,
        if no such peer reported them.
        """
        if unsure_since is None:
            self._unsure.pop(cell, None)
        else:
            self._unsure[cell] = unsure_since
        if hold or cell not in self._open:
            self._openings += 1
            self._open[cell] = self._openings
        if hold:
            self._held[cell] = now
        for site in self._by_cell.get(cell, {}).values():
            site.reopen()
            if hold:
                site.received_at = max(site.received_at, now)
                self._hold(site, now + max(site.delay_s, self._others.hold_least_s), now)
            self._queue(site)
        digest = self._store.cells.get(cell)
        if digest is not None and digest.pending:
            self._unread[cell] = b""

    def close(self, cell: Cell) -> None:
        """Start no more requests of this cell and forget its entries. Entries with the crawler do not come back."""
        self._open.pop(cell, None)
        self._unread.pop(cell, None)
        for site in list(self._by_cell.get(cell, {}).values()):
            site.close()
            if site.idle:
                self._deactivate(site)

    def is_open(self, cell: Cell) -> bool:
        return cell in self._open

    def opening(self, cell: Cell) -> int | None:
        """Return the number of the cell's current opening, or None while the cell is closed.

        The number differs after the cell was closed, even for a moment.
        """
        return self._open.get(cell)

    # --- entries -------------------------------------------------------------------------------------------------

    def add(self, entry: FrontierEntry, now: float) -> None:
        """Add an entry just accepted by the store, if its cell is open."""
        site = self._sites.get(entry.site)
        if site is None:
            cell = self._store.cell_of(entry.key)
            if cell not in self._open or self._site_settings.steering.is_paused(entry.site):
                return
            if len(self._sites) >= self._limits.active_sites_max:
                self._leave_unread(cell, entry.key)
                return
            site = self._activate(entry.site, cell, now)
        elif site.closed:
            return
        # An entry that is out is being fetched in an earlier round, which counts for this round as well.
        is_later = self._last_seq is not None and site.ready
        if site.more or is_later or entry.key in site.out or len(site.loaded) >= self._limits.site_window:
            site.more = True
        else:
            site.load(entry, now, self._limits.retry_after_max_s)
        self._queue(site)

    def next(self, now: float) -> FrontierEntry | None:
        """Return an entry that may be fetched now, counted as in flight, or None."""
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
                continue  # The site has an earlier place.
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
        """Return the second at which `next` may return an entry, or None if only a release can change that."""
        if self._unread and len(self._sites) < self._limits.active_sites_max:
            return 0.0
        return self._order[0][0] if self._order else None

    def release(
        self, entry: FrontierEntry, received_at: float, now: float, hold_s: float = 0.0, answered: bool | None = None
    ) -> float:
        """End the request of an entry: the site had the request by `received_at` and asks to be left alone for
        `hold_s`.

        `answered` tells whether the site answered in time; None means unknown. Returns the second until which the
        delay of the site lasts, without what the site asks for.
        """
        site = self._sites[entry.site]
        self._end_request(site, site.answers if answered is None else answered)
        site.received_at = max(site.received_at, received_at)
        rests_until = max(received_at + site.delay_s, now + site.adaptive_s)
        if hold_s:
            site.asked_until = max(site.asked_until, now + hold_s)
        self._hold(site, max(rests_until, now + hold_s), now)
        self.politeness_waits.observe(site.next_at - now)
        self._queue(site)
        return rests_until

    def give_up_slot(self, entry: FrontierEntry) -> None:
        """End the flight of an entry without a request."""
        site = self._sites[entry.site]
        self._end_request(site, site.answers)
        self._queue(site)

    def put_back(self, entry: FrontierEntry, now: float) -> None:
        """Make an unfetched entry ready again, unless the entry was removed or its cell closed meanwhile."""
        site = self._sites[entry.site]
        if site.came_back(entry):
            heapq.heappush(site.ready, entry)
        self._settle(site, now)

    def put_off(self, entry: FrontierEntry, until: float, now: float) -> None:
        """Leave the site of an entry in flight alone until `until`, and give out none of its entries before.

        The clock of a site that is excluded or given up holds back requests alone, and its entries end without one.
        """
        self.hold(entry.site, until, now)
        self._sites[entry.site].put_off_until = until

    def postpone(self, entry: FrontierEntry, due: float, now: float) -> FrontierEntry:
        """Try an entry again at `due` after a passing fault, unless the entry was removed or its cell closed meanwhile.

        Returns the entry with its new tries and due time.
        """
        entry = entry._replace(tries=min(entry.tries + 1, SMALL_MAX), due=due)
        self._store.postpone(entry)
        site = self._sites[entry.site]
        if site.came_back(entry):
            heapq.heappush(site.waiting, (due, entry))
        self._settle(site, now)
        return entry

    def finish(self, entry: FrontierEntry, now: float) -> None:
        """Forget an entry, taken by `next`, that is DONE."""
        site = self._sites[entry.site]
        site.finished(entry)
        self._settle(site, now)

    def remove(self, entry: FrontierEntry, now: float) -> None:
        """Forget an entry that another peer finished."""
        site = self._sites.get(entry.site)
        if site is not None:
            site.remove(entry.seq)
            self._settle(site, now)

    def has_sites(self, cell: Cell) -> bool:
        """Return whether a site of the cell is active."""
        return cell in self._by_cell

    # --- lending -------------------------------------------------------------------------------------------------

    def sites_with_spare_connections(
        self, now: float, among: Iterable[str] | None = None, *, parked: bool = False
    ) -> list[tuple[str, int]]:
        """Return (site, entries ready in memory) of each site with a connection that may be lent now.

        With `among`, only these sites are looked at. With `parked`, sites that wait for their turns are among them.
        """
        sites = list(self._sites.values() if among is None else filter(None, map(self._sites.get, among)))
        for site in sites:
            site.ripen(now)
        return [(it.name, len(it.ready)) for it in sites if it.lendable_connections and (parked or not it.parked)]

    def has_free(self, name: str) -> bool:
        """Return whether one of the connections of this active site is unused."""
        return self._sites[name].has_free

    def lend(self, name: str, count: int, now: float) -> tuple[list[FrontierEntry], int]:
        """Take up to `count` ready entries of a site for another peer. Return the entries and the number of connections
        lent.

        Half of the spare connections are lent, so that the next peer finds some as well, and no more than there are
        entries. While the connections of the site are overcommitted, no peer may use the lent connections. The entries
        come back one by one by `put_back` or `finish`, and the connections by `end_loan`.
        """
        site = self._sites[name]
        if len(site.ready) < count and site.more:
            self._refill(site, now)
            site.ripen(now)
        connections = min(-(-site.lendable_connections // 2), count, len(site.ready))
        entries = site.lend(count, connections)
        self._queue(site)
        return entries, connections

    def connections_overcommitted(self, name: str) -> bool:
        """Return whether own requests to an active site still use connections that were lent."""
        return self._sites[name].connections_overcommitted

    def end_loan(self, name: str, connections: int, now: float) -> None:
        """Return lent connections to this peer."""
        site = self._sites[name]
        site.lent -= connections
        self._settle(site, now)

    @property
    def is_crowded(self) -> bool:
        """A site without a delay has more entries than this peer can fetch with all connections to the site."""
        return any(site.crowded for site in self._sites.values())

    def waiting(self, now: float) -> int:
        """Return the number of URLs that wait for this peer, not for their sites: URLs of sites that may be asked now.

        For a site without a delay, requests in flight count as well. For sites that are only partly in memory, or not
        at all, all other PENDING URLs of their cells count.
        """
        count, read_on = 0, set(self._unread)
        for site in self._sites.values():
            is_free = site.delay_s == 0 and not (site.blocked or site.closed or site.paused)
            if site.next_at <= now and (site.may_start or is_free):
                site.ripen(now)
                count += len(site.ready) + site.in_flight
                if site.more:
                    read_on.add(site.cell)
        for cell in read_on & self._store.cells.keys():
            loaded = sum(len(site.loaded) for site in self._by_cell.get(cell, {}).values())
            count += max(0, self._store.cells[cell].pending - loaded)
        return count

    # --- orders of a person --------------------------------------------------------------------------------------

    def steer(self, now: float, lifted: Iterable[str] = ()) -> None:
        """Follow other orders of a person: pause sites, let sites go on, and leave sites alone for longer.

        The entries of a paused site wait in the store, so that they take no place of other sites. `lifted` are the
        sites whose delay by an order has ended.
        """
        for name in lifted:
            if name not in self._sites:
                self._forget_delay(name, now)
        for site in list(self._sites.values()):
            site.steer(self._site_settings.steering)
            site.set_back_off(site.back_off, self._site_settings.refusals_max)
            self._follow_delay(site, now)
            self._settle(site, now)
        for cell in self._open:
            digest = self._store.cells.get(cell)
            if digest is not None and digest.pending:
                self._unread[cell] = b""

    def may_ask(self, name: str, cell: Cell, opening: int | None) -> bool:
        """Return whether a request that was begun may go out: its cell stayed open, and no person stopped the site."""
        return self._open.get(cell) == opening and not (self._sites[name].paused or self._sites[name].excluded)

    # --- shared clocks -------------------------------------------------------------------------------------------

    def park(self, name: str) -> None:
        """Start no request at this active site until `unpark`, as it waits for its turn on a shared clock."""
        self._sites[name].parked = True

    def unpark(self, name: str) -> None:
        """Let a site go on, unless it is not active any more."""
        site = self._sites.get(name)
        if site is not None and site.parked:
            site.parked = False
            self._queue(site)

    def has_request(self, name: str) -> bool:
        """Return whether a request to this site may start as soon as the site is not parked."""
        site = self._sites.get(name)
        return site is not None and site.has_request

    # --- robots.txt under way ------------------------------------------------------------------------------------

    def block(self, name: str) -> None:
        """Start no request at this active site until `unblock`, as its robots.txt is being fetched."""
        self._sites[name].blocked = True

    def unblock(self, name: str, now: float) -> None:
        site = self._sites[name]
        site.blocked = False
        self._settle(site, now)

    def is_blocked(self, name: str) -> bool:
        """Return whether an active site is blocked."""
        return self._sites[name].blocked

    # --- inside --------------------------------------------------------------------------------------------------

    def _take(self, site: Site, now: float) -> FrontierEntry | None:
        site.ripen(now)
        if not site.ready and site.more:
            self._refill(site, now)
            self._settle(site, now)
        if not site.ready or site.put_off_until > now or not site.may_start:
            return None
        if site.next_at > now and not site.gives_up(now):
            return None
        self._unproven.add(site.next_is_unproven)
        return site.take()

    def _end_request(self, site: Site, answers: bool | None) -> None:
        before = site.unproven
        site.in_flight -= 1
        site.answers = answers
        self._unproven.add(site.unproven - before)

    def _settle(self, site: Site, now: float) -> None:
        """Forget a site that has no work left, or give the site a place in the order."""
        if site.paused and not (site.out or site.blocked or site.lent):
            site.unload()
        if not site.idle:
            self._queue(site)
        elif site.name in self._sites:
            self._deactivate(site, now)
            self._sweep(now)

    def _queue(self, site: Site) -> None:
        """Give the site a place in the order, if the site can use a place and has no earlier place."""
        if not site.may_start:
            return
        at = site.due()
        if at is not None and (site.queued_at is None or at < site.queued_at):
            site.queued_at = at
            heapq.heappush(self._order, (at, site.name))

    def _refill(self, site: Site, now: float) -> None:
        if len(site.waiting) >= self._limits.site_window:
            site.put_down(self._limits.site_window // 2, now)
        if site.round_seq and not self._load(site, now, site.round_seq):
            site.round_seq = 0
        if self._last_seq is None:
            site.more = self._load(site, now, SEQ_MAX)
        elif not site.ready:
            last_seq = self._last_seq()
            site.more = self._load(site, now, last_seq)
            site.round_seq = last_seq if site.more else 0

    def _load(self, site: Site, now: float, last_seq: int) -> bool:
        """Load entries that arrived up to a number. Return whether there may be more of them."""
        # Entries in flight or waiting stand first in the store's order, so look beyond them.
        count = self._limits.site_window + len(site.loaded) + len(site.out)
        entries = self._store.window(site.name, count, last_seq, now if site.later_at else inf)
        for entry in entries:
            if entry.seq not in site.loaded and entry.key not in site.out:
                site.load(entry, now, self._limits.retry_after_max_s)
        return len(entries) == count

    def _leave_unread(self, cell: Cell, key: Key) -> None:
        """Note that a URL with this key waits in the store for a free place."""
        number = int.from_bytes(key[:SITE_BYTES], "big")
        before = (number - 1).to_bytes(SITE_BYTES, "big") if number else b""
        self._unread[cell] = min(self._unread.get(cell, before), before)

    def _read_sites(self, now: float) -> None:
        """Fill free places with sites that wait in the store, cell by cell."""
        while self._unread and (free := self._limits.active_sites_max - len(self._sites)) > 0:
            cell = next(iter(self._unread))
            count = min(free, SITES_LISTED_MAX)
            sites = self._store.pending_sites(cell, self._unread[cell], count)
            for _, name in sites:
                if name not in self._sites and self._site_settings.steering.is_paused(name):
                    continue
                site = self._sites.get(name) or self._activate(name, cell, now)
                site.more = True
                self._queue(site)
            if len(sites) < count:
                del self._unread[cell]
            else:
                self._unread[cell] = sites[-1][0]
