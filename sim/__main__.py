"""``python -m sim``: run campaigns of simulated worlds, replay one, make its plan shorter, hunt planted bugs."""

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, get_args

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from kadcrawl.settings.job import COPIES_MAX, COPIES_MIN, History

from . import sometimes
from .big import PAGES_PER_SITE, SwarmSnapshot, crawl, files_lacking, plan_of
from .campaign import Catch, Hunt, Task, Totals, attempt, hunts, modes_of, tasks, trials
from .draw import draw
from .mutants import MUTANTS, QUICK
from .plan import Plan
from .shrink import shrink
from .target_worlds import MODES, Mode
from .trial import USUAL, Size, TrialOutcome, run

HUNT_SEEDS = 500
HUNT_SEEDS_QUICK = 80
SENTENCES_SHOWN = 5
"""The most violations of a judge that are printed."""

PROGRAM = f"python -m {__package__}"
"""`python -m sim` in the repository, `python -m kadcrawl_sim` where it is installed."""

console = Console(highlight=False, soft_wrap=True)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
def main() -> None:
    """Crawl a synthetic web with a swarm of unmodified peers in virtual time, under random faults.

    A seed makes a whole world: the web, the conditions of the network, and a plan of faults (kills, restarts on three
    kinds of disk, joins, leaves, freezes, overload, partitions, full disks, loss, delay, sites that are down, retries).
    It also makes the settings of the job: delays, lending, rules for single sites, cookies and logins, links that say
    nofollow, parameters, sitemaps. When the plan is over the world heals, the swarm comes to rest, and judges outside
    the peers report the broken promises. The same seed is the same world, to the last byte, in any process.

    \b
    python -m sim run --seeds 100                 a campaign; exit code 1 if a promise was broken
    python -m sim run --seed 42 --trace           the story of one seed, line by line
    python -m sim replay 42                       its plan, its verdict, its trace hash
    python -m sim shrink 42 -o plan.json          the fewest events that still break a promise
    python -m sim replay plan.json --trace        only these events
    python -m sim mutants --quick                 check that the judges find planted bugs
    python -m sim big                             a thousand peers, a hundred thousand pages
    """


main.help = (main.help or "").replace("python -m sim", PROGRAM)


