"""The active sites, and when each site may be asked: the politeness clocks, of sites with work and without.

A site that was asked keeps its clock, in memory while it runs and in the journal if that is long; a delay of its own
is always journaled. Both move with the site's cell: one holder tells them (`clocks`), the next learns them, and the
later instant and the larger delay win. Pure but for the store; times are wall-clock seconds given by the caller.

Tests: tests/crawl/frontier/test_frontier.py
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from kadcrawl.crawl.frontier.idle_clocks import IdleClocks
from kadcrawl.crawl.frontier.site import Site
from kadcrawl.keys import Cell, Key, site_hash
from kadcrawl.settings.limits import Limits
from kadcrawl.store.cell_digest import CellDigest
from kadcrawl.store.frontier_entry import FrontierEntry

HOLD_JOURNALED_S = 10.0
"""A wait longer than this is journaled, so that it also holds after a restart, and with the cell's other holders."""
HOLD_LEAST_S = 1.0
"""How long each site is left alone at least of a cell nobody released: whoever still crawls it is about to say so."""
BACK_LEAST_S = 1.5
"""And after a restart: so long may a taker go on that borrowed of the earlier run (`balance.leases.LEASE_S`)."""
IDLE_CLOCKS_MAX = 10_000
"""Clocks of sites without work kept before the expired ones are swept."""
SITES_LISTED_MAX = 64
"""Sites looked up in the store at once."""


class SiteClocks(Protocol):
    """The journaled clocks of sites (see `store.site_table`)."""

    def clock(self, site: str) -> tuple[float, float] | None: ...
    def set_clock(self, site: str, not_before: float, delay_s: float) -> None: ...


class ActiveStore(Protocol):
    """What a frontier asks of where its URLs are kept; `store.store` says what each gives."""

    @property
    def cells(self) -> Mapping[Cell, CellDigest]: ...
    def cell_of(self, key: Key) -> Cell: ...
    @property
    def sites(self) -> SiteClocks: ...
    def pending_sites(self, cell: Cell, after: bytes, count: int) -> list[tuple[bytes, str]]: ...
    def window(self, site: str, count: int) -> list[FrontierEntry]: ...
    def postpone(self, entry: FrontierEntry) -> None: ...


