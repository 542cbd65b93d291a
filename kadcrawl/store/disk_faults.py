"""Faults of the disk are told apart, with the advice for a person.

Tests: tests/store/test_disk_faults.py
"""

import errno
from pathlib import Path

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


def write_fault(failed: str, error: Exception, directory: Path) -> str:
    """Return the sentence about a failed write of the peer of a directory, with what a person can do.

    `failed` says what could not be written, and why.
    """
    return f"{failed}; {advice(error)}" if directory.is_dir() else moved(directory)


def moved(directory: Path) -> str:
    """Return the sentence about a directory that is not at its place any more."""
    return f"{directory} was moved or removed while its peer ran: start again with --data where it is now"


def advice(error: Exception) -> str:
    """Return what a person can do about a failed write. SQLite does not tell a file that is too large from a fault."""
    return MAKE_ROOM if is_disk_full(error) else LOOK_AT_DISK
