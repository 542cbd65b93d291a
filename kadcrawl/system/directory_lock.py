"""The lock that shows whether a process runs a peer in a directory.

Tests: tests/cli/doctor/test_directory_probes.py, tests/cli/test_own_peers.py, tests/cli/data_check/test_data_check.py
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kadcrawl.system.file_names import LOCK


def is_running(directory: Path) -> bool:
    """Return whether a process holds the lock of a peer's directory."""
    with held_still(directory) as is_still:
        return not is_still


@contextmanager
def held_still(directory: Path) -> Iterator[bool]:
    """Let no peer start in a directory until the context ends. The value is False if a peer runs there.

    A directory that no peer has used yet cannot be held. In a directory that this user may not read a peer may run.
    """
    try:
        descriptor = os.open(directory / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        yield True
        return
    except OSError:  # Of another user, say: a peer may run there.
        yield False
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)
