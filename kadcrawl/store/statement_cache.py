"""The prepared statements that a connection to SQLite keeps: each takes two kilobytes, and the start prepares many.

A connection of Python's SQLite module keeps its last statements, and drops none before it has as many as it may keep.

Tests: tests/store/test_store.py
"""

import gc
import sqlite3


def drop_statements(db: sqlite3.Connection) -> None:
    """Drop the statements that a connection keeps. It prepares a statement again when that is next executed."""
    # The module has no call for this, but its cache is one of `functools`, like any other.
    for part in gc.get_referents(db):
        if (clear := getattr(part, "cache_clear", None)) is not None:
            clear()
