"""``python -m fuzz``: fuzzes targets and prints the faults found, or runs one input again."""

import sys
import time
import traceback
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table

from fuzz import corpus
from fuzz.campaign import Campaign, TargetResult, found_by
from fuzz.mutations import Comparison
from fuzz.targets import NAMES, target
from fuzz.watch import CPU_MOST_S, timed
from kadcrawl.crawl.content.native_links import NATIVE
from scripts.sites import SitesError, sites

SECONDS = 30
CAMPAIGN_POLL_S = 0.25

console = Console(highlight=False, soft_wrap=True)


class RunByDefault(click.Group):
    """A command group whose default command is `run`: other first words are its targets and options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = args and (args[0] in self.commands or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named else ["run", *args])


@click.group(cls=RunByDefault, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
def main() -> None:
    """Feed kadcrawl's readers of network, disk and user input with malformed bytes, guided by coverage.

    Each target calls decisions directly, lets no undocumented exception pass, and asserts all other promises. An input
    may take 100 ms of CPU and the process a gigabyte. The interesting inputs of a run are in .cache/fuzz. The smallest
    of them, as far as there is room, are kept in fuzz/corpus, and the tests run them in plain Python.

    \b
    python -m fuzz                                all targets, half a minute each, two at a time
    python -m fuzz html urls --seconds 600        two targets, ten minutes each
    python -m fuzz replay html FILE               one input again, in plain Python
    python -m fuzz mutate --pages 10000000        native code against Python code, on mutated pages
    """


@main.command()
@click.argument("names", metavar="[TARGET]...", nargs=-1, type=click.Choice(NAMES))
@click.option(
    "--seconds", type=click.IntRange(1), help=f"Seconds for each target.  [default: {SECONDS}, if not --runs]"
)
@click.option("--runs", type=click.IntRange(1), help="Inputs of each target.")
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(1), help="Processes at a time.")
def run(names: tuple[str, ...], seconds: int | None, runs: int | None, jobs: int) -> None:
    """Fuzz the named targets, or all. The exit code is 1 if a fault was found."""
    if find_spec("atheris") is None:
        raise click.ClickException(
            f"fuzzing needs atheris, which is not here for Python {sys.version_info[0]}.{sys.version_info[1]}: run "
            "make fuzz, and if there is no wheel of it for this Python, make fuzz PYTHON=python3.11 VENV=.venv-fuzz"
        )
    if seconds is None and runs is None:
        seconds = SECONDS
    campaign = Campaign(names or NAMES, seconds, runs, jobs)
    try:
        with Live(console=console, transient=True, refresh_per_second=4) as live:
            while campaign.running:
                live.update(_table(campaign))
                time.sleep(CAMPAIGN_POLL_S)
    except KeyboardInterrupt:
        campaign.end()
    else:
        campaign.finish()
    console.print(_table(campaign))
    results = campaign.results.values()
    for result in results:
        _show(result)
    sys.exit(1 if any(result.crashes or result.output for result in results) else 0)


@main.command()
@click.argument("name", metavar="TARGET", type=click.Choice(NAMES))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def replay(name: str, file: Path) -> None:
    """Run one input in plain Python. The exit code is 1 if it raises or takes too much CPU."""
    data = file.read_bytes()
    one = target(name).one
    try:
        one(data)  # The first call loads modules, which is no cost of the input.
        spent_s = timed(one, data)
    except Exception:
        traceback.print_exc()
        sys.exit(1)
    console.print(f"{name} of {len(data):,} bytes: nothing raised, {1000 * spent_s:.1f} ms of CPU")
    if spent_s > CPU_MOST_S:
        console.print(f"[red]that is more than {1000 * CPU_MOST_S:.0f} ms[/]")
        sys.exit(1)


@main.command()
@click.argument("names", metavar="[TARGET]...", nargs=-1, type=click.Choice(NAMES))
def keep(names: tuple[str, ...]) -> None:
    """Keep in fuzz/corpus the found inputs that add coverage. Each run does so at its end."""
    for name in names or NAMES:
        count = corpus.keep(target(name), found_by(name))
        console.print(f"{name}: {count} more kept, {len(corpus.kept(name))} in all")


@main.command()
@click.option("--pages", default=100_000, show_default=True, type=click.IntRange(0), help="Mutated pages.")
@click.option("--joins", default=100_000, show_default=True, type=click.IntRange(0), help="Joins of a URL and an href.")
@click.option("--seed", default=1, show_default=True, help="The same seed gives the same pages.")
def mutate(pages: int, joins: int, seed: int) -> None:
    """Compare the native link extractor with the Python code, on mutated pages of documentation sites.

    The exit code is 1 at the first difference.
    """
    if NATIVE is None:
        raise click.ClickException("the native code is not compiled here, or KADCRAWL_PURE is set: make setup")
    try:
        bodies = [path.read_bytes() for site in sites() for path in sorted(site.root.rglob("*.html"))[::10]]
    except SitesError as error:
        raise click.ClickException(str(error)) from error
    comparison = Comparison(NATIVE, bodies, seed)
    for step, count in ((comparison.one_page, pages), (comparison.one_join, joins)):
        for _ in range(count):
            if (difference := step()) is not None:
                console.print(f"Python and native code differ on {difference.data!r}", markup=False)
                console.print(f"  Python: {difference.python!r}\n  native: {difference.native!r}", markup=False)
                sys.exit(1)
    console.print(
        f"the same on {pages:,} mutated pages and {joins:,} joins, of which native code did {comparison.joined:,}"
    )


def _table(campaign: Campaign) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("target")
    for title in ("runs", "runs/s", "edges", "corpus", "kept", "slowest ms", "peak MB", "crashes"):
        table.add_column(title, justify="right")
    for result in campaign.results.values():
        table.add_row(result.name, *_row(result))
    return table


def _row(result: TargetResult) -> list[Any]:
    crashes = f"[red]{len(result.crashes)}[/]" if result.crashes else "0"
    return [
        f"{result.runs:,}" + (f" ({result.units})" if result.units else ""),
        f"{result.runs_s:,}" if result.runs_s else "",
        f"{result.edges:,}",
        f"{result.inputs:,}",
        f"{result.kept:,}" if result.over else "",
        f"{1000 * result.slowest_s:.0f}",
        f"{result.peak_mb:,}",
        crashes if result.over or result.crashes else "",
    ]


def _show(result: TargetResult) -> None:
    for path, what in result.crashes.items():
        console.print(f"[red]{result.name}: an input {what}[/]; once more: python -m fuzz replay {result.name} {path}")
        data = Path(path).read_bytes()
        console.print(f"  {data[:100]!r}{' ...' if len(data) > 100 else ''}", markup=False)
    if result.output:
        console.print(f"[red]{result.name}: the process died[/]")
        console.print("".join(result.output), markup=False)


if __name__ == "__main__":
    main(prog_name="python -m fuzz")
