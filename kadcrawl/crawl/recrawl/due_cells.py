"""Which open cells have pages that are due again, and when: a heap over what the store knows cell by cell.

Pure: asks `next_visit` (the store) for the first due page of a cell, gives the cell whose turn it is. Only open cells
are in it, as only their owner fetches them again. Times are wall-clock seconds.

Tests: tests/crawl/recrawl/test_policy.py
"""

import heapq
from collections.abc import Callable

from kadcrawl.keys import Cell


class DueCells:
    """The open cells of one peer, by their next visit."""

    def __init__(self, next_visit: Callable[[Cell], float | None]) -> None:
        self._next_visit = next_visit
        self._due: dict[Cell, float] = {}
        """Open cells with visits to come."""
        self._heap: list[tuple[float, Cell]] = []
        """Those, and places given up for others."""

    def look(self, cell: Cell) -> None:
        """The cell was opened, or its visits have changed."""
        due = self._next_visit(cell)
        if due is None:
            self._due.pop(cell, None)
        elif self._due.get(cell) != due:
            self._due[cell] = due
            heapq.heappush(self._heap, (due, cell))

    def drop(self, cell: Cell) -> None:
        """The cell was closed."""
        self._due.pop(cell, None)

    def first(self) -> tuple[float, Cell] | None:
        """Return the earliest visit, and its cell; None if none is to come."""
        while self._heap:
            due, cell = self._heap[0]
            if self._due.get(cell) == due:
                return due, cell
            heapq.heappop(self._heap)
        return None
