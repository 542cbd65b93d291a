"""This benchmark measures what the simulator costs: memory a peer of a large swarm, and seeds by CPU second.

    python -m scripts.bench_simulation
    python -m scripts.bench_simulation --peers 200 --pages 1000 --seeds 4

Each part is one process, and its start counts. Memory is the peak of the process, divided by the peers. Only Linux.

Tests: tests/scripts/test_bench_simulation.py
"""

import json
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import click

from scripts.measure import Cost, cost_of

PEERS_OF_A_SEED: Final = 16


class WorldError(Exception):
    """A simulation did not come to its end. The text says why."""


@dataclass(frozen=True, slots=True)
class SimulationCost:
    """What one large swarm costs, and what seeds cost."""

    peers: int
    pages: int
    mb_a_peer: float
    swarm_cpu_s: float
    messages: int
    seeds: int
    seeds_a_cpu_s: float


def measure(peers: int, pages: int, seeds: int) -> SimulationCost:
    """Run one large swarm and some seeds, and return the cost. Raises WorldError."""
    swarm, found = _run("big", "--peers", str(peers), "--pages", str(pages))
    campaign, _ = _run("run", "--seeds", str(seeds), "--jobs", "1", "--peers", str(PEERS_OF_A_SEED))
    return SimulationCost(
        peers=peers,
        pages=pages,
        mb_a_peer=swarm.peak_bytes / 1e6 / peers,
        swarm_cpu_s=swarm.cpu_s,
        messages=found["messages"],
        seeds=seeds,
        seeds_a_cpu_s=seeds / campaign.cpu_s,
    )


def _run(*words: str) -> tuple[Cost, dict[str, Any]]:
    """Return the cost of a command of the simulator and the figures that it wrote. Raises WorldError."""
    with tempfile.TemporaryDirectory(prefix="kadcrawl-sim-cost-") as made:
        figures, output = Path(made) / "figures.json", Path(made) / "output"
        cost = cost_of([sys.executable, "-m", "sim", *words, "--json", str(figures)], output)
        if not figures.exists():  # Exit code 1 with figures is a broken promise, whose price is the same.
            said = output.read_text(errors="replace")[-500:]
            raise WorldError(f"sim {' '.join(words)} ended with {cost.exit_code}: {said}")
        return cost, json.loads(figures.read_text(encoding="utf-8"))


@click.command(help=__doc__)
@click.option("--peers", default=1_000, show_default=True, type=click.IntRange(2, 10_000), help="Of the large swarm.")
@click.option("--pages", default=1_000, show_default=True, type=click.IntRange(1), help="Of the large swarm.")
@click.option("--seeds", default=12, show_default=True, type=click.IntRange(1), help="Swarms of 16 peers.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures here.")
def main(peers: int, pages: int, seeds: int, json_file: Path | None) -> None:
    try:
        cost = measure(peers, pages, seeds)
    except WorldError as error:
        sys.exit(f"bench_simulation: {error}")
    print(f"{cost.peers} peers, {cost.pages} pages: {cost.mb_a_peer:.2f} MB a peer, {cost.swarm_cpu_s:.0f} CPU s")
    print(f"{cost.seeds} seeds of {PEERS_OF_A_SEED} peers: {cost.seeds_a_cpu_s:.2f} by CPU second")
    if json_file is not None:
        json_file.write_text(json.dumps(asdict(cost), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
