"""The check of WARC files: each record is whole, has the length and the digests that it says, and can be found.

Tests: tests/cli/data_check/test_data_check.py
"""

import hashlib
import re
import zlib
from base64 import b32encode
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from kadcrawl.cli.data_check.catalog import ArchivedFact, Catalog, hashed
from kadcrawl.cli.data_check.data_finding import REFETCH, REPAIR, DataFinding, Report, damage, oddity
from kadcrawl.cli.data_check.line_check import time_of
from kadcrawl.crawl.output.cdxj import index_lines, index_of
from kadcrawl.crawl.output.outputs import WARC_DIRECTORY
from kadcrawl.crawl.output.warc_end import CHUNK_BYTES, next_record
from kadcrawl.crawl.scope.partitioner import Partitioner
from kadcrawl.system.plural import plural

HEAD_BYTES_MAX = 1024 * 1024
"""Bytes of the head of a record. Its URL is the longest part."""
STATUS_LINE = re.compile(rb"HTTP/[0-9.]{1,9} ([0-9]{1,9})[ \r]")
STATUS_LINE_BYTES = 32
"""Bytes at the begin of a response that have its status."""
FIRST_BYTES = 16 * 1024
"""Bytes of a record that are read at first: most records are shorter."""
SUFFIX = ".warc.gz"
WARC_NAME = re.compile(re.escape(WARC_DIRECTORY) + r"/[A-Za-z0-9_.-]{1,255}")
"""Names that kadcrawl gives to its WARC files."""
PAGES = "pages.jsonl"
PAGE_TYPES = (b"response", b"revisit")
"""Types of records to which page lines point."""


class ArchivedRecord(NamedTuple):
    """A whole record of a WARC file."""

    begin: int
    end: int
    kind: bytes
    url: bytes
    payload_digest: bytes
    date: bytes
    status: int | None
    """Status of the response, or None without any."""
    is_sound: bool
    """True if its length and its digests are as it says."""


def check_warc(
    directory: Path,
    peer: int,
    journaled: tuple[str, int] | None,
    partitioner: Partitioner | None,
    catalog: Catalog,
    report: Report,
) -> list[DataFinding]:
    """Enter the records of a peer into the catalog, and return the findings.

    `journaled` is the file that the peer wrote last, with its length.
    """
    findings = []
    paths = sorted((directory / WARC_DIRECTORY).glob(f"*{SUFFIX}"))
    for path in paths:
        size = path.stat().st_size
        end = size
        if journaled is not None and path.name == journaled[0]:
            if size < journaled[1]:
                said = f"the file is shorter than its journal says by {plural(journaled[1] - size, 'byte')}"
                findings.append(damage("short_warc", path, 1, said, f"the next start closes the file; {REPAIR} now"))
            elif size > journaled[1]:
                end = journaled[1]
                said = f"{plural(size - end, 'byte')} behind the journaled end are the rest of a crash"
                findings.append(oddity("warc_rest", path, 1, said, "the next start of the peer cuts them off"))
        findings += _check_file(path, peer, end, partitioner, catalog, report)
        if index_of(path).exists() and (journaled is None or path.name != journaled[0]):
            findings += _check_index(path)
    if journaled is not None and journaled[0] not in {path.name for path in paths}:
        missing = directory / WARC_DIRECTORY / journaled[0]
        findings.append(oddity("moved_warc", missing, 1, "the file that was written last is not here"))
    return findings


def _check_index(path: Path) -> list[DataFinding]:
    """Return a finding if the index of a finished WARC file is not the index that the file gives."""
    index, expected, lines = index_of(path), 0, 0
    for line in index_lines(path):
        if line is not None:
            expected ^= _line_hash(line)
    last, is_sorted = b"", True
    with index.open("rb") as file:
        for line in file:
            is_sorted, last = is_sorted and last <= line, line
            lines ^= _line_hash(line)
    if is_sorted and lines == expected:
        return []
    said = f"the index differs from {path.name}"
    return [damage("warc_index", index, 1, said, f"{REPAIR} by a new index, and so does `kadcrawl index`")]


def _line_hash(line: bytes) -> int:
    """Return a number by which the lines of an index are compared without their order."""
    return int.from_bytes(hashlib.blake2b(line, digest_size=16).digest(), "big")


def compare_archive(directory: Path, peer: int, catalog: Catalog) -> list[DataFinding]:
    """Return the findings about the page lines of a peer and its WARC files. Call once all facts are in."""
    findings = []
    named, here = catalog.files_named(peer), files_here(directory, peer, catalog)
    for name in sorted(named.keys() - here):
        said = f"{plural(named[name], 'page line names', 'page lines name')} this file, which is not here"
        advice = "nothing is wrong if it was moved away, for example by a sink warc-move"
        findings.append(oddity("moved_warc", directory / name, named[name], said, advice))
    for name in sorted(here):
        if lost := catalog.without_archive(peer, name):
            said = f"{plural(lost, 'page line points', 'page lines point')} to no record in it"
            findings.append(damage("lost_record", directory / name, lost, said, REFETCH))
    if others := catalog.other_archived(peer):
        lines = plural(others, "page line differs", "page lines differ")
        said = f"{lines} from the record in URL, digest, status or date"
        findings.append(damage("other_record", directory / PAGES, others, said, "the record says which page it is"))
    return findings


def files_here(directory: Path, peer: int, catalog: Catalog) -> set[str]:
    """Return the WARC files that the page lines of a peer name, as far as they are in its directory."""
    return {name for name in catalog.files_named(peer) if WARC_NAME.fullmatch(name) and (directory / name).is_file()}


