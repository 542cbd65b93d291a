"""The fingerprints of done keys, in step with the digests of their cells.

A store of a job with ``history = "bloom"`` keeps no done keys, but epoch filters of their fingerprints (bloom/). The
digest of a cell counts the filters' labels in place of the records.

Tests: tests/store/bloom/test_cell_filters.py
"""

from collections.abc import Callable, Iterable

from kadcrawl.keys import Cell
from kadcrawl.store.bloom.cell_filters import EncodedFilter, ExpiringFilters
from kadcrawl.store.bloom.expiring_filter import ExpiringFilter
from kadcrawl.store.cell_digest import CellDigest
from kadcrawl.store.cell_digest_table import CellDigestTable
from kadcrawl.store.journal import Journal


class Fingerprints:
    """Changes to the epoch filters of whole cells. Each change updates the digest of the cell."""

    def __init__(self, filters: ExpiringFilters, journal: Journal, digests: CellDigestTable) -> None:
        self._filters = filters
        self._digests = digests
        journal.before_commit(self._write_labels)

    def expire(self, cell: Cell) -> None:
        """Forget the fingerprints of a cell that are older than the period."""
        if cell in self._filters:
            self._change(cell, self._filters.expire)

    def forget(self, cell: Cell) -> None:
        """Forget all fingerprints of a cell that other peers hold now."""
        self._change(cell, self._filters.forget)

    def join(self, cell: Cell, epoch_filters: Iterable[EncodedFilter], *, adopt: bool) -> list[ExpiringFilter]:
        """Join the epoch filters of another holder (`ExpiringFilters.join`). Return the news."""
        news: list[ExpiringFilter] = []
        self._change(cell, lambda cell: news.extend(self._filters.join(cell, epoch_filters, adopt=adopt)))
        return news

    def _change(self, cell: Cell, change: Callable[[Cell], object]) -> None:
        before = self._filters.digest(cell)
        change(cell)
        after = self._filters.digest(cell)
        digest = self._digests.get(cell)
        if before != after:
            keys = digest.keys - before.keys + after.keys
            self._digests.put(cell, CellDigest(keys, digest.pending, digest.digest ^ before.digest ^ after.digest))

    def _write_labels(self) -> Iterable[int]:
        """Write the labels of epoch filters that changed since the last commit."""
        self._filters.before_commit()
        return ()
