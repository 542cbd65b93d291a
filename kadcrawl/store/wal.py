"""The bound on the WAL of a journal: at a size its pages move into the database, and the file is used anew.

SQLite then writes over the old frames, from the start of the file. The new frames have other salts, so a crash never
mixes them up with old ones. A file that is cut and grows again costs more, as the disk looks for its blocks each time.

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
"""Bytes of frames in the WAL at which its pages are moved into the database, outside the loop's thread."""
KEPT_FACTOR = 2
"""A file of at most so many times that size is used anew. A larger one is cut, as a reader has held it."""
HELD_FACTOR = 4
"""A WAL of so many times that size is held by a reader. Each time it is twice as large, the log says so."""
HEADER_BYTES, FRAME_HEADER_BYTES = 32, 24
"""Bytes before all frames and before each (https://www.sqlite.org/fileformat2.html#the_write_ahead_log)."""
PAGE_BYTES, SALTS, FRAME_SALTS = slice(8, 12), slice(16, 24), slice(8, 16)
"""The size of a page and the salts in the header of the file, and the salts in the header of a frame."""


class Wal:
    """The WAL of one journal."""

    def __init__(self, journal: Path) -> None:
        """Raises OSError."""
        self._journal = journal
        self.fd = os.open(f"{journal}-wal", os.O_RDONLY)
        self._checkpointed: bytes | None = None
        """The salts of the frames of the last checkpoint, until the WAL is to start anew."""
        self._said_bytes = HELD_FACTOR * CHECKPOINT_BYTES // 2
        self._left: tuple[bytes, int] | None = None
        """Salts and size of the file at the last restart. The file has these until the first new frame."""

    @property
    def size(self) -> int:
        """Bytes of the WAL."""
        return os.fstat(self.fd).st_size

    @property
    def is_large(self) -> bool:
        """True if it is time for a `checkpoint`: the frames since the last start go so far."""
        size = self.size
        if size <= CHECKPOINT_BYTES:
            return False
        header = self._header()
        if (header[SALTS], size) == self._left:
            return False
        frame_bytes = FRAME_HEADER_BYTES + int.from_bytes(header[PAGE_BYTES], "big")
        last = HEADER_BYTES + (CHECKPOINT_BYTES - HEADER_BYTES) // frame_bytes * frame_bytes
        return os.pread(self.fd, FRAME_HEADER_BYTES, last)[FRAME_SALTS] == header[SALTS]

    def checkpoint(self) -> None:
        """Move pages into the database, for a thread of the executor. Raises sqlite3.Error."""
        with contextlib.closing(sqlite3.connect(self._journal, timeout=1.0)) as db:
            db.execute("PRAGMA wal_checkpoint(PASSIVE)")
        self._checkpointed = self._header()[SALTS]

    def restart(self, db: sqlite3.Connection) -> None:
        """Let the WAL start anew after a checkpoint, between two transactions of `db`, unless a reader needs it.

        This is short, because only the few frames since the checkpoint are left.
        """
        if self._checkpointed is None:
            return
        has_started = self._header()[SALTS] != self._checkpointed  # By itself, as nothing was written meanwhile.
        self._checkpointed = None
        size = self.size
        if has_started and size <= KEPT_FACTOR * CHECKPOINT_BYTES:
            self._said_bytes = HELD_FACTOR * CHECKPOINT_BYTES // 2
            return
        mode = "RESTART" if size <= KEPT_FACTOR * CHECKPOINT_BYTES else "TRUNCATE"
        (wait_ms,) = db.execute("PRAGMA busy_timeout").fetchone()
        db.execute("PRAGMA busy_timeout=0")  # Else the loop would wait for the reader.
        (is_held, *_) = db.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
        db.execute(f"PRAGMA busy_timeout={wait_ms}")
        if not is_held:
            self._left = self._header()[SALTS], size
            self._said_bytes = HELD_FACTOR * CHECKPOINT_BYTES // 2
        elif size >= 2 * self._said_bytes:
            log.warning("disk.wal_held file=%s-wal bytes=%d", self._journal, size)
            self._said_bytes = size

    def _header(self) -> bytes:
        return os.pread(self.fd, HEADER_BYTES, 0)

    def close(self) -> None:
        os.close(self.fd)
