"""pages.jsonl: one line per finished URL, whole or not there at all.

A line is first journaled in the store's outbox, with the place in the file where it belongs, and appended to the file
only after that commit; so every line a person sees is DONE, and after a crash `PageLog` writes journaled lines again
at their places. Outbox rows may go once the file itself has been synced beyond them.
"""

import os
from collections.abc import Iterable
from pathlib import Path


class PageLog:
    """The append-only file of page lines."""

    def __init__(self, path: Path, outbox: Iterable[tuple[int, bytes]]) -> None:
        """Open the file and write the journaled (place, line) pairs where they belong. Raises OSError."""
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self.length = os.fstat(self.fd).st_size
        for place, line in outbox:
            os.pwrite(self.fd, line, place)
            self.length = max(self.length, place + len(line))
        self._staged = bytearray()

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
            written += os.pwrite(self.fd, lines[written:], self.length + written)
        self.length += len(lines)
        del self._staged[: len(lines)]

    def close(self) -> None:
        os.close(self.fd)
