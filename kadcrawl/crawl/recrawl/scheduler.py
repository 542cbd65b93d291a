"""Brings due pages back into the frontier of their owner, cell by cell, while the cell is open.

Very many pages are due at once after a pause in the crawl, or if a site has more pages than one period can fetch. Only
a bounded number of pages per cell is therefore pending at a time, the longest due first. But all may be of a site that
must be left alone, or of a large site that is not crawled to its end. So some pages of each other site of the cell are
brought back besides. The frontier takes the pages of a site in rounds, or those near the seeds would always be first.
Each page brought back is a change that travels to the backups. No page is brought back while too many changes are on
their way.

Tests: tests/crawl/recrawl/test_scheduler.py
"""

import asyncio
from collections.abc import Callable, Sequence

from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.output.counters import Counters, counted_as
from kadcrawl.crawl.recrawl.due_cells import DueCells
from kadcrawl.keys import SITE_BYTES, Cell, Key
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.store.cell_digest import EMPTY
from kadcrawl.store.store import Store
from kadcrawl.system.clock import Clock
from kadcrawl.system.event import Event

AT_ONCE = 200
"""Pages brought back before other work gets its turn."""
CELL_PENDING_MAX = 1_000
"""Pending pages of a cell above which few are brought back, until half of them are done."""
SITE_PENDING_MAX = 100
"""Pending pages of a site above which none of its pages are brought back to a cell with very many pending pages."""
FULL_WAIT_S = 1.0
"""Seconds between two looks for sites with few pending pages in such a cell, unless there are many such cells."""
FULL_SPACING_S = 0.05
"""Seconds between two such looks at any cells, on average. A look takes a millisecond or some."""
FULL_LOOK_MAX = 500
"""Limit on the due pages of one such look. The next look goes on from there."""
COPYING_MAX = 2_000
"""Changes on their way to backups above which no page is brought back."""
COPYING_WAIT_S = 0.1
OVER_WAIT_S = 1.0
"""Seconds between two looks whether a limit still ends the crawl."""
FIRST = (0.0, b"")
"""The place before all due pages of a cell."""


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
        self._full: dict[Cell, tuple[float, bytes]] = {}
        """Open cells with enough pending pages, each with the due second and the key of the last page looked at."""
        self._news = Event()

    @property
    def due_s(self) -> float | None:
        """Seconds until the first page of an open cell is due, or None if no visit is to come."""
        first = self._due.first()
        return None if first is None else max(0.0, first[0] - self._clock.now())

    def opened(self, cell: Cell) -> None:
        """Bring back pages of this cell from now on."""
        self._full.pop(cell, None)
        self._due.look(cell)
        self._news.set()

    def closed(self, cell: Cell) -> None:
        self._full.pop(cell, None)
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
        pending, now = self._pending(cell), self._clock.now()
        if pending > CELL_PENDING_MAX // 2 if cell in self._full else pending >= CELL_PENDING_MAX:
            self._begin_rounds(self._keys_of_small_sites(cell, now), now)
            self._due.put(cell, now + max(FULL_WAIT_S, FULL_SPACING_S * len(self._full)))
            return
        self._full.pop(cell, None)
        room = CELL_PENDING_MAX - pending
        self._begin_rounds(self._store.visits.due_keys(cell, now, min(room, AT_ONCE)), now)
        self._due.look(cell)

    def _keys_of_small_sites(self, cell: Cell, now: float) -> Sequence[Key]:
        """Return keys of due pages of a full cell whose sites have few pending pages, as far as one look finds any."""
        due = self._store.visits.due_after(cell, self._full.get(cell, FIRST), now, FULL_LOOK_MAX)
        self._full[cell] = due[-1] if len(due) == FULL_LOOK_MAX else FIRST
        keys: list[Key] = []
        room: dict[bytes, int] = {}
        for place in due:
            key = place[1]
            site = key[:SITE_BYTES]
            if site not in room:
                room[site] = SITE_PENDING_MAX - self._store.frontier.pending_of(site, SITE_PENDING_MAX)
            if room[site] > 0:
                room[site] -= 1
                keys.append(key)
                if len(keys) == AT_ONCE:
                    self._full[cell] = place
                    break
        return keys

    def _begin_rounds(self, keys: Sequence[Key], now: float) -> None:
        """Bring these pages back."""
        for key in keys:
            last = self._store.visits.get(key)
            entry = self._store.begin_round(key)
            if entry is not None:
                self._counters.retry(counted_as(last.failed) if last is not None else "")
                self._frontier.add(entry, now)
        if keys:
            self._activity.move()
            self._wake()
