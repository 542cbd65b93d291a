"""The end of a WARC file that is shorter than journaled: it is cut after the last whole record.

A file loses its end when a machine dies before the disk has it, or with the file system. The last whole record is found
from the offsets that the journal's last page lines name, or else by the header of a record's gzip member, searched from
the end. So only the end of the file is read.

Tests: tests/crawl/output/test_warc_end.py
"""

import logging
import os
import zlib
from collections.abc import Iterable
from io import FileIO
from pathlib import Path

from kadcrawl.crawl.output.gzip_member import member_at

log = logging.getLogger(__name__)

SEARCHED_BYTES_MAX = 64 * 1024 * 1024
"""Bytes at the end of a file in which a record is looked for: a tenth of a second."""
CANDIDATES_MAX = 10_000
"""Places that may be the beginning of a record and are looked at. A hostile body can hold any number of them."""
CHUNK_BYTES = 256 * 1024
HEAD_BYTES = 1024
"""Bytes of a member in which the first bytes of its record are."""
MEMBER_BEGIN = b"\x1f\x8b\x08"
"""The first bytes of each gzip member (RFC 1952, 2.3.1)."""
RECORD_BEGIN = b"WARC/1.1\r\nWARC-Type: "
"""The first bytes of each record that kadcrawl writes."""
_GZIP = 31
"""The `wbits` of zlib for one gzip member."""


def close_torn(path: Path, length: int, known: Iterable[int]) -> int | None:
    """Cut a file that is shorter than `length`, its journaled length, after its last whole record.

    `known` are offsets of records. Return the end of the last whole record. A longer file stays as it is, and `length`
    is returned. A file in which no record is found stays as it is too, and None is returned. Raises OSError.
    """
    with FileIO(path, "r+") as file:
        size = file.seek(0, os.SEEK_END)
        if size >= length:
            return length
        offsets = list(known)
        begin = max((at for at in offsets if at < size and is_record(file, at)), default=None)
        if begin is None:
            begin = _last_record(file, size)
        end = None if begin is None else last_whole_end(file, begin, size)
        if end is not None and end < size:
            file.truncate(end)
        kept = size if end is None else end
        log.warning(
            "disk.warc_torn file=%s bytes=%d pages=%d", path, length - kept, sum(offset >= kept for offset in offsets)
        )
        return end


def cut_torn(path: Path) -> None:
    """Cut a file of unknown length after its last whole record. A file without any record stays. Raises OSError."""
    with FileIO(path, "r+") as file:
        size = file.seek(0, os.SEEK_END)
        begin = _last_record(file, size)
        end = size if begin is None else last_whole_end(file, begin, size)
        if end < size:
            file.truncate(end)
            log.warning("disk.warc_torn file=%s bytes=%d pages=%d", path, size - end, 0)


def is_record(file: FileIO, offset: int) -> bool:
    """Return whether a record of kadcrawl begins at an offset. The record may be torn."""
    file.seek(offset)
    try:
        begin = zlib.decompressobj(_GZIP).decompress(file.read(HEAD_BYTES) or b"", len(RECORD_BEGIN))
    except zlib.error:
        return False
    return begin == RECORD_BEGIN


def last_whole_end(file: FileIO, begin: int, size: int) -> int:
    """Return the end of the last of the whole members that follow each other from `begin` on."""
    while begin < size:
        member = member_at(file, begin)
        if member is None:
            break
        begin = member.end
    return begin


def next_record(file: FileIO, begin: int, end: int) -> int:
    """Return the offset of the first record from `begin` on, or `end` if no record begins before it."""
    candidates = 0
    while begin < end:
        file.seek(begin)
        chunk = file.read(min(CHUNK_BYTES, end - begin)) or b""
        at = -1
        while (at := chunk.find(MEMBER_BEGIN, at + 1)) >= 0 and candidates < CANDIDATES_MAX:
            candidates += 1
            if is_record(file, begin + at):
                return begin + at
        if len(chunk) < CHUNK_BYTES:
            break
        begin += len(chunk) - len(MEMBER_BEGIN) + 1
    return end


def _last_record(file: FileIO, size: int) -> int | None:
    """Return the offset of the last record whose beginning is whole, or None."""
    first = max(0, size - SEARCHED_BYTES_MAX)
    end, candidates = size, 0
    while end > first:
        begin = max(first, end - CHUNK_BYTES)
        file.seek(begin)
        chunk = file.read(end - begin + len(MEMBER_BEGIN) - 1) or b""
        at = len(chunk)
        while (at := chunk.rfind(MEMBER_BEGIN, 0, at + len(MEMBER_BEGIN) - 1)) >= 0:
            candidates += 1
            if candidates > CANDIDATES_MAX:
                return None
            if is_record(file, begin + at):
                return begin + at
        end = begin
    return None
