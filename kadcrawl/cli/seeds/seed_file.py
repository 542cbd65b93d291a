"""Reads seeds from a file or from standard input: one URL a line, gzip too, of any length.

Blank lines and lines that begin with ``#`` are left out. A line that is no URL is counted, and the first of these are
kept for a person. A batch ends when it is full, or when the input has no more just then, so that the seeds of a slow
pipe do not wait for each other. The reader has a place, in bytes and lines as unpacked. A regular file has a
fingerprint, by which a peer knows up to where the same file was read before.
"""

import gzip
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from io import BufferedReader

from kadcrawl.errors import ConfigError
from kadcrawl.link.wire.seed_messages import STREAM_CHARS_MAX, STREAM_URLS_MAX
from kadcrawl.urls import seed

CHUNK_BYTES = 64 * 1024
LINE_BYTES_MAX = 64 * 1024
"""Bytes of a line that are looked at. No URL is as long, so a longer line is no seed."""
EXAMPLES_MAX = 10
"""Lines that are no seeds and are shown to a person."""
REASON_CHARS_MAX = 200
"""Characters shown of the reason of such a line."""
ENDS_BYTES = 64 * 1024
"""Bytes at the beginning and at the end of a file that its fingerprint covers, with its size and time."""
STANDARD_INPUT = "-"
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class SeedBatch:
    """Seeds of consecutive lines, and the place after the lines."""

    urls: list[str]
    offset: int
    lines: int


class SeedFile:
    """One input of seeds."""

    def __init__(self, name: str) -> None:
        """Open a file, or standard input for ``-``. Raises ConfigError."""
        self.name = "standard input" if name == STANDARD_INPUT else name
        self.offset = 0
        """Bytes read as lines so far."""
        self.lines = 0
        self.bad = 0
        """Lines that are no seeds."""
        self.examples: list[str] = []
        """The first of these, with their numbers and why."""
        try:
            raw = open(0, "rb", closefd=False) if name == STANDARD_INPUT else open(name, "rb")  # noqa: SIM115 -- see close
            self._raw = raw
            self.input = _fingerprint(raw) if name != STANDARD_INPUT else b""
            """The fingerprint of a regular file, or nothing."""
            self._is_packed = raw.peek(2)[:2] == _GZIP
        except OSError as error:
            raise self._unreadable(error) from None
        self._stream = gzip.GzipFile(fileobj=raw) if self._is_packed else raw
        self._rest = b""
        self._is_cut = False
        """The line under way is too long to be looked at."""

    def skip_to(self, offset: int, lines: int) -> None:
        """Go on at this place. Raises ConfigError."""
        try:
            self._stream.seek(offset)
        except (OSError, EOFError) as error:
            raise self._unreadable(error) from None
        self.offset, self.lines, self._rest = offset, lines, b""

    def next_batch(self) -> SeedBatch | None:
        """Return the seeds of the next lines, or None at the end. Waits for the input. Raises ConfigError."""
        urls: dict[str, None] = {}
        chars = 0
        while len(urls) < STREAM_URLS_MAX and chars < STREAM_CHARS_MAX:
            chunk = self._read()
            if not chunk and not self._rest:
                if self._is_cut:
                    self._line(b"", 0)
                return SeedBatch(list(urls), self.offset, self.lines) if urls else None
            for line in self._lines_of(chunk, STREAM_URLS_MAX - len(urls)):
                if (url := self._seed(line)) is not None:
                    chars += len(url)
                    urls[url] = None
            if 0 < len(chunk) < CHUNK_BYTES and urls:
                break
        return SeedBatch(list(urls), self.offset, self.lines)

    def close(self) -> None:
        """Close a file. Standard input stays open."""
        self._raw.close()

    def _read(self) -> bytes:
        if b"\n" in self._rest:
            return b""  # Lines that did not fit the last batch.
        try:
            return self._stream.read1(CHUNK_BYTES)
        except (OSError, EOFError) as error:  # A damaged gzip file is an OSError, and a torn one an EOFError.
            raise self._unreadable(error) from None

    def _lines_of(self, chunk: bytes, most: int) -> Iterator[bytes]:
        """Yield up to `most` whole lines, and keep the rest. Without a chunk the rest is the last line."""
        is_end = not chunk and b"\n" not in self._rest
        data, start = self._rest + chunk, 0
        for _ in range(most):
            end = data.find(b"\n", start)
            if end < 0:
                break
            yield self._line(data[start:end], end + 1 - start)
            start = end + 1
        self._rest = data[start:]
        if is_end and self._rest:
            line, self._rest = self._rest, b""
            yield self._line(line, len(line))
        elif len(self._rest) > LINE_BYTES_MAX and b"\n" not in self._rest:
            self.offset += len(self._rest)
            self._rest, self._is_cut = b"", True

    def _line(self, line: bytes, length: int) -> bytes:
        self.offset += length
        self.lines += 1
        if self._is_cut or length > LINE_BYTES_MAX:
            self._is_cut = False
            self._note(f"longer than {LINE_BYTES_MAX} bytes, so it is no URL")
            return b""
        return line

    def _seed(self, line: bytes) -> str | None:
        try:
            text = line.decode("utf-8-sig" if self.lines == 1 else "utf-8").strip()
            return seed(text) if text and not text.startswith("#") else None
        except (ConfigError, UnicodeDecodeError) as error:
            self._note("no text in UTF-8" if isinstance(error, UnicodeDecodeError) else str(error))
            return None

    def _note(self, why: str) -> None:
        self.bad += 1
        if len(self.examples) < EXAMPLES_MAX:
            self.examples.append(f"line {self.lines}: {why[:REASON_CHARS_MAX]}")

    def _unreadable(self, error: Exception) -> ConfigError:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return ConfigError(f"cannot read seeds from {self.name}: {why}")


def _fingerprint(raw: BufferedReader) -> bytes:
    """Return the fingerprint of a regular file by its size, time and ends, or nothing for a pipe or device."""
    status = os.fstat(raw.fileno())
    if not stat.S_ISREG(status.st_mode):
        return b""
    digest = blake2b(f"{status.st_size} {status.st_mtime_ns} ".encode(), digest_size=16)
    digest.update(os.pread(raw.fileno(), ENDS_BYTES, 0))
    digest.update(os.pread(raw.fileno(), ENDS_BYTES, max(0, status.st_size - ENDS_BYTES)))
    return digest.digest()
