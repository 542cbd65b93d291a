"""A soak: eight real peers crawl for an hour under random faults, and a judge gives a verdict.

    python -m scripts.soak
    python -m scripts.soak --minutes 5 --seed 7 --json soak.json

Peers are killed and started again, frozen, told to leave, and joined by others. As root on Linux the disk of one peer
runs full for some seconds at a time, and packets between the peers are late, lost or doubled at times; elsewhere these
faults are left out, and the first lines say so. The same seed draws the same faults at the same instants.

At the end the questions of `scripts.chaos` are asked: was each page fetched, is each in a page log, was no site
hurried, were few pages fetched twice? Memory, open files and threads of each process must not grow, and the WAL of
each journal must stay small. Page logs roll at a small size, so that the judge reads their parts. The soak stops by
itself.

Tests: tests/scripts/test_soak.py
"""

import argparse
import asyncio
import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

from scripts.chaos.dealt_web import DealtWeb, made_up
from scripts.chaos.machines import OnHub
from scripts.chaos.namespaces import remove_stale, unavailable
from scripts.chaos.run import bugs, expected_requests
from scripts.chaos.swarm import ProcessSwarm
from scripts.chaos.tun_hub import PacketConditions
from scripts.chaos.usage import Usage, growths, usage
from scripts.kadcrawl_run import page_lines
from sim.judge import judge

PEERS: Final = 8
NEWCOMERS: Final = 12
"""Peers with a new directory that take the places of peers that left. Further ones come back on their directories."""
SITES: Final = 64
PAGES_A_MINUTE: Final = 100_000 / 60
"""So an hour has 100,000 pages."""
BUSY: Final = 0.8
"""Share of the time that the delays of the sites take. The rest is for what faults cost."""
FAULT_EVERY_S: Final = (8.0, 20.0)
"""The least and the most seconds between two faults: three copies are there again."""
FREEZE_S: Final = (2.0, 20.0)
FULL_S: Final = (3.0, 10.0)
WEATHER_S: Final = (5.0, 20.0)
DISK_MB: Final = 300
"""Size of the disk that runs full. Below 64 MiB of free space a peer pauses."""
FULL_PEER: Final = "peer-8"
DISK_FULL: Final = "disk is full"
"""An error that a peer may log. It waits for room then, and enters the swarm again."""
WEATHER: Final = (
    PacketConditions(delay_s=0.05, jitter_s=0.04),
    PacketConditions(loss=0.05),
    PacketConditions(delay_s=0.02, jitter_s=0.02, loss=0.02, duplication=0.05),
)
LOOK_EVERY_S: Final = 2.0
WARM_S: Final = 45.0
"""Seconds after the start of a process in which its memory may grow: caches fill."""
GROWTH_MAX: Final = {"rss_mb": 25.0, "files": 60, "threads": 8}
"""The most by which a process may grow from the first third of its looks to the last."""
WAL_MB_MAX: Final = 40.0
TWICE_MAX: Final = 0.02
"""Share of the pages that may be fetched twice."""
END_S: Final = 120.0
"""Seconds for the rest of the crawl once the faults are over."""
PART_BYTES: Final = "20 kB"
FAULTS_SHOWN_MAX: Final = 8


@dataclass(slots=True)
class Soak:
    """The state of one soak."""

    swarm: ProcessSwarm
    random: Random
    web: DealtWeb
    disk: Path | None
    """The directory of the disk that may run full, or None."""
    looks: list[Usage] = field(default_factory=list)
    began: dict[int, float] = field(default_factory=dict)
    """The loop's second at which each process was first seen."""
    faults: Counter[str] = field(default_factory=Counter)
    """Faults so far, by kind."""
    names: int = PEERS
    """Number of the last peer."""


async def killed(soak: Soak) -> None:
    """Kill a peer, and start it again on its directory."""
    (victim,) = soak.random.sample(soak.swarm.living, 1)
    await soak.swarm.kill([victim])
    await asyncio.sleep(soak.random.choice([0.0, soak.random.uniform(0.0, 6.0)]))
    await soak.swarm.join(victim.name)


async def frozen(soak: Soak) -> None:
    """Freeze a peer for some seconds."""
    (victim,) = soak.random.sample(soak.swarm.living, 1)
    await soak.swarm.freeze(victim, round(soak.random.uniform(*FREEZE_S), 1))


async def left(soak: Soak) -> None:
    """Tell a peer to leave, and start another in its place once it has left."""
    candidates = [peer for peer in soak.swarm.living if peer.name != FULL_PEER]
    (victim,) = soak.random.sample(candidates, 1)
    await soak.swarm.leave(victim)
    await asyncio.wait_for(victim.process.wait(), END_S)
    soak.names = min(soak.names + 1, PEERS + NEWCOMERS)
    await soak.swarm.join(victim.name if soak.names == PEERS + NEWCOMERS else f"peer-{soak.names}")


