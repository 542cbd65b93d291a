"""The limit on the open files of this process, and the room below it.

Tests: tests/system/test_open_files.py
"""

import os
import platform
import resource
from contextlib import suppress

FILES_OF_A_PEER = 16
"""Files that a peer keeps open: the lock, five of the journal, the record of pages being read, the outputs, and two
sockets, which are twelve. The others are for the first requests."""


def raise_limit() -> None:
    """Raise the soft limit on open files to the hard limit. The soft limit is often 1024 for the sake of select()."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # Some systems call a limit unlimited that is not.
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def files_allowed() -> int | None:
    """Return the number of files that this process may have open, or None without a limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def has_room(count: int) -> bool:
    """Return whether this process may open so many more files now. It tries, as no system tells."""
    opened: list[int] = []
    try:
        opened.extend(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) for _ in range(count))
    except OSError:
        return False
    else:
        return True
    finally:
        for descriptor in opened:
            os.close(descriptor)


def how_to_allow(count: int) -> str:
    """Return what a person runs so that a process may open so many files."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or hard >= count:
        return f"run `ulimit -n {count}` in this shell before"
    if platform.system() == "Linux":
        return f"run `sudo prlimit --pid $$ --nofile={count}:{count}` in this shell before"
    return f"have the administrator raise the limit (`ulimit -Hn`) to {count}"
