"""A gzip member of a WARC file: its place, and the first bytes of its record. Each record is a member of its own.

Tests: tests/crawl/output/test_gzip_member.py
"""

from collections.abc import Callable
from io import FileIO
from typing import Final, NamedTuple

from isal import isal_zlib

CHUNK_BYTES: Final = 64 * 1024
"""Bytes that are read, or decompressed, at once."""
_GZIP: Final = 31
"""The `wbits` of zlib for one gzip member."""


class GzipMember(NamedTuple):
    """The first bytes of a gzip member, decompressed, and the place of the member."""

    begin: int
    end: int
    head: bytes


def member_at(file: FileIO, begin: int, wants_more: Callable[[bytes], bool] = lambda head: False) -> GzipMember | None:
    """Return the gzip member at an offset, or None if it is torn or damaged.

    `wants_more` returns whether the head is to become longer than the bytes so far.
    """
    file.seek(begin)
    member = isal_zlib.decompressobj(_GZIP)
    head, rest, at = b"", b"", begin
    try:
        while not member.eof:
            if not rest:
                rest = file.read(CHUNK_BYTES) or b""
                at += len(rest)
                if not rest:
                    return None
            part = member.decompress(rest, CHUNK_BYTES)
            if wants_more(head):
                head += part
            rest = member.unconsumed_tail
    except isal_zlib.error:  # type: ignore[misc]  # The stub takes it for an instance.
        return None
    return GzipMember(begin, at - len(member.unused_data), head)
