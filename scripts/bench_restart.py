"""This benchmark times the restart of a peer with a million known URLs, alone and in a swarm.

    python -m scripts.bench_restart
    python -m scripts.bench_restart --urls 100000
    python -m scripts.bench_restart --urls 1500000 --site-urls 7500 --changed 20

One real peer on loopback, in a process of its own, comes back to a directory with so many URLs: first as the only peer,
then joining another peer that has the same URLs, as after a restart. With `--changed`, so many records of each site
differ between the two, as they do after `kill -9`. The figures are seconds from opening the directory until the peer
answers `Hello`, until the first cell may be crawled, and until all of its cells may, with the CPU and the number of
records that the peer has read by then to compare cells.
"""

import asyncio
import json
import logging
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import uvloop
from rich.console import Console
from rich.table import Table

from kadcrawl import Config, Peer
from kadcrawl.errors import StartError
from kadcrawl.link.client import LinkClient
from kadcrawl.peer.membership.endpoints import hello
from kadcrawl.store.store import PENDING, Store
from scripts.moving_records import JOB, URLS_PER_SITE, fill

SERVES_MAX_S = 3.0
"""The most seconds to the first answer, and to the first cell that may be crawled."""
CELL_KEYS_MAX = 2**40
"""More than a cell has."""
PEER_POLL_S = 0.02
RESTART_TIMEOUT_S = 300.0
STEADY_S = 1.0
"""Seconds without anything to sync before all cells count as open."""


@dataclass(frozen=True, slots=True)
class Passed:
    """Time since the start."""

    wall_s: float
    cpu_s: float
    examined: int
    """Records read to compare cells."""


@dataclass(frozen=True, slots=True)
class RestartFigures:
    """One restart."""

    cells: int
    answers: Passed
    first_open: Passed
    all_open: Passed
    opened: int
    syncs: int
    """Syncs of cells: at best one for each cell."""
    lag_max_s: float
    """Longest time for which the loop did nothing else."""


class PeerWatch:
    """Looks at a peer from inside its loop."""

    def __init__(self) -> None:
        self._peer: Peer | None = None
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        self.lag_max_s = 0.0

    def look_at(self, peer: Peer) -> None:
        """Count the records that this peer reads, too."""
        self._peer = peer

    def passed(self) -> Passed:
        examined = self._peer.cells.anti_entropy.examined if self._peer is not None and self._peer.begun else 0
        return Passed(time.perf_counter() - self._wall, time.process_time() - self._cpu, examined)

    async def until(self, condition: Callable[[], bool]) -> Passed:
        async with asyncio.timeout(RESTART_TIMEOUT_S):
            while not condition():
                looked = time.perf_counter()
                await asyncio.sleep(PEER_POLL_S)
                self.lag_max_s = max(self.lag_max_s, time.perf_counter() - looked - PEER_POLL_S)
        return self.passed()


async def restart(directory: Path, bootstrap: tuple[str, int] | None, pipe: Connection) -> None:
    """Start a peer on a directory, send its address and the measurements, and stop when told."""
    watch = PeerWatch()
    async with Peer(Config(data=directory, port=0), None if bootstrap else JOB) as peer, asyncio.TaskGroup() as group:
        watch.look_at(peer)
        pipe.send(peer.contact.address)
        answers = group.create_task(_answers(peer, watch))
        first_open = group.create_task(watch.until(lambda: _opened(peer) > 0))
        await (peer.join([bootstrap]) if bootstrap else peer.begin(paused=True))
        all_open = await _all_open(peer, watch)
        pipe.send(
            RestartFigures(
                len(peer.store.cells),
                await answers,
                await first_open,
                all_open,
                _opened(peer),
                peer.cells.sync.syncs,
                watch.lag_max_s,
            )
        )
        await asyncio.get_running_loop().run_in_executor(None, pipe.recv)


async def _answers(peer: Peer, watch: PeerWatch) -> Passed:
    """Return when the peer answers like any other."""
    client = LinkClient(peer.config.limits.message_bytes_max)
    await client.open()
    try:
        while True:
            try:
                await hello(client, [peer.contact.address])
                return watch.passed()
            except StartError:
                await asyncio.sleep(PEER_POLL_S)
    finally:
        await client.close()


def _opened(peer: Peer) -> int:
    return sum(owned.open for owned in peer.cells.holdings.owned.values()) if peer.begun else 0


