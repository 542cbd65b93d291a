"""Notes in place of damaged bytes of a WARC file, so that readers go on behind them, and no record changes its offset.

A note is a metadata record of exactly the length of the bytes. The file name in the header of its gzip member
(RFC 1952, 2.3.1) takes up the rest of the length.

Tests: tests/cli/data_check/test_warc_filler.py
"""

import gzip
import os
from io import FileIO
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from kadcrawl.cli.data_check.warc_check import walk
from kadcrawl.crawl.output.warc import digest_of
from kadcrawl.crawl.output.warc_end import CHUNK_BYTES
from kadcrawl.store.line_log import TORN

_HAS_NAME = 8
"""The flag of a gzip header with a file name."""
_HEADER_BYTES = 10
"""Bytes of a gzip header before the file name."""


def fill_gaps(path: Path, end: int) -> bool:
    """Put notes in place of the damaged bytes before the offset `end`, and keep the bytes in another file.

    Bytes that are too few for a note stay. Return whether there is a note. Raises OSError.
    """
    with FileIO(path, "r+") as file:
        gaps = [(begin, following) for begin, following, record in walk(file, end) if record is None]
        notes = {begin: _note(path.name, begin, following - begin) for begin, following in gaps}
        with open(f"{path}{TORN}", "ab") as torn:
            for begin, following in gaps:
                if notes[begin] is not None:
                    file.seek(begin)
                    for at in range(begin, following, CHUNK_BYTES):
                        torn.write(file.read(min(CHUNK_BYTES, following - at)) or b"")
            torn.flush()
            os.fsync(torn.fileno())
        for begin, note in notes.items():
            if note is not None:
                file.seek(begin)
                written = 0
                while written < len(note):
                    written += file.write(note[written:]) or 0
        os.fsync(file.fileno())
    return any(note is not None for note in notes.values())


def _note(file: str, begin: int, length: int) -> bytes | None:
    """Return a record of this length for a place in a file, or None if no record is so short."""
    block = f"{length} bytes of this file were damaged. kadcrawl check-data put this note in their place.\r\n".encode()
    head = (
        f"WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: <urn:uuid:{uuid5(NAMESPACE_URL, f'{file}#{begin}')}>\r\n"
        f"WARC-Date: 1970-01-01T00:00:00Z\r\nWARC-Block-Digest: {digest_of(block)}\r\n"
        f"Content-Type: text/plain\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    member = bytearray(gzip.compress(head.encode() + block + b"\r\n\r\n", mtime=0))
    left = length - len(member)
    if left < 0:
        return None
    if left:
        member[3] |= _HAS_NAME
        member[_HEADER_BYTES:_HEADER_BYTES] = b"x" * (left - 1) + b"\0"
    return bytes(member)
