"""The index of a WARC file: a sorted line of CDXJ for each response, by which replay tools such as pywb find it.

The index of `NAME-00001.warc.gz` is `NAME-00001.cdxj` beside it. A line has the SURT of the URL (surt.py), the time of
the capture, and JSON with the place of its gzip member. The index is made from the file alone, so it can be made at any
time, and again. The steps of `write_index` are small, for a peer that has other work (warc_indexer.py). The lines are
sorted in runs on the disk, so the memory is bounded for a file of any size.

Tests: tests/crawl/output/test_cdxj.py
"""

import heapq
import os
import re
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from io import FileIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final

import msgspec

from kadcrawl.crawl.output.gzip_member import GzipMember, member_at
from kadcrawl.crawl.output.surt import surt_of
from kadcrawl.crawl.output.warc_end import next_record

WARC_SUFFIX: Final = ".warc.gz"
INDEX_SUFFIX: Final = ".cdxj"
RUN_LINES: Final = 20_000
"""Lines that are sorted in memory, some 7 MB."""
HEAD_BYTES_MAX: Final = 1024 * 1024
"""Bytes of the heads of a record. The URL is the longest part."""
LINES_PER_STEP: Final = 1_000
"""Lines that one step writes."""
_STATUS: Final = re.compile(rb"HTTP/\S+ (\d{3})\b")
_TYPE: Final = re.compile(rb"\r\ncontent-type:[ \t]*([^\r;]*)", re.IGNORECASE)


class IndexEntry(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The JSON of a line, with the fields that pywb writes."""

    url: str
    mime: str
    status: str = ""
    """Empty for a revisit record, as in pywb's index: a reader takes the status of the original."""
    digest: str
    length: str
    offset: str
    filename: str


def index_of(warc: Path) -> Path:
    """Return the path of the index of a WARC file."""
    return warc.with_name(warc.name.removesuffix(WARC_SUFFIX) + INDEX_SUFFIX)


def is_indexed(warc: Path) -> bool:
    """Return whether a finished WARC file has an index that is as new as the file. Raises OSError."""
    index = index_of(warc)
    return index.is_file() and index.stat().st_mtime >= warc.stat().st_mtime


def write_index(warc: Path, end: int | None = None) -> Generator[None, None, None]:
    """Write the index of a WARC file, up to the offset `end`, by small steps. The index appears with the last step.

    Raises OSError. Bytes that are no record are passed over.
    """
    new = warc.with_name(f".{index_of(warc).name}.new")
    with ExitStack() as opened:
        runs: list[IO[bytes]] = []
        lines: list[bytes] = []
        for line in index_lines(warc, end):
            if line is not None:
                lines.append(line)
            if len(lines) == RUN_LINES:
                runs.append(opened.enter_context(_sorted_run(lines, warc.parent)))
                lines.clear()
            yield
        lines.sort()
        opened.callback(new.unlink, missing_ok=True)  # If it is given up in the middle.
        with new.open("wb") as index:
            for number, line in enumerate(heapq.merge(*runs, lines)):
                index.write(line)
                if number % LINES_PER_STEP == 0:
                    yield
            index.flush()
            os.fsync(index.fileno())
        new.replace(index_of(warc))


def index_lines(warc: Path, end: int | None = None) -> Iterator[bytes | None]:
    """Yield the line of each record up to the offset `end`, None for a record without one, in the order of the file."""
    with FileIO(warc) as file:
        at, size = 0, os.fstat(file.fileno()).st_size
        end = size if end is None else min(end, size)
        while at < end:
            member = member_at(file, at, _lacks_heads)
            if member is None or member.end > end:
                at = next_record(file, at + 1, end)
                yield None
            else:
                at = member.end
                yield line_of(member, warc.name)


def line_of(member: GzipMember, file_name: str) -> bytes | None:
    """Return the line of a record, or None for a record that is no response."""
    warc_head, _, block = member.head.partition(b"\r\n\r\n")
    first, *fields = warc_head.split(b"\r\n")
    named = dict(field.split(b": ", 1) for field in fields if b": " in field)
    kind, url = named.get(b"WARC-Type"), named.get(b"WARC-Target-URI", b"").decode(errors="replace")
    if not first.startswith(b"WARC/1.") or kind not in (b"response", b"revisit") or "://" not in url:
        return None
    http_head = block.partition(b"\r\n\r\n")[0]
    status, mime = _STATUS.match(http_head), _TYPE.search(http_head)
    entry = IndexEntry(
        url=url,
        mime="warc/revisit" if kind == b"revisit" else _text(mime) or "unk",
        status="" if kind == b"revisit" else _text(status),
        digest=_ascii(named.get(b"WARC-Payload-Digest", b"")).removeprefix("sha1:"),
        length=str(member.end - member.begin),
        offset=str(member.begin),
        filename=file_name,
    )
    time = re.sub(r"\D", "", _ascii(named.get(b"WARC-Date", b"")))[:14]
    return f"{surt_of(url)} {time} ".encode() + msgspec.json.encode(entry) + b"\n"


def _text(match: re.Match[bytes] | None) -> str:
    return "" if match is None else _ascii(match[1]).strip()


def _ascii(text: bytes) -> str:
    return text.decode("ascii", errors="replace")


def _lacks_heads(head: bytes) -> bool:
    """Return whether the first bytes of a record may lack a part of its heads, of WARC and of HTTP."""
    return len(head) < HEAD_BYTES_MAX and head.count(b"\r\n\r\n") < 2


def _sorted_run(lines: list[bytes], directory: Path) -> IO[bytes]:
    """Return an unnamed file with these lines in order."""
    run = TemporaryFile(dir=directory)  # noqa: SIM115 -- the caller closes it
    lines.sort()
    run.writelines(lines)
    run.seek(0)
    return run
