"""The result files that were removed or moved while a peer wrote to them.

A writer looks at the path of its open file before it writes on, and begins a new file if the path no longer leads to
the open file. The lines and records of the lost file are the person's decision. A person hears of it at once, because
few know that a running process holds its files.

Tests: tests/store/test_lost_files.py
"""

import logging
import os
from pathlib import Path

log = logging.getLogger(__name__)

NAMED_MAX = 3
"""Limit on the lost files that one warning names, the latest."""
OTHER = ".other-"
"""Suffix of a file that lay at the path of a lost file, before its number."""


class LostFiles:
    """The files that one peer has lost since a person was last told."""

    def __init__(self) -> None:
        self._lost: dict[Path, Path] = {}
        """Lost file -> the file that goes on, the latest last."""

    def note(self, lost: Path, new: Path) -> None:
        """Note that a file was removed or moved, and that a new file goes on."""
        log.warning("disk.file_lost file=%s new=%s", lost, new)
        self._lost.pop(lost, None)
        self._lost[lost] = new
        if len(self._lost) > NAMED_MAX:
            del self._lost[next(iter(self._lost))]

    def take(self) -> str | None:
        """Return the next warning for a person, or None."""
        lost, self._lost = self._lost, {}
        found = [
            f"{file} was removed or moved while this peer wrote to it; all later results are in "
            f"{'a new file of this name' if file == new else new}"
            for file, new in lost.items()
        ]
        return "; ".join(found) + ". Of a running peer, move or remove full files only" if found else None


def is_lost(path: str, fd: int) -> bool:
    """Return whether a path no longer leads to the open file. Raises OSError."""
    # A text and no Path, and no function of os.path: this is asked for each page.
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return True
    here = os.fstat(fd)
    return there.st_ino != here.st_ino or there.st_dev != here.st_dev


def set_aside(path: Path) -> None:
    """Rename a file with content at this path, so that a new file can be made there. Raises OSError."""
    if not path.exists() or not path.stat().st_size:
        return
    number = 1
    while (other := path.with_name(f"{path.name}{OTHER}{number}")).exists():
        number += 1
    path.rename(other)
    log.warning("disk.file_set_aside file=%s as=%s", path, other)
