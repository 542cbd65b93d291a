"""Measure the overlay on loopback: N peers with a UDP socket each in one process, beside the plain kademlia package.

    python -m scripts.bench_overlay 50 200 500
    python -m scripts.bench_overlay 200 --plain

For each N: time to join, memory per peer, how often the named owner is the true one and how long lookups take, while
all is quiet and, second by second, after 30 % of the peers have been killed without a word. With --plain the package
alone goes through the same, in the same run: same IDs, same questions. Each measurement has a process of its own.
"""

import asyncio
import gc
import json
import logging
import resource
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from random import Random
from statistics import median, quantiles
from typing import Any, Protocol

import click
import uvloop
from kademlia.crawling import NodeSpiderCrawl
from kademlia.network import Server
from kademlia.node import Node
from rich.console import Console
from rich.table import Table

from kadcrawl.keys import Cell, NodeId, anchor, id_bytes
from kadcrawl.overlay import Overlay

CELL_BITS = 16
KILLED = 0.3
JOINING_AT_ONCE = 8
OVERLAY_SETTLE_S = 10.0
QUESTIONS = 400
"""Questions in all while the swarm is quiet, ..."""
QUESTIONS_PER_S = 100
"""... and after the kill each second (the plain package: once, as its answers take longer than that)."""
ASKED_AT_ONCE = 20
WATCH_S = 30
CALM_S = 5
"""Seconds in a row with every answer right after which the watch ends."""


class BenchPeer(Protocol):
    """The peer under measurement: ours or the package's."""

    number: int

    async def start(self, bootstrap: tuple[str, int] | None) -> None: ...
    def address(self) -> tuple[str, int]: ...
    async def owner(self, cell: Cell) -> int: ...
    async def lookup(self, target: int) -> int: ...
    async def kill(self) -> None: ...


class OurPeer:
    """A peer with kadcrawl's overlay."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.overlay = Overlay(NodeId(number), Random(number), cell_bits=CELL_BITS)

    async def start(self, bootstrap: tuple[str, int] | None) -> None:
        await self.overlay.listen("127.0.0.1", 0)
        if bootstrap is not None:
            await self.overlay.join([bootstrap])

    def address(self) -> tuple[str, int]:
        return self.overlay.me.address

    async def owner(self, cell: Cell) -> int:
        return (await self.overlay.owner(cell)).number

    async def lookup(self, target: int) -> int:
        return (await self.overlay.lookup(target, 1))[0].number

    async def kill(self) -> None:
        await self.overlay.close()


class PlainPeer:
    """A peer with the package alone. Its owner of a key is the nearest peer that its spider finds, or itself."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.server = Server(node_id=id_bytes(number))

    async def start(self, bootstrap: tuple[str, int] | None) -> None:
        await self.server.listen(0, interface="127.0.0.1")
        if bootstrap is not None:
            await self.server.bootstrap([bootstrap])

    def address(self) -> tuple[str, int]:
        name: tuple[str, int] = self.server.transport.get_extra_info("sockname")
        return name

    async def owner(self, cell: Cell) -> int:
        return await self.lookup(anchor(cell, CELL_BITS))

    async def lookup(self, target: int) -> int:
        server, node = self.server, Node(id_bytes(target))
        known = server.protocol.router.find_neighbors(node)
        spider = NodeSpiderCrawl(server.protocol, node, known, server.ksize, server.alpha)
        found: list[int] = [node.long_id for node in await spider.find()]
        return min([self.number, *found], key=lambda number: number ^ target)

    async def kill(self) -> None:
        self.server.stop()


@dataclass(slots=True)
class LatencySample:
    """Some questions' outcome."""

    right: int
    asked: int
    seconds: list[float]

    @property
    def percent(self) -> float:
        return 100 * self.right / self.asked

    @property
    def p95(self) -> float:
        return quantiles(self.seconds, n=20)[-1]


