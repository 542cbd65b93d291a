"""The lock that shows whether a process runs a peer in a directory.

Tests: tests/cli/doctor/test_directory_probes.py, tests/cli/test_own_peers.py
"""

import fcntl
import os
from pathlib import Path

from kadcrawl.system.file_names import LOCK


def is_running(directory: Path) -> bool:
    """Return whether a process holds the lock of a peer's directory."""
    try:
        descriptor = os.open(directory / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
