"""The check of pages.jsonl and records.jsonl: each line is whole, and is what kadcrawl writes.

Closed parts of the logs are read too. A part that is elsewhere counts with the lines that the index names.

Tests: tests/cli/data_check/test_data_check.py
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, TypeVar

import msgspec

from kadcrawl.cli.data_check.catalog import Catalog, PageFact, hashed
from kadcrawl.cli.data_check.data_finding import REFETCH, REPAIR, DataFinding, Report, damage, oddity
from kadcrawl.cli.view.repeats import milliseconds
from kadcrawl.crawl.output.outputs import PageLine, RecordLine
from kadcrawl.crawl.scope.partitioner import Partitioner
from kadcrawl.keys import ID_BYTES
from kadcrawl.store.line_log import LINE_BYTES_MAX
from kadcrawl.store.log_parts import UNZIP_ERRORS, index_of, index_path, opened_part, part_file, stored_index
from kadcrawl.system.plural import plural

PAGES, RECORDS = "pages.jsonl", "records.jsonl"
BATCH = 1_000
"""Lines that are entered into the catalog at a time."""
COUNT_MAX = 2**53
"""Limit on numbers in lines: JSON numbers are exact up to it."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)

Fact = TypeVar("Fact")
_page = msgspec.json.Decoder(PageLine).decode
_record = msgspec.json.Decoder(RecordLine).decode


@dataclass(slots=True)
class LineFigures:
    """The figures of one file of lines."""

    lines: int = 0
    """Whole lines, damaged ones and those of parts elsewhere included."""
    elsewhere: int = 0
    """Lines of parts that are not here."""
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
        at, digest = time_of(page.fetched_at), hashed(page.digest)
        status, file, place = page.status, page.warc, page.offset
        return PageFact(key, page.visit, hashed(line), page.records, at, page.url, digest, status, file, place)

    return _check_log(directory / PAGES, fact, lambda facts: catalog.add_pages(peer, facts), report)


def check_records(
    directory: Path, peer: int, catalog: Catalog, report: Report
) -> tuple[LineFigures, list[DataFinding]]:
    """Enter the record lines of a peer into the catalog. Return their figures and findings."""

    def fact(line: bytes) -> tuple[bytes, int]:
        record = _record(line)
        return bytes.fromhex(record.key.partition(":")[0]), time_of(record.fetched_at)

    return _check_log(directory / RECORDS, fact, lambda facts: catalog.add_records(peer, facts), report)


def time_of(text: str) -> int:
    """Return a time of a line in milliseconds since 1970. Raises ValueError for a text that kadcrawl does not write."""
    if not _TIME.fullmatch(text):
        raise ValueError("no time")
    return milliseconds(datetime.fromisoformat(text))


def is_good(file: str, line: bytes) -> bool:
    """Return whether a line can be read as a line of this file."""
    try:
        (_page if file == PAGES else _record)(line)
    except (msgspec.MsgspecError, ValueError):
        return False
    return True


def lines_of(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file. A line that is too long comes in parts, which are no valid lines."""
    while line := file.readline(LINE_BYTES_MAX):
        yield line


def _check_log(
    path: Path, fact: Callable[[bytes], Fact], add: Callable[[list[Fact]], None], report: Report
) -> tuple[LineFigures, list[DataFinding]]:
    """Pass the facts in the lines of a log to `add`. Return the figures of all its parts, and the findings."""
    total, findings = LineFigures(), []
    index = index_of(path)
    if index.parts and stored_index(path) is None:
        said = "it is missing or damaged"
        findings.append(oddity("log_index", index_path(path), 1, said, "the next start of the peer writes it anew"))
    for number, part in enumerate(index.parts, 1):
        file = part_file(path, number)
        if file is None:
            total.elsewhere += part.lines or 0
            said = f"{plural(part.lines or 0, 'line is', 'lines are')} in this part of {path.name}, which is not here"
            advice = "nothing is wrong if it was moved away"
            findings.append(oddity("moved_log", path.with_name(part.file), max(1, part.lines or 0), said, advice))
            continue
        figures, digest = _read_file(file, fact, add, report)
        total.lines += figures.lines
        if digest is None or figures.damaged or figures.torn_bytes or (part.sha256 and digest != part.sha256):
            said = f"this part of {path.name} differs from the bytes that the peer wrote"
            advice = f"copy it from a backup; {REFETCH}"
            findings.append(damage("changed_part", file, max(1, figures.damaged), said, advice))
    total.lines += total.elsewhere
    if path.exists():
        figures, _ = _read_file(path, fact, add, report)
        total.lines += figures.lines
        findings += _findings(path, figures)
    return total, findings


def _read_file(
    path: Path, fact: Callable[[bytes], Fact], add: Callable[[list[Fact]], None], report: Report
) -> tuple[LineFigures, str | None]:
    """Pass the facts in the lines of a file to `add`. Return its figures and its SHA-256, or None if unreadable."""
    figures, digest = LineFigures(), hashlib.sha256()
    size = max(1, path.stat().st_size)
    facts: list[Fact] = []
    try:
        with opened_part(path) as file:
            for line in lines_of(file):
                digest.update(line)
                if not line.endswith(b"\n") and len(line) < LINE_BYTES_MAX:
                    figures.torn_bytes = len(line)
                    break
                figures.lines += 1
                try:
                    facts.append(fact(line))
                except (msgspec.MsgspecError, ValueError, OverflowError):
                    figures.damaged += 1
                    figures.first_damaged = figures.first_damaged or figures.lines
                if len(facts) >= BATCH:
                    add(facts)
                    facts = []
                    report(path, min(1.0, file.tell() / size))
    except UNZIP_ERRORS:
        return figures, None
    finally:
        add(facts)
    return figures, digest.hexdigest()


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