async def terminated(soak: Soak) -> None:
    """Send a peer SIGTERM, and start it again once it has left."""
    candidates = [peer for peer in soak.swarm.living if peer.name != FULL_PEER]
    (victim,) = soak.random.sample(candidates, 1)
    soak.swarm.terminate(victim)
    await asyncio.wait_for(victim.process.wait(), END_S)
    await soak.swarm.join(victim.name)


async def full(soak: Soak) -> None:
    """Fill the disk of a peer for some seconds."""
    assert soak.disk is not None, "the fault is left out without a disk"
    seconds = round(soak.random.uniform(*FULL_S), 1)
    soak.swarm.note(f"disk full {seconds:g} s", FULL_PEER)
    filler = soak.disk / "filler"
    try:
        await asyncio.to_thread(_fill, filler)
        await asyncio.sleep(seconds)
    finally:
        filler.unlink(missing_ok=True)


async def weather(soak: Soak) -> None:
    """Let packets between the peers be late, lost or doubled for some seconds."""
    machines = soak.web.machines
    assert isinstance(machines, OnHub), "the fault is left out without a hub"
    seconds = round(soak.random.uniform(*WEATHER_S), 1)
    conditions = soak.random.choice(WEATHER)
    soak.swarm.note(f"loss {conditions.loss:g}, delay {conditions.delay_s:g} s for {seconds:g} s")
    before, machines.faults.conditions = machines.faults.conditions, conditions
    try:
        await asyncio.sleep(seconds)
    finally:
        machines.faults.conditions = before


def _fill(filler: Path) -> None:
    """Write until the disk is full."""
    try:
        with filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1024 * 1024))
    except OSError:
        return


@contextmanager
def small_disk(directory: Path) -> Iterator[str | None]:
    """Mount a small disk at a directory while the context is open. Give the reason if that is not possible."""
    directory.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "kadcrawl-soak", str(directory)]
    try:
        mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        yield str(error)
        return
    if mounted.returncode:
        yield mounted.stderr.strip()
        return
    try:
        yield None
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=False)


async def faults(soak: Soak, kinds: Sequence[Callable[[Soak], Awaitable[None]]], until: float) -> None:
    """Let faults happen, one after the other, until the loop's second `until`."""
    loop = asyncio.get_running_loop()
    while loop.time() < until:
        await asyncio.sleep(min(soak.random.uniform(*FAULT_EVERY_S), max(0.0, until - loop.time())))
        if loop.time() < until:
            kind = soak.random.choice(kinds)
            await kind(soak)
            soak.faults[kind.__name__] += 1
            share = soak.swarm.share
            print(f"{loop.time() - until:6.0f} s  {share:4.0%}  {soak.swarm.events[-1]}", flush=True)


