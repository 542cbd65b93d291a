"""`LeanCommits`: the memory that a commit leaves, freed at once where many peers share the memory of a process.

A peer with little to do commits a few writes now and then. Until the next ones, SQLite keeps their statements, the
pages that they have read, and up to 32 kB of the WAL's index: 50 kB together. When a crawl ends, all peers commit at
the same time, and would keep that at the same time.

Tests: tests/store/test_lean_commits.py
"""

import sqlite3
from pathlib import Path
from typing import Final

from kadcrawl.store.statement_cache import drop_statements
from kadcrawl.system.start_up_memory import Mapping, drop_mappings, shared_index

FEW_WRITES: Final = 16
"""Writes of a commit after which the memory is freed. A peer with more of them uses the same memory soon again."""


class LeanCommits:
    """Frees memory of one connection, which must stay open as long as this is used."""

    def __init__(self, cursor: sqlite3.Cursor, journal: Path) -> None:
        self._cursor = cursor
        self._journal = journal
        self._index: list[Mapping] | None = None
        """The WAL's index in memory. It stays in its place until the connection is closed."""

    def free(self, writes: int) -> None:
        """Free what a commit of so many writes has left. No transaction may be open. Raises sqlite3.Error."""
        if writes > FEW_WRITES:
            return
        self._cursor.execute("PRAGMA shrink_memory")
        drop_statements(self._cursor.connection)
        if self._index is None:
            self._index = shared_index(self._journal)
        drop_mappings(self._index)
