"""Brings due pages back into the frontier of their owner, cell by cell, while the cell is open.

Very many pages are due at once after a pause in the crawl, or if a site has more pages than one period can fetch. Only
a bounded number of pages per cell is therefore pending at a time, the longest due first. The frontier takes the pages
of a site in rounds, or those near the seeds would always be first. Each page brought back is a change that travels to
the backups. No page is brought back while too many changes are on their way.

Tests: tests/crawl/recrawl/test_scheduler.py
"""

import asyncio
from collections.abc import Callable

from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.output.counters import Counters, counted_as
from kadcrawl.crawl.recrawl.due_cells import DueCells
from kadcrawl.keys import Cell, Key
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.store.cell_digest import EMPTY
from kadcrawl.store.store import Store
from kadcrawl.system.clock import Clock
from kadcrawl.system.event import Event

AT_ONCE = 200
"""Pages brought back before other work gets its turn."""
CELL_PENDING_MAX = 1_000
"""Pending pages of a cell above which none are brought back, until half of them are done."""
COPYING_MAX = 2_000
"""Changes on their way to backups above which no page is brought back."""
COPYING_WAIT_S = 0.1
OVER_WAIT_S = 1.0
"""Seconds between two looks whether a limit still ends the crawl."""


class Recrawling:
    """The visits to come of one peer."""

    def __init__(
        self,
        store: Store,
        frontier: Frontier,
        activity: Activity,
        clock: Clock,
        counters: Counters,
        *,
        copying: Callable[[], int],
        is_over: Callable[[], bool],
        wake: Callable[[], None],
    ) -> None:
        """Take the parts of the peer.

        Args:
            copying: returns the number of changes on their way to backups.
            is_over: returns whether a limit has ended the crawl, so that pages are not brought back any more.
            wake: tells the crawler of new entries.
        """
        self._store = store
        self._frontier = frontier
        self._activity = activity
        self._clock = clock
        self._counters = counters
        self._copying = copying
        self._is_over = is_over
        self._wake = wake
        self._due = DueCells(store.visits.next_due)
        self._full: set[Cell] = set()
        """Open cells with enough pending pages."""
        self._news = Event()

    @property
    def due_s(self) -> float | None:
        """Seconds until the first page of an open cell is due, or None if no visit is to come."""
        first = self._due.first()
        return None if first is None else max(0.0, first[0] - self._clock.now())

    def opened(self, cell: Cell) -> None:
        """Bring back pages of this cell from now on."""
        self._full.discard(cell)
        self._due.look(cell)
        self._news.set()

    def closed(self, cell: Cell) -> None:
        self._full.discard(cell)
        self._due.drop(cell)

    def visited(self, key: Key) -> None:
        """Look again at the cell of a page that was finished, hastened, or visited by another holder."""
        cell = self._store.cell_of(key)
        if self._frontier.is_open(cell) and (cell not in self._full or self._pending(cell) <= CELL_PENDING_MAX // 2):
            self.opened(cell)

    async def run(self) -> None:
        """Bring back pages as they fall due, until cancelled."""
        while True:
            self._news.clear()
            first = self._due.first()
            wait_s = None if first is None else first[0] - self._clock.now()
            if first is not None and wait_s is not None and wait_s <= 0:
                if self._is_over():
                    await asyncio.sleep(OVER_WAIT_S)
                elif self._copying() > COPYING_MAX:
                    await asyncio.sleep(COPYING_WAIT_S)
                else:
                    self._bring_back(first[1])
                    await asyncio.sleep(0)
                continue
            try:
                async with asyncio.timeout(wait_s):
                    await self._news.wait()
            except TimeoutError:
                pass

    def _pending(self, cell: Cell) -> int:
        return self._store.cells.get(cell, EMPTY).pending

    def _bring_back(self, cell: Cell) -> None:
        room = CELL_PENDING_MAX - self._pending(cell)
        if room <= 0:
            self._full.add(cell)
            self._due.drop(cell)
            return
        now = self._clock.now()
        for key in self._store.visits.due_keys(cell, now, min(room, AT_ONCE)):
            last = self._store.visits.get(key)
            entry = self._store.begin_round(key)
            if entry is not None:
                self._counters.retry(counted_as(last.failed) if last is not None else "")
                self._frontier.add(entry, now)
        self._due.look(cell)
        self._activity.move()
        self._wake()
