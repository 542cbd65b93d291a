"""Chaos runs: eight real peer processes crawl real pages under faults, and a judge gives a verdict.

Each scenario is a function that chooses faults, victims and instants: see processes.py and, for ``--network``,
network.py. With ``--network`` every peer is alone in a network namespace, and the packets between them pass through a
hub that loses, delays, doubles and cuts. That takes Linux, root and `ip`. Without these the command says so and is
done.

``python -m scripts.chaos [--network] [--repetitions N] [--only SCENARIO] [--first-seed N] [--json FILE]`` exits with 0
only if all went well. The directory of a failed run is kept, and named.
"""

import argparse
import asyncio
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Final

from scripts.chaos.dealt_web import DealtWeb, documentation, made_up
from scripts.chaos.machines import OnHub
from scripts.chaos.namespaces import remove_stale, unavailable
from scripts.chaos.network import NETWORK
from scripts.chaos.processes import PROCESSES
from scripts.chaos.run import PEERS, ChaosOutcome, RunSize, Scenario, run

SITES: Final = 16
PAGES: Final = 800
FAULTS_SHOWN_MAX: Final = 5


def main() -> None:
    """Run the scenarios."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.chaos", description="Run faults against a real swarm while it crawls."
    )
    parser.add_argument("--network", action="store_true", help="faults of the network between the peers (as root)")
    parser.add_argument("--repetitions", type=int, default=1, metavar="N", help="runs of each scenario (default 1)")
    parser.add_argument("--first-seed", type=int, default=1, metavar="N", help="seed of the first run (default 1)")
    parser.add_argument("--only", action="append", metavar="SCENARIO", help="run only this scenario, repeatable")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every outcome")
    options = parser.parse_args()
    scenarios = NETWORK if options.network else PROCESSES
    if unknown := set(options.only or ()) - scenarios.keys():
        parser.error(f"no scenario {', '.join(sorted(unknown))}; there are {', '.join(scenarios)}")
    if options.network and (why := unavailable()) is not None:
        print(f"skipped: {why}")
        return
    seeds = range(options.first_seed, options.first_seed + options.repetitions)
    runs = [(scenarios[name], seed) for seed in seeds for name in options.only or scenarios]
    try:
        outcomes = asyncio.run(_run_all(runs, network=options.network))
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.exit(11)
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1) + "\n")
    print("", *_table(outcomes), sep="\n")
    sys.exit(any(outcome.faults for outcome in outcomes))


async def _run_all(runs: Sequence[tuple[Scenario, int]], *, network: bool) -> list[ChaosOutcome]:
    task = asyncio.current_task()
    assert task is not None, "run by asyncio.run"
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)  # So that nothing stays behind.
    outcomes = []
    directory = Path(tempfile.mkdtemp(prefix="kadcrawl-chaos-"))
    pages = documentation(PAGES)
    print(f"{len(pages) or PAGES} pages, {'of the PostgreSQL manual' if pages else 'made up'}, on {SITES} sites;")
    print(f"{PEERS} peers, {len(runs)} runs of about half a minute to two minutes each.", flush=True)
    async with AsyncExitStack() as stack:
        machines = None
        if network:
            remove_stale()
            # Which packets are sent is up to the machine, so the seed does not make two runs the same.
            machines = await stack.enter_async_context(OnHub(PEERS, SITES, Random(runs[0][1])))
        web = await stack.enter_async_context(DealtWeb(pages or made_up(PAGES), SITES, machines))
        for number, (scenario, seed) in enumerate(runs, 1):
            print(f"[{number}/{len(runs)}] {scenario.name}, seed {seed} ...", end=" ", flush=True)
            below = directory / f"{scenario.name}-{seed}"
            outcome = await run(scenario, seed, web, below, RunSize())
            outcomes.append(outcome)
            print(_said(outcome, below), flush=True)
            if not outcome.faults:
                shutil.rmtree(below)
    if not any(outcome.faults for outcome in outcomes):
        shutil.rmtree(directory)
    return outcomes


def _said(outcome: ChaosOutcome, directory: Path) -> str:
    packets = ", ".join(f"{count} {what}" for what, count in outcome.packets.items() if count)
    happened = "; ".join(filter(None, [f"{outcome.seconds:.0f} s", *outcome.events, packets]))
    if not outcome.faults:
        return f"ok, {happened}"
    shown = "".join(f"\n    {fault}" for fault in outcome.faults[:FAULTS_SHOWN_MAX])
    more = f"\n    and {len(outcome.faults) - FAULTS_SHOWN_MAX} more" if outcome.faults[FAULTS_SHOWN_MAX:] else ""
    return f"FAILED, {happened}; see {directory}{shown}{more}"


def _table(outcomes: Sequence[ChaosOutcome]) -> Iterator[str]:
    """Yield one line per scenario, and one about the partitions if there were any."""
    yield "scenario           runs failed  pages  lost twice hurried median s"
    for scenario in dict.fromkeys(outcome.scenario for outcome in outcomes):
        of = [outcome for outcome in outcomes if outcome.scenario == scenario]
        seconds = sorted(outcome.seconds for outcome in of)[len(of) // 2]
        yield (
            f"{scenario:18} {len(of):4} {sum(bool(outcome.faults) for outcome in of):6}"
            f" {sum(outcome.pages for outcome in of):6} {sum(outcome.lost for outcome in of):5}"
            f" {sum(outcome.duplicates for outcome in of):5} {sum(outcome.hurried for outcome in of):7} {seconds:8.0f}"
        )
    across = [outcome.across for outcome in outcomes]
    if any(one.hurried or one.repeated for one in across):
        # Each side of a partition has clocks and URLs of its own, so these are counted, not held against it.
        yield (
            f"Across the cuts {sum(one.repeated for one in across)} pages were fetched twice and"
            f" {sum(one.hurried for one in across)} requests came too soon, the last of them"
            f" {max(one.settled_s for one in across):.1f} s after healing, as neither side knew of the other."
        )


if __name__ == "__main__":
    main()
