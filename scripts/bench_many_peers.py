"""This benchmark measures what a peer costs on one machine: as a process, in one process with others, and simulated.

    python -m scripts.bench_many_peers
    python -m scripts.bench_many_peers --processes 4 --inside 16 --simulated 100
    python -m scripts.bench_many_peers --way in-process

Each way crawls a web of the same size to the end, on loopback or in the simulated network. Memory is the sum of the
peaks of all processes. CPU seconds are those of the whole run: start, joins, crawl and end. Only Linux.

Tests: tests/scripts/test_bench_many_peers.py
"""

import asyncio
import json
import socket
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import click
from aiohttp import web
from rich.console import Console
from rich.table import Table

from kadcrawl import Config, Job, Peer
from scripts.measure import Cost, cost_of, end_measured_at_sigterm

SITES: Final = 16
"""Sites of the small web."""
PAGES: Final = 10
"""Pages of a site."""
FIRST_ADDRESS: Final = 2
"""On loopback, sites live on 127.0.0.2, 127.0.0.3, ..."""
WAYS: Final = ("processes", "in-process", "inside", "simulated")


class RunError(Exception):
    """A way did not come to its end. The text says why."""


@dataclass(frozen=True, slots=True)
class PeerCost:
    """What some peers cost in one way."""

    way: str
    peers: int
    mb_a_peer: float
    cpu_s_a_peer: float
    wall_s: float
    files_a_peer: float = 0.0
    """The most open files, beside those of the system's libraries."""


class SmallWeb:
    """Async context manager: `SITES` sites on loopback. The first page of a site links to its others, and to the next
    site."""

    def __init__(self) -> None:
        self.port = 0
        self._runner = web.ServerRunner(web.Server(self._answer, access_log=None), shutdown_timeout=1)
        self._resources = AsyncExitStack()

    async def __aenter__(self) -> "SmallWeb":
        await self._runner.setup()
        self._resources.push_async_callback(self._runner.cleanup)
        for site in range(SITES):
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((f"127.0.0.{FIRST_ADDRESS + site}", self.port))
            self.port = listener.getsockname()[1]
            await web.SockSite(self._runner, listener).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._resources.aclose()

    def url(self, site: int) -> str:
        """Return the URL of the first page of a site."""
        return f"http://127.0.0.{FIRST_ADDRESS + site}:{self.port}/"

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        if request.path == "/robots.txt":
            return web.Response(status=404)
        site = int(request.host.partition(":")[0].rpartition(".")[2]) - FIRST_ADDRESS
        links = [f"/{page}" for page in range(1, PAGES)] if request.path == "/" else []
        links += [self.url((site + 1) % SITES)]
        return web.Response(text="".join(f'<a href="{link}">' for link in links), content_type="text/html")


JOB: Final = Job(scope="any", delay_s=0.0, contact="you@example.org")


async def crawl_inside(peers: int, seed: str, directory: Path) -> int:
    """Let so many peers of this process crawl to the end, and return the pages."""
    networks = ("127.0.0.0/8",)
    async with AsyncExitStack() as stack:
        config = Config(data=directory / "0", port=0, allow_networks=networks)
        first = await stack.enter_async_context(Peer(config, JOB))
        await first.begin()
        all_peers = [first]
        for number in range(1, peers):
            config = Config(data=directory / str(number), port=0, allow_networks=networks)
            peer = await stack.enter_async_context(Peer(config))
            await peer.join([first.contact.address])
            all_peers.append(peer)
        await first.crawl([seed])
        for peer in all_peers:
            await peer.wait_done()
        return sum(peer.counters.pages for peer in all_peers)


def crawl_simulated(peers: int) -> int:
    """Let so many simulated peers crawl a web of the same size to the end, and return the pages."""
    # The simulator is needed here alone.
    from sim.papers.alike_web import AlikeWeb
    from sim.papers.swarm import Swarm, simulated

    pages_of = AlikeWeb(1, SITES, 0.0, PAGES)

    async def story(swarm: Swarm) -> int:
        await swarm.begin()
        await swarm.grow(peers, 0.1)
        expected = SITES * PAGES + len(pages_of.seeds)
        await swarm.until(lambda: sum(peer.counters.done for peer in swarm.peers) >= expected)
        return sum(peer.counters.pages for peer in swarm.peers)

    with simulated(1, pages_of, job=replace(JOB, seeds=pages_of.seeds)) as swarm:
        return swarm.run(story(swarm))