class ActiveSites:
    """What the frontier knows of sites, beside their place in its order."""

    def __init__(
        self,
        store: ActiveStore,
        limits: Limits,
        delay_s: float,
        began_at: float = 0.0,
        connections: Callable[[str], int] | None = None,
    ) -> None:
        """`delay_s`: seconds between two requests to a site, at least, as the job says; `began_at`: see `Frontier`."""
        self._store = store
        self._limits = limits
        self._delay_s = delay_s
        self._began_at = began_at
        self._delay_max_s = max(delay_s, limits.crawl_delay_max_s)
        self._sites: dict[str, Site] = {}
        self._by_cell: dict[Cell, dict[str, Site]] = {}
        self._idle = IdleClocks(IDLE_CLOCKS_MAX)
        self._connections = connections
        self._held: dict[Cell, float] = {}
        """Cell -> second at which it was opened without anybody to tell its clocks."""

    def out(self, cell: Cell) -> int:
        """Return how many entries of the cell are with the crawler."""
        return sum(len(site.out) for site in self._by_cell.get(cell, {}).values())

    def keys_out(self, cell: Cell) -> Iterator[Key]:
        """Yield the keys of the entries of the cell that are with the crawler."""
        for site in self._by_cell.get(cell, {}).values():
            yield from site.out

    def in_flight(self, cell: Cell) -> int:
        """Return how many requests to sites of the cell are under way."""
        return sum(site.in_flight for site in self._by_cell.get(cell, {}).values())

    def lent(self, cell: Cell) -> int:
        """Return how many connections to sites of the cell are lent to other peers."""
        return sum(site.lent for site in self._by_cell.get(cell, {}).values())

    def is_active(self, name: str) -> bool:
        """Say whether there is anything of the site here, be it a request of an earlier opening."""
        return name in self._sites

    def is_busy(self, name: str) -> bool:
        """Say whether entries of the site are with the crawler."""
        site = self._sites.get(name)
        return site is not None and bool(site.out)

    def is_held(self, cell: Cell, now: float) -> bool:
        """Say whether the cell was opened with `hold` so lately that its next owner must hold it as well.

        Those of its sites that had nothing to do here since are in none of the `clocks`.
        """
        held_at = self._held.get(cell)
        return held_at is not None and now < held_at + self._delay_max_s

    # --- clocks --------------------------------------------------------------------------------------------------

    def set_delay(self, name: str, delay_s: float, now: float) -> None:
        """Set a site's delay (the larger of the job's and what its robots.txt asks), from its last request on."""
        site = self._sites.get(name)
        if site is None:
            self.hold(name, now + delay_s, now)  # Let go meanwhile; who comes back to it will set the delay again.
        elif site.delay_s != delay_s:
            site.delay_s = delay_s
            self._hold(site, site.received_at + delay_s, now)
            self._store.sites.set_clock(name, site.next_at, delay_s)

    def hold(self, name: str, until: float, now: float) -> None:
        """Leave the site alone until `until`, if that is later than what holds already."""
        site = self._sites.get(name)
        if site is not None:
            self._hold(site, until, now)
        elif until > now:
            self._idle.hold(self._cell(name), name, until)
            self._sweep(now)

    def wait_s(self, name: str, now: float) -> float:
        """Return for how many seconds the site must still be left alone."""
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
            not_before = max(not_before, self._back_at(delay_s))
        return max(0.0, not_before - now, self.wait_s(name, now)), delay_s

    def clocks(self, cell: Cell, now: float, most: int) -> list[tuple[str, float, float]] | None:
        """Return (site, wait_s, delay_s) of each site of the cell that must be left alone or has a delay of its own.

        None if it has more than `most` sites with clocks or PENDING URLs: no more are looked at.
        Delays of sites without PENDING URLs are missing: their robots.txt tells them to whoever goes there next.
        """
        names = {*self._by_cell.get(cell, ()), *self._idle.of(cell)}
        after = b""
        if len(names) > most:
            return None
        while found := self._store.pending_sites(cell, after, SITES_LISTED_MAX):
            names.update(name for _, name in found)
            if len(names) > most:
                return None
            after = found[-1][0]
        clocks = [(name, *self.clock(name, now)) for name in sorted(names)]
        return [one for one in clocks if one[1] > 0 or one[2] > self._delay_s]

    def learn_clock(self, name: str, wait_s: float, delay_s: float, now: float) -> None:
        """Another holder of the site's cell says how it must be treated; the later instant and larger delay win."""
        delay_s = min(delay_s, self._delay_max_s)
        until = now + min(wait_s, max(delay_s, self._limits.retry_after_max_s))
        site = self._sites.get(name)
        if site is not None:
            self._hold(site, until, now)
            if delay_s > site.delay_s:
                site.delay_s = delay_s
                self._store.sites.set_clock(name, site.next_at, delay_s)
            return
        not_before, known_s = self._journaled(name, now)
        if delay_s > known_s or (until > not_before and until - now > HOLD_JOURNALED_S):
            self._store.sites.set_clock(name, max(until, not_before), max(delay_s, known_s))
        self.hold(name, until, now)

    # --- for the frontier ------------------------------------------------------------------------------------------

    def _activate(self, name: str, cell: Cell, now: float) -> Site:
        not_before, delay_s = self._journaled(name, now)
        not_before = max(not_before, self._back_at(delay_s))
        received_at = self._held.get(cell, 0.0)
        if received_at:
            not_before = max(not_before, received_at + max(delay_s, HOLD_LEAST_S))
        site = Site(name, cell, max(not_before, self._idle.take(cell, name)), delay_s, received_at)
        site.connections_max = self._limits.site_connections_max
        if self._connections is not None:
            site.connections_max = min(site.connections_max, self._connections(name))
        self._sites[name] = site
        self._by_cell.setdefault(cell, {})[name] = site
        return site

    def _deactivate(self, site: Site, now: float = 0.0) -> None:
        del self._sites[site.name]
        fellows = self._by_cell[site.cell]
        del fellows[site.name]
        if not fellows:
            del self._by_cell[site.cell]
        if site.next_at > now:
            self._idle.hold(site.cell, site.name, site.next_at)

    def _hold(self, site: Site, until: float, now: float) -> None:
        if until > site.next_at:
            site.next_at = until
            if until - now > HOLD_JOURNALED_S:
                self._store.sites.set_clock(site.name, until, site.delay_s)

    def _journaled(self, name: str, now: float) -> tuple[float, float]:
        """Return (second before which the site must not be asked, its delay) as far as the store knows."""
        not_before, delay_s = self._store.sites.clock(name) or (0.0, 0.0)
        delay_s = max(delay_s, self._delay_s)
        # The clock of an earlier run may have been ahead of this one's.
        return min(not_before, now + max(delay_s, self._limits.retry_after_max_s)), delay_s

    def _back_at(self, delay_s: float) -> float:
        """Return the second from which a site may be asked as far as an earlier run is concerned.

        It may have asked it just before it ended, and have journaled nothing of that; or have lent it.
        """
        return self._began_at + max(delay_s, BACK_LEAST_S) if self._began_at else 0.0

    def _sweep(self, now: float) -> None:
        """Bound the clocks of sites without work; what does not fit is journaled."""
        for name, until in self._idle.sweep(now):
            _, delay_s = self._journaled(name, now)
            self._store.sites.set_clock(name, until, delay_s)

    def _cell(self, name: str) -> Cell:
        return self._store.cell_of(Key(site_hash(name)))
