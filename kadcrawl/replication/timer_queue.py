"""`TimerQueue` keeps one due time per cell, the latest one set. Decides only."""

from heapq import heappop, heappush
from math import inf

from kadcrawl.keys import Cell


class TimerQueue:
    """The due times of cells, soonest first. Setting and taking cost O(log n)."""

    def __init__(self) -> None:
        self._at: dict[Cell, float] = {}
        self._heap: list[tuple[float, Cell]] = []
        """Heap of due times, with those that were replaced or dropped, which are skipped at their turn."""

    def __len__(self) -> int:
        return len(self._at)

    def get(self, cell: Cell) -> float | None:
        """Return the second at which the cell is due, or None if it is not."""
        return self._at.get(cell)

    def put(self, cell: Cell, at: float) -> None:
        """Let the cell be due at that second, in place of any other."""
        if self._at.get(cell) != at:
            self._at[cell] = at
            heappush(self._heap, (at, cell))

    def put_if_new(self, cell: Cell, at: float) -> None:
        """Let the cell be due at that second, unless it has a due time."""
        if cell not in self._at:
            self.put(cell, at)

    def drop(self, cell: Cell) -> None:
        """Remove the due time of the cell."""
        self._at.pop(cell, None)

    @property
    def next_at(self) -> float:
        """Second at which the next cell is due. Infinity if none is."""
        heap = self._heap
        while heap and self._at.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else inf

    def due(self, now: float, count: int) -> list[Cell]:
        """Return up to `count` due cells, soonest first. They stay due until they are set anew or dropped."""
        due: dict[Cell, float] = {}
        while len(due) < count and self.next_at <= now:
            at, cell = heappop(self._heap)
            due[cell] = at
        for cell, at in due.items():
            heappush(self._heap, (at, cell))
        return list(due)
