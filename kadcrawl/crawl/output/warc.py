"""The archive: every answered request as a WARC 1.1 response record and its request record (ISO 28500:2017).

A `WarcWriter` owns the files ``NAME-00001.warc.gz``, ... of one directory. The peer writes after each fetch, and
journals the `position` reached with each group commit. Invariant: a file is a sequence of whole gzip members, one per
record, and the first member is a warcinfo record. Bytes beyond that, after a crash or on a full disk, are cut off: by
`open` back to the journaled position or the last whole record (`warc_end`), by `flush` back to the last whole batch.
Records follow in the next file when a person has removed or moved the file that is being written.

A page that has not changed since an earlier record gets a revisit record without a body, which names the earlier record
(6.7).

Bodies are kept as received, with their Content-Encoding. Only the chunked framing is gone, as the HTTP client removes
it. Transfer-Encoding is therefore renamed ``X-Crawl-Transfer-Encoding``, as in Common Crawl, so that replay does not
look for chunks. Header lines are formatted here and gzip members are made by isal, because warcio's writer costs
several times as much. A response has the digest of its payload, and no second digest of nearly the same bytes as its
block, which WARC leaves optional (5.8): the checksum of the gzip member covers the whole record. warcio, fastwarc and
pywb check the files in the tests.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from random import Random
from typing import Final

from isal import igzip_lib

from kadcrawl.crawl.fetch.result import FetchError, FetchResult
from kadcrawl.crawl.output.cdxj import INDEX_SUFFIX, WARC_SUFFIX
from kadcrawl.crawl.output.warc_end import close_torn, cut_torn
from kadcrawl.store.lost_files import is_lost

PENDING_BYTES_MAX: Final = 1024 * 1024
"""Compressed bytes of records held back for the next `flush`. Above this number `write` flushes by itself."""
GZIP_LEVEL: Final = 1
"""Compression level of isal, 0 to 3. Level 1 leaves 18 % of a page in an eighth of zlib's time, and level 3 leaves 17 %
in twice that time."""

_WARC_1_1 = "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
_REVISIT = "http://netpreserve.org/warc/1.1/revisit/"
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,200}")
_NUMBER = re.compile(r"-(\d{5,9})\.warc\.gz\Z")
"""The number in the name of a WARC file, whatever the job was called then."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_UUID_VERSION_4: Final = 0x4 << 76 | 0x8 << 60
_UUID_RANDOM: Final = (1 << 128) - 1 ^ 0xF << 76 ^ 0xC << 60
"""The bits of a UUID that are random, and those that say so (RFC 9562, 5.4)."""
_BASE32: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_BASE32_PAIRS: Final = [one + two for one in _BASE32 for two in _BASE32]
_SHA1_SHIFTS: Final = range(150, -1, -10)
"""The places of the 16 pairs of characters in a SHA-1, from the first to the last."""
_WARC_TRUNCATED = {
    FetchError.BODY_TOO_LARGE: "length",
    FetchError.NO_MEMORY: "length",
    FetchError.TIMEOUT: "time",
    FetchError.IDLE: "time",
    FetchError.TOO_SLOW: "time",
    FetchError.TRUNCATED: "disconnect",
    FetchError.KEPT_WAITING: "disconnect",
    FetchError.PROTOCOL: "unspecified",
}


@dataclass(slots=True)
class WarcPlace:
    """The place of a record: a gzip member of `length` bytes at `offset` in `file` (a name without directory)."""

    file: str
    offset: int
    length: int
    payload_digest: str
    """The digest of the body as received: ``sha1:`` and base32, as in the record."""
    date: str
    """WARC-Date of the record."""


@dataclass(frozen=True, slots=True)
class Original:
    """The response record to which a revisit record refers: a record of the same URL, in any file of any peer."""

    payload_digest: str
    date: str


def warc_name(job: str, peer: str) -> str:
    """Return the name of a peer's WARC files, made of the job and the peer's ID.

    The name is safe on every file system.
    """
    return f"kadcrawl-{_UNSAFE.sub('_', job)[:100]}-{_UNSAFE.sub('_', peer)[:8]}"