@dataclass(slots=True)
class Row:
    """One line of the table."""

    kind: str
    peers: int
    join_s: float = 0.0
    kib_per_peer: float = 0.0
    quiet_percent: float = 0.0
    quiet_lookup_ms: tuple[float, float] = (0.0, 0.0)
    kill_percent_first: float = 0.0
    right_after_s: float | None = None
    """Seconds from the kill to the first of the last unbroken seconds with all answers right."""
    kill_lookup_ms: tuple[float, float] = (0.0, 0.0)


class Bench:
    """One swarm of one kind."""

    def __init__(self, make: Callable[[int], BenchPeer], peers: int, seed: int) -> None:
        self._random = Random(seed)
        self._make = make
        self._count = peers
        self.peers: list[BenchPeer] = []

    async def run(self, row: Row, watch: Callable[[Row], Awaitable[None]]) -> None:
        before = memory_kib()
        row.join_s = await self._join()
        await asyncio.sleep(OVERLAY_SETTLE_S)
        row.kib_per_peer = (memory_kib() - before) / self._count
        say(row, f"joined, median {1000 * row.join_s:.0f} ms; {row.kib_per_peer:.0f} KiB a peer")
        owners, lookups = await self.ask_owners(QUESTIONS), await self.ask_lookups(QUESTIONS)
        row.quiet_percent, row.quiet_lookup_ms = owners.percent, in_ms(lookups)
        say(row, f"quiet: owner right {owners.percent:.1f} %, lookup p95 {row.quiet_lookup_ms[1]:.0f} ms")
        victims = self._random.sample(self.peers, int(KILLED * self._count))
        self.peers = [peer for peer in self.peers if peer not in victims]
        await asyncio.gather(*(victim.kill() for victim in victims))
        await watch(row)
        await asyncio.gather(*(peer.kill() for peer in self.peers))

    async def _join(self) -> float:
        """Start all peers. Return the median seconds of a start."""
        seconds: list[float] = []
        slots = asyncio.Semaphore(JOINING_AT_ONCE)

        async def start(peer: BenchPeer) -> None:
            async with slots:
                begin = time.perf_counter()
                await peer.start(self._random.choice(self.peers).address() if self.peers else None)
                seconds.append(time.perf_counter() - begin)
                self.peers.append(peer)

        first, *others = [self._make(self._random.getrandbits(160)) for _ in range(self._count)]
        await start(first)
        await asyncio.gather(*(start(peer) for peer in others))
        return median(seconds)

    async def ask_owners(self, count: int) -> LatencySample:
        """Ask random peers for the owners of random cells."""
        return await self._ask(count, lambda peer, cell: peer.owner(cell))

    async def ask_lookups(self, count: int, at_once: int = ASKED_AT_ONCE) -> LatencySample:
        """Ask the same by lookup, regardless of the peer's own knowledge."""
        return await self._ask(count, lambda peer, cell: peer.lookup(anchor(cell, CELL_BITS)), at_once)

    async def _ask(
        self, count: int, question: Callable[[BenchPeer, Cell], Awaitable[int]], at_once: int = ASKED_AT_ONCE
    ) -> LatencySample:
        sample = LatencySample(0, count, [])
        slots = asyncio.Semaphore(at_once)

        async def ask() -> None:
            cell = Cell(self._random.getrandbits(CELL_BITS))
            target = anchor(cell, CELL_BITS)
            async with slots:
                begin = time.perf_counter()
                answer = await question(self._random.choice(self.peers), cell)
                sample.seconds.append(time.perf_counter() - begin)
            sample.right += answer == min((peer.number for peer in self.peers), key=lambda n: n ^ target)

        await asyncio.gather(*(ask() for _ in range(count)))
        return sample


