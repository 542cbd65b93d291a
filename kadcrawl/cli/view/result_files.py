"""The files with the results of a crawl: their places as a shell takes them, their number and size.

Tests: tests/cli/view/test_last_lines.py
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kadcrawl.store.log_parts import index_path
from kadcrawl.system.printable import printable

KINDS = (
    ("pages.jsonl", "one line per URL"),
    ("records.jsonl", "the records"),
    ("warc/*.warc.gz", "requests and responses"),
)
"""Patterns below a peer's directory, with the contents of the files."""


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
    for pattern, holds in KINDS:
        if pattern.endswith(".jsonl"):
            pattern = log_pattern(peers, pattern)
        sizes = [size for peer in peers for size in _sizes(peer, pattern)]
        if any(sizes):
            yield ResultFiles(place(data, peers, pattern), len(sizes), sum(sizes), holds)


def log_pattern(peers: Sequence[Path], file: str) -> str:
    """Return the pattern of a log below these directories: of its parts too, if it has any."""
    is_rolled = any(index_path(peer / file).exists() for peer in peers)
    return file.replace(".", "*.") if is_rolled else file


def place(data: Path, peers: Sequence[Path], pattern: str) -> str:
    """Return the place of files of all these peers, quoted for a shell and safe for a terminal."""
    base = shlex.quote(str(peers[0])) if len(peers) == 1 else f"{shlex.quote(str(data))}/peer-*"
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