class WarcWriter:
    """Appends records to the newest file of one directory, and begins the next file at `bytes_max`.

    Tasks that wait between calls must not share a writer. Each method is plain and returns when it is done.
    """

    def __init__(
        self,
        directory: Path,
        name: str,
        info: Mapping[str, str],
        bytes_max: int,
        random: Random,
        now: Callable[[], float],
    ) -> None:
        """Make a writer. Callers use `open`."""
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no WARC name: make one with warc_name()")
        self._directory = directory
        self._name = name
        self._info = info
        self._bytes_max = bytes_max
        self._random = random
        self._now = now
        self._number = 0
        self._file: FileIO | None = None
        self._finished: list[FileIO] = []
        self._file_name = ""
        self._path = ""
        """The path of the file being written."""
        self._flushed = 0
        self._pages = False
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._lost: Callable[[Path, Path], None] = lambda lost, new: None

    @classmethod
    def open(
        cls,
        directory: Path,
        name: str,
        committed: tuple[str, int] | None,
        *,
        info: Mapping[str, str],
        bytes_max: int,
        random: Random,
        now: Callable[[], float],
        known: Callable[[str], Iterable[int]] = lambda file: (),
        lost: Callable[[Path, Path], None] = lambda lost, new: None,
    ) -> "WarcWriter":
        """Return a writer that goes on at the journaled position.

        `committed` is the last journaled `position`. Bytes behind this position, in its file and in later files, are
        removed: the journal knows nothing of them, and the pages will be fetched again. If the file is gone, or with
        None, nothing is removed and a new file is begun: archives are never deleted on a guess. If the file is shorter
        than journaled, it is closed after its last whole record, and a new file is begun. So journal the position once
        right after opening. The number of a new file is above those of all files and indexes here, and of the journaled
        file: a person may have moved that file to a place where a second file of its name would overwrite it.

        `info` are the fields of each file's warcinfo record, and `bytes_max` is the size at which a file ends. `now`
        returns seconds since 1970. `known` returns offsets of records in a file. `lost` is called with a file that was
        removed or moved while it was written, and with the file that goes on. Raises OSError.
        """
        writer = cls(directory, name, info, bytes_max, random, now)
        writer._lost = lost
        directory.mkdir(parents=True, exist_ok=True)
        numbers = writer._numbers(WARC_SUFFIX)
        if committed is not None and writer._resume(*committed):
            for number in numbers:
                if number > writer._number:
                    (directory / writer._file_of(number)).unlink()
        else:
            found = _NUMBER.search(committed[0]) if committed is not None else None
            journaled = int(found[1]) if found else 0
            if committed is not None and writer._number_of(committed[0], WARC_SUFFIX) in numbers:
                close_torn(directory / committed[0], committed[1], known(committed[0]))
            else:
                for number in numbers:  # A crash may have torn a file that followed the missing one.
                    if journaled and number > journaled:
                        cut_torn(directory / writer._file_of(number))
            writer._begin(max(journaled, writer._last_number()) + 1)
            writer.flush()
        return writer

    @property
    def position(self) -> tuple[str, int]:
        """The file being written and its length after `flush`, for the journal."""
        return self._file_name, self._flushed + self._pending_bytes

    def write(self, result: FetchResult, original: Original | None = None) -> WarcPlace:
        """Add the response and request records of an answered request, and return the place of the response.

        With `original`, a record of this URL with the same body, the response is a revisit record. The records are in
        the file after `flush`. Raises OSError if the disk is full or broken. Nothing of this request was added then,
        and the call may be repeated.
        """
        if result.status is None:
            raise ValueError("there is no answer to archive")
        date = _warc_date(result.started_at)
        response, request, payload_digest = self._records(result, original, date)
        length = len(response) + len(request)
        if self._file is not None and is_lost(self._path, self._file.fileno()):
            self._follow_lost()
        if self._pending_bytes >= PENDING_BYTES_MAX:
            self._write_out()
        if self._flushed + self._pending_bytes + length > self._bytes_max and self._pages:
            self._roll(self._number + 1)
        offset = self._flushed + self._pending_bytes
        place = WarcPlace(self._file_name, offset, len(response), payload_digest, date)
        self._append(response)
        self._append(request)
        self._pages = True
        return place

    def flush(self) -> None:
        """Hand all records to the operating system: the records then survive the process, but not yet the machine.

        Raises OSError. The file then ends after the last record of the flush before, and the call may be repeated.
        """
        while self._finished:
            self._finished.pop().close()
        self._write_out()

    def sync(self) -> None:
        """Flush, and wait until the records are on the disk. Raises OSError."""
        self.flush()
        os.fsync(self.fileno())

    def fileno(self) -> int:
        """Return the descriptor of the file being written, to be synced by a thread: open until the next flush.

        A file that ends before the next flush has been synced already.
        """
        assert self._file is not None, "the writer is open"
        return self._file.fileno()

    def close(self) -> None:
        """Sync and close the file. Raises OSError, and closes the file even then."""
        if self._file is None:
            return
        try:
            self.sync()
        finally:
            self._file.close()
            self._file = None

    def _resume(self, file: str, length: int) -> bool:
        """Go on in a journaled file, cut to its journaled length. Return False if the file is missing or shorter."""
        number = self._number_of(file, WARC_SUFFIX)
        path = self._directory / file
        if number is None or not path.is_file() or not 0 < length <= path.stat().st_size:
            return False
        self._file = FileIO(path, "r+")
        self._file.truncate(length)
        self._file.seek(length)
        self._number, self._file_name, self._flushed, self._pages = number, file, length, True
        self._path = str(path)
        return True

    def _follow_lost(self) -> None:
        """Begin the next file, as the present file was removed or moved. A file of another name overwrites nothing."""
        lost = self._directory / self._file_name
        self._directory.mkdir(exist_ok=True)
        self._roll(max(self._number, self._last_number()) + 1)
        self._lost(lost, self._directory / self._file_name)

    def _roll(self, number: int) -> None:
        self._write_out()
        os.fsync(self.fileno())
        finished = self._file
        self._begin(number)
        assert finished is not None, "a file to follow was open"
        self._finished.append(finished)

    def _begin(self, number: int) -> None:
        file_name = self._file_of(number)
        path = self._directory / file_name
        self._file = FileIO(path, "x")
        self._path = str(path)
        self._number, self._file_name, self._flushed, self._pages = number, file_name, 0, False
        self._append(self._warcinfo())

    def _write_out(self) -> None:
        if not self._pending:
            return
        assert self._file is not None, "records wait for an open file"
        batch = memoryview(b"".join(self._pending))
        written = 0
        try:
            while written < len(batch):
                written += self._file.write(batch[written:]) or 0
        except OSError:
            with suppress(OSError):
                self._file.truncate(self._flushed)
            self._file.seek(self._flushed)
            raise
        self._flushed += written
        self._pending.clear()
        self._pending_bytes = 0

    def _append(self, record: bytes) -> None:
        self._pending.append(record)
        self._pending_bytes += len(record)

    def _warcinfo(self) -> bytes:
        fields = {"format": "WARC File Format 1.1", "conformsTo": _WARC_1_1, **self._info}
        block = "".join(f"{name}: {' '.join(value.split())}\r\n" for name, value in fields.items()).encode()
        return _member(
            f"WARC-Type: warcinfo\r\nWARC-Record-ID: {self._record_id()}\r\n"
            f"WARC-Date: {_warc_date(datetime.fromtimestamp(self._now(), UTC))}\r\nWARC-Filename: {self._file_name}\r\n"
            f"WARC-Block-Digest: {digest_of(block)}\r\n"
            "Content-Type: application/warc-fields\r\n",
            block,
        )

    def _records(self, result: FetchResult, original: Original | None, date: str) -> tuple[bytes, bytes, str]:
        """Return the response record, the request record, each a gzip member, and the payload digest."""
        head = _response_head(result)
        body = b"" if original else result.body
        payload_digest = original.payload_digest if original else digest_of(body)
        response_id = self._record_id()
        common = f"WARC-Date: {date}\r\nWARC-Target-URI: {result.url}\r\n"
        if result.address:
            common += f"WARC-IP-Address: {result.address}\r\n"
        cut = _WARC_TRUNCATED.get(result.error) if result.error is not None else None
        truncated = f"WARC-Truncated: {cut}\r\n" if cut is not None else ""
        response = _member(
            f"WARC-Type: {'revisit' if original else 'response'}\r\nWARC-Record-ID: {response_id}\r\n"
            f"{common}{truncated}{_referring(result, original) if original else ''}"
            f"WARC-Payload-Digest: {payload_digest}\r\n"
            "Content-Type: application/http; msgtype=response\r\n",
            head,
            body,
        )
        request = _member(
            f"WARC-Type: request\r\nWARC-Record-ID: {self._record_id()}\r\n{common}"
            f"WARC-Concurrent-To: {response_id}\r\n"
            "Content-Type: application/http; msgtype=request\r\n",
            result.request_head,
        )
        return response, request, payload_digest

    def _record_id(self) -> str:
        digits = "%032x" % (self._random.getrandbits(128) & _UUID_RANDOM | _UUID_VERSION_4)
        return f"<urn:uuid:{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}>"

    def _file_of(self, number: int) -> str:
        return f"{self._name}-{number:05}{WARC_SUFFIX}"

    def _number_of(self, file: str, suffix: str) -> int | None:
        match = re.fullmatch(rf"{re.escape(self._name)}-(\d{{5,9}}){re.escape(suffix)}", file)
        return int(match[1]) if match else None

    def _last_number(self) -> int:
        """Return the highest number of this writer's files and indexes, or 0."""
        return max([*self._numbers(WARC_SUFFIX), *self._numbers(INDEX_SUFFIX)], default=0)

    def _numbers(self, suffix: str) -> list[int]:
        """Return the numbers of this writer's files with the suffix, in order."""
        numbers = (self._number_of(path.name, suffix) for path in self._directory.iterdir())
        return sorted(number for number in numbers if number is not None)


