"""Real processes, really killed: eight peers crawl real pages, things happen to them, and a judge says how it went.

Each scenario is a function: what happens, to whom, and when; seeds choose victims and instants. Every run begins with
empty directories and ends with the same questions, which the web's own access log, the page logs of all peers, the dead
ones' too, and the exit codes answer: was every reachable page fetched, were at most 1 % fetched twice, was no site
hurried, did the swarm end by itself? There is no network fault in any of them, so none of these has an excuse.

``python -m scripts.chaos [--repetitions N] [--only SCENARIO] [--first-seed N] [--json FILE]``; exit code 0 only if all
went well. The directory of a run that did not is kept, and named.
"""

import argparse
import asyncio
import json
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Final

from scripts.chaos_swarm import OverError, PeerProcess, Swarm
from scripts.dealt_web import DealtWeb, documentation, made_up
from scripts.kadcrawl_run import page_lines
from sim.judge import Expected, judge

PEERS: Final = 8
SITES: Final = 16
PAGES: Final = 800
DELAY_S: Final = 0.4
"""Between two requests to one site: the largest has some 65 pages, so a crawl takes about half a minute."""
FREEZE_S: Final = 30.0
DUPLICATES_MAX: Final = 0.01
"""Share of the pages that may be fetched twice."""
RUN_S_MAX: Final = 240.0
"""A run that takes longer hangs."""
FAULTS_SHOWN_MAX: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large a run is."""

    peers: int = PEERS
    delay_s: float = DELAY_S
    freeze_s: float = FREEZE_S
    duplicates_max: float = DUPLICATES_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the judge says of one run."""

    scenario: str
    seed: int
    seconds: float
    pages: int
    fetched: int
    lost: int
    """Pages never fetched, or fetched and in no page log."""
    duplicates: int
    """Fetches of a page beyond its first."""
    hurried: int
    events: list[str]
    faults: list[str]


Scenario = Callable[[Swarm, Random, Size], Awaitable[None]]


# --- what happens -------------------------------------------------------------------------------------------------


async def two_killed(swarm: Swarm, random: Random, size: Size) -> None:
    """Two peers are killed at once: what they owned, and backed up for others, is left with one peer each."""
    await swarm.until(random.uniform(0.05, 0.6))
    await swarm.kill(swarm.chosen(random, 2))


async def frozen(swarm: Swarm, random: Random, size: Size) -> None:
    """A peer is stopped for half a minute, and finds its sites in other hands when it goes on."""
    await swarm.until(random.uniform(0.03, 0.15))
    (victim,) = swarm.chosen(random)
    await swarm.freeze(victim, size.freeze_s)


async def restarted(swarm: Swarm, random: Random, size: Size) -> None:
    """A peer is killed, and started again on its disk a little later."""
    await swarm.until(random.uniform(0.05, 0.5))
    (victim,) = swarm.chosen(random)
    await swarm.kill([victim])
    await asyncio.sleep(random.choice([0.0, random.uniform(0.0, 6.0)]))
    await _join(swarm, victim.name, "started on its disk")


async def disk_lost(swarm: Swarm, random: Random, size: Size) -> None:
    """A peer is killed, its disk deleted, and a new peer started in its place."""
    await swarm.until(random.uniform(0.05, 0.5))
    (victim,) = swarm.chosen(random)
    await swarm.kill([victim])
    swarm.delete_disk(victim)
    await asyncio.sleep(random.uniform(0.0, 3.0))
    await _join(swarm, victim.name, "started without its disk")


async def two_join(swarm: Swarm, random: Random, size: Size) -> None:
    """Two peers join at once."""
    await swarm.until(random.uniform(0.05, 0.5))
    names = [f"peer-{len(swarm.processes) + 1}", f"peer-{len(swarm.processes) + 2}"]
    await asyncio.gather(*(_join(swarm, name, "joins") for name in names))


async def one_leaves(swarm: Swarm, random: Random, size: Size) -> None:
    """A peer is told to leave, by `kadcrawl leave`."""
    await swarm.until(random.uniform(0.05, 0.6))
    (victim,) = swarm.chosen(random)
    await swarm.leave(victim)