async def _all_open(peer: Peer, watch: PeerWatch) -> Passed:
    """Return when every cell stored here has its owner, if that is this peer open, and nothing is being synced."""

    def settled() -> bool:
        return not (
            peer.cells.sync.busy or peer.cells.holder_side.unnotified or peer.cells.holdings.strays(peer.store.cells)
        )

    while True:
        passed = await watch.until(settled)
        await asyncio.sleep(STEADY_S)
        if settled():
            return passed


def run(directory: Path, bootstrap: tuple[str, int] | None, pipe: Connection) -> None:
    """The entry of a peer's process."""
    logging.disable()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(restart(directory, bootstrap, pipe))


class Process:
    """A peer in a process of its own."""

    def __init__(self, directory: Path, bootstrap: tuple[str, int] | None = None) -> None:
        spawn = get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        self._process = spawn.Process(target=run, args=(directory, bootstrap, theirs))
        self._process.start()
        self.address: tuple[str, int] = self._receive()

    def result(self) -> RestartFigures:
        result: RestartFigures = self._receive()
        return result

    def stop(self) -> None:
        self._pipe.send(None)
        self._process.join()

    def _receive(self) -> Any:
        while not self._pipe.poll(1.0):
            if not self._process.is_alive():
                raise RuntimeError("the peer's process has died")
        return self._pipe.recv()


async def make(directory: Path, urls: int, site_urls: int) -> None:
    """Let a directory know so many URLs."""
    store = Store(directory, commit_spacing_s=1.0)
    store.begin(JOB.bits)
    await fill(store, urls, "site", per_site=site_urls)
    store.close()


async def change(directory: Path, per_cell: int) -> None:
    """Finish so many pending URLs of each cell, evenly over its keys."""
    store = Store(directory, commit_spacing_s=1.0)
    store.begin(JOB.bits)
    for cell in list(store.cells):
        pending = [key for key, state in store.scan.records(cell, b"", CELL_KEYS_MAX) if state == PENDING]
        for key in pending[:: max(1, len(pending) // per_cell)][:per_cell]:
            store.learn_done(key)
        await store.journal.commit()
    store.close()


def measure(directory: Path, urls: int, site_urls: int, changed: int) -> dict[str, RestartFigures]:
    """Restart a peer alone, and another beside it."""
    first, second = directory / "first", directory / "second"
    first.mkdir()
    asyncio.run(make(first, urls, site_urls))
    shutil.copytree(first, second)
    if changed:
        asyncio.run(change(second, changed))
    alone = Process(first)
    restarts = {"alone": alone.result()}
    for name in ("joins", "restarts"):
        other = Process(second, alone.address)
        restarts[name] = other.result()
        other.stop()
    alone.stop()
    return restarts


def table(restarts: dict[str, RestartFigures]) -> Table:
    shown = Table("", "cells", "answers", "first cell open", "all open", "cells open", "syncs", "records read",
                  "longest lag s", title="Seconds since the start (of CPU)")  # fmt: skip
    for name, one in restarts.items():
        times = [f"{at.wall_s:.2f} ({at.cpu_s:.2f})" for at in (one.answers, one.first_open, one.all_open)]
        read = " / ".join(f"{at.examined:,}" for at in (one.first_open, one.all_open))
        shown.add_row(name, f"{one.cells:,}", *times, f"{one.opened:,}", f"{one.syncs:,}", read, f"{one.lag_max_s:.2f}")
    return shown


@click.command(help=__doc__)
@click.option("--urls", type=click.IntRange(100), default=1_000_000, show_default=True)
@click.option(
    "--site-urls", type=click.IntRange(1), default=URLS_PER_SITE, show_default=True, help="URLs of each site."
)
@click.option("--changed", type=click.IntRange(0), default=0, show_default=True, help="Records of a cell that differ.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures here.")
def main(urls: int, site_urls: int, changed: int, json_file: Path | None) -> None:
    with TemporaryDirectory() as directory:
        restarts = measure(Path(directory), urls, site_urls, changed)
    Console(width=120).print(table(restarts))
    if json_file is not None:
        json_file.write_text(
            json.dumps({"urls": urls, "restarts": {name: asdict(one) for name, one in restarts.items()}}, indent=1)
            + "\n"
        )
    slow = [name for name, one in restarts.items() if max(one.answers.wall_s, one.first_open.wall_s) > SERVES_MAX_S]
    print(f"FAIL {', '.join(slow)}: above {SERVES_MAX_S:g} s" if slow else f"ok   each within {SERVES_MAX_S:g} s")
    sys.exit(bool(slow))


if __name__ == "__main__":
    main()
