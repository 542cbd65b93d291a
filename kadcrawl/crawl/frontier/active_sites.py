"""The active sites and the politeness clocks of all sites, with work and without.

A site that was asked keeps its clock: in memory while the clock runs, and in the journal if the clock runs long. A
delay that differs from the job's is always journaled, and so are refusals (back_off.py). Clocks, delays and refusals
move with the site's cell: one holder reports them (`clocks`), the next holder learns them, and the later instant, the
larger delay and the newer refusals win. A decision over the store: times are wall-clock seconds given by the caller.

Tests: tests/crawl/frontier/test_frontier.py, tests/crawl/frontier/test_adaptive_delay.py
"""

from collections.abc import Callable, Iterator, Mapping
from math import inf
from typing import NamedTuple, Protocol

from kadcrawl.crawl.clocks.clock_names import REST_S
from kadcrawl.crawl.frontier.back_off import answered, newer, refused
from kadcrawl.crawl.frontier.idle_clocks import IdleClocks
from kadcrawl.crawl.frontier.other_requests import BACK_LEAST_S, OtherRequests
from kadcrawl.crawl.frontier.site import Site
from kadcrawl.crawl.frontier.site_figures import SiteFigures, site_figures
from kadcrawl.keys import Cell, Key, site_hash
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.store.back_off import NO_REFUSALS, BackOff
from kadcrawl.store.cell_digest import CellDigest
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.kept_cookies import NO_COOKIES, KeptCookies
from kadcrawl.system.duration_histogram import DurationHistogram

HOLD_JOURNALED_S = 10.0
"""Seconds above which a wait is journaled. The wait then also holds after a restart and at other holders of the
cell."""
TOLD_SHARE = 1.25
"""Factor between an adaptive delay and the delay in the journal, so that small changes are not journaled."""
TOLD_MOST = 2.0
"""Factor between the delay in the journal and a smaller adaptive delay from which the journal follows."""
IDLE_CLOCKS_MAX = 10_000
"""Clocks kept for sites without work before the frontier sweeps the expired clocks."""
SITES_LISTED_MAX = 64
"""Sites looked up in the store at once."""


class SiteClock(NamedTuple):
    """The clock of one site as it moves to another holder."""

    site: str
    wait_s: float
    """Seconds for which the site must still be left alone."""
    delay_s: float
    """Seconds between two requests to the site."""
    back_off: BackOff
    cookies: KeptCookies = NO_COOKIES


class SiteCounts(NamedTuple):
    """The number of active sites, and of those among them that wait or refuse requests."""

    active: int
    """Sites with entries or requests here."""
    waiting: int
    """Sites that may not be asked yet."""
    refusing: int
    """Sites that refused their last requests."""


class SiteClocks(Protocol):
    """The journaled clocks and refusals of sites (see `store.site_table`)."""

    def clock(self, site: str) -> tuple[float, float] | None: ...
    def set_clock(self, site: str, not_before: float, delay_s: float) -> None: ...
    def back_off(self, site: str) -> BackOff: ...
    def set_back_off(self, site: str, cell: Cell, back_off: BackOff) -> None: ...
    def backed_off(self, cell: Cell, most: int) -> list[str]: ...
    def cookies(self, site: str) -> KeptCookies: ...
    def learn_cookies(self, site: str, cell: Cell, cookies: KeptCookies) -> None: ...
    def with_cookies(self, cell: Cell, most: int) -> list[str]: ...


class ActiveStore(Protocol):
    """The store of the frontier's URLs, as far as the frontier needs it (`store.store`)."""

    @property
    def cells(self) -> Mapping[Cell, CellDigest]: ...
    def cell_of(self, key: Key) -> Cell: ...
    @property
    def sites(self) -> SiteClocks: ...
    def pending_sites(self, cell: Cell, after: bytes, count: int) -> list[tuple[bytes, str]]: ...
    def window(self, site: str, count: int, last_seq: int = ..., due: float = ...) -> list[FrontierEntry]: ...
    def postpone(self, entry: FrontierEntry) -> None: ...


