"""Carries out orders to retry: failed pages of open cells become pending again, cell by cell.

Only the owner of a cell begins the next round of a page, while the cell is open, and the change travels to the backups
as any other. A cell is looked through when it opens, when an order comes, and when a failure arrives that is older than
an order. So an order reaches the pages of a peer that hears of it late, the pages of a cell that moves meanwhile, and
the requests that were under way. As long as a cell is left, the crawl is not over
(`Runtime.unacknowledged`). Very many pages may have failed, so no page is brought back while too many changes are on
their way to backups.

Tests: tests/peer/test_retry.py
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping

from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.output.counters import Counters, counted_as
from kadcrawl.crawl.recrawl.scheduler import AT_ONCE, COPYING_MAX, COPYING_WAIT_S
from kadcrawl.keys import Cell, Key
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.peer.swarm.retry_orders import RetryOrders
from kadcrawl.store.store import Store
from kadcrawl.system.clock import Clock
from kadcrawl.urls import origin_of

ORDERS_COUNTED_MAX = 16
"""Latest orders for which the number of pages is kept, for the commands that wait for their answers."""


class Retrying:
    """The failed pages of one peer's open cells."""

    def __init__(
        self,
        orders: RetryOrders,
        store: Store,
        frontier: Frontier,
        activity: Activity,
        counters: Counters,
        clock: Clock,
        *,
        copying: Callable[[], int],
        ask_robots_again: Callable[[str, float], None],
        wake: Callable[[], None],
    ) -> None:
        """`copying` returns the number of changes on their way to backups, and `wake` tells the crawler of new entries.

        `ask_robots_again` receives the origin of a page whose robots.txt is to be fetched again if it was fetched
        before the given second.
        """
        self._orders = orders
        self._store = store
        self._frontier = frontier
        self._activity = activity
        self._counters = counters
        self._clock = clock
        self._copying = copying
        self._ask_robots_again = ask_robots_again
        self._wake = wake
        self._open: set[Cell] = set()
        self._left: dict[Cell, bytes] = {}
        """Open cells to look through -> the last key looked at, or empty."""
        self._retried: dict[int, Counter[str]] = {}
        """Stamp of an order -> its pages that became pending here, by the reason of their failure."""
        self._news = asyncio.Event()
        store.events.record_changed.append(self._changed)

    @property
    def left(self) -> int:
        """Cells that are still to be looked through."""
        return len(self._left)

    def retried(self, stamp: int) -> Mapping[str, int]:
        """Return the number of pages that became pending here by an order, by the reason of their failure."""
        return self._retried.get(stamp, {})

    def opened(self, cell: Cell) -> None:
        """Look through a cell that may be crawled here from now on."""
        self._open.add(cell)
        if len(self._orders) and self._store.visits.used:
            self._left[cell] = b""
            self._news.set()

    def closed(self, cell: Cell) -> None:
        """Leave a cell to its next owner."""
        self._open.discard(cell)
        self._left.pop(cell, None)

    def heard(self) -> None:
        """Look through all open cells, as there is another order."""
        for cell in sorted(self._open):
            self.opened(cell)

    async def run(self) -> None:
        """Bring back pages, until cancelled."""
        while True:
            self._news.clear()
            if not self._left:
                await self._news.wait()
            elif self._copying() > COPYING_MAX:
                await asyncio.sleep(COPYING_WAIT_S)
            else:
                self._bring_back(next(iter(self._left)))
                await asyncio.sleep(0)

    def _changed(self, cell: Cell, key: Key) -> None:
        """Look through a cell again if a page in it has failed that an order applies to."""
        if cell not in self._open or not len(self._orders):
            return
        visit = self._store.visits.get(key)
        if visit is not None and visit.failed and self._orders.applying(visit):
            self.opened(cell)

    def _bring_back(self, cell: Cell) -> None:
        now = self._clock.now()
        keys = self._store.visits.failed_keys(cell, self._left[cell], AT_ONCE)
        if len(keys) < AT_ONCE:
            del self._left[cell]
        else:
            self._left[cell] = keys[-1]
        for key in keys:
            visit = self._store.visits.get(key)
            stamps = self._orders.applying(visit) if visit is not None else []
            if visit is None or not stamps:
                continue
            entry = self._store.retry(key, self._orders.latest)
            if entry is not None:
                self._ask_robots_again(origin_of(visit.url), min(max(stamps) / 1000, now))
                self._count(visit.failed, stamps)
                self._frontier.add(entry, now)
        self._activity.move()
        self._wake()

    def _count(self, failed: str, stamps: list[int]) -> None:
        reason = counted_as(failed)
        self._counters.retry(reason)
        for stamp in stamps:
            self._retried.setdefault(stamp, Counter())[reason] += 1
        for stamp in sorted(self._retried)[:-ORDERS_COUNTED_MAX]:
            del self._retried[stamp]
