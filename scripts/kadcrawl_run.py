"""A run of the `kadcrawl` command as seen from outside: its start and its results.

The demo, the benchmark and the tests share this module, and use kadcrawl as its users do. Only a log in parts is read
by its imports.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from kadcrawl.store.log_parts import log_lines

LOOPBACK: Final = "127.0.0.0/8"


class LoggedPage(NamedTuple):
    """One line of a peer's pages.jsonl, as far as it matters here."""

    directory: Path
    """The peer's directory."""
    url: str
    status: int | None
    failed: str | None
    """The reason that the URL has no page, or None."""
    fields: dict[str, Any]
    """The whole line."""


def crawl_command(
    seeds: Sequence[str],
    *,
    peers: int,
    delay_s: float,
    data: Path,
    summary: Path,
    include: Sequence[str] = (),
    options: Sequence[str] = (),
) -> list[str]:
    """Return the command that crawls loopback `seeds` to the end, with further `options`."""
    # Beside the interpreter, so that it is this environment's kadcrawl whatever PATH says.
    program = str(Path(sys.executable).with_name("kadcrawl"))
    options = ["--peers", str(peers), "--delay", str(delay_s), "--allow-network", LOOPBACK, *options]
    patterns = [argument for pattern in include for argument in ("--include", pattern)]
    return [program, "crawl", *seeds, *options, *patterns, "--data", str(data), "--summary", str(summary)]


def page_lines(data: Path) -> Iterator[LoggedPage]:
    """Yield every line of every peer's pages.jsonl below `data`, but one its writer was killed in the middle of."""
    for log in sorted(data.rglob("pages.jsonl")):
        for line in log_lines(log):
            if line.endswith(b"\n"):
                fields = json.loads(line)
                yield LoggedPage(log.parent, fields["url"], fields["status"], fields.get("failed"), fields)
