"""This benchmark measures the memory of an idle peer and of an idle leaf, as real processes.

    make bench-memory
    python -m scripts.bench_memory --json memory.json

The figures are those of the kernel: RSS counts all pages of a process, as `ps` shows it. PSS counts shared pages by
parts. The private pages (anonymous memory) are what another such process on the same machine costs. The command fails
if a process takes more than the aim.

Tests: tests/scripts/test_bench_memory.py
"""

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.table import Table

from scripts.idle_processes import IdleProcess, cpu_s, idle_swarm, memory_kb

AIMS_MB: Final = {"peer": 48, "leaf": 40}
"""The aims for the RSS of an idle process."""
SETTLE_S: Final = 10.0
"""Seconds from the start of the last process to the measurement."""
KB_PER_MB: Final = 1024


@dataclass(frozen=True, slots=True)
class IdleMemory:
    """The memory of one idle process."""

    name: str
    kind: str
    rss_mb: float
    pss_mb: float
    private_mb: float
    cpu_s: float
    """CPU seconds from its start to the measurement."""
    modules: int
    """Imported modules of Python."""


def measured(one: IdleProcess, modules: int) -> IdleMemory:
    """Return the memory of an idle process."""
    memory = memory_kb(one.pid)
    rss, pss, private = (round(memory[name] / KB_PER_MB, 1) for name in ("Rss", "Pss", "Anonymous"))
    return IdleMemory(one.name, one.kind, rss, pss, private, cpu_s(one.pid), modules)


def measure(settle_s: float) -> list[IdleMemory]:
    """Return the memory of all processes of an idle swarm."""
    with _directory() as directory, idle_swarm(Path(directory), records_imports=True) as swarm:
        time.sleep(settle_s)
        counts = [len(one.modules()) for one in swarm]
    with _directory() as directory, idle_swarm(Path(directory)) as swarm:
        time.sleep(settle_s)
        return [measured(one, count) for one, count in zip(swarm, counts, strict=True)]


def _directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="kadcrawl-memory-")


def table_of(found: Sequence[IdleMemory]) -> Table:
    """Return the figures as a table for the terminal."""
    table = Table("idle process", "RSS MB", "aim", "PSS MB", "private MB", "CPU s", "modules")
    for one in found:
        figures = (one.rss_mb, AIMS_MB[one.kind], one.pss_mb, one.private_mb, one.cpu_s, one.modules)
        table.add_row(one.name, *(f"{figure:g}" for figure in figures))
    return table


@click.command(help=__doc__)
@click.option("--settle-s", default=SETTLE_S, show_default=True, help="Seconds before the measurement.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures here.")
def main(settle_s: float, json_file: Path | None) -> None:
    found = measure(settle_s)
    Console().print(table_of(found))
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n", encoding="utf-8")
    sys.exit(any(one.rss_mb > AIMS_MB[one.kind] for one in found))


if __name__ == "__main__":
    main()
