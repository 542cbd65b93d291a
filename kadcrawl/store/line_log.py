"""Files of lines, pages.jsonl and records.jsonl: each line is in the file whole or not at all.

The journal first keeps a line in an outbox table, together with its place in the file. The line is appended to the file
only after that commit, so every line that a person sees belongs to a URL that is DONE. An outbox row may go once the
file is synced well beyond the line (`KEPT_BYTES`).

Opening a `LineLog` mends the end of the file. After a crash the journaled lines are written again at their places. If
the file lost more than a crash takes, and ends before these places, they follow its last whole line. An incomplete last
line that the journal does not have is moved to a file beside the log (`TORN`), so that no later line is glued to it.
Only the end of the file is read, however long the file is.

At a size the file is closed as a part of the log, and a new file begins (log_parts.py). Places count all parts. A file
that a person removes or moves meanwhile counts as a closed part that is elsewhere, so all places stay as they are.

Tests: tests/store/test_line_log.py, tests/store/test_log_parts.py, tests/store/test_store.py
"""

import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from kadcrawl.errors import StorageError
from kadcrawl.store.log_parts import (
    LINE_READ_MAX,
    PARTS_MAX,
    LogPart,
    PartIndex,
    encoded_index,
    index_path,
    part_path,
    source_in,
    source_of,
    stored_index,
    sync_paths,
)
from kadcrawl.store.lost_files import is_lost, set_aside

log = logging.getLogger(__name__)

KEPT_BYTES = 64 * 1024
"""Bytes of lines at the end of the file that stay in the outbox, so that a torn end can be written again: hundreds of
lines, and less than a millisecond at the start."""
MOVE_AWAY = (
    "move this directory away and go on without it: other peers, if there are any, have copies of its records, and its "
    "results stay good"
)
"""Advice for a journal that cannot be mended. It holds for a peer of its own and for a peer of a local crawl."""
TORN = ".torn"
"""Suffix of the file with the incomplete lines that were cut out of a log."""
LINE_BYTES_MAX = LINE_READ_MAX
"""Bytes at the end of a file in which its last newline is looked for. No line comes near the limit."""
_CHUNK_BYTES = 64 * 1024


