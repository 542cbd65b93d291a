"""Orders the open cells by the time of their next due page, in a heap over the store's cells.

A decision: `next_visit` (the store) gives the first due page of a cell. Only open cells are in the heap, as only their
owner fetches pages again. Times are wall-clock seconds.

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
        """The cells by due time, together with outdated entries."""

    def look(self, cell: Cell) -> None:
        """Look at a cell that was opened, or whose visits have changed."""
        due = self._next_visit(cell)
        if due is None:
            self._due.pop(cell, None)
        else:
            self.put(cell, due)

    def put(self, cell: Cell, due: float) -> None:
        """Let the turn of an open cell come at this second, whatever is due before."""
        if self._due.get(cell) != due:
            self._due[cell] = due
            heapq.heappush(self._heap, (due, cell))

    def drop(self, cell: Cell) -> None:
        """Forget a closed cell."""
        self._due.pop(cell, None)

    def first(self) -> tuple[float, Cell] | None:
        """Return the time of the earliest visit and its cell, or None without visits to come."""
        while self._heap:
            due, cell = self._heap[0]
            if self._due.get(cell) == due:
                return due, cell
            heapq.heappop(self._heap)
        return None
