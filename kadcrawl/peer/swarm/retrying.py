"""Carries out orders to retry: failed pages of open cells become pending again, cell by cell.

Cells are looked through as cell_looks.py says, and once more when a failure arrives that is older than an order. So an
order reaches the pages of a peer that hears of it late, the pages of a cell that moves meanwhile, and the requests that
were under way. The change travels to the backups as any other.

Tests: tests/peer/test_retry.py
"""

from collections.abc import Callable, Mapping

from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.output.counters import Counters, counted_as
from kadcrawl.crawl.recrawl.scheduler import AT_ONCE
from kadcrawl.keys import Cell, Key
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.peer.swarm.cell_looks import CellLooks
from kadcrawl.peer.swarm.order_counts import OrderCounts
from kadcrawl.peer.swarm.retry_orders import RetryOrders
from kadcrawl.store.store import Store
from kadcrawl.system.clock import Clock
from kadcrawl.urls import origin_of


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
        self._ask_robots_again = ask_robots_again
        self._wake = wake
        self.looks = CellLooks(lambda: bool(len(orders) and store.visits.used), copying)
        """The cells to look through, each by the last key looked at."""
        self._counts = OrderCounts()
        store.events.record_changed.append(self._changed)

    def retried(self, stamp: int) -> Mapping[str, int]:
        """Return the number of pages that became pending here by an order, by the reason of their failure."""
        return self._counts.of(stamp)

    async def run(self) -> None:
        """Bring back pages, until cancelled."""
        await self.looks.run(self._bring_back)

    def _changed(self, cell: Cell, key: Key) -> None:
        """Look through a cell again if a page in it has failed that an order applies to."""
        if not len(self._orders) or not self.looks.is_open(cell):
            return
        visit = self._store.visits.get(key)
        if visit is not None and visit.failed and self._orders.applying(visit):
            self.looks.opened(cell)

    def _bring_back(self, cell: Cell) -> None:
        now = self._clock.now()
        keys = self._store.visits.failed_keys(cell, self.looks.place(cell), AT_ONCE)
        if len(keys) < AT_ONCE:
            self.looks.finish(cell)
        else:
            self.looks.reach(cell, keys[-1])
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
            self._counts.add(stamp, reason)