class ActiveSites:
    """The part of the frontier that knows sites, without their order."""

    def __init__(
        self,
        store: ActiveStore,
        limits: Limits,
        site_settings: SiteSettings,
        others: OtherRequests | None = None,
        connections: Callable[[str], int] | None = None,
    ) -> None:
        """`site_settings` has the least number of seconds between two requests to each site.

        `others` is explained at `Frontier`. `connections` returns the requests that may be in flight at a time to a
        site without a delay, beside `site_connections_max` or the limit of the site's rule.
        """
        self._store = store
        self._limits = limits
        self._site_settings = site_settings
        self._others = others or OtherRequests()
        self._sites: dict[str, Site] = {}
        self._by_cell: dict[Cell, dict[str, Site]] = {}
        self._unread: dict[Cell, bytes] = {}
        """Open cells with sites waiting in the store, in turn -> the site hash after which those sites begin."""
        self._idle = IdleClocks(IDLE_CLOCKS_MAX)
        self.request_times = DurationHistogram()
        """The times of requests to all sites."""
        self.politeness_waits = DurationHistogram()
        """The times for which sites are left alone after their requests."""
        self._connections = connections
        self._held: dict[Cell, float] = {}
        """Cell -> second at which the cell was opened without a holder that could report its clocks."""
        self._unsure: dict[Cell, float] = {}
        """Cell -> last second at which another peer may have leased its shared clocks, unknown to this peer."""
        self._to_learn: set[str] = set()
        """Sites whose delay by an order has ended while they were not active."""

    def out(self, cell: Cell) -> int:
        """Return how many entries of the cell are with the crawler."""
        return sum(len(site.out) for site in self._by_cell.get(cell, {}).values())

    def keys_out(self, cell: Cell) -> Iterator[Key]:
        """Yield the keys of the entries of the cell that are with the crawler."""
        for site in self._by_cell.get(cell, {}).values():
            yield from site.out

    def in_flight(self, cell: Cell) -> int:
        """Return how many requests to sites of the cell are in flight."""
        return sum(site.in_flight for site in self._by_cell.get(cell, {}).values())

    def lent(self, cell: Cell) -> int:
        """Return how many connections to sites of the cell are lent to other peers."""
        return sum(site.lent for site in self._by_cell.get(cell, {}).values())

    def is_active(self, name: str) -> bool:
        """Return whether the site has entries or requests here, including requests from an earlier opening of its
        cell."""
        return name in self._sites

    def is_busy(self, name: str) -> bool:
        """Return whether entries of the site are with the crawler."""
        site = self._sites.get(name)
        return site is not None and bool(site.out)

    def is_held(self, cell: Cell, now: float) -> bool:
        """Return whether the cell was opened with `hold` so recently that its next owner must hold it as well.

        `clocks` lacks the sites of the cell that had no work here since.
        """
        held_at = self._held.get(cell)
        return now < self._unsure.get(cell, -inf) + REST_S or (held_at is not None and self.is_recent(held_at, now))

    def is_recent(self, instant: float, now: float) -> bool:
        """Return whether a site that was asked at `instant` may still have to wait."""
        return now < instant + self._delay_max_s

    @property
    def _delay_max_s(self) -> float:
        """The longest delay of any site, which a person may make longer while the crawl runs."""
        return max(self._site_settings.delay_max_s, self._limits.crawl_delay_max_s)

    def time_request(self, name: str, seconds: float, succeeded: bool, now: float, status: int | None = None) -> None:
        """Note the seconds that a request to this active site took, and the status of its answer, if there was one.

        An adaptive delay follows them. It does not become shorter by a failure, as failures may be quick.
        """
        site = self._sites[name]
        self.request_times.observe(seconds)
        site.time_request(seconds)
        site.status = status or site.status
        adaptive_s = self._site_settings.adaptive_s(seconds)
        if succeeded or adaptive_s > site.adaptive_s:
            site.adaptive_s = adaptive_s
            self._change_delay(site, now)

    def figures(self, now: float) -> list[SiteFigures]:
        """Return the figures of each active site with PENDING URLs, for a person who watches the crawl."""
        return site_figures(self._by_cell, self._store.cells, self._unread, now)

    def last_status(self, name: str) -> int:
        """Return the status of the last answer of a site, or 0 if the site is not active."""
        site = self._sites.get(name)
        return site.status if site is not None else 0

    def site_counts(self, now: float) -> SiteCounts:
        """Return the numbers of active sites, for monitoring."""
        sites = self._sites.values()
        waiting = sum(site.next_at > now for site in sites)
        return SiteCounts(len(sites), waiting, sum(site.back_off.refusals > 0 for site in sites))

    # --- clocks --------------------------------------------------------------------------------------------------

    def set_delay(self, name: str, delay_s: float, now: float) -> None:
        """Set the delay of a site, counted from its last request.

        The delay is the larger of the delay by the job and its rules, and the Crawl-delay of robots.txt.
        """
        site = self._sites.get(name)
        self._to_learn.discard(name)
        if site is None:
            self.hold(name, now + delay_s, now)  # The site is not active any more. The next activation sets the delay.
        else:
            site.least_s, site.must_learn = delay_s, False
            self._change_delay(site, now)

    def _follow_delay(self, site: Site, now: float) -> None:
        """Take a delay that a person has changed. The next request learns again what robots.txt asks for."""
        ordered_s, former_s = self._site_settings.delay_s(site.name), site.ordered_s
        least_s = max(ordered_s, min(site.least_s, self._limits.crawl_delay_max_s))
        is_shorter, is_own = least_s < site.least_s, site.next_at == site.received_at + site.delay_s
        site.ordered_s, site.must_learn = ordered_s, site.must_learn or ordered_s < former_s >= site.least_s
        site.least_s = least_s
        self._change_delay(site, now)
        if not is_shorter:
            return
        # The clock may follow a request of another peer, whose second is unknown here, but has passed.
        rests_until = site.received_at + site.delay_s if is_own else now + max(site.delay_s, BACK_LEAST_S)
        site.next_at = max(min(rests_until, site.next_at), site.asked_until, site.back_off.until)

    def _forget_delay(self, name: str, now: float) -> None:
        """Take back the delay of an order that was lifted, of a site that is not active."""
        not_before, known_s = self._store.sites.clock(name) or (0.0, 0.0)
        delay_s = max(self._site_settings.delay_s(name), min(known_s, self._limits.crawl_delay_max_s))
        if known_s > self._site_settings.delay_s(name):
            self._to_learn.add(name)
        if delay_s < known_s:
            self._store.sites.set_clock(name, min(not_before, now + delay_s), delay_s)
            self.hold(name, min(self._idle.take(self._cell(name), name), now + delay_s), now)

    def must_learn(self, name: str) -> bool:
        """Return whether an own request to this active site has to learn its delay before others make any."""
        return self._sites[name].must_learn

    def hold(self, name: str, until: float, now: float) -> None:
        """Leave the site alone until `until`, unless the site is already held for longer."""
        site = self._sites.get(name)
        if site is not None:
            self._hold(site, until, now)
        elif until > now:
            self._idle.hold(self._cell(name), name, until)
            self._sweep(now)

    def wait_s(self, name: str, now: float) -> float:
        """Return the seconds for which the site must still be left alone."""
        site = self._sites.get(name)
        at = site.next_at if site is not None else self._idle.of(self._cell(name)).get(name, 0.0)
        return max(0.0, at - now)

    def clock(self, name: str, now: float) -> tuple[float, float]:
        """Return (seconds for which the site must still be left alone, seconds between two requests to it)."""
        site = self._sites.get(name)
        if site is not None:
            return max(0.0, site.next_at - now), site.delay_s
        not_before, delay_s = self._journaled(name, now)
        if name not in self._idle.of(self._cell(name)):
            not_before = max(not_before, self._others.back_at(delay_s))
        return max(0.0, not_before - now, self.wait_s(name, now)), delay_s

    def clock_of(self, name: str, now: float) -> SiteClock:
        """Return the clock of a site with its refusals, for another holder or borrower."""
        return SiteClock(name, *self.clock(name, now), self.back_off(name), self._store.sites.cookies(name))

    def clocks(self, cell: Cell, now: float, most: int) -> list[SiteClock] | None:
        """Return the clock of each site of the cell that must wait, has its own delay, or has refused requests.

        Returns None if the cell has more than `most` sites with clocks or PENDING URLs: the method looks no further.
        Delays of sites without PENDING URLs are missing: the next peer that visits such a site reads its robots.txt.
        """
        kept = self._store.sites
        names = {*self._by_cell.get(cell, ()), *self._idle.of(cell), *kept.backed_off(cell, most + 1)}
        names.update(kept.with_cookies(cell, most + 1))
        after = b""
        if len(names) > most:
            return None
        while listed := self._store.pending_sites(cell, after, SITES_LISTED_MAX):
            names.update(name for _, name in listed)
            if len(names) > most:
                return None
            if len(listed) < SITES_LISTED_MAX:
                break  # Most cells have one site: another look would be a third of its queries.
            after = listed[-1][0]
        clocks = [self.clock_of(name, now) for name in sorted(names)]
        return [
            clock
            for clock in clocks
            if clock.wait_s > 0
            or clock.delay_s > self._site_settings.delay_s(clock.site)
            or clock.back_off.version
            or clock.cookies.version
        ]

    def learn_clock(
        self,
        name: str,
        wait_s: float,
        delay_s: float,
        now: float,
        back_off: BackOff = NO_REFUSALS,
        cookies: KeptCookies = NO_COOKIES,
    ) -> None:
        """Learn the clock of a site from another holder of its cell.

        The later instant, the larger delay, the newer refusals and the newer cookies win.
        """
        if cookies.version and self._site_settings.holds_cookies(name):
            self._store.sites.learn_cookies(name, self._cell(name), cookies)
        self._learn_back_off(name, back_off, now)
        delay_s = min(delay_s, self._delay_max_s)
        until = now + min(wait_s, self._wait_max_s(delay_s, back_off))
        site = self._sites.get(name)
        if site is not None:
            self._hold(site, until, now)
            if delay_s > site.delay_s:
                site.delay_s = site.least_s = site.told_s = delay_s
                self._store.sites.set_clock(name, site.next_at, delay_s)
            return
        not_before, known_s = self._journaled(name, now)
        if delay_s > known_s or (until > not_before and until - now > HOLD_JOURNALED_S):
            self._store.sites.set_clock(name, max(until, not_before), max(delay_s, known_s))
        self.hold(name, until, now)

    def shared_rest_s(self, clock: str, now: float) -> float:
        """Return the seconds for which this peer must not lease a shared clock that it knows nothing about."""
        wait_s, delay_s = self.clock(clock, now)
        unsure_since = max(self._unsure.get(self._cell(clock), -inf), self._others.earlier_until or -inf)
        return max(wait_s, unsure_since + REST_S + delay_s - now)

    # --- refusals ------------------------------------------------------------------------------------------------

    def back_off(self, name: str) -> BackOff:
        """Return the refusals of a site."""
        site = self._sites.get(name)
        return site.back_off if site is not None else self._store.sites.back_off(name)

    def refuse(self, name: str, status: int, asked_s: float, now: float) -> None:
        """Leave a site alone that refused a request with this status, and asks for `asked_s` or for no certain time."""
        self._set_back_off(name, refused(self.back_off(name), status, asked_s, now, self._limits), now)

    def accept(self, name: str, now: float) -> None:
        """Ease the back-off of a site that answered without a refusal."""
        self._set_back_off(name, answered(self.back_off(name), now, self._limits), now)

    def gives_up(self, name: str, now: float) -> bool:
        """Return whether the entries of this active site end without a request: the site refused too often."""
        return self._sites[name].gives_up(now)

    def refusing(self, now: float) -> list[tuple[str, BackOff, float]]:
        """Return (site, refusals, seconds to wait) of the active sites that refuse requests, the longest wait first."""
        sites = [
            (site.name, site.back_off, max(0.0, site.next_at - now))
            for site in self._sites.values()
            if site.back_off.refusals and not site.closed
        ]
        return sorted(sites, key=lambda one: (-one[2], one[0]))

    def _learn_back_off(self, name: str, told: BackOff, now: float) -> None:
        if told.version:
            self._set_back_off(name, newer(self.back_off(name), told, now, self._limits), now)

    def _set_back_off(self, name: str, back_off: BackOff, now: float) -> None:
        if back_off == self.back_off(name):
            return
        site = self._sites.get(name)
        if site is not None:
            site.set_back_off(back_off, self._site_settings.refusals_max)
        self._store.sites.set_back_off(name, self._cell(name), back_off)
        self.hold(name, back_off.until, now)

    # --- for the frontier ------------------------------------------------------------------------------------------

    def _activate(self, name: str, cell: Cell, now: float) -> Site:
        not_before, delay_s = self._journaled(name, now)
        not_before = max(not_before, self._others.back_at(delay_s))
        received_at = self._held.get(cell, 0.0)
        if received_at:
            not_before = max(not_before, received_at + max(delay_s, self._others.hold_least_s))
        next_at = max(not_before, self._idle.take(cell, name))
        site = Site(name, cell, next_at, delay_s, told_s=delay_s, least_s=delay_s, received_at=received_at)
        site.set_back_off(self._store.sites.back_off(name), self._site_settings.refusals_max)
        site.steer(self._site_settings.steering)
        site.ordered_s, site.must_learn = self._site_settings.delay_s(name), name in self._to_learn
        site.is_lent = not self._site_settings.holds_cookies(name)
        site.connections_max = self._site_settings.connections(name) or self._limits.site_connections_max
        if self._site_settings.is_adaptive:
            site.connections_max = 1
        if self._connections is not None:
            site.connections_max = min(site.connections_max, self._connections(name))
        self._sites[name] = site
        self._by_cell.setdefault(cell, {})[name] = site
        return site

    def _deactivate(self, site: Site, now: float = 0.0) -> None:
        del self._sites[site.name]
        neighbors = self._by_cell[site.cell]
        del neighbors[site.name]
        if not neighbors:
            del self._by_cell[site.cell]
        if site.next_at > now:
            self._idle.hold(site.cell, site.name, site.next_at)

    def _change_delay(self, site: Site, now: float) -> None:
        """Set the delay to what the job, robots.txt and the last answer ask for, and journal it if it has grown."""
        delay_s = max(site.least_s, site.adaptive_s)
        if delay_s == site.delay_s:
            return
        site.delay_s = delay_s
        self._hold(site, site.received_at + delay_s, now)
        # An adaptive delay changes with each answer, and need not be copied each time.
        if site.adaptive_s <= site.least_s or delay_s > site.told_s or delay_s < site.told_s / TOLD_MOST:
            site.told_s = delay_s if site.adaptive_s <= site.least_s else delay_s * TOLD_SHARE
            self._store.sites.set_clock(site.name, site.next_at, site.told_s)

    def _hold(self, site: Site, until: float, now: float) -> None:
        if until > site.next_at:
            site.next_at = until
            if until - now > HOLD_JOURNALED_S:
                self._store.sites.set_clock(site.name, until, max(site.told_s, site.delay_s))

    def _journaled(self, name: str, now: float) -> tuple[float, float]:
        """Return (second before which the site must not be asked, its delay), as far as the store knows."""
        not_before, delay_s = self._store.sites.clock(name) or (0.0, 0.0)
        delay_s = max(delay_s, self._site_settings.delay_s(name))
        back_off = self._store.sites.back_off(name)
        # The wall clock of an earlier run may have been ahead of the clock now.
        return min(max(not_before, back_off.until), now + self._wait_max_s(delay_s, back_off)), delay_s

    def _wait_max_s(self, delay_s: float, back_off: BackOff) -> float:
        """Return the longest wait of a site with this delay and these refusals."""
        longest_s = max(delay_s, self._limits.retry_after_max_s)
        return max(longest_s, self._limits.back_off_max_s) if back_off.refusals else longest_s

    def _sweep(self, now: float) -> None:
        """Bound the clocks of sites without work. Clocks beyond the limit are journaled."""
        for name, until in self._idle.sweep(now):
            _, delay_s = self._journaled(name, now)
            self._store.sites.set_clock(name, until, delay_s)

    def _cell(self, name: str) -> Cell:
        return self._store.cell_of(Key(site_hash(name)))