def sized(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how large a world is."""

    @click.option("--peers", default=16, show_default=True, type=click.IntRange(1, 10_000), help="Machines at first.")
    @click.option("--pages", default=USUAL.pages, show_default=True, type=click.IntRange(1), help="Pages of the web.")
    @click.option("--sites", default=USUAL.sites, show_default=True, type=click.IntRange(1), help="Sites they are on.")
    @click.option("--delay", type=click.FloatRange(0.0), help="Seconds between requests to one site.  [default: drawn]")
    @wraps(command)
    def with_size(*args: Any, pages: int, sites: int, **options: Any) -> Any:
        return command(*args, size=Size(pages=pages, sites=sites), **options)

    return with_size


kept = click.option(
    "--history",
    type=click.Choice(get_args(History)),
    default="exact",
    show_default=True,
    help="The job's history of finished URLs.",
)


copied = click.option(
    "--copies",
    type=click.IntRange(COPIES_MIN, COPIES_MAX),
    help="The job's copies of each record, all but one of which may be killed together.  [default: drawn]",
)


@main.command(name="run")
@click.option("--seeds", default=100, show_default=True, type=click.IntRange(1), help="The number of seeds.")
@click.option("--first-seed", default=1, show_default=True, help="The first of them.")
@click.option("--seed", type=int, help="Run only this seed.")
@click.option(
    "--trace", is_flag=True, help="Print the story of the seed: every event, and every log line of the peers."
)
@click.option("--calm", is_flag=True, help="Run without faults.")
@kept
@copied
@click.option("--mutant", type=click.Choice(list(MUTANTS)), help="Plant this bug first.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the totals here.")
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(1), help="Parallel processes.")
@click.option("--patience", default=120, show_default=True, help="Wall-clock seconds after which a seed is ended.")
@sized
def run_seeds(
    seeds: int,
    first_seed: int,
    seed: int | None,
    trace: bool,
    calm: bool,
    history: History,
    copies: int | None,
    mutant: str | None,
    json_file: Path | None,
    jobs: int,
    patience: int,
    peers: int,
    size: Size,
    delay: float | None,
) -> None:
    """Run a campaign and print its result."""
    if trace and seed is None:
        raise click.UsageError("--trace tells the story of one seed: name it with --seed")
    wanted = range(first_seed, first_seed + seeds) if seed is None else range(seed, seed + 1)
    totals = Totals()
    if trace:
        plan = draw(wanted[0], peers, faults=not calm, copies=copies).delayed(delay).kept_by(history)
        _tell(plan, outcome := run(plan, size, mutant=mutant, say=print))
        totals.add(outcome)
    else:
        drawn = tasks(
            wanted, peers, size, delay_s=delay, faults=not calm, mutant=mutant, history=history, copies=copies
        )
        todo = (one._replace(wall_most_s=patience) for one in drawn)
        with _progress() as progress:
            bar = progress.add_task("seeds", total=len(wanted), found="")
            for outcome in trials(todo, min(jobs, len(wanted))):
                totals.add(outcome)
                failing = f"[red]{len(totals.failing)} failing[/]" if totals.failing else "[green]clean[/]"
                progress.update(bar, advance=1, found=f"{failing}, {totals.seeds / totals.wall_s:.1f}/s")
        _show(totals, _options(peers=peers, size=size, delay=delay, mutant=mutant, history=history, copies=copies))
    if json_file is not None:
        _write_json(json_file, totals.report())
    sys.exit(1 if totals.failing else 0)


@main.command()
@click.argument("what", metavar="SEED|PLAN.json")
@click.option("--trace", is_flag=True, help="Print the story: every event, and every log line of the peers.")
@kept
@copied
@click.option("--mutant", type=click.Choice(list(MUTANTS)), help="Plant this bug first.")
@sized
def replay(
    what: str,
    trace: bool,
    history: History,
    copies: int | None,
    mutant: str | None,
    peers: int,
    size: Size,
    delay: float | None,
) -> None:
    """Run one world again, by its seed or by a saved plan."""
    plan = _plan(what, peers, copies).delayed(delay).kept_by(history)
    outcome = run(plan, size, mutant=mutant, say=print if trace else None)
    _tell(plan, outcome)
    sys.exit(0 if outcome.clean else 1)


@main.command(name="shrink")
@click.argument("what", metavar="SEED|PLAN.json")
@copied
@click.option("--judge", help="The judge that must still find a violation.  [default: any that does]")
@click.option("--mutant", type=click.Choice(list(MUTANTS)), help="Plant this bug first.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the short plan here.")
@sized
def shrink_plan(
    what: str,
    copies: int | None,
    judge: str | None,
    mutant: str | None,
    output: Path | None,
    peers: int,
    size: Size,
    delay: float | None,
) -> None:
    """Remove every event of a plan that the same violations do not need."""
    plan = _plan(what, peers, copies).delayed(delay)
    first = attempt(Task(plan, size, mutant))
    judges = {judge} if judge else set(first.violations)
    if not judges & first.violations.keys():
        raise click.ClickException(f"{what} is clean: there is nothing to look for")
    tried = 0

    def fails(shorter: Plan) -> bool:
        nonlocal tried
        tried += 1
        found = bool(judges & attempt(Task(shorter, size, mutant)).violations.keys())
        console.print(f"{len(shorter.events):4} events: {'still' if found else 'not any more'}")
        return found

    short = shrink(plan, fails)
    _tell(short, attempt(Task(short, size, mutant)))
    console.print(f"{len(short.events)} of {len(plan.events)} events are enough ({tried} worlds)")
    if output is not None:
        output.write_bytes(short.to_json() + b"\n")
        console.print(f"{PROGRAM} replay {output}{_options(peers=None, size=size, delay=None, mutant=mutant)}")


@main.command()
@click.argument("names", nargs=-1)
@click.option("--quick", is_flag=True, help=f"Hunt a selection within {HUNT_SEEDS_QUICK} seeds.")
@click.option("--seeds", type=click.IntRange(1), help=f"Seeds to try for each mutant.  [default: {HUNT_SEEDS}]")
@click.option("--first-seed", default=1, show_default=True, help="The first of them.")
@click.option("--list", "listed", is_flag=True, help="List the mutants.")
@click.option(
    "--mode",
    type=click.Choice(MODES),
    help="A setting of the jobs in which mutants of loans are hunted.  [default: each; with --quick one]",
)
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(1), help="Parallel processes.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the finds here.")
@sized
def mutants(
    names: tuple[str, ...],
    quick: bool,
    seeds: int | None,
    first_seed: int,
    listed: bool,
    mode: Mode | None,
    jobs: int,
    json_file: Path | None,
    peers: int,
    size: Size,
    delay: float | None,
) -> None:
    """Plant bugs, one at a time, and see in how many seeds the judges find each.

    A seed counts only if the judge finds nothing in it without the bug.
    """
    unknown = set(names) - MUTANTS.keys()
    if unknown:
        raise click.UsageError(f"no such mutant: {', '.join(sorted(unknown))}; see --list")
    chosen = names or (QUICK if quick else tuple(MUTANTS))
    if listed:
        for name in chosen:
            console.print(f"[bold]{name}[/]: {MUTANTS[name].breaks}")
        return
    count = seeds or (HUNT_SEEDS_QUICK if quick else HUNT_SEEDS)
    wanted = range(first_seed, first_seed + count)
    todo = [Hunt(name, wanted, peers, size, delay, one) for name in chosen for one in modes_of(name, mode, quick=quick)]
    catches: list[Catch] = []
    found = 0
    table = Table("mutant", "mode", "seeds it took", "seed", "found by", title=f"within {count} seeds of {peers} peers")
    with _progress() as progress:
        bar = progress.add_task("mutants", total=len(todo), found="")
        for catch in hunts(todo, min(jobs, len(todo))):
            catches.append(catch)
            found += catch.seed is not None
            took = str(catch.tried) if catch.seed is not None else "[red]not found[/]"
            table.add_row(catch.mutant, catch.mode, took, str(catch.seed or ""), ", ".join(catch.judges))
            progress.update(bar, advance=1, found=f"{found} found")
    console.print(table)
    console.print(f"{found} of {len(todo)} mutants found")
    if json_file is not None:
        in_order = sorted(catches, key=lambda catch: (chosen.index(catch.mutant), MODES.index(catch.mode)))
        _write_json(json_file, {"seeds": count, "peers": peers, "mutants": in_order})
    sys.exit(0 if found == len(todo) else 1)


@main.command()
@click.option("--peers", default=1_000, show_default=True, type=click.IntRange(1, 10_000), help="Machines.")
@click.option("--pages", default=100_000, show_default=True, type=click.IntRange(1), help="Pages of the web.")
@click.option("--sites", type=click.IntRange(1), help=f"Sites they are on.  [default: one for {PAGES_PER_SITE} pages]")
@click.option("--kills", default=0, show_default=True, type=click.IntRange(0), help="Machines killed in between.")
@click.option("--seed", default=1, show_default=True, help="The seed of the world.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures here.")
def big(peers: int, pages: int, sites: int | None, kills: int, seed: int, json_file: Path | None) -> None:
    """Crawl a large web with one large swarm and print the cost (minutes, and some gigabytes)."""
    if (lacking := files_lacking(peers)) is not None:
        raise click.ClickException(lacking)
    plan = plan_of(seed, peers, kills)
    with _progress() as progress:
        bar = progress.add_task("pages", total=pages, found="")

        def show(sight: SwarmSnapshot) -> None:
            found = f"{sight.peers} peers, {sight.virtual_s:.1f} virtual seconds"
            progress.update(bar, completed=sight.pages, total=sight.pages_all, found=found)

        outcome, cost = crawl(plan, pages, sites, show)
    _tell(plan, outcome)
    console.print(
        f"{cost.cpu_s:.0f} s of processor, {cost.wall_s:.0f} s in all; {cost.memory_bytes / 1e9:.2f} GB of memory, "
        f"{cost.disk_bytes / 1e9:.2f} GB on disks; {outcome.urls / cost.wall_s:.0f} pages and "
        f"{outcome.messages / cost.wall_s:.0f} messages a second"
    )
    if json_file is not None:
        fields = ("clean", "urls", "virtual_s", "fetches", "duplicates", "messages", "repair_s")
        world = {name: getattr(outcome, name) for name in fields}
        _write_json(json_file, {"peers": peers, "pages": pages, "kills": kills, **world, "cost": cost})
    sys.exit(0 if outcome.clean else 1)


def _write_json(path: Path, figures: object) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=2) + b"\n")


# --- what a person sees ----------------------------------------------------------------------------------------------


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[found]}"),
        console=console,
    )


def _plan(what: str, peers: int, copies: int | None = None) -> Plan:
    """Return the plan of a seed, drawn with these copies, or a saved plan as it is."""
    if what.isdigit():
        return draw(int(what), peers, copies=copies)
    try:
        return Plan.from_json(Path(what).read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        raise click.ClickException(f"{what} is neither a seed nor a plan: {error}") from None


def _tell(plan: Plan, outcome: TrialOutcome) -> None:
    """Print one world's plan and verdict."""
    console.print(str(plan), markup=False)
    for judge, found in outcome.violations.items():
        console.print(f"[red]{judge}[/]: {len(found)}")
        for sentence in found[:SENTENCES_SHOWN]:
            console.print(f"    {sentence}", markup=False)
    console.print(
        f"{'clean' if outcome.clean else 'broken'} after {outcome.virtual_s:.1f} virtual seconds: {outcome.urls} URLs, "
        f"{outcome.fetches} requests, {outcome.duplicates} duplicates, {outcome.messages} messages; "
        f"trace {outcome.trace}",
        markup=False,
    )


def _show(totals: Totals, options: str) -> None:
    """Print the totals of a campaign. `options` are those of its command line."""
    report = totals.report()
    table = Table(show_header=False)
    for name in list(report)[:16]:
        table.add_row(name.replace("_", " "), str(report[name]))
    table.add_row("seeds per second", f"{totals.seeds / totals.wall_s:.2f}")
    console.print(table)
    for name, times in totals.violations.items():
        seeds = [seed for seed, found in sorted(totals.failing.items()) if name in found]
        console.print(f"[red]{name}[/]: {times} in {len(seeds)} seeds")
    for name, what in sometimes.AWKWARD.items():
        console.print(f"{totals.met[name]:6} x {what}" if totals.met[name] else f"[yellow] never[/]   {what}")
    for seed, found in sorted(totals.failing.items()):
        judges = ", ".join(f"{name} {len(sentences)}" for name, sentences in found.items())
        console.print(f"{PROGRAM} replay {seed}{options}  # {judges}")


def _options(
    *,
    peers: int | None,
    size: Size,
    delay: float | None,
    mutant: str | None,
    history: History = "exact",
    copies: int | None = None,
) -> str:
    """Return the options, as typed, that make a world of this size."""
    chosen = {
        "peers": (peers, None),
        "pages": (size.pages, USUAL.pages),
        "sites": (size.sites, USUAL.sites),
        "delay": (delay, None),
        "mutant": (mutant, None),
        "history": (history, "exact"),
        "copies": (copies, None),
    }
    return "".join(f" --{name} {value}" for name, (value, default) in chosen.items() if value != default)


if __name__ == "__main__":
    main()
