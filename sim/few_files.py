"""Simulated peers that keep fewer files open, for worlds of thousands of peers in one process.

A process may open some ten thousand files. All connections to a journal are in this process, so SQLite may keep the
index of the WAL in memory in place of a file (https://www.sqlite.org/vfs.html, "unix-excl"). Each incarnation of a peer
has a directory of its own, so its lock is given back at once. The WAL is opened a second time for as long as it is
looked at. The page log is closed after each write, until it is so large that commits sync it: these sync open logs.

Tests: tests/sim/test_few_files.py
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from kadcrawl.peer.directory import Directory
from kadcrawl.store.journal import UNSYNCED_BYTES
from kadcrawl.store.line_log import LineLog
from kadcrawl.store.wal import Wal

FILES_OF_A_PEER = 4
"""Files that such a peer keeps open: its database, after a checkpoint twice, its WAL and its archive."""


@contextmanager
def few_files() -> Iterator[None]:
    """Let the peers that start in this context keep few files open."""
    connect, append, init, close = sqlite3.connect, LineLog.append, Directory.__init__, Directory.close

    def connect_in_process(database: Any, *args: Any, **options: Any) -> sqlite3.Connection:
        if isinstance(database, Path):
            database, options["uri"] = f"{database.absolute().as_uri()}?vfs=unix-excl", True
        db: sqlite3.Connection = connect(database, *args, **options)
        return db

    def append_and_close(log: LineLog, lines: bytes) -> None:
        append(log, lines)
        if log.fd is not None and log.length - log.synced < UNSYNCED_BYTES:
            os.close(log.fd)
            log.fd = None

    def init_and_unlock(directory: Directory, path: Path) -> None:
        init(directory, path)
        os.close(directory._fd)

    def close_unlocked(directory: Directory) -> None:
        directory._fd = os.open(os.devnull, os.O_RDONLY)
        close(directory)

    with (
        mock.patch("sqlite3.connect", connect_in_process),
        mock.patch.object(LineLog, "append", append_and_close),
        mock.patch.object(Directory, "__init__", init_and_unlock),
        mock.patch.object(Directory, "close", close_unlocked),
        mock.patch("kadcrawl.store.journal.Wal", BriefWal),
    ):
        yield


class BriefWal(Wal):
    """A WAL whose file is open from the begin of a commit to its end only."""

    def __init__(self, journal: Path) -> None:
        """Raises OSError."""
        self._open_fd: int | None = None
        super().__init__(journal)
        self._close_fd()

    @property
    def fd(self) -> int:
        """The descriptor of the file, which `is_large` closes."""
        if self._open_fd is None:
            self._open_fd = os.open(f"{self._journal}-wal", os.O_RDONLY)
        return self._open_fd

    @fd.setter
    def fd(self, fd: int) -> None:
        self._open_fd = fd

    @property
    def size(self) -> int:
        """Bytes of the WAL."""
        return os.stat(f"{self._journal}-wal").st_size

    @property
    def is_large(self) -> bool:
        """As in `Wal`. A commit asks for it at its end."""
        try:
            return super().is_large
        finally:
            self._close_fd()

    def checkpoint(self) -> None:
        """As in `Wal`."""
        try:
            super().checkpoint()
        finally:
            self._close_fd()

    def close(self) -> None:
        self._close_fd()

    def _close_fd(self) -> None:
        if self._open_fd is not None:
            os.close(self._open_fd)
            self._open_fd = None