def _member(headers: str, *block: bytes) -> bytes:
    """Return one record as one gzip member, with its Content-Length."""
    length = sum(map(len, block))
    head = f"WARC/1.1\r\n{headers}Content-Length: {length}\r\n\r\n".encode()
    member: bytes = igzip_lib.compress(b"".join((head, *block, b"\r\n\r\n")), GZIP_LEVEL, igzip_lib.COMP_GZIP)
    return member


def _response_head(result: FetchResult) -> bytes:
    line = f"HTTP/{result.http_version} {result.status} {result.reason}\r\n"
    fields = [
        b"%b%b: %b\r\n"
        % (b"X-Crawl-" if len(name) == 17 and name.lower() == b"transfer-encoding" else b"", name, value)
        for name, value in result.headers
    ]
    return b"%b%b\r\n" % (line.encode(errors="surrogateescape"), b"".join(fields))


def _referring(result: FetchResult, original: Original) -> str:
    """Return the fields of a revisit record that name the original record and the proof (6.7, annex E)."""
    how = "server-not-modified" if result.status == 304 else "identical-payload-digest"
    return (
        f"WARC-Profile: {_REVISIT}{how}\r\nWARC-Refers-To-Target-URI: {result.url}\r\n"
        f"WARC-Refers-To-Date: {original.date}\r\n"
    )


def digest_of(block: bytes) -> str:
    """Return the digest of these bytes in WARC form."""
    number = int.from_bytes(hashlib.sha1(block, usedforsecurity=False).digest())
    return "sha1:" + "".join([_BASE32_PAIRS[number >> shift & 1023] for shift in _SHA1_SHIFTS])


def _warc_date(at: datetime) -> str:
    return (at if at.tzinfo is UTC else at.astimezone(UTC)).isoformat(timespec="microseconds")[:26] + "Z"
