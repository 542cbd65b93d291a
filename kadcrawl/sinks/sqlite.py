"""One SQLite file for any number of peers on a machine: tables `pages` and `records`, with one row per key.

The offsets are in the same file and move in the same transaction as the rows. So a crash, even of the machine, undoes
both or neither. Peers that write at the same time wait for each other.

Tests: tests/sinks/test_sqlite.py, tests/sinks/test_sinks.py
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kadcrawl.sinks.batch import BatchSize, DocumentBatch
from kadcrawl.sinks.sink import SinkError
from kadcrawl.sinks.tables import TABLES, row

BUSY_S = 30.0
"""Seconds for which a write waits for the write of another peer."""
OFFSETS = "kadcrawl_marks"
"""Table with the offsets of all logs."""
_ADVICE = {
    sqlite3.SQLITE_READONLY: "is read-only: let this user write to it and to its directory, or name another file",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: name a file that this user may write to, in such a directory",
    sqlite3.SQLITE_NOTADB: "is no SQLite file: name another file",
    sqlite3.SQLITE_CORRUPT: "is damaged: restore it from a backup, or name a new file, which gets all results",
    sqlite3.SQLITE_FULL: "has no room to grow: free space on its disk",
    sqlite3.SQLITE_BUSY: "is locked by another program: end that program's transaction",
    sqlite3.SQLITE_IOERR: "cannot be read or written: look whether its disk is sound and has room",
}
"""What a person can do about a failure, by the primary code of SQLite."""
_TYPES = {"text": "TEXT", "integer": "INTEGER", "json": "TEXT"}


class SqliteSink:
    """A `BlockingSink` that writes to an SQLite file."""

    size = BatchSize(lines_max=1000, bytes_max=4 * 1024 * 1024, wait_s=1.0)

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None

    def open(self) -> None:
        with self._telling():
            self._connect()

    def offset(self, table: str, source: str) -> int:
        question = f"SELECT mark FROM {OFFSETS} WHERE tab=? AND source=?"
        with self._telling():
            found = self._open.execute(question, (table, source)).fetchone()
        return int(found[0]) if found else 0

    def put(self, batch: DocumentBatch) -> Sequence[str]:
        documents, refused = batch.documents()
        with self._telling():
            self._write(batch, [row(batch.table, key, document) for key, document in documents.items()])
        return refused

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    @property
    def _open(self) -> sqlite3.Connection:
        assert self._db is not None, "the sink is open"
        return self._db

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Raise the errors of SQLite that a person can mend as a SinkError that says how."""
        try:
            yield
        except sqlite3.Error as error:
            # An error of the Python module itself has no code.
            advice = _ADVICE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
            if advice is None:
                raise
            raise SinkError(f"its file {advice} ({error})") from error

    def _connect(self) -> None:
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
            if db.in_transaction:  # A full or faulty disk may have ended it.
                db.execute("ROLLBACK")
            raise

    def _write(self, batch: DocumentBatch, rows: Sequence[Sequence[Any]]) -> None:
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
