"""The frontier table: one row with the text of each PENDING URL.

`Store` inserts and deletes rows in the transaction that changes the state of their key. All reads are of single rows or
of bounded windows.

Tests: tests/store/test_store.py, tests/replication/test_cells.py
"""

from kadcrawl.keys import ID_BYTES, SITE_BYTES, Key
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.journal import Journal

_COLUMNS = "depth, seq, key, site, url, hops, tries, due, trail"
_TYPES = (int, int, bytes, str, str, int, int, float, bytes)

BEYOND_SITE = b"\xff" * (ID_BYTES - SITE_BYTES) + b"\0"
"""Suffix that makes of a site's 12-byte hash the least bytes greater than all keys of the site."""


class FrontierTable:
    """The frontier entries of one peer."""

    def __init__(self, journal: Journal) -> None:
        """Raises StorageError if the table is damaged."""
        self._journal = journal
        self._seq: int = journal.row((int,), "SELECT coalesce(max(seq), 0) FROM frontier")[0]

    def get(self, key: Key) -> FrontierEntry | None:
        """Return the entry of a PENDING key, or None."""
        row = self._journal.row(_TYPES, f"SELECT {_COLUMNS} FROM frontier WHERE key=?", (key,))
        return FrontierEntry._make(row) if row else None

    def window(self, site: str, count: int) -> list[FrontierEntry]:
        """Return the first `count` entries of a site, breadth first."""
        select = f"SELECT {_COLUMNS} FROM frontier WHERE site=? ORDER BY depth, seq LIMIT ?"
        return [FrontierEntry._make(row) for row in self._journal.rows(_TYPES, select, (site, count))]

    def sites(self, begin: bytes, end: bytes, count: int) -> list[tuple[bytes, str]]:
        """Return up to `count` (hash, site) of the sites with entries whose keys lie from `begin` to `end`."""
        found: list[tuple[bytes, str]] = []
        while len(found) < count:
            select = "SELECT key, site FROM frontier WHERE key BETWEEN ? AND ? ORDER BY key LIMIT 1"
            row = self._journal.row((bytes, str), select, (begin, end))
            if row is None:
                break
            site_hash = row[0][:SITE_BYTES]
            found.append((site_hash, row[1]))
            begin = site_hash + BEYOND_SITE
        return found

    def insert(
        self, key: Key, site: str, url: str, depth: int, hops: int, tries: int, due: float, trail: bytes = b""
    ) -> FrontierEntry:
        """Journal a new entry, the last in order of arrival, and return it."""
        self._seq += 1
        entry = FrontierEntry(depth, self._seq, key, site, url, hops, tries, due, trail)
        self._journal.write(f"INSERT INTO frontier({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", entry)
        return entry

    def delete(self, key: Key) -> None:
        self._journal.write("DELETE FROM frontier WHERE key=?", (key,))