def _command(way: str, peers: int, seed: str, directory: Path) -> list[str]:
    if way in ("processes", "in-process"):
        number = "--peers" if way == "processes" else "--in-process"
        options = ["--data", str(directory / "data"), "--scope", "any", "--delay", "0", number, str(peers)]
        network = ["--allow-network", "127.0.0.0/8", "--contact", "you@example.org"]
        return [sys.executable, "-m", "kadcrawl", "crawl", seed, *options, *network]
    return [sys.executable, "-m", "scripts.bench_many_peers", "--worker", way, str(peers), seed, str(directory)]


async def measure(way: str, peers: int) -> PeerCost:
    """Return the cost of one way. Raises RunError."""
    with tempfile.TemporaryDirectory(prefix="kadcrawl-many-") as made:
        directory = Path(made)
        async with SmallWeb() as sites:
            command = _command(way, peers, sites.url(0), directory)
            cost: Cost = await asyncio.to_thread(cost_of, command, directory / "output")
        if cost.exit_code:
            text = (directory / "output").read_text(errors="replace")[-500:]
            raise RunError(f"{way} with {peers} peers ended with {cost.exit_code}: {text}")
        return PeerCost(way, peers, cost.peak_bytes / 1e6 / peers, cost.cpu_s / peers, cost.wall_s, cost.files / peers)


def of_one_more(costs: Sequence[PeerCost]) -> str | None:
    """Return what one more peer of a process costs: the difference of the fewest and the most peers."""
    inside = sorted((cost for cost in costs if cost.way == "in-process"), key=lambda cost: cost.peers)
    if len(inside) < 2 or inside[0].peers == inside[-1].peers:
        return None
    few, most = inside[0], inside[-1]
    more = most.peers - few.peers
    memory = (most.mb_a_peer * most.peers - few.mb_a_peer * few.peers) / more
    return f"one more peer of a process: {memory:.2f} MB, between {few.peers} and {most.peers} peers"


def table_of(costs: Sequence[PeerCost]) -> Table:
    """Return the costs as a table for the terminal."""
    table = Table("", "peers", "MB a peer", "CPU s a peer", "s in all", "files a peer")
    for cost in costs:
        figures = (
            f"{cost.mb_a_peer:.1f}",
            f"{cost.cpu_s_a_peer:.2f}",
            f"{cost.wall_s:.1f}",
            f"{cost.files_a_peer:.1f}",
        )
        table.add_row(cost.way, str(cost.peers), *figures)
    return table


@click.command(help=__doc__)
@click.option("--processes", default=(2, 8), multiple=True, type=click.IntRange(1, 32), show_default=True)
@click.option("--in-process", default=(1, 200), multiple=True, type=click.IntRange(1, 256), show_default=True)
@click.option("--inside", default=(8, 32), multiple=True, type=click.IntRange(1, 200), show_default=True)
@click.option("--simulated", default=(32, 200), multiple=True, type=click.IntRange(1, 1000), show_default=True)
@click.option("--way", "ways", default=WAYS, multiple=True, type=click.Choice(WAYS), show_default=True)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures here.")
@click.option("--worker", nargs=4, hidden=True)
def main(
    processes: tuple[int, ...],
    in_process: tuple[int, ...],
    inside: tuple[int, ...],
    simulated: tuple[int, ...],
    ways: tuple[str, ...],
    json_file: Path | None,
    worker: tuple[str, str, str, str] | None,
) -> None:
    if worker is not None:
        kind, number, seed, directory = worker
        if kind == "inside":
            print(asyncio.run(crawl_inside(int(number), seed, Path(directory))))
        else:
            print(crawl_simulated(int(number)))
        return
    end_measured_at_sigterm()
    costs = []
    for way, numbers in zip(WAYS, (processes, in_process, inside, simulated), strict=True):
        for peers in numbers if way in ways else ():
            try:
                costs.append(asyncio.run(measure(way, peers)))
            except RunError as error:
                sys.exit(f"bench_many_peers: {error}")
    Console().print(table_of(costs))
    if (sentence := of_one_more(costs)) is not None:
        print(sentence)
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(cost) for cost in costs], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
