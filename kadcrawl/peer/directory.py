"""The directory of a peer, which one process at a time uses.

A start that is refused, as its options are wrong or its swarm does not answer, leaves no new directory behind. The next
start would take it for the directory of a peer, and go on with its address.

Tests: tests/peer/test_directory.py, tests/cli/test_command_failed_start.py
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from kadcrawl.errors import StartError
from kadcrawl.system.file_names import ADDRESS, JOURNAL, LOCK, PAGE_LOG

OF_NO_PEER = (
    *(JOURNAL, f"{JOURNAL}-wal", f"{JOURNAL}-shm", f"{JOURNAL}-journal"),
    *(PAGE_LOG, ADDRESS, "reading", "peer.log", LOCK),
)
"""The files that a peer makes before it begins, the lock last."""
TRIES_MAX = 3
"""Limit on the tries to lock a directory that another process removes at that moment."""


class Directory:
    """Holds the lock of a peer's directory from construction to `close`."""

    def __init__(self, path: Path) -> None:
        """Make the directory if need be and lock it. Raises StartError if either cannot be done."""
        self.path = path
        self.is_refused = False
        """True if the start was refused, so that `close` removes the directory if it is new."""
        self._made = [one for one in (path, *path.parents) if not one.exists()]
        for _ in range(TRIES_MAX):
            self._fd = self._locked()
            with suppress(OSError):
                if os.path.samestat(os.fstat(self._fd), (path / LOCK).stat()):
                    break
            os.close(self._fd)
        else:
            raise StartError(f"{path} is removed again and again; choose another directory with --data")
        self._is_new = {LOCK}.issuperset(os.listdir(path))

    def close(self) -> None:
        """Give the lock back. The new directory of a refused start is removed before."""
        if self._is_new and self.is_refused:
            for name in OF_NO_PEER:
                with suppress(OSError):
                    (self.path / name).unlink()
            with suppress(OSError):  # Somebody may have put other files there.
                for directory in self._made:
                    directory.rmdir()
        os.close(self._fd)

    def _locked(self) -> int:
        """Return the descriptor of the locked file. Raises StartError."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            fd = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            os.fchmod(fd, 0o600)  # Whoever could open it could take the lock.
        except OSError as error:
            raise StartError(
                f"cannot write to {self.path}: {error.strerror}; choose another directory with --data"
            ) from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            raise StartError(
                f"another peer is running in {self.path}; stop it, or choose another directory with --data"
            ) from None
        return fd
