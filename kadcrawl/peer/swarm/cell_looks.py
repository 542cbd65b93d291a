"""`CellLooks` keeps the open cells that are still to be looked through for an order of a person.

Only the owner of a cell carries out an order there, while the cell is open. A cell is looked through when it opens,
when an order comes, and when its user says so. As long as a cell is left, the crawl is not over
(`Runtime.unacknowledged`). An order may apply to very many URLs, so no cell is looked at while too many changes are on
their way to backups.

Tests: tests/peer/swarm/test_cell_looks.py
"""

import asyncio
from collections.abc import Callable

from kadcrawl.crawl.recrawl.scheduler import COPYING_MAX, COPYING_WAIT_S
from kadcrawl.keys import Cell
from kadcrawl.system.event import Event

PUT_OFF_S = 1.0
"""Seconds before a cell is looked at again with URLs that are with the crawler or on loan."""


class CellLooks:
    """The cells that one user of this class looks through, and how far it has come in each."""

    def __init__(self, is_needed: Callable[[], bool], copying: Callable[[], int]) -> None:
        """`is_needed` returns whether an order may apply here, and `copying` the changes on their way to backups."""
        self._is_needed = is_needed
        self._copying = copying
        self._open: set[Cell] = set()
        self._left: dict[Cell, bytes] = {}
        """Open cells to look through -> the place that is reached, or empty."""
        self._put_off: set[Cell] = set()
        """Open cells to look at again later."""
        self._news = Event()

    @property
    def left(self) -> int:
        """Cells that are still to be looked through."""
        return len(self._left)

    def is_open(self, cell: Cell) -> bool:
        """Return whether a cell may be crawled here."""
        return cell in self._open

    def opened(self, cell: Cell) -> None:
        """Look through a cell from its beginning, which may be crawled here from now on."""
        self._open.add(cell)
        if self._is_needed():
            self._left[cell] = b""
            self._news.set()

    def closed(self, cell: Cell) -> None:
        """Leave a cell to its next owner."""
        self._open.discard(cell)
        self._left.pop(cell, None)
        self._put_off.discard(cell)

    def heard(self) -> None:
        """Look through all open cells, as there is another order."""
        for cell in sorted(self._open):
            self.opened(cell)

    def place(self, cell: Cell) -> bytes:
        """Return the place that is reached in a cell, or an empty place at its beginning."""
        return self._left[cell]

    def reach(self, cell: Cell, place: bytes) -> None:
        """Note the place that is reached in a cell."""
        self._left[cell] = place

    def finish(self, cell: Cell) -> None:
        """Note that a cell is looked through."""
        del self._left[cell]

    def put_off(self, cell: Cell) -> None:
        """Look through a cell again later, as some of its URLs are out."""
        self._put_off.add(cell)

    async def run(self, look: Callable[[Cell], None]) -> None:
        """Call `look` with a cell that is left, some URLs each time, until cancelled."""
        while True:
            self._news.clear()
            if not self._left:
                await self._next_look()
            elif self._copying() > COPYING_MAX:
                await asyncio.sleep(COPYING_WAIT_S)
            else:
                look(next(iter(self._left)))
                await asyncio.sleep(0)

    async def _next_look(self) -> None:
        """Wait for news, or until URLs that were out may be back."""
        try:
            async with asyncio.timeout(PUT_OFF_S if self._put_off else None):
                await self._news.wait()
        except TimeoutError:
            self._left.update((cell, b"") for cell in sorted(self._put_off))
            self._put_off.clear()