async def measure_ours(peers: int, seed: int) -> Row:
    bench = Bench(OurPeer, peers, seed)

    async def watch(row: Row) -> None:
        begin = time.perf_counter()
        calm, seconds = 0, []
        while calm < CALM_S and (passed := time.perf_counter() - begin) < WATCH_S:
            owners, lookups = await asyncio.gather(
                bench.ask_owners(QUESTIONS_PER_S), bench.ask_lookups(QUESTIONS_PER_S)
            )
            seconds += lookups.seconds
            row.kill_percent_first = row.kill_percent_first or owners.percent
            if owners.right == owners.asked:
                row.right_after_s = passed if calm == 0 else row.right_after_s
                calm += 1
            else:
                calm, row.right_after_s = 0, None
            say(row, f"killed {passed:4.1f} s ago: owner right {owners.percent:5.1f} %, "
                f"lookup right {lookups.percent:5.1f} %, p95 {in_ms(lookups)[1]:.0f} ms")  # fmt: skip
            await asyncio.sleep(max(0.0, passed + 1 - (time.perf_counter() - begin)))
        row.kill_lookup_ms = in_ms(LatencySample(0, 1, seconds))

    row = Row("kadcrawl", peers)
    await bench.run(row, watch)
    return row


async def measure_plain(peers: int, seed: int) -> Row:
    bench = Bench(PlainPeer, peers, seed)

    async def watch(row: Row) -> None:
        lookups = await bench.ask_lookups(QUESTIONS_PER_S, at_once=QUESTIONS_PER_S)
        row.kill_percent_first, row.kill_lookup_ms = lookups.percent, in_ms(lookups)
        say(row, f"killed: lookup right {lookups.percent:.1f} %, p95 {row.kill_lookup_ms[1]:.0f} ms")

    row = Row("kademlia", peers)
    await bench.run(row, watch)
    return row


def measure(kind: Callable[[int, int], Any], peers: int, seed: int) -> Row:
    """Run one measurement on a loop of its own, as the main function of the measuring process."""
    logging.disable()
    # A full collection of hundreds of peers in one heap holds all of them up at once for longer than their time-outs;
    # a peer in a process of its own never sees that.
    gc.disable()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4 * peers + 100)), hard))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        row: Row = runner.run(kind(peers, seed))
    return row


def memory_kib() -> float:
    """Return this process's resident memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1024


def in_ms(sample: LatencySample) -> tuple[float, float]:
    """Return median and 95th percentile in milliseconds."""
    return 1000 * median(sample.seconds), 1000 * sample.p95


def say(row: Row, event: str) -> None:
    print(f"{row.kind} N={row.peers}: {event}", flush=True)


def show(rows: Sequence[Row]) -> None:
    """Print the table."""
    table = Table("peers", "N", "join s", "KiB/peer", "quiet: right %", "lookup ms 50/95", "killed: right %",
                  "100 % after s", "lookup ms 50/95")  # fmt: skip
    for row in rows:
        after = "-" if row.right_after_s is None else f"{row.right_after_s:.1f}"
        table.add_row(
            row.kind, str(row.peers), f"{row.join_s:.3f}", f"{row.kib_per_peer:.0f}", f"{row.quiet_percent:.1f}",
            "{:.0f} / {:.0f}".format(*row.quiet_lookup_ms), f"{row.kill_percent_first:.1f}", after,
            "{:.0f} / {:.0f}".format(*row.kill_lookup_ms),
        )  # fmt: skip
    Console(width=120).print(table)


@click.command(help=__doc__)
@click.argument("sizes", type=click.IntRange(20, 2000), nargs=-1)
@click.option("--plain", is_flag=True, help="Measure the plain package, too.")
@click.option("--seed", default=1, show_default=True, help="The seed of IDs and questions.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures here.")
def main(sizes: tuple[int, ...], plain: bool, seed: int, json_file: Path | None) -> None:
    kinds = [measure_ours, measure_plain] if plain else [measure_ours]
    rows = []
    for peers in sizes or (50, 200, 500):
        for kind in kinds:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                rows.append(process.submit(measure, kind, peers, seed).result())
    show(rows)
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
