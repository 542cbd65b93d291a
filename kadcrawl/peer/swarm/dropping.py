"""Carries out orders to drop: pending URLs of open cells end without a request, each with a line and a reason.

An order applies to the URLs that became pending where it was not known (`FrontierEntry.drop_order`), so to each of them
once, whichever peer owns the URL by then, and to no URL that is found later. Only the owner of a cell drops its URLs,
while the cell is open, and the change travels to the backups as any other. A cell is looked through when it opens, and
when an order comes. As long as a cell is left, the crawl is not over (`Runtime.unacknowledged`).

URLs that the crawler has, or another peer on loan, are left to their requests. They are looked at again, as some come
back. No URL is dropped while too many changes are on their way to backups.

Tests: tests/peer/test_dropped_sites.py
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable

from kadcrawl.crawl.crawler import Crawler
from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.recrawl.scheduler import COPYING_MAX, COPYING_WAIT_S
from kadcrawl.crawl.scope.scope import SITE_DROPPED
from kadcrawl.keys import Cell
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.settings.steering import Steering
from kadcrawl.store.store import Store
from kadcrawl.system.clock import Clock

AT_ONCE = 100
"""URLs or sites looked at before other tasks run, some milliseconds of work."""
OUT_LOOK_S = 1.0
"""Seconds before a site is looked at again whose URLs are with the crawler or on loan."""

ORDERS_COUNTED_MAX = 16
"""Latest orders for which the number of URLs is kept, for the commands that wait for their answers."""

log = logging.getLogger(__name__)


class Dropping:
    """The dropped URLs of one peer's open cells."""

    def __init__(
        self,
        store: Store,
        frontier: Frontier,
        steering: Steering,
        crawler: Crawler,
        activity: Activity,
        clock: Clock,
        copying: Callable[[], int],
    ) -> None:
        """`copying` returns the number of changes on their way to backups."""
        self._store = store
        self._frontier = frontier
        self._steering = steering
        self._crawler = crawler
        self._activity = activity
        self._clock = clock
        self._copying = copying
        self._open: set[Cell] = set()
        self._left: dict[Cell, bytes] = {}
        """Open cells to look through -> the hash of the last site that is done, or empty."""
        self._again: set[Cell] = set()
        """Open cells with URLs that are out."""
        self._news = asyncio.Event()
        self._dropped: Counter[int] = Counter()
        """Stamp of an order -> the URLs that it has ended here."""

    @property
    def left(self) -> int:
        """Cells that are still to be looked through."""
        return len(self._left)

    def dropped(self, stamp: int) -> int:
        """Return the number of URLs that the order with this stamp has ended here."""
        return self._dropped[stamp]

    def opened(self, cell: Cell) -> None:
        """Look through a cell that may be crawled here from now on."""
        self._open.add(cell)
        if self._steering.has_drops:
            self._left[cell] = b""
            self._news.set()

    def closed(self, cell: Cell) -> None:
        """Leave a cell to its next owner."""
        self._open.discard(cell)
        self._left.pop(cell, None)
        self._again.discard(cell)

    def heard(self) -> None:
        """Look through all open cells, as there is another order."""
        for cell in sorted(self._open):
            self.opened(cell)

    async def run(self) -> None:
        """Drop URLs, until cancelled."""
        while True:
            self._news.clear()
            if not self._left:
                await self._next_look()
            elif self._copying() > COPYING_MAX:
                await asyncio.sleep(COPYING_WAIT_S)
            else:
                self._look(next(iter(self._left)))
                await asyncio.sleep(0)

    async def _next_look(self) -> None:
        """Wait for news, or until URLs that were out may be back."""
        try:
            async with asyncio.timeout(OUT_LOOK_S if self._again else None):
                await self._news.wait()
        except TimeoutError:
            self._left.update((cell, b"") for cell in sorted(self._again))
            self._again.clear()

    def _look(self, cell: Cell) -> None:
        """Drop some URLs of a cell."""
        sites = self._store.pending_sites(cell, self._left[cell], AT_ONCE)
        room = AT_ONCE
        for site_hash, name in sites:
            stamp = self._steering.drop_order(name)
            if stamp:
                room -= self._drop(cell, site_hash, name, stamp, room)
                if room <= 0:
                    return
            self._left[cell] = site_hash
        if len(sites) < AT_ONCE:
            del self._left[cell]

    def _drop(self, cell: Cell, site_hash: bytes, name: str, stamp: int, room: int) -> int:
        """Drop up to `room` URLs of a site, and return how many."""
        out = {*self._frontier.keys_out(cell)}
        entries = self._store.frontier.dropped(site_hash, stamp, room + len(out))
        now, dropped = self._clock.now(), 0
        for entry in entries:
            if entry.key in out or dropped == room:
                continue
            self._crawler.finish_unfetched(entry, SITE_DROPPED)
            self._frontier.remove(entry, now)
            dropped += 1
        if any(entry.key in out for entry in entries):
            self._again.add(cell)
        if dropped:
            self._dropped[stamp] += dropped
            for old in sorted(self._dropped)[:-ORDERS_COUNTED_MAX]:
                del self._dropped[old]
            log.info("order.dropped site=%s urls=%d", name, dropped)
            self._activity.move()
            self._crawler.wake()
        return dropped
