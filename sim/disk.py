"""The simulated disk of a machine: survives a kill, and loses a part of each file's unsynced bytes.

A `Disk` has one directory for each incarnation of the peer, so files that a dead incarnation still has open disturb
nobody. `sync` replaces `kadcrawl.store.store.sync_files` and notes how many bytes of each file are safe. A crash keeps
these bytes, and a random part of the rest. The database itself is kept whole: SQLite writes to it in checkpoints only,
from frames that are synced already, and syncs it before it drops the frames. The shared memory of the database is not
kept.

Between two syncs files only grow, or shrink to nothing, so a length says which bytes are safe. The WAL is also used
anew from its start. So its length is the place where its present frames end, whatever old frames are behind them.
"""

import errno
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any, Literal

from kadcrawl.store.log_parts import index_path, log_lines
from kadcrawl.store.wal import FRAME_HEADER_BYTES, FRAME_SALTS, HEADER_BYTES, PAGE_BYTES, SALTS

DiskState = Literal["same", "old", "none"]
"""The disk that a machine boots with: as its last end left it, as an earlier end left it, or empty."""

SAFE = "peer.sqlite"
LOST = "peer.sqlite-shm"
WAL = "peer.sqlite-wal"
PAGES = "pages.jsonl"


class Disk:
    """The disk of one machine, below the directory `root`."""

    def __init__(self, root: Path, random: Random) -> None:
        self.full = False
        self.directory = root
        """The directory of the running incarnation."""
        self._root = root
        self._random = random
        self._numbers = 0
        self._wipes = 0
        self._left: Path | None = None
        """The directory that the last end left, never modified."""
        self._old: Path | None = None
        self._synced: dict[tuple[int, int], int] = {}
        """Bytes that are safe, by device and inode."""
        self._wal_salts = b""
        """The salts of the WAL when it was synced. If it has started anew since then, none of its frames is safe."""
        self._lines: dict[tuple[int, int, bytes], dict[str, Any] | None] = {}
        """Page lines by wipes, place and text: a line that was written again at its place is the same. A line is parsed
        when it is first asked for."""
        self._read: tuple[object, list[tuple[int, int, bytes]]] = (None, [])
        """The state of the log when it was last read, and its lines then."""
        self._lines_left: list[tuple[int, int, bytes]] = []
        """The lines in the file at the last power cut. If the disk is used again, the peer must write them again."""

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
        self._wal_salts = b""
        self.directory = self._next()
        if source is None:
            self.directory.mkdir(parents=True)
        else:
            shutil.copytree(source, self.directory)
            wal = self._wal()
            for path in _files(self.directory):
                with path.open("rb") as file:
                    self._note_synced(file.fileno(), wal)
        return self.directory

    def sync(self, fds: Iterable[int]) -> None:
        """Mark the current content of these files as safe. Raises OSError while the disk is full."""
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        wal = self._wal()
        for fd in fds:
            self._note_synced(fd, wal)

    def _note_synced(self, fd: int, wal: tuple[int, int] | None) -> None:
        status = os.fstat(fd)
        inode, length = _inode(status), status.st_size
        if inode == wal:
            header = os.pread(fd, HEADER_BYTES, 0)
            begin = self._synced.get(inode, 0) if self._wal_salts == header[SALTS] else 0
            self._wal_salts, length = header[SALTS], frames_end(fd, header, begin)
        self._synced[inode] = length

    def _wal(self) -> tuple[int, int] | None:
        try:
            return _inode(os.stat(self.directory / WAL))
        except FileNotFoundError:
            return None

    def crash(self) -> None:
        """Lose a random part of the unsynced bytes, because the peer was killed.

        A page line that was in the file still counts, unless the peer boots with state "same" and does not write it
        again.
        """
        self._lines_left = self._read_lines()
        self._end(self._survivors())

    def close(self) -> None:
        """Keep all written bytes, because the peer ended by itself."""
        kept = self._next()
        shutil.copytree(self.directory, kept)
        self._end(kept)

    def snapshot(self) -> None:
        """Keep the files that a crash would leave now, as the "old" disk."""
        self._forget(self._old)
        self._old = self._survivors()

    def destroy(self) -> None:
        """Remove all files, but remember the page lines."""
        self._read_lines()
        shutil.rmtree(self._root)

    def lines(self) -> list[dict[str, Any]]:
        """Return all page lines that were ever on the disk, in the order of their places."""
        self._read_lines()
        return [self._parsed(line) for line in self._lines]

    def _parsed(self, line: tuple[int, int, bytes]) -> dict[str, Any]:
        parsed = self._lines[line]
        if parsed is None:
            parsed = self._lines[line] = json.loads(line[2])
        return parsed

    def _end(self, kept: Path) -> None:
        self._read_lines()
        self._forget(self.directory)
        if self._left is not None:
            self._forget(self._old)
            self._old = self._left
        self._left = kept

    def _survivors(self) -> Path:
        """Create a directory with the files that a crash would leave."""
        kept = self._next()
        kept.mkdir(parents=True)
        for path in _files(self.directory):
            if path.name == LOST:
                continue
            content = path.read_bytes()
            if path.name != SAFE:
                safe = min(self._synced.get(_inode(path.stat()), 0), len(content))
                if path == self.directory / WAL:
                    safe = safe if self._wal_salts == content[SALTS] else 0
                    with path.open("rb") as file:
                        content = content[: frames_end(file.fileno(), content[:HEADER_BYTES], safe)]
                content = content[: safe + self._survive(len(content) - safe)]
            copy = kept / path.relative_to(self.directory)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)
        return kept

    def _survive(self, count: int) -> int:
        """Draw how many of the `count` bytes that were not synced are kept: often none, sometimes all."""
        return round(count * min(1.0, max(0.0, self._random.uniform(-1, 1.5))))

    def _read_lines(self) -> list[tuple[int, int, bytes]]:
        """Remember, and return, the lines that are in the log now.

        A log whose files are the same as before is not read again, as an observer looks several times a second.
        """
        state = self._wipes, self.directory, *map(_state, (self.directory / PAGES, index_path(self.directory / PAGES)))
        before, found = self._read
        if state == before:
            return found
        place, found = 0, []
        for line in log_lines(self.directory / PAGES):
            if line.endswith(b"\n"):
                found.append((self._wipes, place, line))
            place += len(line)
        for one in found:
            self._lines.setdefault(one, None)
        self._read = state, found
        return found

    def _next(self) -> Path:
        self._numbers += 1
        return self._root / str(self._numbers)

    def _forget(self, directory: Path | None) -> None:
        if directory is not None:
            shutil.rmtree(directory)


def frames_end(fd: int, header: bytes, begin: int) -> int:
    """Return the place at which the present frames of a WAL end, given its header and a place where a frame ends."""
    frame_bytes = FRAME_HEADER_BYTES + int.from_bytes(header[PAGE_BYTES], "big")
    end = max(begin, len(header))
    while len(frame := os.pread(fd, FRAME_HEADER_BYTES, end)) == FRAME_HEADER_BYTES and (
        frame[FRAME_SALTS] == header[SALTS]
    ):
        end += frame_bytes
    return end


def _files(directory: Path) -> list[Path]:
    """Return all files below, in one order."""
    return sorted(path for path in directory.rglob("*") if path.is_file())


def _state(path: Path) -> tuple[int, int, int] | None:
    """Return what changes with the content of a file, or None if it is not there."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _inode(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
