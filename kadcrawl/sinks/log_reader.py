"""A log as its followers see it: bytes that only grow, read from any line on, as far as lines are whole.

The peer appends a line only once it is journaled, and writes the same bytes at the same place again after a crash
(store/line_log.py), so what was read stays true. What stands behind the last newline is somebody's unfinished write.
"""

from hashlib import blake2b
from pathlib import Path

from kadcrawl.sinks.batch import BatchSize, DocumentBatch

LOG_LINE_BYTES_MAX = 16 * 1024 * 1024
"""A longer line is passed over: no page line, and no record of a page that was fetched, comes near."""


class LogReader:
    """One log; opened for each look, so it may come into being at any time."""

    def __init__(self, table: str, path: Path) -> None:
        self.table = table
        self.path = path
        self._source: str | None = None

    def size(self) -> int:
        """Return the bytes of the log, 0 if it is not there."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def source(self) -> str | None:
        """Return what tells this log from all others, a hash of its first line; None before it has one."""
        if self._source is None and self.size():
            with self.path.open("rb") as log:
                line = log.readline(LOG_LINE_BYTES_MAX)
            if line.endswith(b"\n") or len(line) == LOG_LINE_BYTES_MAX:
                self._source = blake2b(line, digest_size=8, person=b"kadcrawl log").hexdigest()
        return self._source

    def begins_line(self, offset: int) -> bool:
        """Return whether a line can begin at this byte."""
        if offset <= 0:
            return offset == 0
        with self.path.open("rb") as log:
            log.seek(offset - 1)
            return log.read(1) == b"\n"

    def read(self, offset: int, size: BatchSize) -> DocumentBatch | None:
        """Return the whole lines from this byte on, at most a batch; None if there is none yet. Raises OSError."""
        source = self.source()
        if source is None:
            return None
        lines: list[bytes] = []
        end = offset
        with self.path.open("rb") as log:
            log.seek(offset)
            while len(lines) < size.lines_max and end - offset < size.bytes_max:
                line = log.readline(LOG_LINE_BYTES_MAX)
                length = len(line)
                last = line
                while last and not last.endswith(b"\n"):
                    last = log.readline(LOG_LINE_BYTES_MAX)
                    length += len(last)
                if not last:
                    break
                lines.append(line if length == len(line) else b"")
                end += length
        return DocumentBatch(self.table, source, offset, end, lines) if lines else None

    def lines_after(self, offset: int) -> int:
        """Return the number of whole lines from this byte on."""
        count = 0
        if self.size() > offset:
            with self.path.open("rb") as log:
                log.seek(offset)
                while chunk := log.read(1024 * 1024):
                    count += chunk.count(b"\n")
        return count