async def terminated(swarm: Swarm, random: Random, size: Size) -> None:
    """A peer gets a SIGTERM, as when its machine shuts down; it leaves."""
    await swarm.until(random.uniform(0.05, 0.6))
    (victim,) = swarm.chosen(random)
    swarm.terminate(victim)


async def everything(swarm: Swarm, random: Random, size: Size) -> None:
    """All of it in one crawl, in any order, one thing after the other."""
    parts = [two_killed, frozen, restarted, disk_lost, two_join, random.choice([one_leaves, terminated])]
    random.shuffle(parts)
    for part in parts:
        await part(swarm, random, size)
        await asyncio.sleep(random.uniform(2.0, 5.0))


SCENARIOS: Final[dict[str, Scenario]] = {
    scenario.__name__: scenario
    for scenario in (two_killed, frozen, restarted, disk_lost, two_join, one_leaves, terminated, everything)
}

SLOWER: Final = {frozen.__name__: 2.25, everything.__name__: 5.0}
"""Factor of the delay where the crawl must last until all has happened."""


async def _join(swarm: Swarm, name: str, what: str) -> None:
    swarm.note(what, name)
    await swarm.join(name)


# --- one run ------------------------------------------------------------------------------------------------------


async def run(scenario: str, seed: int, web: DealtWeb, directory: Path, size: Size) -> Outcome:
    """Let one crawl of `web` go through a scenario, and judge it."""
    web.access_log.clear()
    random = Random(f"{scenario} {seed}")
    delay_s = size.delay_s * SLOWER.get(scenario, 1.0)
    loop = asyncio.get_running_loop()
    began = loop.time()
    faults: list[str] = []
    async with Swarm(directory, web, delay_s) as swarm:
        try:
            async with asyncio.timeout(RUN_S_MAX):
                await swarm.begin(size.peers)
                await SCENARIOS[scenario](swarm, random, size)
        except OverError:
            swarm.note("over before the rest could happen")
        except (RuntimeError, TimeoutError) as error:
            faults.append(f"{type(error).__name__}: {error}")
        late = await swarm.end(max(10.0, began + RUN_S_MAX - loop.time()))
        faults += [f"{name} did not end by itself" for name in late]
        faults += _exits(swarm.processes, late)
    verdict = judge(web.access_log, _expected(web), (), dict.fromkeys(web.origins, delay_s))
    lines = Counter(line.url for line in page_lines(directory))
    unlogged = sorted(web.truth.keys() - lines.keys())
    duplicates = web.fetched.total() - len(web.fetched)
    faults += [f"never fetched: {url}" for url in verdict.missing]
    faults += [f"in no page log: {url}" for url in unlogged if url in web.fetched]
    faults += [f"nobody links to: {url}" for url in verdict.extra]
    faults += [f"hurried: {what}" for what in verdict.hurried]
    if duplicates > size.duplicates_max * len(web.truth):
        faults += [f"{duplicates} of {len(web.truth)} fetched twice", *verdict.duplicates]
    faults += _bugs(directory)
    return Outcome(
        scenario=scenario,
        seed=seed,
        seconds=round(loop.time() - began, 1),
        pages=len(web.truth),
        fetched=len(web.fetched),
        lost=len(set(verdict.missing) | set(unlogged)),
        duplicates=duplicates,
        hurried=len(verdict.hurried),
        events=swarm.events,
        faults=faults,
    )


def _expected(web: DealtWeb) -> dict[str, Expected]:
    """Return what the access log is to show; how often is looked at apart."""
    pages = {url: Expected(status, 1, 1) for url, status in web.truth.items()}
    return pages | {f"{origin}/robots.txt": Expected(404, 0, len(web.access_log)) for origin in web.origins}


def _exits(processes: Sequence[PeerProcess], late: Sequence[str]) -> Iterator[str]:
    for peer in processes:
        code = peer.process.returncode
        if code != peer.exit_expected and peer.name not in late:
            yield f"{peer.name} exited with {code}, not {peer.exit_expected}"


