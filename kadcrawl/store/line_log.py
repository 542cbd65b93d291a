"""Files of lines, pages.jsonl and records.jsonl: each line is in the file whole or not at all.

The journal first keeps a line in an outbox table, together with its place in the file. The line is appended to the file
only after that commit, so every line that a person sees belongs to a URL that is DONE. After a crash, `LineLog` writes
the journaled lines again at their places. An outbox row may go once the file itself is synced beyond the line.

Tests: tests/store/test_store.py
"""

import os
from collections.abc import Iterable
from pathlib import Path


class LineLog:
    """One append-only file of lines, made when the first line is written, or at once on request."""

    def __init__(self, path: Path, outbox: Iterable[tuple[int, bytes]], *, made: bool = False) -> None:
        """Write the journaled (place, line) pairs at their places.

        With `made`, the file is made even if there is nothing to write. Raises OSError, and the errors of `outbox`.
        """
        self._path = path
        self.fd: int | None = None
        self.length = 0
        """Length of the file in bytes."""
        self._staged = bytearray()
        try:
            if made or path.exists():
                self._open()
            for place, line in outbox:
                os.pwrite(self._open(), line, place)
                self.length = max(self.length, place + len(line))
        except BaseException:
            self.close()
            raise
        self.synced = self.length
        """Number of bytes of the file known to be on disk."""

    def stage(self, line: bytes) -> int:
        """Keep a line (with its newline) for a later `append`, and return its place in the file."""
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
        written = 0
        while written < len(lines):
            written += os.pwrite(self._open(), lines[written:], self.length + written)
        self.length += len(lines)
        del self._staged[: len(lines)]

    def mark_synced(self, length: int) -> None:
        """Note that the first `length` bytes of the file are on disk."""
        self.synced = length

    def close(self) -> None:
        if self.fd is not None:
            os.close(self.fd)

    def _open(self) -> int:
        if self.fd is None:
            self.fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
            self.length = os.fstat(self.fd).st_size
        return self.fd
