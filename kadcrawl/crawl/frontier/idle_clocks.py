"""The politeness clocks of sites without work: the second until which each site must still be left alone.

The clocks are kept by cell, as a cell moves with its clocks. They are in memory, because most of them run out within
seconds, and bounded, because a broad crawl touches millions of sites. A decision: times are wall-clock seconds given by
the frontier.

Tests: tests/crawl/frontier/test_frontier.py
"""

from kadcrawl.keys import Cell


class IdleClocks:
    """The seconds before which sites without work must not be asked."""

    def __init__(self, clocks_max: int) -> None:
        self._clocks_max = clocks_max
        self._cells: dict[Cell, dict[str, float]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def hold(self, cell: Cell, name: str, until: float) -> None:
        """Leave the site alone until `until`, unless the site is already held for longer."""
        sites = self._cells.setdefault(cell, {})
        self._count += name not in sites
        sites[name] = max(sites.get(name, 0.0), until)

    def of(self, cell: Cell) -> dict[str, float]:
        """Return the clocks of a cell. Some of the clocks may have run out."""
        return self._cells.get(cell, {})

    def take(self, cell: Cell, name: str) -> float:
        """Return the site's clock and forget it, or 0 if there is none."""
        sites = self._cells.get(cell)
        if sites is None or name not in sites:
            return 0.0
        until = sites.pop(name)
        self._count -= 1
        if not sites:
            del self._cells[cell]
        return until

    def sweep(self, now: float) -> list[tuple[str, float]]:
        """Forget the clocks that have run out, if there are too many clocks.

        If the running clocks fill more than half of the room, the surplus is forgotten as well and returned as (site,
        until).
        """
        if self._count <= self._clocks_max:
            return []
        running = [(cell, name, at) for cell, sites in self._cells.items() for name, at in sites.items() if at > now]
        self._cells.clear()
        self._count = 0
        surplus = max(0, len(running) - self._clocks_max // 2)
        for cell, name, at in running[surplus:]:
            self.hold(cell, name, at)
        return [(name, at) for _, name, at in running[:surplus]]
