"""A log as its sinks read it: bytes that only grow, readable from any line on, as far as lines are whole.

The peer appends a line only after it is journaled, and writes the same bytes at the same place again after a crash
(store/line_log.py). So the bytes that were read stay valid. Bytes after the last newline are an unfinished write.
"""

from hashlib import blake2b
from pathlib import Path

from kadcrawl.sinks.batch import BatchSize, DocumentBatch

LOG_LINE_BYTES_MAX = 16 * 1024 * 1024
"""Limit on the bytes of a line. Longer lines are skipped, and no page line or record comes near the limit."""


class LogReader:
    """One log. The reader opens the file for each read, so the file may appear at any time."""

    def __init__(self, table: str, path: Path) -> None:
        self.table = table
        self.path = path
        self._source: str | None = None

    def size(self) -> int:
        """Return the size of the log in bytes, 0 if the file does not exist."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def source(self) -> str | None:
        """Return the identity of this log, a hash of its first line, or None before that line."""
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
        """Return a batch of whole lines from this byte on, or None if there is none yet. Raises OSError."""
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
