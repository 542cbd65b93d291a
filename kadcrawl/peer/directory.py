"""A peer's directory: made if missing, used by one process at a time, and home of one identity."""

import fcntl
import os
from pathlib import Path
from random import Random

from kadcrawl.errors import StartError
from kadcrawl.history.store import Store
from kadcrawl.keys import ID_BITS, id_bytes

LOCK = "lock"


class Directory:
    """Holds the lock of a peer's directory from construction to `close`."""

    def __init__(self, path: Path) -> None:
        """Make the directory if need be and lock it. Raises StartError if either cannot be done."""
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
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


def identity(store: Store, random: Random) -> bytes:
    """Return the 20 bytes of the node ID of this directory's peer, drawn once and journaled."""
    node_id = store.meta("node_id")
    if node_id is None:
        node_id = id_bytes(random.getrandbits(ID_BITS))
        store.set_meta("node_id", node_id)
    return node_id
