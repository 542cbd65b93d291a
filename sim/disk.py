"""A machine's disk: it survives a kill, and loses of each file a part of what was not synced.

Owns one directory for each incarnation of the peer, so that what a dead one still has open disturbs nobody. `sync`
takes the place of `kadcrawl.store.store.sync_files` and notes how much of each file is safe; a crash keeps that much,
and as much of the rest as chance will have. The database itself is kept whole: SQLite writes to it in checkpoints
only, of frames that are synced already, and syncs it before it drops them. Its shared memory is not kept.

Files only grow between two syncs, or shrink to nothing, so a length says what is safe.
"""

import errno
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any, Literal

DiskState = Literal["same", "old", "none"]
"""What a machine boots with: what its last end left, what an earlier one did, or an empty disk."""

SAFE = "peer.sqlite"
LOST = "peer.sqlite-shm"
PAGES = "pages.jsonl"


class Disk:
    """The disk of one machine, below the directory `root`."""

    def __init__(self, root: Path, random: Random) -> None:
        self.full = False
        self.directory = root
        """Where the incarnation now running has its files."""
        self._root = root
        self._random = random
        self._numbers = 0
        self._wipes = 0
        self._left: Path | None = None
        """What the last end left, untouched."""
        self._old: Path | None = None
        self._synced: dict[tuple[int, int], int] = {}
        """Bytes that are safe, by device and inode."""
        self._lines: dict[tuple[int, int, bytes], None] = {}
        """Page lines by wipes, place and text: one that was written again at its place is the same."""
        self._lines_left: list[tuple[int, int, bytes]] = []
        """Those in the file when power went: if the disk is used again they must be shown again."""

    def boot(self, state: DiskState) -> Path:
        """Return the directory of a new incarnation. A disk that never was "old" is as it was left."""
        source = self._left
        if state == "none":
            source = self._left = self._old = None
            self._wipes += 1
        elif state == "old":
            source = self._old or self._left
        else:
            for line in self._lines_left:
                self._lines.pop(line, None)
        self._lines_left = []
        self._synced.clear()
        self.directory = self._next()
        if source is None:
            self.directory.mkdir(parents=True)
        else:
            shutil.copytree(source, self.directory)
            for path in _files(self.directory):
                self._synced[_inode(os.stat(path))] = path.stat().st_size
        return self.directory

    def sync(self, fds: Iterable[int]) -> None:
        """Make what these files hold by now safe. Raises OSError while the disk is full."""
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        for fd in fds:
            status = os.fstat(fd)
            self._synced[_inode(status)] = status.st_size

    def crash(self) -> None:
        """The peer was killed: what was not synced is lost in part.

        A page line that was shown counts, unless the peer comes back on this very disk and does not show it again.
        """
        self._lines_left = self._read_lines()
        self._end(self._survivors())

    def close(self) -> None:
        """The peer ended by itself: all it has written stays."""
        kept = self._next()
        shutil.copytree(self.directory, kept)
        self._end(kept)

    def snapshot(self) -> None:
        """Keep what a crash would leave now, as the "old" disk."""
        self._forget(self._old)
        self._old = self._survivors()

    def destroy(self) -> None:
        """Remove everything; the lines are remembered."""
        self._read_lines()
        shutil.rmtree(self._root)

    def lines(self) -> list[dict[str, Any]]:
        """Return all page lines the disk ever showed, in the order of their places."""
        self._read_lines()
        return [json.loads(line) for _, _, line in self._lines]

    def _end(self, kept: Path) -> None:
        self._read_lines()
        self._forget(self.directory)
        if self._left is not None:
            self._forget(self._old)
            self._old = self._left
        self._left = kept

    def _survivors(self) -> Path:
        """Make a directory of what a crash would leave."""
        kept = self._next()
        kept.mkdir(parents=True)
        for path in _files(self.directory):
            if path.name == LOST:
                continue
            content = path.read_bytes()
            if path.name != SAFE:
                safe = min(self._synced.get(_inode(path.stat()), 0), len(content))
                content = content[: safe + self._survive(len(content) - safe)]
            copy = kept / path.relative_to(self.directory)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)
        return kept

    def _survive(self, count: int) -> int:
        """Draw how many of the `count` bytes that were not synced are kept: often none, sometimes all."""
        return round(count * min(1.0, max(0.0, self._random.uniform(-1, 1.5))))

    def _read_lines(self) -> list[tuple[int, int, bytes]]:
        """Remember, and return, the lines that are in the file now."""
        path = self.directory / PAGES
        place, found = 0, []
        for line in path.read_bytes().splitlines(keepends=True) if path.exists() else ():
            if line.endswith(b"\n"):
                found.append((self._wipes, place, line))
            place += len(line)
        self._lines.update(dict.fromkeys(found))
        return found

    def _next(self) -> Path:
        self._numbers += 1
        return self._root / str(self._numbers)

    def _forget(self, directory: Path | None) -> None:
        if directory is not None:
            shutil.rmtree(directory)


def _files(directory: Path) -> list[Path]:
    """Return all files below, in one order."""
    return sorted(path for path in directory.rglob("*") if path.is_file())


def _inode(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