def _bugs(directory: Path) -> Iterator[str]:
    """Yield what the peers say of faults of their own."""
    for log in sorted([*directory.glob("*.said"), *directory.glob("*/peer.log")]):
        said = [line for line in log.read_text().splitlines() if " ERROR " in line or line.startswith("Traceback")]
        if said:
            yield f"{log.relative_to(directory)}: {said[0]}" + (f" and {len(said) - 1} more" if said[1:] else "")


# --- the command --------------------------------------------------------------------------------------------------


def main() -> None:
    """Run the scenarios."""
    parser = argparse.ArgumentParser(description="Kill, freeze and restart peers of a real swarm while it crawls.")
    parser.add_argument("--repetitions", type=int, default=1, metavar="N", help="of each scenario (default 1)")
    parser.add_argument("--first-seed", type=int, default=1, metavar="N", help="of the first repetition (default 1)")
    parser.add_argument("--only", choices=SCENARIOS, action="append", help="this scenario; may be repeated")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every outcome")
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.repetitions)
    runs = [(scenario, seed) for seed in seeds for scenario in options.only or SCENARIOS]
    try:
        outcomes = asyncio.run(_run_all(runs))
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.exit(11)
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1) + "\n")
    print("", *_table(outcomes), sep="\n")
    sys.exit(any(outcome.faults for outcome in outcomes))


async def _run_all(runs: Sequence[tuple[str, int]]) -> list[Outcome]:
    task = asyncio.current_task()
    assert task is not None, "run by asyncio.run"
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)  # So that nothing stays behind.
    outcomes = []
    directory = Path(tempfile.mkdtemp(prefix="kadcrawl-chaos-"))
    pages = documentation(PAGES)
    print(f"{len(pages) or PAGES} pages, {'of the PostgreSQL manual' if pages else 'made up'}, on {SITES} sites;")
    print(f"{PEERS} peers, {len(runs)} runs of about half a minute to two minutes each.", flush=True)
    async with DealtWeb(pages or made_up(PAGES), SITES) as web:
        for number, (scenario, seed) in enumerate(runs, 1):
            print(f"[{number}/{len(runs)}] {scenario}, seed {seed} ...", end=" ", flush=True)
            below = directory / f"{scenario}-{seed}"
            outcome = await run(scenario, seed, web, below, Size())
            outcomes.append(outcome)
            print(_said(outcome, below), flush=True)
            if not outcome.faults:
                shutil.rmtree(below)
    if not any(outcome.faults for outcome in outcomes):
        shutil.rmtree(directory)
    return outcomes


def _said(outcome: Outcome, directory: Path) -> str:
    happened = f"{outcome.seconds:.0f} s; {'; '.join(outcome.events)}"
    if not outcome.faults:
        return f"ok, {happened}"
    shown = "".join(f"\n    {fault}" for fault in outcome.faults[:FAULTS_SHOWN_MAX])
    more = f"\n    and {len(outcome.faults) - FAULTS_SHOWN_MAX} more" if outcome.faults[FAULTS_SHOWN_MAX:] else ""
    return f"FAILED, {happened}; see {directory}{shown}{more}"


def _table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield one line per scenario."""
    yield "scenario     runs failed  pages  lost twice hurried median s"
    for scenario in dict.fromkeys(outcome.scenario for outcome in outcomes):
        of = [outcome for outcome in outcomes if outcome.scenario == scenario]
        seconds = sorted(outcome.seconds for outcome in of)[len(of) // 2]
        yield (
            f"{scenario:12} {len(of):4} {sum(bool(outcome.faults) for outcome in of):6}"
            f" {sum(outcome.pages for outcome in of):6} {sum(outcome.lost for outcome in of):5}"
            f" {sum(outcome.duplicates for outcome in of):5} {sum(outcome.hurried for outcome in of):7} {seconds:8.0f}"
        )


if __name__ == "__main__":
    main()
