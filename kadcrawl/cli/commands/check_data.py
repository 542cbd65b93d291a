"""`kadcrawl check-data` checks all files of a crawl, each kind against the others, and mends what it may.

Tests: tests/cli/commands/test_check_data.py
"""

import json
import logging
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
import cloup

from kadcrawl.cli.directory_arguments import directories_argument
from kadcrawl.cli.exits import DONE, PROBLEMS, told
from kadcrawl.errors import ConfigError
from kadcrawl.system.clock import steady
from kadcrawl.system.directory_lock import held_still
from kadcrawl.system.printable import printable

if TYPE_CHECKING:
    from kadcrawl.cli.data_check.data_check import DataReport
    from kadcrawl.cli.data_check.data_finding import DataFinding

COLORS = {"note": "yellow", "problem": "red"}
PROGRESS_FROM_S = 1.0
"""Seconds before the first line of progress."""
PROGRESS_INTERVAL_S = 2.0
"""Seconds between two lines of progress."""


@cloup.command("check-data", short_help="Check the files of a crawl for damage, and mend them.")
@directories_argument
@cloup.option("--repair", is_flag=True, help="Mend what can be mended, and check again.")
@cloup.option("--json", "as_json", is_flag=True, help="Print JSON instead of lines.")
@told
def check_data(directories: tuple[Path, ...], repair: bool, as_json: bool) -> int:
    """Check all files in DIR... (of a crawl, or of a peer), each kind against the others.

    The journal must be whole, and its counts must be those of its rows. Each line of pages.jsonl and records.jsonl must
    be readable. Each finished URL must have its page line, and each page line its record in a WARC file, with the same
    digest. No peer of DIR may run meanwhile. Without --repair nothing is changed.

    A note is no problem: files may have been moved away, and peers on other machines may have the lines of a URL.

    \b
    Exit codes: 0  no problem was found, though there may be notes
                2  it could not be done as asked
                5  there is a problem (with --repair: one is left)
    """
    from kadcrawl.cli.data_check.data_check import check_data as check

    progress = _Progress()
    try:
        with ExitStack() as held:
            for directory in directories:
                _hold(directory, held)
            reports = [check(directory, progress.tell) for directory in directories]
        mended: list[DataFinding] = []
        if repair:
            for place, report in enumerate(reports):
                if _problems([report]):
                    reports[place], gone = _repair(report, progress)
                    mended += gone
    except OSError as error:
        raise ConfigError(f"cannot check {error.filename or 'the data'}: {error.strerror}") from None
    if as_json:
        click.echo(json.dumps(_as_json(reports, mended), indent=2))
    else:
        for finding in mended:
            click.echo(f"{click.style('mended  ', fg='green')} {printable(finding.path)}: {printable(finding.said)}")
        for report in reports:
            _print(report)
    return PROBLEMS if _problems(reports) else DONE


def _hold(directory: Path, held: ExitStack) -> None:
    """Let no peer of this directory start while it is checked. Raises ConfigError if one runs, or if none is there."""
    from kadcrawl.cli.data_check.data_check import peers_with_data

    peers = peers_with_data(directory)
    if not peers:
        raise ConfigError(f"{directory} holds no data of a peer: name the directory of a crawl, or of a peer")
    for peer in peers:
        if not held.enter_context(held_still(peer)):
            raise ConfigError(
                f"a peer is running in {peer}, so its files change: stop it, or check a copy of the directory"
            )


def _repair(report: "DataReport", progress: "_Progress") -> tuple["DataReport", list["DataFinding"]]:
    """Return the report after the repair, and the findings that are gone."""
    from kadcrawl.cli.data_check.data_repair import repair_data

    logging.getLogger("kadcrawl").addHandler(logging.NullHandler())  # The findings say what the log would say.
    return repair_data(report, progress.tell)


def _problems(reports: Sequence["DataReport"]) -> int:
    return sum(finding.outcome == "problem" for report in reports for finding in report.findings)


def _print(report: "DataReport") -> None:
    for finding in report.findings:
        for line in _lines(finding):
            click.echo(line)
    problems = _problems([report])
    notes = len(report.findings) - problems
    counts = [f"{count} {name}{'s' if count != 1 else ''}" for count, name in ((problems, "problem"), (notes, "note"))]
    said = ", ".join(text for text, count in zip(counts, (problems, notes), strict=True) if count) or "all is well"
    peers = len(report.peers)
    click.echo(f"{report.directory}: {peers} peer{'s' if peers != 1 else ''}, {report.page_lines:,} page lines: {said}")


def _lines(finding: "DataFinding") -> list[str]:
    outcome = click.style(f"{finding.outcome:8}", fg=COLORS[finding.outcome])
    lines = [f"{outcome} {printable(finding.path)}: {printable(finding.said)}"]
    if finding.advice:
        lines.append(f"{'':8} -> {finding.advice}")
    return lines


def _as_json(reports: Sequence["DataReport"], mended: Sequence["DataFinding"]) -> dict[str, object]:
    findings = [finding for report in reports for finding in report.findings]
    return {
        "problems": _problems(reports),
        "notes": len(findings) - _problems(reports),
        "peers": sum(len(report.peers) for report in reports),
        "page_lines": sum(report.page_lines for report in reports),
        "findings": [asdict(finding) for finding in findings],
        "mended": [asdict(finding) for finding in mended],
    }


class _Progress:
    """Says on standard error which file is being read, if that takes long."""

    def __init__(self) -> None:
        self._next = steady() + PROGRESS_FROM_S

    def tell(self, path: Path, part: float | None) -> None:
        """Say it, unless that was said just now."""
        if (now := steady()) >= self._next:
            self._next = now + PROGRESS_INTERVAL_S
            click.echo(f"checking {path}{'' if part is None else f': {part:.0%}'}", err=True)
