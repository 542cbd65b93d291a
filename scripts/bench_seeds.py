"""This benchmark streams a million seeds from a pipe into a swarm of three peers.

    python -m scripts.bench_seeds
    python -m scripts.bench_seeds --seeds 100000

Three real peers on loopback are paused, so that only seeds are worked on. Each seed is of a host of its own, and the
scope is the host. The figures are the rate, the CPU, and the memory of the command and of the peers, when a tenth and
when all of the seeds are in. Of each thousand seeds ten come a second time, one of them much later. The status of the
swarm then tells how many URLs the owners know, each of which an owner has accepted once.
"""

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
from rich.console import Console
from rich.table import Table

KADCRAWL = str(Path(sys.executable).with_name("kadcrawl"))
PEERS = 3
UP_TIMEOUT_S = 60.0
POLL_S = 0.1
LINES_AT_ONCE = 10_000
"""Seeds written to the pipe at a time."""
REPEATED_AT_ONCE = 90
"""Seeds of these lines that follow a second time at once."""
REPEATED_LATER = 10
"""Seeds of the first lines that follow a second time, after each of these lines."""
END_TIMEOUT_S = 900.0
"""Seconds in which the command must end after the last seed, and in which the swarm must count all of them."""
FLAT = 1.25
"""The most by which the memory of the command may grow between a tenth and all of the seeds."""


@dataclass(frozen=True, slots=True)
class StreamFigures:
    """The figures of one stream."""

    seeds: int
    """Distinct seeds."""
    peers: int
    lines: int
    """Lines that the command has read, as it says."""
    duplicates: int
    """Lines that named a seed again."""
    wall_s: float
    seeds_per_s: float
    command_mb_at_a_tenth: float
    command_mb: float
    command_cpu_s: float
    peer_mb: list[float]
    """Peak memory of each peer."""
    peer_cpu_s: list[float]
    directory_mb: float
    """All files of all peers."""
    accepted: int
    """URLs that the owners know, as the status says."""


def seed_of(number: int) -> str:
    return f"http://host-{number}.example/"


def lines_of(start: int, seeds: int) -> list[str]:
    """Return the lines of the pipe from this seed on: new seeds, and some that came before."""
    numbers = range(start, min(seeds, start + LINES_AT_ONCE))
    new = [f"{seed_of(number)}\n" for number in numbers]
    return [*new, *new[:REPEATED_AT_ONCE], *(f"{seed_of(number)}\n" for number in range(REPEATED_LATER))]


def memory_mb(pid: int) -> float:
    """Return the present memory of a process."""
    return _status(pid, "VmRSS")


def peak_mb(pid: int) -> float:
    return _status(pid, "VmHWM")


def _status(pid: int, name: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def size_mb(directory: Path) -> float:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file()) / 1e6


async def command(*arguments: str) -> bytes:
    process = await asyncio.create_subprocess_exec(KADCRAWL, *arguments, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"kadcrawl {' '.join(arguments)} ended with exit code {process.returncode}")
    return out


@asynccontextmanager
async def peer(directory: Path, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a peer, once it listens, in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        KADCRAWL, *arguments, "--listen", "127.0.0.1:0", "--insecure", "--data", str(directory),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        async with asyncio.timeout(UP_TIMEOUT_S):
            while not (directory / "address").exists():  # noqa: ASYNC110 -- written by another process
                await asyncio.sleep(POLL_S)
        yield process
    finally:
        process.kill()
        await process.wait()


async def feed(data: Path, seeds: int, watched: Sequence[asyncio.subprocess.Process]) -> dict[str, Any]:
    """Write the seeds into the pipe of `kadcrawl add -`, and return the figures of the command."""
    said = data.with_name("add.log")
    with said.open("w") as log:
        process = await asyncio.create_subprocess_exec(
            KADCRAWL, "add", "-", "--data", str(data), stdin=asyncio.subprocess.PIPE, stdout=log, stderr=log
        )
    assert process.stdin is not None
    began, tenth_mb, last_mb, used_s, written = time.perf_counter(), 0.0, 0.0, 0.0, 0
    for start in range(0, seeds, LINES_AT_ONCE):
        lines = lines_of(start, seeds)
        written += len(lines)
        try:
            process.stdin.write("".join(lines).encode())
            await process.stdin.drain()
            last_mb, used_s = memory_mb(process.pid), cpu_s(process.pid)
        except (OSError, StopIteration):
            raise RuntimeError(f"kadcrawl add ended early: {last_line(said)}") from None
        if start <= seeds // 10:
            tenth_mb = last_mb
        if any(one.returncode is not None for one in watched):
            raise RuntimeError("a peer has died")
    process.stdin.close()
    async with asyncio.timeout(END_TIMEOUT_S):
        if await process.wait():
            raise RuntimeError(f"kadcrawl add ended with exit code {process.returncode}: {last_line(said)}")
    wall_s = time.perf_counter() - began
    summary = re.search(r"from (\d+) lines", said.read_text())
    return {
        "lines": int(summary[1]) if summary else 0,
        "duplicates": written - seeds,
        "wall_s": wall_s,
        "seeds_per_s": seeds / wall_s,
        "command_mb_at_a_tenth": tenth_mb,
        "command_mb": last_mb,
        "command_cpu_s": used_s,
    }


def last_line(file: Path) -> str:
    return (file.read_text().strip().splitlines() or ["it said nothing"])[-1]


async def measure(directory: Path, seeds: int) -> StreamFigures:
    """Stream so many seeds into a new swarm."""
    first = directory / "peer-1"
    contact = ("--contact", "bench@example.org", "--scope", "host")
    async with peer(first, "start", *contact) as one:
        address = (first / "address").read_text().strip()
        join = ("join", "--bootstrap", address)
        async with peer(directory / "peer-2", *join) as two, peer(directory / "peer-3", *join) as three:
            peers = (one, two, three)
            await command("pause", "--data", str(first))
            fed = await feed(first, seeds, peers)
            accepted = 0
            async with asyncio.timeout(END_TIMEOUT_S):
                while accepted != seeds:
                    status = json.loads(await command("status", "--json", "--data", str(first)))
                    accepted = status["urls_found"]
            return StreamFigures(
                seeds=seeds,
                peers=PEERS,
                **fed,
                peer_mb=[peak_mb(process.pid) for process in peers],
                peer_cpu_s=[cpu_s(process.pid) for process in peers],
                directory_mb=size_mb(directory),
                accepted=accepted,
            )


def table(figures: StreamFigures) -> Table:
    shown = Table("", "figure", title=f"{figures.seeds:,} seeds into {figures.peers} peers")
    for name, value in asdict(figures).items():
        numbers = value if isinstance(value, list) else [value]
        shown.add_row(
            name, ", ".join(f"{number:,.1f}" if isinstance(number, float) else f"{number:,}" for number in numbers)
        )
    return shown


@click.command(help=__doc__)
@click.option("--seeds", type=click.IntRange(LINES_AT_ONCE), default=1_000_000, show_default=True)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures here.")
def main(seeds: int, json_file: Path | None) -> None:
    with TemporaryDirectory() as directory:
        figures = asyncio.run(measure(Path(directory), seeds))
    Console(width=120).print(table(figures))
    if json_file is not None:
        json_file.write_text(json.dumps(asdict(figures), indent=1) + "\n")
    grown = figures.command_mb / figures.command_mb_at_a_tenth
    flat = f"the command's memory is {grown:.2f} times that at a tenth of the seeds"
    print(f"ok   {flat}" if grown <= FLAT else f"FAIL {flat}, above {FLAT}")
    sys.exit(grown > FLAT)


if __name__ == "__main__":
    main()
