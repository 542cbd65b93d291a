"""The parts of a file of lines: pages.jsonl is closed at a size as pages-00001.jsonl, and begins anew.

Places in a log count the bytes of all its parts, so an offset stays valid when the file rolls. The *index*
(pages.parts.json) lists the closed parts. The journal has a copy, from which a start writes a lost index anew. A closed
part never changes, and the peer never opens it again once it is described. So it may be moved away, removed, or
replaced by its gzip form (pages-00001.jsonl.gz) while the peer runs.

Tests: tests/store/test_log_parts.py
"""

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import IO, cast

import msgspec

GZIP = ".gz"
LINE_READ_MAX = 16 * 1024 * 1024
"""Limit on the bytes of a line that is read. No line comes near the limit."""
PARTS_MAX = 99_999
"""Limit on the parts of a log."""
_CHUNK_BYTES = 1024 * 1024
UNZIP_ERRORS = (EOFError, zlib.error, gzip.BadGzipFile)
"""The errors of a damaged compressed part."""


class LogPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """A closed part of a log."""

    file: str
    """Name of the file. With `.gz` behind it, it is the same part compressed."""
    begin: int
    """Place of the first byte in the log: the bytes of all earlier parts."""
    bytes: int
    """Bytes of the part, uncompressed."""
    lines: int | None = None
    """Number of lines, or absent as long as the part is not described."""
    first: str = ""
    """`fetched_at` of the first line."""
    last: str = ""
    """`fetched_at` of the last line."""
    sha256: str = ""
    """SHA-256 of the part in hex, uncompressed."""

    @property
    def end(self) -> int:
        return self.begin + self.bytes


class PartIndex(msgspec.Struct, frozen=True, omit_defaults=True):
    """The closed parts of a log, in order."""

    source: str = ""
    """Identity of the log for sinks: a hash of its first line."""
    parts: tuple[LogPart, ...] = ()

    @property
    def end(self) -> int:
        """Place in the log at which the present file begins."""
        return self.parts[-1].end if self.parts else 0


def index_path(path: Path) -> Path:
    """Return the path of the index of the log at this path."""
    return path.with_name(f"{path.stem}.parts.json")


def part_path(path: Path, number: int) -> Path:
    """Return the path of a closed part of the log at this path. The first part has the number 1."""
    return path.with_name(f"{path.stem}-{number:05}{path.suffix}")


def decoded_index(path: Path, content: bytes | None) -> PartIndex | None:
    """Return the index of the log at this path, or None if the content is none."""
    try:
        index = msgspec.json.decode(content or b"", type=PartIndex)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    end = 0
    for number, part in enumerate(index.parts, 1):
        if part.file != part_path(path, number).name or part.begin != end or not 0 < part.bytes < 2**53:
            return None
        end = part.end
    return index


def encoded_index(index: PartIndex) -> bytes:
    """Return the content of an index file: JSON with a line for each part."""
    parts = b",\n ".join(map(msgspec.json.encode, index.parts))
    return b'{"source":%b,"parts":[\n %b\n]}\n' % (msgspec.json.encode(index.source), parts)


def stored_index(path: Path) -> PartIndex | None:
    """Return the index beside the log at this path, or None if it is missing or damaged. Raises OSError."""
    try:
        return decoded_index(path, index_path(path).read_bytes())
    except FileNotFoundError:
        return None


def index_of(path: Path) -> PartIndex:
    """Return the parts of the log at this path, as a reader outside the peer finds them. Raises OSError.

    A part that a crash left without an entry follows the index. Without an index the parts that are there count.
    """
    return completed(path, stored_index(path) or PartIndex(source_of(part_path(path, 1))))


def completed(path: Path, index: PartIndex) -> PartIndex:
    """Return an index with the closed parts that follow it on disk. Raises OSError."""
    parts, end = [*index.parts], index.end
    while file := part_file(path, number := len(parts) + 1):
        size = file.stat().st_size if file.suffix != GZIP else sum(map(len, _blocks(file)))
        if not size:
            break
        parts.append(LogPart(part_path(path, number).name, end, size))
        end += size
    return PartIndex(index.source, tuple(parts))


def source_of(path: Path) -> str:
    """Return the identity of the log that begins with this file, or an empty text before its first line."""
    try:
        with path.open("rb") as log:
            return source_in(log)
    except FileNotFoundError:
        return ""


