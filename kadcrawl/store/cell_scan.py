"""Reads of the records of one cell, in key order.

Replication compares and copies cells by these reads.

Tests: tests/replication/test_cells.py, tests/replication/test_anti_entropy.py
"""

from kadcrawl.keys import Cell, Key, anchor, id_bytes
from kadcrawl.store.cell_digest import CellDigest, digest_records
from kadcrawl.store.journal import Journal


class CellScan:
    """The records of each cell as sequences in key order."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._cell_bits = 0

    def begin(self, cell_bits: int) -> None:
        """Set the number of bits of a cell, once the job is known."""
        self._cell_bits = cell_bits

    def records(self, cell: Cell, first: bytes, count: int) -> list[tuple[Key, int]]:
        """Return up to `count` (key, state) of a cell with key >= `first`, in key order.

        `first=b""` begins with the cell. `first=key + b"\\0"` continues after `key`.
        """
        begin, end = self.bounds(cell)
        return self._journal.all_rows(
            (bytes, int),
            "SELECT key, state FROM history WHERE key BETWEEN ? AND ? ORDER BY key LIMIT ?",
            (max(begin, first), end, count),
        )

    def digest_between(self, cell: Cell, first: bytes, before: bytes | None) -> CellDigest:
        """Return the digest of a cell's records with `first` <= key < `before`.

        `b""` and None mean the ends of the cell. Reads about half a million records per second.
        """
        begin, end = self.bounds(cell)
        return digest_records(
            self._journal.rows(
                (bytes, int),
                "SELECT key, state FROM history WHERE key>=? AND key<?",
                (max(begin, first), end + b"\0" if before is None else min(end + b"\0", before)),
            )
        )

    def bounds(self, cell: Cell) -> tuple[bytes, bytes]:
        """Return the first and the last key of a cell."""
        bits = self._cell_bits
        return id_bytes(anchor(cell, bits)), id_bytes(anchor(Cell(cell + 1), bits) - 1)
