"""The table of cell digests: a count and a checksum of every cell with records (cell_digest.py).

All digests are in memory, always equal to a scan of the records. So peers compare cells, and a peer starts, without a
read of the records. A commit writes the digests that changed, in the transaction of the records they describe.

Tests: tests/replication/test_cells.py, tests/store/test_store.py
"""

from collections.abc import Iterable

from kadcrawl.keys import Cell, Key
from kadcrawl.store.cell_digest import DIGEST_BYTES, EMPTY, CellDigest
from kadcrawl.store.journal import Journal

KEYS_MAX = 2**53
"""Upper bound on the keys of a cell. A larger number in the table is damage."""


class CellDigestTable:
    """The digests of all cells of one peer."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.cells: dict[Cell, CellDigest] = {}
        """The digest of every cell with records. Read only."""
        self.pending = 0
        """Number of PENDING records in all cells."""
        self._uncommitted: set[Cell] = set()
        """Cells whose row in the table is older than their digest."""
        journal.before_commit(self._write)

    def load(self, cell_bits: int) -> None:
        """Read the digests that earlier runs journaled. Raises StorageError for a damaged digest."""
        for cell, keys, pending, digest in self._journal.rows((int, int, int, bytes), "SELECT * FROM cell"):
            if not (0 <= cell < 1 << cell_bits and 0 <= pending <= keys <= KEYS_MAX and len(digest) == DIGEST_BYTES):
                raise self._journal.damaged("the digest of a cell is impossible")
            self.cells[Cell(cell)] = CellDigest(keys, pending, int.from_bytes(digest, "big"))
            self.pending += pending

    def get(self, cell: Cell) -> CellDigest:
        """Return the digest of a cell, `EMPTY` for a cell without records."""
        return self.cells.get(cell, EMPTY)

    def change(self, cell: Cell, key: Key, before: int | None, after: int) -> None:
        """Note that a record has changed from state `before`, None for a new record, to `after`."""
        known = self.cells.get(cell, EMPTY)
        digest = self.cells[cell] = known.changed(key, before, after)
        self.pending += digest.pending - known.pending
        self._uncommitted.add(cell)

    def put(self, cell: Cell, digest: CellDigest) -> None:
        """Replace the digest of a cell."""
        self.pending += digest.pending - self.cells.get(cell, EMPTY).pending
        if digest.keys:
            self.cells[cell] = digest
        else:
            self.cells.pop(cell, None)
        self._uncommitted.add(cell)

    def _write(self) -> Iterable[int]:
        """Write the digests that changed since the last commit."""
        rows = [
            (cell, digest.keys, digest.pending, digest.digest.to_bytes(DIGEST_BYTES, "big"))
            for cell, digest in ((cell, self.cells.get(cell, EMPTY)) for cell in sorted(self._uncommitted))
        ]
        self._journal.write_in_commit("INSERT OR REPLACE INTO cell VALUES (?, ?, ?, ?)", rows)
        gone = [(cell,) for cell, keys, *_ in rows if not keys]
        self._journal.write_in_commit("DELETE FROM cell WHERE cell=?", gone)
        self._uncommitted.clear()
        return ()
