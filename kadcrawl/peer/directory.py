"""The directory of a peer, which one process at a time uses.

Tests: tests/peer/test_peer.py
"""

import fcntl
import os
from pathlib import Path

from kadcrawl.errors import StartError
from kadcrawl.system.file_names import LOCK


class Directory:
    """Holds the lock of a peer's directory from construction to `close`."""

    def __init__(self, path: Path) -> None:
        """Make the directory if need be and lock it. Raises StartError if either cannot be done."""
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            os.fchmod(self._fd, 0o600)  # Whoever could open it could take the lock.
        except OSError as error:
            raise StartError(
                f"cannot write to {path}: {error.strerror}; choose another directory with --data"
            ) from None
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._fd)
            raise StartError(
                f"another peer is running in {path}; stop it, or choose another directory with --data"
            ) from None

    def close(self) -> None:
        os.close(self._fd)
