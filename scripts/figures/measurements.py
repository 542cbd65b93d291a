"""The measurements: for each file in docs/figures/, the command that writes its figures.

Tests: tests/scripts/test_figures.py
"""

from dataclasses import dataclass
from typing import Final

FILE: Final = "{file}"
"""Stands in a command for the file that the command writes."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One command, and the time it takes."""

    title: str
    command: tuple[str, ...]
    """The arguments after `python -m`."""
    minutes: float
    """Roughly, on two cores."""
    make: str | None = None
    """The target of the Makefile that sets up what the command needs, or None."""
    blocks: int = 1
    """Parts in which the command is run, each with `--first-seed` of its own. Finished parts are not run again."""
    block_seeds: int = 0
    writes_directory: bool = False
    """The command writes results.json into a directory in place of one file."""
    may_miss: bool = False
    """Exit code 1 means that an aim was missed. The figures say which, so they are kept."""


def _module(*words: str) -> tuple[str, ...]:
    return (*words, "--json", FILE)


MEASUREMENTS: Final[dict[str, Measurement]] = {
    "bench": Measurement(
        "CPU and speed beside other crawlers", _module("scripts.bench"), 6, make=".venv-bench/.installed"
    ),
    "profile": Measurement("A page by room", _module("scripts.page_profile"), 0.5, make=".venv/.installed-profile"),
    "bench-members": Measurement("The price of keys, and floods", _module("scripts.bench_members"), 3),
    "bench-overlay": Measurement(
        "The overlay on loopback", _module("scripts.bench_overlay", "50", "200", "500", "--plain"), 6
    ),
    "bench-moves": Measurement("What a join and a leave move", _module("scripts.bench_moves"), 3, may_miss=True),
    "bench-web": Measurement("What the dashboard costs", _module("scripts.bench_web"), 4, may_miss=True),
    "bench-restart": Measurement("A restart with a million URLs", _module("scripts.bench_restart"), 2, may_miss=True),
    "bench-long": Measurement(
        "What a page costs as a crawl grows",
        _module("scripts.bench_long", "--pages", "20000", "--alone-pages", "6000", "--minutes", "1.6", "--rows", "12"),
        3,
        may_miss=True,
    ),
    "bench-long-million": Measurement(
        "The same over a million pages",
        _module("scripts.bench_long", "--pages", "1000000", "--hosts", "1200", "--minutes", "70", "--rows", "40"),
        62,
        may_miss=True,
    ),
    "soak": Measurement("Random faults for an hour", _module("scripts.soak"), 62),
    "seeds": Measurement("Seeds from a pipe", _module("scripts.bench_seeds"), 2, may_miss=True),
    "links": Measurement(
        "Links beside wget and Scrapy", _module("scripts.compare_links"), 2, make=".venv-bench/.installed"
    ),
    "bench-links": Measurement("Links in Python and natively", _module("scripts.bench_links"), 0.5),
    "page-counts": Measurement("Statements, tasks and calls of a page", _module("scripts.page_counts"), 0.2),
    "bench-seen": Measurement("Fingerprints that expire", _module("scripts.bench_seen"), 2, may_miss=True),
    "bench-frontier": Measurement("URLs that wait", _module("scripts.bench_frontier"), 3, may_miss=True),
    "bench-history": Measurement(
        "History by mode", _module("scripts.bench_history", "--count", "200000", "--cells", "100"), 1
    ),
    "swarm-memory": Measurement(
        "Bytes of a URL in a swarm with fingerprints", _module("scripts.bench_swarm_memory"), 1
    ),
    "idle-memory": Measurement(
        "Memory of an idle peer and an idle leaf", _module("scripts.bench_memory"), 0.7, may_miss=True
    ),
    "node-usage": Measurement("CPU, memory and bandwidth of eight nodes", _module("scripts.node_usage"), 1.5),
    "many-peers": Measurement("Many peers on one machine", _module("scripts.bench_many_peers"), 2),
    "simulation": Measurement(
        "What the simulator costs",
        _module("scripts.bench_simulation", "--peers", "200", "--pages", "400", "--seeds", "4"),
        1,
    ),
    "bench-overload": Measurement("Ten peers in one process", _module("scripts.bench_overload"), 7, may_miss=True),
    "five-peers": Measurement("Five unequal peers", _module("scripts.five_peers"), 5, may_miss=True),
    "papers": Measurement("The papers' experiments", ("sim.papers", "-o", FILE), 9, writes_directory=True),
    "balancing-256": Measurement(
        "Policies of load balance with 256 peers",
        ("sim.papers", "-o", FILE, "--only", "balancing-256"),
        10,
        writes_directory=True,
        may_miss=True,
    ),
    "table2-unscaled": Measurement(
        "The papers' eight unlike peers at their own rates",
        ("sim.papers", "-o", FILE, "--only", "table2-unscaled"),
        5,
        writes_directory=True,
        may_miss=True,
    ),
    "papers-full": Measurement(
        "The papers' eight unlike peers and P4's days at full length",
        ("sim.papers", "-o", FILE, "--full", "--only", "table2", "--only", "revisits"),
        10,
        writes_directory=True,
        may_miss=True,
    ),
    "campaign": Measurement(
        "Simulated swarms under faults",
        _module("sim", "run", "--seeds", "250", "--patience", "900"),
        240,
        blocks=40,
        block_seeds=250,
    ),
    "bloom-campaign": Measurement(
        "Simulated swarms with a bounded history", _module("sim", "run", "--seeds", "60", "--history", "bloom"), 2
    ),
    "mutants": Measurement("Planted bugs", _module("sim", "mutants"), 20),
    "sim-big": Measurement("Thousands of simulated peers", _module("sim", "big", "--peers", "4000"), 60),
    "chaos": Measurement("Real peers that are killed", _module("scripts.chaos"), 10),
    "chaos-network": Measurement("Real peers behind bad networks", _module("scripts.chaos", "--network"), 5),
}
"""The file in docs/figures/, without its suffix, and how it is made."""
