"""The files with the results of a crawl: their places as a shell takes them, their number and size.

Tests: tests/cli/view/test_last_lines.py
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kadcrawl.store.log_parts import index_path
from kadcrawl.system.file_names import PAGE_LOG
from kadcrawl.system.printable import printable

KINDS = (
    ("pages.jsonl", "one line per URL"),
    ("records.jsonl", "the records"),
    ("warc/*.warc.gz", "requests and responses"),
    ("warc/*.cdxj", "the index of WARC files"),
)
"""Patterns below a peer's directory, with the contents of the files."""
_IN_SINK = {"warc": "sink of WARC files", "warc-move": "sink that takes WARC files away"}
"""The contents of sinks that have no pages and records, by their kind."""


@dataclass(frozen=True, slots=True)
class ResultFiles:
    """The files of one kind."""

    place: str
    """A path, or a pattern that a shell expands."""
    files: int
    bytes: int
    holds: str


def result_files(data: Path, peers: Sequence[Path]) -> Iterator[ResultFiles]:
    """Yield each kind of results that is there, of the peers with these directories at `data` or below it."""
    for kind, holds in KINDS:
        for group in _groups(data, peers):
            pattern = log_pattern(group, kind) if kind.endswith(".jsonl") else kind
            sizes = [size for peer in group for size in _sizes(peer, pattern)]
            if any(sizes):
                yield ResultFiles(_place(data, group, pattern), len(sizes), sum(sizes), holds)


def page_logs(data: Path, peers: Sequence[Path]) -> str:
    """Return the places of the page logs of these peers, as arguments of a command."""
    return " ".join(_place(data, group, log_pattern(group, PAGE_LOG)) for group in _groups(data, peers))


def sink_lines(sinks: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs of the name of a sink, without its secrets, and its contents."""
    from kadcrawl.sinks.sink_names import parse  # Not at the top: most crawls have no sink.

    names = [parse(sink) for sink in sinks]
    return [(printable(name.shown), _IN_SINK.get(name.kind, "sink of pages and records")) for name in names]


def log_pattern(peers: Sequence[Path], file: str) -> str:
    """Return the pattern of a log below these directories: of its parts too, if it has any."""
    is_rolled = any(index_path(peer / file).exists() for peer in peers)
    return file.replace(".", "*.") if is_rolled else file


def _groups(data: Path, peers: Sequence[Path]) -> Iterator[Sequence[Path]]:
    """Yield the directories that one pattern matches: `data` itself, and those in it."""
    inner = [peer for peer in peers if peer != data]
    if len(inner) < len(peers):
        yield [data]
    if inner:
        yield inner


def _place(data: Path, peers: Sequence[Path], pattern: str) -> str:
    """Return the place of files of all these peers, quoted for a shell and safe for a terminal."""
    names = "peer-*" if all(peer.name.startswith("peer-") for peer in peers) else "*"
    base = shlex.quote(str(peers[0])) if len(peers) == 1 else f"{shlex.quote(str(data))}/{names}"
    return printable(f"{base}/{pattern}")


def shown_size(count: int) -> str:
    """Return so many bytes in a unit that a person reads."""
    for unit, unit_bytes in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= unit_bytes / 10:
            return f"{count / unit_bytes:.1f} {unit}"
    return f"{count} bytes"


def _sizes(directory: Path, pattern: str) -> Iterator[int]:
    for path in directory.glob(pattern):
        try:
            yield path.stat().st_size
        except OSError:  # A peer of another process may replace its files.
            continue