def _check_file(
    path: Path, peer: int, end: int, partitioner: Partitioner | None, catalog: Catalog, report: Report
) -> list[DataFinding]:
    """Enter the records of one file, up to the offset `end`, into the catalog."""
    findings = []
    unsound = skipped = gaps = 0
    facts: list[ArchivedFact] = []
    with FileIO(path) as file:
        for at, following, record in walk(file, end):
            if record is None:
                gaps += 1
                skipped += following - at
                continue
            unsound += not record.is_sound
            if record.kind in PAGE_TYPES:
                url = record.url.decode(errors="replace")
                location = None if partitioner is None else partitioner.locate_offered(url)
                key = b"" if location is None else location.key
                digest, date = hashed(record.payload_digest), _milliseconds_of(record.date)
                facts.append(ArchivedFact(record.begin, key, url, digest, record.status, date))
            if len(facts) >= 1_000:
                catalog.add_archived(peer, f"{WARC_DIRECTORY}/{path.name}", facts)
                facts.clear()
            report(path, following / end)
    catalog.add_archived(peer, f"{WARC_DIRECTORY}/{path.name}", facts)
    if gaps:
        said = f"{plural(skipped, 'byte')} are no record, at {plural(gaps, 'place')}"
        advice = f"readers stop there: copy the file from a backup, or {REPAIR} by notes in place of the bytes"
        findings.append(damage("damaged_record", path, gaps, said, advice))
    if unsound:
        said = f"{plural(unsound, 'record differs', 'records differ')} from their own lengths or digests"
        findings.append(damage("unsound_record", path, unsound, said, "copy the file from a backup"))
    return findings


def walk(file: FileIO, end: int) -> Iterator[tuple[int, int, ArchivedRecord | None]]:
    """Yield begin, end and record of each part of a file up to `end`. The record is None for bytes that are none."""
    at = 0
    while at < end:
        record = read_record(file, at)
        if record is None or record.end > end:
            record, following = None, next_record(file, at + 1, end)
        else:
            following = record.end
        yield at, following, record
        at = following


def read_record(file: FileIO, begin: int) -> ArchivedRecord | None:
    """Return the record in the gzip member at an offset, or None if there is none, or if it is torn."""
    member = _Member(file, begin)
    try:
        head = b""
        while b"\r\n\r\n" not in head:
            part = next(member.parts, b"")
            head += part
            if not part or len(head) > HEAD_BYTES_MAX:
                return None
        head, _, block = head.partition(b"\r\n\r\n")
        first, *fields = head.split(b"\r\n")
        named = dict(field.split(b": ", 1) for field in fields if b": " in field)
        if not first.startswith(b"WARC/1."):
            return None
        while len(block) < STATUS_LINE_BYTES and (part := next(member.parts, b"")):
            block += part
        status_line = STATUS_LINE.match(block)
        is_sound = _is_sound(block, member.parts, named)
        for _ in member.parts:
            pass
    except zlib.error:
        return None
    if member.end is None:
        return None
    kind, url = named.get(b"WARC-Type", b""), named.get(b"WARC-Target-URI", b"")
    digest, date = named.get(b"WARC-Payload-Digest", b""), named.get(b"WARC-Date", b"")
    status = int(status_line[1]) if status_line is not None else None
    return ArchivedRecord(begin, member.end, kind, url, digest, date, status, is_sound)


def _milliseconds_of(date: bytes) -> int | None:
    """Return a WARC-Date in milliseconds, as page lines have it, or None if it cannot be read."""
    try:
        return time_of(f"{date.decode()[:23]}Z")
    except ValueError:
        return None


def _is_sound(block: bytes, parts: Iterator[bytes], named: dict[bytes, bytes]) -> bool:
    """Return whether the rest of a record has the length and the digests that its head says."""
    length = named.get(b"Content-Length", b"")
    whole, payload = hashlib.sha1(usedforsecurity=False), hashlib.sha1(usedforsecurity=False)
    left = int(length) if length.isdigit() and len(length) < 19 else -1
    if left < 0:
        return False
    http_head: bytes | None = b"" if named.get(b"WARC-Type") == b"response" else None
    tail = b""
    part: bytes | None = block
    while part is not None:
        mine, rest = part[:left], part[left:]
        left -= len(mine)
        tail = (tail + rest)[:5]
        whole.update(mine)
        if http_head is None:
            payload.update(mine)
        else:
            http_head += mine
            if b"\r\n\r\n" in http_head:
                payload.update(http_head.partition(b"\r\n\r\n")[2])
                http_head = None
            elif len(http_head) > HEAD_BYTES_MAX:
                return False
        part = next(parts, None)
    if left or tail != b"\r\n\r\n":
        return False
    digests = [(b"WARC-Block-Digest", whole)]
    if named.get(b"WARC-Type") == b"response":
        digests.append((b"WARC-Payload-Digest", payload))
    return all(named.get(name) in (None, b"sha1:" + b32encode(digest.digest())) for name, digest in digests)


class _Member:
    """One gzip member of a file."""

    def __init__(self, file: FileIO, begin: int) -> None:
        self.end: int | None = None
        """Offset behind the member, once all parts are read, or None for a torn member."""
        self.parts = self._parts(file, begin)
        """The content, in parts. Raises zlib.error."""

    def _parts(self, file: FileIO, begin: int) -> Iterator[bytes]:
        file.seek(begin)
        member = zlib.decompressobj(31)
        rest, at = b"", begin
        while not member.eof:
            if not rest:
                rest = file.read(CHUNK_BYTES if at > begin else FIRST_BYTES) or b""
                at += len(rest)
                if not rest:
                    return
            if part := member.decompress(rest, CHUNK_BYTES):
                yield part
            rest = member.unconsumed_tail
        self.end = at - len(member.unused_data)
