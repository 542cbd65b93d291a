"""This benchmark repeats P1, Table 3: CPU, memory and bandwidth of eight nodes with the crawler, and without.

    python -m scripts.node_usage
    python -m scripts.node_usage --window 60

Eight real peers crawl a local web, each only as fast as the node of P1, Table 2, whose part it plays, but twenty times
as fast. The paper's nodes were machines with other work, ours are processes of one machine. So *without* is the whole
machine before the peers start, and *idle* is a peer that has joined and has nothing to fetch. Only Linux.

Tests: tests/scripts/test_node_usage.py
"""

import asyncio
import json
import logging
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.table import Table

from scripts.five_peers.run import PAGE_BYTES, SITE_PAGES, CappedSwarm, dealt
from scripts.five_peers.web import AccessLine, CappedWeb
from sim.papers.five_nodes import NODES
from sim.papers.table2 import PEERS

SCALE: Final = 20.0
"""The paper's crawl rates times this."""
BYTES_S: Final = 1e7
"""Bandwidth of each line, which limits nothing here."""
SETTLED_S: Final = 3.0
"""Seconds between the first pages and the measurement."""
TABLE_3: Final = (
    ((33.7, 12.0), (1.7, 1.0), (15.5, 2.1)),
    ((36.0, 13.2), (1.8, 0.9), (18.3, 2.3)),
    ((15.3, 10.8), (1.7, 0.8), (5.3, 2.1)),
    ((22.5, 12.2), (1.8, 0.9), (10.6, 2.5)),
    ((34.0, 11.4), (1.6, 0.9), (16.0, 1.9)),
    ((23.7, 10.1), (1.8, 0.8), (10.7, 2.6)),
    ((22.9, 11.1), (1.7, 0.8), (11.1, 2.2)),
    ((18.2, 12.5), (1.7, 0.9), (6.2, 2.1)),
)
"""The paper's percent of CPU, memory and bandwidth of each node: (with the crawler, without)."""


@dataclass(frozen=True, slots=True)
class ProcessLook:
    """One look at a process."""

    cpu_s: float
    memory_bytes: int
    pages: int


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """The use of one node in the window."""

    pages_s: float
    cpu_percent: float
    """Of one core."""
    idle_cpu_percent: float
    """The same before there was a page to fetch."""
    memory_mb: float
    memory_percent: float
    """Of the machine."""
    page_kb_s: float


@dataclass(frozen=True, slots=True)
class MachineLook:
    """One look at the whole machine."""

    busy_s: float
    all_s: float
    used_bytes: int
    memory_bytes: int
    loopback_bytes: int


@dataclass(frozen=True, slots=True)
class MachineUsage:
    """The use of the whole machine in a window."""

    cpu_percent: float
    """Of all cores."""
    memory_percent: float
    loopback_kb_s: float


def process_look(pid: int, pages: int, proc: Path = Path("/proc")) -> ProcessLook:
    """Return a look at a process that has fetched so many pages."""
    after_name = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
    ticks = int(after_name[11]) + int(after_name[12])
    lines = (proc / str(pid) / "status").read_text().splitlines()
    resident = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))
    return ProcessLook(ticks / os.sysconf("SC_CLK_TCK"), resident, pages)


def machine_look(proc: Path = Path("/proc")) -> MachineLook:
    """Return a look at the machine."""
    ticks = [int(word) for word in (proc / "stat").read_text().splitlines()[0].split()[1:9]]
    memory = {
        name: int(rest.split()[0]) * 1024
        for name, _, rest in (line.partition(":") for line in (proc / "meminfo").read_text().splitlines())
    }
    loopback = next(line for line in (proc / "net/dev").read_text().splitlines() if line.strip().startswith("lo:"))
    per_s = os.sysconf("SC_CLK_TCK")
    return MachineLook(
        (sum(ticks) - ticks[3] - ticks[4]) / per_s,
        sum(ticks) / per_s,
        memory["MemTotal"] - memory["MemAvailable"],
        memory["MemTotal"],
        int(loopback.partition(":")[2].split()[0]),
    )


def cpu_percent(first: ProcessLook, last: ProcessLook, window_s: float) -> float:
    """Return the share of a core that a process used between two looks, in percent."""
    return 100 * (last.cpu_s - first.cpu_s) / window_s


