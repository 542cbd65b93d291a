"""What history needs of whoever crawls: to open and close cells, and what is under way in them.

Tests: tests/replication/test_cells.py, tests/replication/test_holder_side.py
"""

from collections.abc import Iterable
from typing import Protocol

from kadcrawl.keys import Cell
from kadcrawl.link.wire.messages import SiteRecord


class Crawl(Protocol):
    """What a peer does with the crawling of a cell."""

    def open(self, cell: Cell, *, hold: bool) -> None:
        """Crawl it; `hold`: each of its sites first waits a full delay, as nobody told its clock."""

    def close(self, cell: Cell) -> None:
        """Start nothing more of it."""

    def is_busy(self, cell: Cell) -> bool:
        """Return whether requests are under way, or pages about to be finished."""

    def clocks(self, cell: Cell, most: int) -> list[SiteRecord] | None:
        """Return how long its sites must be left alone; None if they are more than `most`."""

    def learn_clocks(self, cell: Cell, sites: Iterable[SiteRecord]) -> None:
        """Leave these sites alone for so long."""

    def in_hand(self, cell: Cell) -> list[bytes]:
        """Return the keys of pages that are fetched here and not finished."""

    def leave_in_hand(self, cell: Cell, keys: Iterable[bytes]) -> None:
        """Leave these pages, if they are PENDING, for a while to whoever has them in hand."""
