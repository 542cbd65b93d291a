"""``python -m scripts.memory_directory`` prints the directory in which ``make test`` makes its temporary files.

The tests make thousands of small journals, and each sync of one to a disk takes CPU and time. Where the system has a
file system in memory, and room in it, the directory is there. Else, or if `TMPDIR` names one, it is the usual one.

Tests: tests/scripts/test_memory_directory.py
"""

import os
import re
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

IN_MEMORY: Final = Path("/dev/shm")
MEMORY_INFO: Final = Path("/proc/meminfo")
ROOM_BYTES: Final = 3 * 1024**3
"""The bytes that must be free: those of the files at one time, and as much for the processes of the tests."""


def memory_free(info: Path = MEMORY_INFO) -> int:
    """Return the bytes of memory that the system could give now, or 0 where it does not tell."""
    with suppress(OSError):
        if found := re.search(r"^MemAvailable:\s*(\d+) kB$", info.read_text(), re.M):
            return 1024 * int(found[1])
    return 0


def has_room(directory: Path, free_bytes: int) -> bool:
    """Return whether new files may be made in a directory in memory, of which `free_bytes` are free."""
    if free_bytes < ROOM_BYTES or not os.access(directory, os.W_OK | os.X_OK):
        return False
    file_system = os.statvfs(directory)
    return file_system.f_bavail * file_system.f_frsize >= ROOM_BYTES


def directory(in_memory: Path = IN_MEMORY) -> Path:
    """Return the directory for temporary files."""
    if "TMPDIR" not in os.environ and has_room(in_memory, memory_free()):
        return in_memory
    return Path(tempfile.gettempdir())


def main() -> None:
    print(directory())


if __name__ == "__main__":
    main()
