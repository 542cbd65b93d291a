"""Carries out orders to drop: pending URLs of open cells end without a request, each with a line and a reason.

An order applies to the URLs that became pending where it was not known (`FrontierEntry.drop_order`), so to each of them
once, whichever peer owns the URL by then, and to no URL that is found later. Cells are looked through as cell_looks.py
says, and the change travels to the backups as any other.

URLs that the crawler has, or another peer on loan, are left to their requests. They are looked at again, as some come
back.

Tests: tests/peer/test_dropped_sites.py
"""

import logging
from collections.abc import Callable

from kadcrawl.crawl.crawler import Crawler
from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.scope.scope import SITE_DROPPED
from kadcrawl.keys import Cell
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.peer.swarm.cell_looks import CellLooks
from kadcrawl.peer.swarm.order_counts import OrderCounts
from kadcrawl.settings.steering import Steering
from kadcrawl.store.store import Store
from kadcrawl.system.clock import Clock

AT_ONCE = 100
"""URLs or sites looked at before other tasks run, some milliseconds of work."""
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
        self.looks = CellLooks(lambda: steering.has_drops, copying)
        """The cells to look through, each by the hash of its last site that is done."""
        self._counts = OrderCounts()

    def dropped(self, stamp: int) -> int:
        """Return the number of URLs that the order with this stamp has ended here."""
        return sum(self._counts.of(stamp).values())

    async def run(self) -> None:
        """Drop URLs, until cancelled."""
        await self.looks.run(self._look)

    def _look(self, cell: Cell) -> None:
        """Drop some URLs of a cell."""
        sites = self._store.pending_sites(cell, self.looks.place(cell), AT_ONCE)
        room = AT_ONCE
        for site_hash, name in sites:
            stamp = self._steering.drop_order(name)
            if stamp:
                room -= self._drop(cell, site_hash, name, stamp, room)
                if room <= 0:
                    return
            self.looks.reach(cell, site_hash)
        if len(sites) < AT_ONCE:
            self.looks.finish(cell)

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
            self.looks.put_off(cell)
        if dropped:
            self._counts.add(stamp, SITE_DROPPED, dropped)
            log.info("order.dropped site=%s urls=%d", name, dropped)
            self._activity.move()
            self._crawler.wake()
        return dropped