def node_usage(
    first: ProcessLook, last: ProcessLook, window_s: float, memory_bytes: int, idle_cpu_percent: float
) -> NodeUsage:
    """Return the use of a process between two looks, on a machine of so much memory."""
    pages_s = (last.pages - first.pages) / window_s
    return NodeUsage(
        pages_s,
        cpu_percent(first, last, window_s),
        idle_cpu_percent,
        last.memory_bytes / 1e6,
        100 * last.memory_bytes / memory_bytes,
        pages_s * PAGE_BYTES / 1e3,
    )


def machine_usage(first: MachineLook, last: MachineLook, window_s: float) -> MachineUsage:
    """Return the use of the machine between two looks."""
    return MachineUsage(
        100 * (last.busy_s - first.busy_s) / max(last.all_s - first.all_s, 1e-9),
        100 * last.used_bytes / last.memory_bytes,
        (last.loopback_bytes - first.loopback_bytes) / 1e3 / window_s,
    )


async def measure(window_s: float, directory: Path) -> dict[str, object]:
    """Return the figures of the nodes, and of the machine without and with them. Raises RuntimeError."""
    first = machine_look()
    await asyncio.sleep(window_s)
    without = machine_usage(first, machine_look(), window_s)
    askers = [f"127.0.1.{number}" for number in range(1, len(PEERS) + 1)]
    lines = [AccessLine(pages_s=SCALE * peer.crawls, bytes_s=BYTES_S) for peer in PEERS]
    async with AsyncExitStack() as stack:
        web = await stack.enter_async_context(CappedWeb(dict(zip(askers, lines, strict=True)), SITE_PAGES, PAGE_BYTES))
        swarm = CappedSwarm(directory, "level", None, "exact")
        stack.push_async_callback(swarm.close)
        for number, asker in enumerate(askers, 1):
            # The powers of a node count with predicted times only.
            await swarm.start(number, NODES[0], asker)
        owners = await dealt(web, await swarm.ids())
        idle = [process_look(pid, 0) for pid in swarm.pids]
        await asyncio.sleep(window_s)
        idle_percent = [
            cpu_percent(look, process_look(pid, 0), window_s) for look, pid in zip(idle, swarm.pids, strict=True)
        ]
        await swarm.add([url for address in owners for url in web.urls(address)])
        await asyncio.sleep(SETTLED_S)
        before = machine_look()
        looks = [process_look(pid, line.pages) for pid, line in zip(swarm.pids, lines, strict=True)]
        await asyncio.sleep(window_s)
        after = machine_look()
        nodes = [
            node_usage(look, process_look(pid, line.pages), window_s, after.memory_bytes, resting)
            for look, pid, line, resting in zip(looks, swarm.pids, lines, idle_percent, strict=True)
        ]
    return {
        "window_s": window_s,
        "nodes": [asdict(node) for node in nodes],
        "paper": TABLE_3,
        "without": asdict(without),
        "with": asdict(machine_usage(before, after, window_s)),
    }


def table_of(nodes: Sequence[NodeUsage]) -> Table:
    """Return the use of the nodes as a table for the terminal."""
    table = Table("node", "pages/s", "CPU %", "idle", "MB", "memory %", "kB/s")
    for number, node in enumerate(nodes, 1):
        cpu = (node.cpu_percent, node.idle_cpu_percent)
        figures = (node.pages_s, *cpu, node.memory_mb, node.memory_percent, node.page_kb_s)
        table.add_row(str(number), *(f"{figure:.1f}" for figure in figures))
    return table


@click.command(help=__doc__)
@click.option("--window", default=15.0, show_default=True, type=click.FloatRange(1.0, 60.0), help="Seconds measured.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures here.")
def main(window: float, json_file: Path | None) -> None:
    # The peers are killed in the middle of requests.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="kadcrawl-usage-") as made:
        try:
            found = asyncio.run(measure(window, Path(made) / "peers"))
        except (RuntimeError, TimeoutError) as error:
            sys.exit(f"node_usage: {error}")
    nodes = found["nodes"]
    assert isinstance(nodes, list), "as measure returns them"
    Console().print(table_of([NodeUsage(**node) for node in nodes]))
    if json_file is not None:
        json_file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
