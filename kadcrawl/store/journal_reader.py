"""Opens the journal of a peer at rest for reading, also on a disk that cannot be written.

Tests: tests/store/test_journal_reader.py
"""

import os
import sqlite3
from pathlib import Path


def open_at_rest(path: Path) -> sqlite3.Connection:
    """Open a journal that no process writes. Raises sqlite3.Error.

    Reading a journal in WAL mode makes two files beside it, and a WAL of a crash is moved into the journal at the end.
    Where nothing can be written, a journal that was closed well is read as it is.
    """
    if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        return open_unchanged(path)
    return _opened(path, "mode=rw")


def open_unchanged(path: Path) -> sqlite3.Connection:
    """Open a journal for reading, which stays as it is, byte for byte, with its WAL. Its peer may run. Raises
    sqlite3.Error.
    """
    return _opened(path, "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "mode=ro&immutable=1")


def _opened(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)
