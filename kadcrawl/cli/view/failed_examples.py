"""An example URL for each reason of a failure, out of the page logs.

A crawl of up to a million URLs reads its page logs anyway (`summary.PageLogs`). Of larger logs, and of the log of a
single peer, only the ends are read, so the last lines never wait for long. A reason may have no example then.

Tests: tests/cli/view/test_last_lines.py
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from kadcrawl.store.log_parts import GZIP, index_of, part_file

PAGE_LOG = "pages.jsonl"
ENDS_BYTES = 64 * 1024 * 1024
"""Bytes to read of all logs together: less than a second."""

_MARK = b'"failed":"'
"""The beginning of the field. Inside a text the quotes would be escaped."""


class _FailedLine(msgspec.Struct):
    """A line of pages.jsonl, as far as it matters here."""

    url: str
    failed: str | None = None


_decode = msgspec.json.Decoder(_FailedLine).decode


def examples_at_the_ends(directories: Sequence[Path], bytes_max: int = ENDS_BYTES) -> dict[str, str]:
    """Return the last failed URL of each exact reason at the ends of the page logs in these directories."""
    examples: dict[str, str] = {}
    share = bytes_max // max(1, len(directories))
    for directory in directories:
        try:
            index = index_of(directory / PAGE_LOG)
            last = part_file(directory / PAGE_LOG, len(index.parts))
            if last is not None and last.suffix != GZIP:
                _note_end(last, share, examples)
            _note_end(directory / PAGE_LOG, share, examples)
        except OSError:
            continue
    return examples


def _note_end(file: Path, bytes_max: int, examples: dict[str, str]) -> None:
    """Note the examples at the end of a file. Raises OSError."""
    with file.open("rb") as log:
        size = log.seek(0, 2)
        log.seek(max(0, size - bytes_max))
        if size > bytes_max:
            log.readline()
        note_examples(log, examples)


def note_examples(lines: Iterable[bytes], examples: dict[str, str]) -> None:
    """Enter the URL of each failed line into `examples` by its exact reason. Unreadable lines are left out."""
    for line in lines:
        if _MARK in line and line.endswith(b"\n"):
            try:
                logged = _decode(line)
            except (msgspec.MsgspecError, UnicodeError):
                continue
            if logged.failed is not None:
                examples[logged.failed] = logged.url


def by_counted_reason(examples: Mapping[str, str]) -> dict[str, str]:
    """Return the examples by the names under which the counters have their reasons."""
    from kadcrawl.crawl.output.counters import counted_as  # Not at the top: a command begins without the crawl.

    return {counted_as(reason): url for reason, url in examples.items()}