async def watch(soak: Soak) -> None:
    """Look at all processes, again and again, until cancelled."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    while True:
        for peer in soak.swarm.processes:
            if peer.process.returncode is None:
                pid = peer.process.pid
                since = soak.began.setdefault(pid, loop.time())
                look = usage(loop.time() - began, peer.name, pid, loop.time() - since, peer.directory)
                soak.looks += [look] if look is not None else []
        await asyncio.sleep(LOOK_EVERY_S)


async def soaked(minutes: float, seed: int, directory: Path, *, network: bool) -> dict[str, Any]:
    """Run a soak below a directory, and return the figures with the faults that the judge found."""
    loop = asyncio.get_running_loop()
    pages = round(PAGES_A_MINUTE * minutes)
    delay_s = round(BUSY * 60 * minutes * SITES / pages, 3)
    async with AsyncExitStack() as stack:
        machines = await stack.enter_async_context(OnHub(PEERS + NEWCOMERS, SITES, Random(seed))) if network else None
        web = await stack.enter_async_context(DealtWeb(made_up(pages), SITES, machines))
        web.access_log.clear()
        below = directory / "swarm"
        swarm = await stack.enter_async_context(ProcessSwarm(below, web, delay_s))
        why_no_disk = stack.enter_context(small_disk(below / FULL_PEER))
        disk = None if why_no_disk else below / FULL_PEER
        kinds = [killed, killed, frozen, frozen, left, terminated, *([full] if disk else []), *([weather] * network)]
        print(f"{pages:,} pages on {SITES} sites, one request every {delay_s:g} s to each; {PEERS} peers, seed {seed}")
        print(f"full disk left out: {why_no_disk}" if why_no_disk else f"the disk of {FULL_PEER} has {DISK_MB} MB")
        job = directory / "soak.toml"
        job.write_text(f'[limits]\npages_bytes_max = "{PART_BYTES}"\n')
        soak = Soak(swarm, Random(f"soak {seed}"), web, disk)
        watching = asyncio.create_task(watch(soak))
        began, found = loop.time(), []
        try:
            await swarm.begin(PEERS, ("--job", str(job)))
            await faults(soak, kinds, began + BUSY * 60 * minutes)
        except (RuntimeError, TimeoutError) as error:
            found.append(f"{type(error).__name__}: {error}")
        late = await swarm.end(END_S + (1 - BUSY) * 60 * minutes)
        watching.cancel()
        found += [f"{name} did not end by itself" for name in late]
        found += judged(soak, delay_s, [*page_lines(below)], _exits(swarm, late))
        found += bugs(below, {FULL_PEER: DISK_FULL} if disk else None)
        return {
            "minutes": minutes,
            "seed": seed,
            "pages": len(web.truth),
            "fetched": len(web.fetched),
            "twice": web.fetched.total() - len(web.fetched),
            "seconds": round(loop.time() - began, 1),
            "events": dict(soak.faults),
            "processes": len(swarm.processes),
            "parts": len([*below.glob("*/pages-0*.jsonl")]),
            **peaks(soak.looks),
            "growths": [*growths(soak.looks, WARM_S).values()],
            "faults": found,
        }


def peaks(looks: Sequence[Usage]) -> dict[str, float]:
    """Return the largest of each figure."""
    return {name: max((getattr(look, name) for look in looks), default=0) for name in MEASURED}


MEASURED: Final = ("rss_mb", "files", "threads", "wal_mb", "journal_mb")


def judged(soak: Soak, delay_s: float, lines: Sequence[Any], exits: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each broken promise."""
    web = soak.web
    verdict = judge(web.access_log, expected_requests(web), (), dict.fromkeys(web.origins, delay_s))
    yield from exits
    yield from (f"never fetched: {url}" for url in verdict.missing)
    logged = {line.url for line in lines}
    yield from (f"in no page log: {url}" for url in sorted(web.truth.keys() - logged) if url in web.fetched)
    yield from (f"nobody links to: {url}" for url in verdict.extra)
    yield from (f"hurried: {what}" for what in verdict.hurried)
    twice = web.fetched.total() - len(web.fetched)
    if twice > TWICE_MAX * len(web.truth):
        yield f"{twice} of {len(web.truth)} fetched twice"
    yield from grown(soak.looks)


def grown(looks: Sequence[Usage]) -> Iterator[str]:
    """Yield a sentence for each process that has grown, and for a large WAL."""
    names = {look.pid: look.peer for look in looks}
    for pid, by in growths(looks, WARM_S).items():
        for name, most in GROWTH_MAX.items():
            if by[name] > most:
                yield f"{names[pid]} (process {pid}) grew by {by[name]:g} {name}"
    if (wal := peaks(looks)["wal_mb"]) > WAL_MB_MAX:
        yield f"a WAL had {wal:g} MB"


def _exits(swarm: ProcessSwarm, late: Sequence[str]) -> list[str]:
    return [
        f"{peer.name} exited with {peer.process.returncode}, not {peer.exit_expected}"
        for peer in swarm.processes
        if peer.process.returncode != peer.exit_expected and peer.name not in late
    ]


async def _run(minutes: float, seed: int, directory: Path) -> dict[str, Any]:
    task = asyncio.current_task()
    assert task is not None, "run by asyncio.run"
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)  # So that nothing stays behind.
    why = unavailable()
    print(f"faults of the network left out: {why}" if why else "the peers are on a network of their own", flush=True)
    if not why:
        remove_stale()
    return await soaked(minutes, seed, directory, network=not why)


def main() -> None:
    """Run one soak."""
    parser = argparse.ArgumentParser(prog="python -m scripts.soak", description="Crawl for long under random faults.")
    parser.add_argument("--minutes", type=float, default=60.0, help="minutes of faults and crawl (default 60)")
    parser.add_argument("--seed", type=int, default=1, help="draws the faults (default 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="kadcrawl-soak-"))
    try:
        figures = asyncio.run(_run(options.minutes, options.seed, directory))
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.exit(11)
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    found = figures["faults"]
    shown = {name: figures[name] for name in ("pages", "fetched", "twice", "seconds", "events", "parts", *MEASURED)}
    print(", ".join(f"{name} {value}" for name, value in shown.items()))
    for fault in found[:FAULTS_SHOWN_MAX]:
        print(f"    {fault}")
    if found:
        print(f"FAILED: {len(found)} faults; see {directory}")
        sys.exit(1)
    shutil.rmtree(directory)
    print("ok   every page was fetched, and nothing grew")


if __name__ == "__main__":
    main()
