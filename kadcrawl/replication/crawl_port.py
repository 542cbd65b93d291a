"""`Crawl`: the crawler as replication sees it, which opens and closes cells and says which work is in progress.

The real one is `CellCrawl` (cell_crawl.py).

Tests: tests/replication/test_cells.py, tests/replication/test_holder_side.py
"""

from collections.abc import Iterable
from typing import Protocol

from kadcrawl.keys import Cell
from kadcrawl.link.wire.messages import SiteRecord


class Crawl(Protocol):
    """The crawling of one peer's cells."""

    def open(self, cell: Cell, *, hold: bool, unsure_since: float | None = None) -> None:
        """Crawl the cell. With `hold` each site first waits a full delay, as no peer passed its clock on.

        `unsure_since` is the last loop second at which a peer that did not say so may have leased shared clocks.
        """

    def close(self, cell: Cell) -> None:
        """Start no more requests of the cell."""

    def is_busy(self, cell: Cell) -> bool:
        """Return whether requests are in flight, or pages are about to be finished."""

    def clocks(self, cell: Cell, most: int) -> list[SiteRecord] | None:
        """Return the clocks of the cell's sites, or None if more than `most` or all on a full delay."""

    def was_crawled_lately(self, cell: Cell) -> bool:
        """Return whether the cell was closed here so recently that its sites may still have to wait."""

    def known_clocks(self, cell: Cell, most: int) -> list[SiteRecord] | None:
        """Return the clocks that this peer knows, or None if more than `most`. The cell may be on a full delay."""

    def told_clocks(self, cell: Cell, most: int) -> list[SiteRecord]:
        """Return the clocks to tell where `clocks` returns None: those known, or else those of sites that refuse."""

    def learn_clocks(self, cell: Cell, sites: Iterable[SiteRecord]) -> None:
        """Leave these sites alone for as long as their clocks say."""

    def in_hand(self, cell: Cell) -> list[bytes]:
        """Return the keys of pages that are fetched here and not finished."""

    def leave_in_hand(self, cell: Cell, keys: Iterable[bytes]) -> None:
        """Postpone these pages, if they are PENDING, as another peer is about to finish them."""