class LineLog:
    """One append-only log of lines, made when the first line is written, or at once on request."""

    def __init__(
        self, path: Path, outbox: Iterable[tuple[int, bytes]], *, made: bool = False, index: PartIndex | None = None
    ) -> None:
        """Write the journaled (place, line) pairs, sorted by place, and mend the end of the file.

        With `made`, the file is made even if there is nothing to write. `index` are the closed parts. Raises OSError,
        StorageError, and the errors of `outbox`.
        """
        self.path = path
        self._path = str(path)
        self.index = index or PartIndex()
        """The closed parts."""
        self.fd: int | None = None
        self._former_fd: int | None = None
        """The file that was closed last: a thread of an earlier commit may still sync it."""
        self._lost_fds: dict[str, int] = {}
        """The open files of lost parts, by the names of the parts, until they are described."""
        self._base = self.index.end
        """Place of the first byte of the present file."""
        self.length = self._base
        """Length of the log in bytes, with all its parts."""
        self.moved: list[tuple[int, bytes]] | None = None
        """The pairs at the places that they have now, if these are not the journaled places. Else None."""
        self._staged = bytearray()
        self._seen = 0
        """Length of the log up to which its present file was seen at its path."""
        try:
            # A part was on disk as a whole before it was closed.
            rows = [(place, line) for place, line in outbox if place >= self._base or place < 0]
            if made or rows or path.exists():
                self._open()
                self._mend(rows)
        except BaseException:
            self.close()
            raise
        self._seen = self.length
        # Lines in the outbox may have been written by a run that did not sync them, or just now.
        self.synced = rows[0][0] if rows and self.moved is None else self._base
        """Number of bytes of the log known to be on disk."""

    @property
    def present_bytes(self) -> int:
        """Number of bytes of the present file."""
        return self.length - self._base

    def stage(self, line: bytes) -> int:
        """Keep a line (with its newline) for a later `append`, and return its place in the log."""
        place = self.length + len(self._staged)
        self._staged += line
        return place

    def staged(self) -> bytes:
        """Return the lines that are not appended yet. `append` takes them once they are journaled."""
        return bytes(self._staged)

    def append(self, lines: bytes) -> None:
        """Write the first of the staged lines, now journaled, at the end of the file.

        Raises OSError. The journal then still has the lines.
        """
        self._write(self.length, lines)
        self.length += len(lines)
        del self._staged[: len(lines)]
        if not self.is_lost():
            self._seen = self.length

    def mark_synced(self, length: int) -> None:
        """Note that the first `length` bytes of the log are on disk."""
        self.synced = length

    def roll(self, sync: Callable[[Iterable[int]], None]) -> None:
        """Close the present file as a part, and begin a new one. Raises OSError.

        After a failure or a crash in between, the next start finds the part (log_parts.completed).
        """
        number = len(self.index.parts) + 1
        part = part_path(self.path, number)
        if number > PARTS_MAX or part.exists():
            return  # A file that somebody put there stays as it is, and the log goes on in its present file.
        source = self.index.source or source_of(self.path)
        sync([self._open()])
        self.path.rename(part)
        self.synced = self.length
        self._close_former()
        self._former_fd, self.fd = self.fd, None
        entry = LogPart(part.name, self._base, self.present_bytes)
        self._base = self._seen = self.length
        self._open()
        sync_paths((self.path.parent,))
        self.write_index(PartIndex(source, (*self.index.parts, entry)), sync)
        log.info("disk.log_rolled file=%s bytes=%d", part, entry.bytes)

    def is_lost(self) -> bool:
        """Return whether the present file was removed or moved. Call it before each commit. Raises OSError."""
        return self.fd is not None and is_lost(self._path, self.fd)

    def begin_anew(self, sync: Callable[[Iterable[int]], None]) -> None:
        """Begin a new file in place of the present file, which is lost. Raises OSError.

        The lost file becomes a part that is elsewhere. Lines that were appended to a removed file after it was last
        seen are written again, in the new file. A moved file has them.
        """
        lost = self._open()
        end = self._seen if os.fstat(lost).st_nlink == 0 else self.length
        rest = self._read(end, self.length)
        if rest:
            os.ftruncate(lost, end - self._base)
        sync([lost])
        self._close_former()
        if end > self._base:
            with os.fdopen(os.dup(lost), "rb") as file:
                file.seek(0)
                source = self.index.source or source_in(file)
            name = part_path(self.path, len(self.index.parts) + 1).name
            # Before the new file is made: if the peer is killed in between, the journaled lines keep their places.
            parts = (*self.index.parts, LogPart(name, self._base, end - self._base))
            self.write_index(PartIndex(source, parts), sync)
            self._lost_fds[name] = os.dup(lost)
        set_aside(self.path)
        self._former_fd, self.fd = lost, None
        self._base = self.synced = end
        self._open()
        self._write(end, rest)
        self._seen = self.length = end + len(rest)
        sync_paths((self.path.parent,))

    def lost_part(self, name: str) -> Path | None:
        """Return a path at which a lost part can still be read, or None."""
        fd = self._lost_fds.get(name)
        return None if fd is None else Path(f"/dev/fd/{fd}")

    def close_lost_part(self, name: str) -> None:
        """Close the file of a lost part, which has been read."""
        if (fd := self._lost_fds.pop(name, None)) is not None:
            os.close(fd)

    def write_index(self, index: PartIndex, sync: Callable[[Iterable[int]], None]) -> None:
        """Replace the index, whose parts are the closed ones. Raises OSError."""
        new = index_path(self.path).with_name(f".{index_path(self.path).name}.new")
        with new.open("wb") as file:
            file.write(encoded_index(index))
            file.flush()
            sync([file.fileno()])
        new.replace(index_path(self.path))
        self.index = index

    def mend_index(self, sync: Callable[[Iterable[int]], None]) -> None:
        """Write the index anew if the file differs from it, as after a crash. Raises OSError."""
        if self.index.parts and stored_index(self.path) != self.index:
            log.warning("disk.index_written file=%s", index_path(self.path))
            self.write_index(self.index, sync)

    def close(self) -> None:
        self._close_former()
        for name in list(self._lost_fds):
            self.close_lost_part(name)
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None

    def _close_former(self) -> None:
        if self._former_fd is not None:
            os.close(self._former_fd)
            self._former_fd = None

    def _open(self) -> int:
        if self.fd is None:
            self.fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            self.length = self._base + os.fstat(self.fd).st_size
        return self.fd

    def _read(self, begin: int, end: int) -> bytes:
        return os.pread(self._open(), end - begin, begin - self._base)

    def _write(self, place: int, content: bytes) -> None:
        written = 0
        while written < len(content):
            written += os.pwrite(self._open(), content[written:], place - self._base + written)

    # --- the end of the file -----------------------------------------------------------------------------------------

    def _mend(self, rows: list[tuple[int, bytes]]) -> None:
        if rows:
            first, end = rows[0][0], rows[-1][0] + len(rows[-1][1])
            block = b"".join(line for _, line in rows)
            if first < self._base or end - first != len(block) or not block.endswith(b"\n"):
                raise StorageError(f"its last lines of {self.path.name} are damaged; {MOVE_AWAY}")
            if first <= self.length and self._begins_line(first):
                self._write(first, block)
                self.length = max(self.length, end)
            elif first <= self.length and self._read(first, end) == block:
                self._write(first - 1, b"\n")  # Only this byte differs from the journaled file.
            else:
                self._write_elsewhere(rows, block)
        self._cut_torn(self.length)

    def _write_elsewhere(self, rows: list[tuple[int, bytes]], block: bytes) -> None:
        """Write the journaled lines after the last whole line of a file that does not reach to their places."""
        first = rows[0][0]
        self._cut_torn(min(self.length, first))
        before = self._read(max(self._base, self.length - len(block)), self.length)
        # A start that was broken off after this write has left the first of these lines here already.
        ends = (place + len(line) - first for place, line in reversed(rows))
        begin = self.length - next((end for end in ends if before.endswith(block[:end])), 0)
        log.warning("disk.lines_lost file=%s bytes=%d", self.path, first - begin)
        self._write(begin, block)
        self.length = begin + len(block)
        self.moved = [(place - first + begin, line) for place, line in rows]

    def _cut_torn(self, end: int) -> None:
        """Cut the file behind its last whole line that ends at `end` or before. Another file keeps the cut bytes."""
        begin = self._last_line_end(end)
        kept = end if begin is None else begin
        if kept < self.length:
            log.warning("disk.line_torn file=%s bytes=%d", self.path, self.length - kept)
            with open(f"{self.path}{TORN}", "ab") as torn:
                for at in range(kept, self.length, _CHUNK_BYTES):
                    torn.write(self._read(at, min(at + _CHUNK_BYTES, self.length)))
                torn.write(b"\n")
            os.ftruncate(self._open(), kept - self._base)
            self.length = kept
        if begin is None:
            self._write(self.length, b"\n")
            self.length += 1

    def _last_line_end(self, end: int) -> int | None:
        """Return the end of the last whole line up to `end`, or None if the bytes there are no lines at all."""
        at = end
        while at > max(self._base, end - LINE_BYTES_MAX):
            begin = max(self._base, at - _CHUNK_BYTES)
            found = self._read(begin, at).rfind(b"\n")
            if found >= 0:
                return begin + found + 1
            at = begin
        return None if at > self._base else self._base

    def _begins_line(self, place: int) -> bool:
        return place == self._base or self._read(place - 1, place) == b"\n"