def source_in(log: IO[bytes]) -> str:
    """Return the identity of the log that begins with an open file, as `source_of` does."""
    line = log.readline(LINE_READ_MAX)
    if not line.endswith(b"\n") and len(line) < LINE_READ_MAX:
        return ""
    return blake2b(line, digest_size=8, person=b"kadcrawl log").hexdigest()


def part_file(path: Path, number: int) -> Path | None:
    """Return the file with a closed part of the log at this path, plain or compressed, or None if it is elsewhere."""
    plain = part_path(path, number)
    return next((file for file in (plain, plain.with_name(plain.name + GZIP)) if file.is_file()), None)


def opened_part(file: Path) -> IO[bytes]:
    """Open the file of a part to be read. Raises OSError."""
    return cast("IO[bytes]", gzip.open(file, "rb")) if file.suffix == GZIP else file.open("rb")


def cut_error(file: Path, there: int, whole: int) -> OSError:
    """Return the error about a part of `whole` bytes, of which only the first `there` bytes can be read."""
    return OSError(
        f"{file} is damaged: {there:,} of its {whole:,} bytes are there; copy it from a backup, or move it away"
    )


def guarded(file: Path, read: Callable[[], bytes]) -> bytes:
    """Return what `read` returns of a part. Raises OSError, also if the compressed form is damaged."""
    try:
        return read()
    except UNZIP_ERRORS as error:
        raise OSError(f"{file} is damaged: {error}; copy it from a backup, or move it away") from error


def log_pieces(path: Path) -> Iterator[tuple[LogPart | None, IO[bytes] | None]]:
    """Yield each closed part of a log with its open file, or without one if it is elsewhere, then the present file.

    The present file comes with no part. A file that rolls meanwhile comes once. The caller closes nothing. Raises
    OSError.
    """
    number = 1
    while True:
        parts = index_of(path).parts
        while number <= len(parts):
            with suppress(FileNotFoundError):  # It was compressed or moved away just now.
                file = part_file(path, number)
                if file is None:
                    yield parts[number - 1], None
                else:
                    with opened_part(file) as part:
                        yield parts[number - 1], part
                number += 1
        try:
            present = path.open("rb")
        except FileNotFoundError:
            if len(index_of(path).parts) == len(parts):  # Else the log is just rolling.
                return
            continue
        with present:
            if len(index_of(path).parts) == len(parts):
                yield None, present
                return


def log_files(path: Path) -> Iterator[IO[bytes]]:
    """Yield the files of a log that are here, opened, in order: closed parts, then the present file. Raises OSError.

    A file that rolls meanwhile comes once. The caller closes nothing.
    """
    return (file for _, file in log_pieces(path) if file is not None)


def log_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a log, as far as its parts are here. Raises OSError.

    The rest of a damaged compressed part is left out.
    """
    for file in log_files(path):
        with suppress(*UNZIP_ERRORS):
            while line := file.readline(LINE_READ_MAX):
                yield line


def has_log(path: Path) -> bool:
    """Return whether a log has content at this path: a present file that is not empty, or a part."""
    return (path.exists() and path.stat().st_size > 0) or index_path(path).exists() or part_path(path, 1).exists()


def described(file: Path, part: LogPart, is_stopped: Callable[[], bool]) -> LogPart | None:
    """Return a part with its figures, read from its file, or None if it was stopped. Raises OSError."""
    digest, lines, first, tail = hashlib.sha256(), 0, b"", b""
    for block in _blocks(file):
        if is_stopped():
            return None
        digest.update(block)
        lines += block.count(b"\n")
        if len(first) < LINE_READ_MAX and b"\n" not in first:
            first += block
        tail = (tail + block)[-_CHUNK_BYTES:]
    last = tail.rstrip(b"\n").rpartition(b"\n")[2]
    return LogPart(
        part.file, part.begin, part.bytes, lines, _time(first.partition(b"\n")[0]), _time(last), digest.hexdigest()
    )


def sync_paths(paths: Iterable[Path]) -> None:
    """Make files, or the names in a directory, durable. Raises OSError."""
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _blocks(file: Path) -> Iterator[bytes]:
    """Yield the bytes of a part, uncompressed. Raises OSError."""
    with opened_part(file) as opened:
        while block := guarded(file, lambda: opened.read(_CHUNK_BYTES)):
            yield block


def _time(line: bytes) -> str:
    """Return the time that a line names, or an empty text."""
    with suppress(ValueError, TypeError, RecursionError):
        fields = json.loads(line)
        if isinstance(fields, dict) and isinstance(time := fields.get("fetched_at"), str):
            return time[:40]
    return ""
