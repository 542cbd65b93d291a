"""`CellCrawl` opens and closes cells for the crawler: the real `Crawl` (crawl_port.py).

Tests: tests/replication/test_cells.py
"""

from collections.abc import Iterable

from kadcrawl.crawl.build import CrawlComponents
from kadcrawl.keys import Cell, Key
from kadcrawl.link.wire.messages import SiteRecord
from kadcrawl.replication.events import ReplicationEvents
from kadcrawl.replication.record_codec import (
    UNFINISHED_WAIT_S,
    back_off_of,
    cookies_of,
    site_record,
    with_bounded_cookies,
)
from kadcrawl.store.store import Store
from kadcrawl.system.clock import Clock

FINISHING_S = 1.0
"""Longest wait of a closed cell for pages that are fetched and whose links are still on their way."""


class CellCrawl:
    """The crawling of one peer's cells."""

    def __init__(self, components: CrawlComponents, store: Store, clock: Clock, events: ReplicationEvents) -> None:
        self._store = store
        self._frontier = components.frontier
        self._partitioner = components.partitioner
        self._crawler = components.crawler
        self._clock = clock
        self._events = events
        self._closed_at: dict[Cell, float] = {}

    def open(self, cell: Cell, *, hold: bool, unsure_since: float | None = None) -> None:
        """Let the crawler fetch from the cell. See `Crawl.open`."""
        self._closed_at.pop(cell, None)
        unsure_at = None if unsure_since is None else self._clock.of(unsure_since)
        self._frontier.open(cell, self._clock.now(), hold=hold, unsure_since=unsure_at)
        for listener in self._events.cell_opened:
            listener(cell)
        self._crawler.wake()

    def close(self, cell: Cell) -> None:
        """Start no more requests of the cell."""
        if self._frontier.is_open(cell):
            self._closed_at[cell] = self._clock.now()
            self._frontier.close(cell)
            for listener in self._events.cell_closed:
                listener(cell)

    def is_busy(self, cell: Cell) -> bool:
        """Return whether requests are in flight or lent, or pages are about to be finished."""
        if self._frontier.in_flight(cell) or self._frontier.lent(cell):
            return True
        closed_at = self._closed_at.get(cell, 0.0)
        return bool(self._frontier.out(cell)) and self._clock.now() < closed_at + FINISHING_S

    def clocks(self, cell: Cell, most: int) -> list[SiteRecord] | None:
        """Return the clocks of the cell's sites, or None if more than `most` or all on a full delay."""
        return None if self._frontier.is_held(cell, self._clock.now()) else self.known_clocks(cell, most)

    def was_crawled_lately(self, cell: Cell) -> bool:
        """Return whether the cell was closed here so recently that its sites may still have to wait."""
        closed_at = self._closed_at.get(cell)
        return closed_at is not None and self._frontier.is_recent(closed_at, self._clock.now())

    def known_clocks(self, cell: Cell, most: int) -> list[SiteRecord] | None:
        """Return the clocks that this peer knows, or None if more than `most`. The cell may be on a full delay."""
        now = self._clock.now()
        clocks = self._frontier.clocks(cell, now, most)
        return None if clocks is None else with_bounded_cookies([site_record(clock, now) for clock in clocks])

    def told_clocks(self, cell: Cell, most: int) -> list[SiteRecord]:
        """Return the known clocks, or only those of sites that refuse requests if there are more than `most`.

        The next owner leaves all sites alone for a full delay, which is shorter than the wait of such a site.
        """
        clocks, now = self.known_clocks(cell, most), self._clock.now()
        if clocks is not None:
            return clocks
        return [
            site_record(self._frontier.clock_of(site, now), now) for site in self._store.sites.backed_off(cell, most)
        ]

    def in_hand(self, cell: Cell) -> list[bytes]:
        """Return the keys of pages that are fetched here and not finished."""
        return sorted(self._frontier.keys_out(cell))  # The order of a set differs from process to process.

    def leave_in_hand(self, cell: Cell, keys: Iterable[bytes]) -> None:
        """Postpone PENDING pages that another peer has fetched and is about to finish."""
        if not self._frontier.is_open(cell):
            due = self._clock.now() + UNFINISHED_WAIT_S
            for key in map(Key, keys):
                if self._store.cell_of(key) == cell:
                    self._store.put_off(key, due)

    def learn_clocks(self, cell: Cell, sites: Iterable[SiteRecord]) -> None:
        """Leave these sites of the cell alone for as long as their clocks say."""
        for site in sites:
            if self._partitioner.cell(site.site) == cell:
                now = self._clock.now()
                self._frontier.learn_clock(
                    site.site, site.wait_s, site.delay_s, now, back_off_of(site, now), cookies_of(site)
                )
