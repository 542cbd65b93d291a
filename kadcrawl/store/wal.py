"""The bound on the WAL of a journal: at a size its pages move into the database, and the file starts anew.

A program that reads the journal in one long transaction holds the WAL: it grows as long as that lasts. Nobody waits
for such a reader, the log says so, and the WAL shrinks once the reader ends.

Tests: tests/store/test_wal.py
"""

import contextlib
import logging
import os
import sqlite3
from pathlib import Path

log = logging.getLogger(__name__)

CHECKPOINT_BYTES = 16 * 1024 * 1024
"""Size of the WAL at which its pages are moved into the database, outside the loop's thread."""
HELD_FACTOR = 4
"""A WAL of so many times that size is held by a reader. Each time it is twice as large, the log says so."""


class Wal:
    """The WAL of one journal."""

    def __init__(self, journal: Path) -> None:
        """Raises OSError."""
        self._journal = journal
        self.fd = os.open(f"{journal}-wal", os.O_RDONLY)
        self._is_checkpointed = False
        self._said_bytes = HELD_FACTOR * CHECKPOINT_BYTES // 2

    @property
    def size(self) -> int:
        """Bytes of the WAL."""
        return os.fstat(self.fd).st_size

    @property
    def is_large(self) -> bool:
        """True if it is time for a `checkpoint`."""
        return self.size > CHECKPOINT_BYTES

    def checkpoint(self) -> None:
        """Move pages into the database, for a thread of the executor. Raises sqlite3.Error."""
        with contextlib.closing(sqlite3.connect(self._journal, timeout=1.0)) as db:
            db.execute("PRAGMA wal_checkpoint(PASSIVE)")
        self._is_checkpointed = True

    def restart(self, db: sqlite3.Connection) -> None:
        """Empty the WAL after a checkpoint, between two transactions of `db`, unless a reader needs it.

        This is short, because only the few frames since the checkpoint are left.
        """
        if not self._is_checkpointed:
            return
        self._is_checkpointed = False
        (wait_ms,) = db.execute("PRAGMA busy_timeout").fetchone()
        db.execute("PRAGMA busy_timeout=0")  # Else the loop would wait for the reader.
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.execute(f"PRAGMA busy_timeout={wait_ms}")
        size = self.size
        if size >= 2 * self._said_bytes:
            log.warning("disk.wal_held file=%s-wal bytes=%d", self._journal, size)
            self._said_bytes = size
        elif not size:
            self._said_bytes = HELD_FACTOR * CHECKPOINT_BYTES // 2

    def close(self) -> None:
        os.close(self.fd)
