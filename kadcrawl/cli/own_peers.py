"""The peers that this user runs on this machine, so that `kadcrawl join` finds the key of a swarm by an address alone.

Each running peer has a file in the user's state directory: its name is the peer's address, and it holds the path of
the peer's directory. The key itself stays in that directory, for this user alone. Only files count that nobody else
could have written, and only while a peer runs in their directory. Whoever answers at the address must still prove that
it has the key, so a false or stale file costs a refusal and gives no key away.

Tests: tests/cli/test_own_peers.py
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

from kadcrawl.system.directory_lock import is_running

PATH_BYTES_MAX = 4096
"""Limit on the path in a file: PATH_MAX of Linux."""
FILES_SWEPT_MAX = 1_000
"""Files that a starting peer looks at to remove those of peers that have ended."""


def note_peer(address: tuple[str, int], data: Path) -> None:
    """Note that a peer of this directory listens at an address. Without a state directory nothing is noted."""
    with suppress(OSError):
        directory = _directory()
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        _sweep(directory)
        unfinished = directory / f".{os.getpid()}"
        with suppress(FileNotFoundError):
            unfinished.unlink()
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w") as file:
            file.write(str(data.absolute()))
        unfinished.replace(directory / _name(address))


def directory_at(address: tuple[str, int]) -> Path | None:
    """Return the directory of this user's peer that runs at an address, or None if no such peer is known."""
    try:
        directory = _directory()
        return _running(directory / _name(address)) if _is_own(directory.lstat()) else None
    except (OSError, ValueError):
        return None


def beside(data: Path) -> Iterator[Path]:
    """Yield this directory, and the names with a number after it."""
    yield data
    stem = re.sub(r"-[0-9]+\Z", "", data.name)
    yield from (data.with_name(f"{stem}-{number}") for number in count(2))


def _directory() -> Path:
    from platformdirs import user_state_path  # Not at the top: a leaf notes nothing.

    return user_state_path("kadcrawl", appauthor=False) / "peers"


def _name(address: tuple[str, int]) -> str:
    host, port = address
    return f"{'127.0.0.1' if host == 'localhost' else host}:{port}"


def _running(path: Path) -> Path | None:
    """Return the directory that a file names, or None if the file is not this user's or no peer runs there.

    Raises OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        if not _is_own(os.fstat(descriptor)):
            return None
        data = Path(os.fsdecode(file.read(PATH_BYTES_MAX)))
    return data if data.is_absolute() and is_running(data) else None


def _is_own(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _sweep(directory: Path) -> None:
    """Remove the files of peers that have ended."""
    for path in list(directory.iterdir())[:FILES_SWEPT_MAX]:
        with suppress(OSError, ValueError):
            if _running(path) is None:
                path.unlink()
