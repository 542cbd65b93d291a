"""One SQLite file for any number of peers on a machine: tables `pages` and `records`, with one row per key.

The offsets are in the same file and move in the same transaction as the rows. So a crash, even of the machine, undoes
both or neither. Peers that write at the same time wait for each other.

Tests: tests/sinks/test_sinks.py
"""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from kadcrawl.sinks.batch import BatchSize, DocumentBatch
from kadcrawl.sinks.sink import SinkError
from kadcrawl.sinks.tables import TABLES, row

BUSY_S = 30.0
"""Seconds for which a write waits for the write of another peer."""
OFFSETS = "kadcrawl_marks"
"""Table with the offsets of all logs."""
_TYPES = {"text": "TEXT", "integer": "INTEGER", "json": "TEXT"}


class SqliteSink:
    """A `BlockingSink` that writes to an SQLite file."""

    size = BatchSize(lines_max=1000, bytes_max=4 * 1024 * 1024, wait_s=1.0)

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None

    def open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(self._path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        self._db = db
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")  # A batch counts as delivered, so it must survive a crash of the machine.
        db.execute("BEGIN IMMEDIATE")
        try:
            self._make_tables(db)
            db.execute("COMMIT")
        except BaseException:
            db.execute("ROLLBACK")
            raise

    def offset(self, table: str, source: str) -> int:
        found = self._open.execute(f"SELECT mark FROM {OFFSETS} WHERE tab=? AND source=?", (table, source)).fetchone()
        return int(found[0]) if found else 0

    def put(self, batch: DocumentBatch) -> Sequence[str]:
        documents, refused = batch.documents()
        rows = [row(batch.table, key, document) for key, document in documents.items()]
        db = self._open
        db.execute("BEGIN IMMEDIATE")
        try:
            db.executemany(_UPSERTS[batch.table], rows)
            db.execute(f"INSERT OR REPLACE INTO {OFFSETS} VALUES (?, ?, ?)", (batch.table, batch.source, batch.end))
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        return refused

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    @property
    def _open(self) -> sqlite3.Connection:
        assert self._db is not None, "the sink is open"
        return self._db

    def _make_tables(self, db: sqlite3.Connection) -> None:
        there = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")}
        if OFFSETS not in there and (others := sorted(there & TABLES.keys())):
            raise SinkError(f"{self._path} has a table {others[0]} that is not kadcrawl's; name another file")
        db.execute(
            f"CREATE TABLE IF NOT EXISTS {OFFSETS} (tab TEXT, source TEXT, mark INTEGER, PRIMARY KEY (tab, source))"
        )
        for table, columns in TABLES.items():
            db.execute(f"CREATE TABLE IF NOT EXISTS {table} (key TEXT PRIMARY KEY)")
            known = {column[1] for column in db.execute(f"PRAGMA table_info({table})")}
            for column in columns:
                if column.name not in known:
                    db.execute(f'ALTER TABLE {table} ADD COLUMN "{column.name}" {_TYPES[column.kind]}')


def _upsert(table: str) -> str:
    names = [f'"{column.name}"' for column in TABLES[table]]
    sets = ", ".join(f"{name}=excluded.{name}" for name in names[1:])
    marks = ", ".join("?" * len(names))
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks}) ON CONFLICT (key) DO UPDATE SET {sets}"


_UPSERTS = {table: _upsert(table) for table in TABLES}
