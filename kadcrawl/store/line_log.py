"""Files of lines, pages.jsonl and records.jsonl: each line whole or not there at all.

A line is first journaled in an outbox of the store, with the place in the file where it belongs, and appended to the
file only after that commit; so every line a person sees is of a URL that is DONE, and after a crash `LineLog` writes
journaled lines again at their places. Outbox rows may go once the file itself has been synced beyond them.

Tests: tests/store/test_store.py
"""

import os
from collections.abc import Iterable
from pathlib import Path


class LineLog:
    """One append-only file of lines. It is made when there is something to write, or at once if asked for."""

    def __init__(self, path: Path, outbox: Iterable[tuple[int, bytes]], *, made: bool = False) -> None:
        """Write the journaled (place, line) pairs where they belong; `made` makes the file anyway.

        Raises OSError, and what `outbox` does.
        """
        self._path = path
        self.fd: int | None = None
        self.length = 0
        """Bytes in the file."""
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
        """Bytes of the file known to be on disk."""

    def stage(self, line: bytes) -> int:
        """Keep a line (with its newline) for a later `append`; return the place it will have in the file."""
        place = self.length + len(self._staged)
        self._staged += line
        return place

    def staged(self) -> bytes:
        """Return the lines not appended yet, to be given to `append` once they are journaled."""
        return bytes(self._staged)

    def append(self, lines: bytes) -> None:
        """Write the first of the staged lines, now journaled, at the end. Raises OSError; the journal has them then."""
        written = 0
        while written < len(lines):
            written += os.pwrite(self._open(), lines[written:], self.length + written)
        self.length += len(lines)
        del self._staged[: len(lines)]

    def close(self) -> None:
        if self.fd is not None:
            os.close(self.fd)

    def _open(self) -> int:
        if self.fd is None:
            self.fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
            self.length = os.fstat(self.fd).st_size
        return self.fd
