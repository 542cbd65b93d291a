"""The seeds that redirect out of the crawl, out of the page logs, with advice for each.

A crawl begins with its seeds, so their lines stand near the beginnings of the logs, and only these are read.

Tests: tests/cli/view/test_last_lines.py
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from kadcrawl.cli.view.failed_examples import PAGE_LOG
from kadcrawl.store.log_parts import log_lines
from kadcrawl.system.printable import printable

SEED_LEFT_SCOPE: Final = "seed_left_scope"
SEEDS_SHOWN_MAX: Final = 5
"""Limit on the seeds that the last lines name."""
BEGIN_BYTES: Final = 64 * 1024 * 1024
"""Bytes to read of all logs together: less than a second."""

_MARK: Final = f'"failed":"{SEED_LEFT_SCOPE}"'.encode()


class _SeedLine(msgspec.Struct):
    """A line of pages.jsonl, as far as it matters here."""

    url: str
    detail: str = ""


_decode = msgspec.json.Decoder(_SeedLine).decode


def left_seed_lines(directories: Sequence[Path], bytes_max: int = BEGIN_BYTES) -> Iterator[str]:
    """Yield a line with advice for each of the first seeds that redirect out of the crawl."""
    share = bytes_max // max(1, len(directories))
    lines = (line for directory in directories for line in _lines_of_seeds(directory, share))
    for line in islice(lines, SEEDS_SHOWN_MAX):
        yield f"the seed {printable(line.url)} is not crawled: {printable(line.detail)}"


def _lines_of_seeds(directory: Path, bytes_max: int) -> Iterator[_SeedLine]:
    try:
        for line in log_lines(directory / PAGE_LOG):
            bytes_max -= len(line)
            if bytes_max < 0:
                return
            if _MARK in line and line.endswith(b"\n"):
                try:
                    yield _decode(line)
                except (msgspec.MsgspecError, UnicodeError):
                    continue
    except OSError:
        return
