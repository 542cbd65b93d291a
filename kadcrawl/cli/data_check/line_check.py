"""The check of pages.jsonl and records.jsonl: each line is whole, and is what kadcrawl writes.

Tests: tests/cli/data_check/test_data_check.py
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from kadcrawl.cli.data_check.catalog import Catalog, PageFact, hashed
from kadcrawl.cli.data_check.data_finding import REPAIR, DataFinding, Report, damage, plural
from kadcrawl.crawl.output.outputs import PageLine, RecordLine
from kadcrawl.crawl.scope.partitioner import Partitioner
from kadcrawl.keys import ID_BYTES
from kadcrawl.store.line_log import LINE_BYTES_MAX

PAGES, RECORDS = "pages.jsonl", "records.jsonl"
BATCH = 1_000
"""Lines that are entered into the catalog at a time."""
COUNT_MAX = 2**53
"""Limit on numbers in lines: JSON numbers are exact up to it."""

Fact = TypeVar("Fact")
_page = msgspec.json.Decoder(PageLine).decode
_record = msgspec.json.Decoder(RecordLine).decode


@dataclass(slots=True)
class LineFigures:
    """The figures of one file of lines."""

    lines: int = 0
    """Whole lines, damaged ones included."""
    damaged: int = 0
    first_damaged: int = 0
    """Number of the first damaged line, from 1."""
    torn_bytes: int = 0
    """Bytes behind the last newline."""


def check_pages(
    directory: Path, peer: int, partitioner: Partitioner | None, catalog: Catalog, report: Report
) -> tuple[LineFigures, list[DataFinding]]:
    """Enter the page lines of a peer into the catalog. Return their figures and findings.

    Without a partitioner the keys are not compared with the URLs.
    """
    path = directory / PAGES
    figures = LineFigures()

    def fact(line: bytes) -> PageFact:
        page = _page(line)
        if page.warc is not None and page.offset is None:
            raise ValueError("a WARC file without an offset")
        if not all(0 <= number <= COUNT_MAX for number in (page.visit, page.records, page.offset or 0)):
            raise ValueError("an impossible number")
        location = None if partitioner is None else partitioner.locate_offered(page.url)
        key = bytes.fromhex(page.key)
        if len(key) != ID_BYTES or (partitioner is not None and (location is None or location.key != key)):
            raise ValueError("the key is not that of the URL")
        at, digest = hashed(page.fetched_at), hashed(page.digest)
        return PageFact(key, page.visit, hashed(line), page.records, at, page.url, digest, page.warc, page.offset)

    for facts in _facts(path, fact, figures, report):
        catalog.add_pages(peer, facts)
    return figures, _findings(path, figures)


def check_records(directory: Path, peer: int, catalog: Catalog, report: Report) -> list[DataFinding]:
    """Enter the record lines of a peer into the catalog. Return the findings about the file."""
    path = directory / RECORDS
    figures = LineFigures()

    def fact(line: bytes) -> tuple[bytes, int]:
        record = _record(line)
        return bytes.fromhex(record.key.partition(":")[0]), hashed(record.fetched_at)

    for facts in _facts(path, fact, figures, report):
        catalog.add_records(peer, facts)
    return _findings(path, figures)


def is_good(file: str, line: bytes) -> bool:
    """Return whether a line can be read as a line of this file."""
    try:
        (_page if file == PAGES else _record)(line)
    except (msgspec.MsgspecError, ValueError):
        return False
    return True


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file. A line that is too long comes in parts, which are no valid lines."""
    while line := file.readline(LINE_BYTES_MAX):
        yield line


def _facts(path: Path, fact: Callable[[bytes], Fact], figures: LineFigures, report: Report) -> Iterator[list[Fact]]:
    """Yield the facts in the lines of a file, a batch at a time."""
    if not path.exists():
        return
    size = max(1, path.stat().st_size)
    facts: list[Fact] = []
    done = 0
    with path.open("rb") as file:
        for line in lines_of(file):
            done += len(line)
            if not line.endswith(b"\n") and done >= size:
                figures.torn_bytes = len(line)
                break
            figures.lines += 1
            try:
                facts.append(fact(line))
            except (msgspec.MsgspecError, ValueError, OverflowError):
                figures.damaged += 1
                figures.first_damaged = figures.first_damaged or figures.lines
            if len(facts) >= BATCH:
                yield facts
                facts = []
                report(path, done / size)
    yield facts


def _findings(path: Path, figures: LineFigures) -> list[DataFinding]:
    findings = []
    if figures.torn_bytes:
        said = f"the last line is incomplete: {plural(figures.torn_bytes, 'byte')} without a newline"
        findings.append(damage("torn_line", path, 1, said, f"the next start of the peer mends it; {REPAIR} now"))
    if figures.damaged:
        said = f"{plural(figures.damaged, 'line is', 'lines are')} damaged, first line {figures.first_damaged:,}"
        advice = f"{REPAIR}: the lines are moved to {path.name}.torn"
        findings.append(damage("damaged_line", path, figures.damaged, said, advice))
    return findings
