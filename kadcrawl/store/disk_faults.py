"""Faults of the disk are told apart, with the advice for a person.

Tests: tests/store/test_disk_faults.py
"""

import errno

MAKE_ROOM = "make room and start again"
LOOK_AT_DISK = f"look whether the disk is sound and may be written to, or {MAKE_ROOM}"
SQLITE_FULL = 13
"""SQLite's result code of a disk without room."""


def is_disk_full(error: Exception) -> bool:
    """Return whether an error of a file or of SQLite means that the disk is full."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    # Python's own errors, such as for a closed connection, have no code.
    return getattr(error, "sqlite_errorcode", 0) == SQLITE_FULL


def advice(error: Exception) -> str:
    """Return what a person can do about a failed write. SQLite does not tell a file that is too large from a fault."""
    return MAKE_ROOM if is_disk_full(error) else LOOK_AT_DISK
