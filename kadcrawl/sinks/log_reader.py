"""A log as its sinks read it: bytes that only grow, readable from any line on, as far as lines are whole.

The peer appends a line only after it is journaled, and writes the same bytes at the same place again after a crash
(store/line_log.py). So the bytes that were read stay valid. Bytes after the last newline are an unfinished write.

Offsets count the bytes of all parts of the log (store/log_parts.py). Closed parts may be compressed, or elsewhere: then
the reader skips them.
"""

from math import inf
from pathlib import Path
from typing import IO, NamedTuple

from kadcrawl.sinks.batch import BatchSize, DocumentBatch
from kadcrawl.store.log_parts import (
    GZIP,
    LINE_READ_MAX,
    LogPart,
    PartIndex,
    cut_error,
    guarded,
    index_of,
    index_path,
    opened_part,
    part_file,
    source_of,
)

LOG_LINE_BYTES_MAX = LINE_READ_MAX
"""Limit on the bytes of a line. Longer lines are skipped, and no page line or record comes near the limit."""


class _Piece(NamedTuple):
    """A file of the log, and its place."""

    file: Path
    begin: int
    end: int | None
    """End of a closed part, or None for the present file, which grows."""


class LogReader:
    """One log. The reader looks for its files at each read, so they may appear, roll and go at any time."""

    def __init__(self, table: str, path: Path) -> None:
        self.table = table
        self.path = path
        self._source: str | None = None
        self._index = PartIndex()
        self._index_stamp: tuple[int, ...] = ()
        self._packed: tuple[Path, IO[bytes]] | None = None
        """The compressed part that is being read. To open it at an offset means to unpack it from the beginning."""

    def size(self) -> int:
        """Return the size of the log in bytes, 0 if there is none."""
        while True:
            index = self._parts()
            try:
                size = self.path.stat().st_size
            except FileNotFoundError:
                size = 0
            if self._parts() is index:  # Else it has rolled in between.
                return index.end + size

    def source(self) -> str | None:
        """Return the identity of this log, a hash of its first line, or None before that line."""
        if self._source is None:
            self._source = self._parts().source or source_of(self.path) or None
        return self._source

    def begins_line(self, offset: int) -> bool:
        """Return whether a line can begin at this byte. Of a part that is elsewhere, all bytes can."""
        if offset <= 0:
            return offset == 0
        piece = self._piece(offset - 1)
        if piece is None or offset == piece.end:
            return True
        with opened_part(piece.file) as log:
            log.seek(offset - 1 - piece.begin)
            return guarded(piece.file, lambda: log.read(1)) == b"\n"

    def next_here(self, offset: int) -> int:
        """Return the first offset from this one on that is not in a part elsewhere."""
        for number, part in enumerate(self._parts().parts, 1):
            if part.begin <= offset < part.end and part_file(self.path, number) is None:
                offset = part.end
        return offset

    def parts_between(self, offset: int, end: int) -> list[LogPart]:
        """Return the parts with bytes from an offset up to `end`, which is the end of a part."""
        return [part for part in self._parts().parts if offset < part.end <= end]

    def close(self) -> None:
        """Close the file that is open. Further reads are allowed."""
        if self._packed is not None:
            self._packed[1].close()
            self._packed = None

    def read(self, offset: int, size: BatchSize) -> DocumentBatch | None:
        """Return a batch of whole lines from this byte on, or None if there is none yet. Raises OSError."""
        source = self.source()
        if source is None:
            return None
        while (piece := self._piece(offset)) is not None:
            log = self._opened(piece, offset)
            try:
                lines, end = _lines_at(piece, log, offset, size)
            finally:
                if self._packed is None or self._packed[1] is not log:
                    log.close()
            if lines:
                return DocumentBatch(self.table, source, offset, end, lines)
            if piece.end is None:
                return None
            raise cut_error(piece.file, offset - piece.begin, piece.end - piece.begin)
        return None

    def lines_after(self, offset: int) -> int:
        """Return the number of whole lines from this byte on, as far as they are here."""
        count = 0
        while (offset := self.next_here(offset)) < self.size() and (piece := self._piece(offset)) is not None:
            with opened_part(piece.file) as log:
                log.seek(offset - piece.begin)
                while chunk := guarded(piece.file, lambda log=log: log.read(1024 * 1024)):  # type: ignore[misc]
                    count += chunk.count(b"\n")
            if piece.end is None:
                break
            offset = piece.end
        return count

    def _parts(self) -> PartIndex:
        """Return the closed parts. The same object means that nothing has rolled."""
        stamp = self._stamp()
        while stamp != self._index_stamp:
            self._index = index_of(self.path)
            self._index_stamp, stamp = stamp, self._stamp()
        return self._index

    def _stamp(self) -> tuple[int, ...]:
        stamps = []
        for path in (self.path, index_path(self.path)):
            try:
                status = path.stat()
            except FileNotFoundError:
                stamps += [0, 0]
            else:
                stamps += [status.st_ino, status.st_mtime_ns if path != self.path else 0]
        return tuple(stamps)

    def _piece(self, offset: int) -> _Piece | None:
        """Return the file with the byte at an offset, or None if it is elsewhere."""
        index = self._parts()
        if offset >= index.end:
            return _Piece(self.path, index.end, None) if self.path.exists() else None
        for number, part in enumerate(index.parts, 1):
            if part.begin <= offset < part.end and (file := part_file(self.path, number)):
                return _Piece(file, part.begin, part.end)
        return None

    def _opened(self, piece: _Piece, offset: int) -> IO[bytes]:
        """Return an open file at an offset. A compressed part stays open for the next read."""
        if piece.file.suffix == GZIP:
            if self._packed is None or self._packed[0] != piece.file:
                self.close()
                self._packed = piece.file, opened_part(piece.file)
            log = self._packed[1]
        else:
            self.close()
            log = piece.file.open("rb")
        try:
            guarded(piece.file, lambda: b"%d" % log.seek(offset - piece.begin))
        except BaseException:
            log.close()
            self._packed = None
            raise
        return log


def _lines_at(piece: _Piece, log: IO[bytes], offset: int, size: BatchSize) -> tuple[list[bytes], int]:
    """Return whole lines from the present position on, which is this offset, and the offset behind them."""
    lines: list[bytes] = []
    file, end, last_end = piece.file, offset, inf if piece.end is None else piece.end
    while len(lines) < size.lines_max and end - offset < size.bytes_max and end < last_end:
        line = guarded(file, lambda: log.readline(LOG_LINE_BYTES_MAX))
        length = len(line)
        last = line
        while last and not last.endswith(b"\n"):
            last = guarded(file, lambda: log.readline(LOG_LINE_BYTES_MAX))
            length += len(last)
        if not last:
            break
        lines.append(line if length == len(line) else b"")
        end += length
    return lines, end if piece.end is None else min(end, piece.end)
