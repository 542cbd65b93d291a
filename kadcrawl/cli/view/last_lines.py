"""The last lines of a crawl or of a peer: reasons of failures, places of results, and the next commands.

They stand below the figures. A part that has nothing to say is left out.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kadcrawl.cli.view.left_seeds import SEED_LEFT_SCOPE, left_seed_lines
from kadcrawl.cli.view.limit_end import ReachedLimit
from kadcrawl.cli.view.result_files import ResultFiles, page_logs, result_files, shown_size, sink_lines
from kadcrawl.link.wire.failure_reasons import explained
from kadcrawl.system.printable import printable

REASONS_SHOWN_MAX = 5
"""Limit on the reasons of failures in the last lines of a crawl: the most frequent."""
LONG_RUN_S = 120.0
"""Seconds from which a run is also told in minutes and hours."""
EXPORT_TO = "sqlite:results.db"
"""The sink of the example: Python reads and writes it without an extra."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlEnd:
    """The facts about an ended crawl, or an ended peer, that the last lines are made of."""

    data: Path
    """The directory that the command was given."""
    peers: Sequence[Path]
    """The directories of its peers: `data` itself, or those below it."""
    failed: Mapping[str, int]
    examples: Mapping[str, str]
    """Failed URLs by their reason. A reason may have none."""
    record_errors: int = 0
    """Pages whose records failed."""
    sinks: Sequence[str] = ()
    """The sinks of the command, as `sink_names.parse` takes them."""
    may_retry: bool = True
    """The crawl remembers its failed URLs."""
    job_file: Path | None = None
    limit: ReachedLimit | None = None
    """The limit that ended the crawl, or None."""
    goes_on: bool = False
    """The peer has URLs left that no limit keeps it from, so that the same command goes on with them."""


def last_lines(end: CrawlEnd) -> Iterator[str]:
    """Yield the lines below the figures."""
    files = [*result_files(end.data, end.peers)]
    if SEED_LEFT_SCOPE in end.failed:
        yield from left_seed_lines(end.peers)
    yield from failure_lines(end.failed, end.examples)
    yield from _result_lines(files, sink_lines(end.sinks) if files else [])
    yield from _next_lines(end, has_results=bool(files))


def failure_lines(failed: Mapping[str, int], examples: Mapping[str, str]) -> Iterator[str]:
    """Yield the most frequent reasons with their counts, in plain words, each with an example URL."""
    ranked = sorted(failed.items(), key=lambda item: (-item[1], item[0]))
    shown, others = ranked[:REASONS_SHOWN_MAX], ranked[REASONS_SHOWN_MAX:]
    if not shown:
        return
    yield "failed URLs:"
    width = len(str(shown[0][1]))
    for reason, count in shown:
        example = f": {printable(examples[reason])}" if reason in examples else ""
        yield f"  {count:{width}} {printable(reason)} ({explained(reason)}){example}"
    if others:
        reasons = f"{len(others)} other reason" + ("s" if len(others) > 1 else "")
        yield f"  {sum(count for _, count in others):{width}} for {reasons}"


def _result_lines(files: Sequence[ResultFiles], sinks: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield the places of the results: files, and the names and contents of sinks."""
    if not files:
        return
    yield "results:"
    width = max(len(place) for place in [*(kind.place for kind in files), *(name for name, _ in sinks)])
    for kind in files:
        number = f"{kind.files} files, " if kind.files > 1 else ""
        yield f"  {kind.place:{width}}  {number}{shown_size(kind.bytes)}: {kind.holds}"
    for name, holds in sinks:
        yield f"  {name:{width}}  {holds}"


def _next_lines(end: CrawlEnd, *, has_results: bool) -> Iterator[str]:
    """Yield commands to type next, each with its purpose."""
    commands = [*_commands(end, has_results=has_results)]
    if not commands:
        return
    yield "next:"
    width = max(len(command) for command, _ in commands)
    for command, purpose in commands:
        yield f"  {command:{width}}  {purpose}"


def _commands(end: CrawlEnd, *, has_results: bool) -> Iterator[tuple[str, str]]:
    """Yield pairs of a command and its purpose."""
    data = printable(shlex.quote(str(end.data)))
    if end.goes_on or (end.limit is not None and end.limit.lost):
        yield "the same command", "goes on with the URLs that are left"
    elif end.limit is not None and end.limit.is_ordered:
        setting = f"{end.limit.option.removeprefix('--')} {end.limit.more}"
        yield f"kadcrawl set {setting} --data {data}", "lets the same command go on with the URLs that are left"
    elif end.limit is not None:
        yield f"the same command with {end.limit.option} {end.limit.more}", "goes on with the URLs that are left"
    if end.failed and has_results:
        yield f"""grep -h '"failed":' {page_logs(end.data, end.peers)}""", "shows every failure"
    if end.record_errors and has_results:
        yield f"""grep -h '"record_error":' {page_logs(end.data, end.peers)}""", "shows every page whose records failed"
    if end.failed and end.may_retry:
        yield f"kadcrawl retry --data {data}", "lets the crawl fetch them again"
    unreached = [reason for reason in end.failed if explained(reason).unreached and reason in end.examples]
    if unreached:
        worst = max(unreached, key=lambda reason: end.failed[reason])
        url = printable(shlex.quote(end.examples[worst]))
        yield f"kadcrawl doctor {url}", "tries that site from this machine"
    if end.job_file is not None:
        file = printable(shlex.quote(str(end.job_file)))
        yield f"kadcrawl check {file} URL", "says why a URL is in the crawl, or is not"
    if has_results and not end.sinks:
        yield f"kadcrawl export {data} --to {EXPORT_TO}", "brings the results into a database"
