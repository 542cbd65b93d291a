"""`CellOpener` opens synced cells for the crawler, and wakes the offers of links that wait for them.

Tests: tests/replication/owner/test_sync.py
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable

from kadcrawl.keys import Cell
from kadcrawl.replication.owner.owner_parts import OwnerParts

log = logging.getLogger(__name__)


class CellOpener:
    """The open cells of one peer."""

    def __init__(self, parts: OwnerParts) -> None:
        self._parts = parts
        self._has_opened = False
        """True once this peer has opened a cell in this run."""
        self._waiting: defaultdict[Cell, list[asyncio.Future[None]]] = defaultdict(list)

    def open(self, cell: Cell, *, hold: bool, unsure_since: float | None = None) -> None:
        """Let an owned cell be crawled, as `Crawl.open` says (crawl_port.py)."""
        owned = self._parts.holdings.owned[cell]
        self._parts.holder_side.owner_notified(cell)
        if not owned.open:
            owned.set_open()
            if not self._has_opened:
                self._has_opened = True
                log.info("cell.first_opened cell=%d", cell)
            log.debug("cell.opened cell=%d hold=%s backups=%s", cell, hold, ",".join(map(str, owned.backups)))
            self._parts.crawl.open(cell, hold=hold, unsure_since=unsure_since)
        for future in self._waiting.pop(cell, ()):
            if not future.done():
                future.set_result(None)

    async def opened(self, cells: Iterable[Cell], want: Callable[[Cell], None], deadline_s: float) -> set[Cell]:
        """Wait up to `deadline_s` seconds until these cells are open here. Return the open ones.

        `want` requests the sync of a closed cell.
        """
        cells = set(cells)
        holdings = self._parts.holdings
        loop = asyncio.get_running_loop()
        waiting = []
        for cell in cells:
            if not holdings.is_open(cell) and self._parts.may_own(cell):
                want(cell)
                if not holdings.is_open(cell):
                    future = loop.create_future()
                    self._waiting[cell].append(future)
                    waiting.append((cell, future))
        if waiting:
            await asyncio.wait([future for _, future in waiting], timeout=deadline_s)
        for cell, future in waiting:
            if not future.done():
                self._waiting[cell].remove(future)
                if not self._waiting[cell]:
                    del self._waiting[cell]
        return {cell for cell in cells if holdings.is_open(cell)}
