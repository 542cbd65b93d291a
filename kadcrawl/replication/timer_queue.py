"""Which cell is to be seen to at which second: one instant a cell, the last one said. Pure."""

from heapq import heappop, heappush
from math import inf

from kadcrawl.keys import Cell


class TimerQueue:
    """Instants by cell, soonest first; putting and taking cost O(log n)."""

    def __init__(self) -> None:
        self._at: dict[Cell, float] = {}
        self._heap: list[tuple[float, Cell]] = []
        """Also what has been put off or dropped since; passed over when its turn comes."""

    def __len__(self) -> int:
        return len(self._at)

    def get(self, cell: Cell) -> float | None:
        """Return the second at which the cell is due, if it is."""
        return self._at.get(cell)

    def put(self, cell: Cell, at: float) -> None:
        """Let the cell be due at that second, whatever was said before."""
        if self._at.get(cell) != at:
            self._at[cell] = at
            heappush(self._heap, (at, cell))

    def put_if_new(self, cell: Cell, at: float) -> None:
        """As `put`, unless the cell is due at some instant already."""
        if cell not in self._at:
            self.put(cell, at)

    def drop(self, cell: Cell) -> None:
        """The cell is due no more."""
        self._at.pop(cell, None)

    @property
    def next_at(self) -> float:
        """Second at which the next cell is due; infinity if none is."""
        heap = self._heap
        while heap and self._at.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else inf

    def due(self, now: float, count: int) -> list[Cell]:
        """Return up to `count` cells that are due, soonest first. They stay due until put off or dropped."""
        found: dict[Cell, float] = {}
        while len(found) < count and self.next_at <= now:
            at, cell = heappop(self._heap)
            found[cell] = at
        for cell, at in found.items():
            heappush(self._heap, (at, cell))
        return list(found)
