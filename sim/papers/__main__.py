"""``python -m sim.papers``: do the papers' experiments again, and write the report."""

import sys
from functools import partial
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from .experiment import Result
from .registry import EXPERIMENTS, FULL, LARGE, QUICK
from .report import number, to_reach, write

console = Console(highlight=False, soft_wrap=True)


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory for the report. Files of the same names are overwritten.",
)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice([*EXPERIMENTS, *LARGE]),
    help="Run only this experiment. May be repeated.",
)
@click.option(
    "--seed", default=1, show_default=True, help="The seed of all chance. The same seed writes the same bytes."
)
@click.option("--full", is_flag=True, help="Up to a thousand real peers (an hour and 4.5 GB of memory more).")
@click.option(
    "--quick", is_flag=True, help=f"Run only experiments of some seconds, some of them shortened: {', '.join(QUICK)}."
)
@click.option("--check", is_flag=True, help="Exit with 1 if an aim was missed.")
def main(output: Path, only: tuple[str, ...], seed: int, full: bool, quick: bool, check: bool) -> None:
    """Do the experiments of the four papers again, and show theirs beside ours.

    Writes a page to look at (report.html: one file, no network), the same as Markdown (report.md, with the figures as
    SVG files beside it) and as JSON (results.json). Each number stands beside the paper's own, what theory allows, and
    what was to be reached. The exit code is 0 if all ran; with --check it is 1 if an aim was missed.

    \b
    python -m sim.papers -o papers                    all of them, a few minutes
    python -m sim.papers -o papers --only joining     one
    python -m sim.papers -o papers --seed 2           other chance: do the numbers hold?
    python -m sim.papers -o papers --full             and as large as the papers only hope for
    python -m sim.papers -o papers --quick --check    are the aims reached that are quickly measured?
    python -m sim.papers -o papers --quick --only table2        one of these
    """
    known = {**EXPERIMENTS, **(FULL if full else {}), **LARGE, **(QUICK if quick else {})}
    names = [name for name in known if name in only or _is_asked(name, bool(only), full=full, quick=quick)]
    results: dict[str, Result] = {}
    with _progress() as progress:
        bars = {name: progress.add_task(name, total=1.0) for name in names}
        for name in names:
            show = partial(_show, progress, bars[name])
            results[name] = known[name](seed, show)
            show(1.0)
    files = write(results, output)
    missed = _tell(results)
    console.print(f"{files[0]} and {len(files) - 1} more files")
    sys.exit(1 if missed and check else 0)


main.help = (main.help or "").replace("python -m sim.papers", f"python -m {__package__}")


def _is_asked(name: str, only: bool, *, full: bool, quick: bool) -> bool:
    """Return whether an experiment that --only does not name runs too."""
    if quick:
        return not only and name in QUICK
    return not only and (full or name not in LARGE)


def _show(progress: Progress, bar: TaskID, share: float) -> None:
    progress.update(bar, completed=share)


def _tell(results: dict[str, Result]) -> int:
    """Print the targets and the results, and return the number of missed targets."""
    table = Table("", "theirs", "ours", "bound", "to reach", "")
    for column in table.columns[1:5]:
        column.justify = "right"
    missed = 0
    for name, result in results.items():
        table.add_section()
        for finding in result.findings:
            missed += finding.reached is False
            numbers = [
                "" if value is None else number(value) for value in (finding.theirs, finding.ours, finding.bound)
            ]
            asked = "" if finding.reached is None else to_reach(finding)
            reached = {None: "", True: "[green]reached[/]", False: "[red]missed[/]"}[finding.reached]
            what = f"{name}: {finding.what}{' (fitted)' if result.fitted else ''}"
            table.add_row(what.replace("[", r"\["), *numbers, asked, reached)
    console.print(table)
    return missed


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), console=console
    )


if __name__ == "__main__":
    main()
