"""One crawl by five capped peers: start them, deal every one its fifth of the pages, hand these over, and wait.

Who owns a site follows from its address and the peers' IDs; so the sites are chosen when the peers are there. All pages
are known from the beginning, as in the paper. What is measured begins with the first page asked for and ends with the
last page answered.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

from kadcrawl.balance.machine_profile import MachineProfile
from kadcrawl.crawl.scope.partitioner import Partitioner
from kadcrawl.keys import anchor
from kadcrawl.members.swarm_key import SwarmKey
from scripts.chaos.machines import PeerHost
from scripts.chaos.peer_process import COMMAND_S, PeerProcess
from scripts.five_peers.web import AccessLine, CappedWeb
from scripts.kadcrawl_run import LOOPBACK
from sim.papers.five_nodes import NODES, SHARES

SITES: Final = 10
"""Sites of each peer."""
SITE_PAGES: Final = 20
PAGES: Final = len(NODES) * SITES * SITE_PAGES
PAGE_BYTES: Final = 12_000
PAGES_S: Final = 40.0
"""All peers together."""
NET_SHARE: Final = 0.15
"""The share of the table's bandwidths in use. The crawl rates are a fraction of the paper's, and just fit."""
FETCHES: Final = 2
"""Requests under way at a time: one is answered, one waits."""
BLOCK_URLS: Final = 2
UPDATE_S: Final = 1.0
CELL_BITS: Final = 16
END_S: Final = 20.0
"""The most seconds in which a swarm notices its end."""
SHOW_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlRun:
    """The result of one crawl."""

    balance: str
    makespan_s: float
    over_bound: float
    """The makespan over the least there is."""
    pages: tuple[int, ...]
    """Fetched by each peer."""
    ends_s: tuple[float, ...]
    """The time of each peer's last page."""
    repeated: int
    """Pages answered more than once."""
    missed: int


def lines() -> list[AccessLine]:
    """Return the caps of the five peers."""
    return [
        AccessLine(pages_s=PAGES_S * share / sum(SHARES), bytes_s=NET_SHARE * node.net_mbps * 1e6 / 8)
        for node, share in zip(NODES, SHARES, strict=True)
    ]


def bound_s() -> float:
    """Return how long all pages take at least."""
    return PAGES / sum(1 / line.page_s(PAGE_BYTES) for line in lines())


def equal_s() -> float:
    """Return how long equal shares take at least."""
    return PAGES / len(NODES) * max(line.page_s(PAGE_BYTES) for line in lines())


async def crawl(
    balance: str,
    directory: Path,
    say: Callable[[str], None],
    *,
    network: Path | None = None,
    solver: str = "exact",
) -> CrawlRun:
    """Crawl so, the peers' directories below `directory`. Raises RuntimeError if it goes wrong."""
    askers = [f"127.0.1.{number}" for number in range(1, len(NODES) + 1)]
    capped = lines()
    async with AsyncExitStack() as stack:
        web = await stack.enter_async_context(CappedWeb(dict(zip(askers, capped, strict=True)), SITE_PAGES, PAGE_BYTES))
        swarm = CappedSwarm(directory, balance, network, solver)
        stack.push_async_callback(swarm.close)
        await swarm.start(1, NODES[0], askers[0])
        others = zip(range(2, len(NODES) + 1), NODES[1:], askers[1:], strict=True)
        await asyncio.gather(*(swarm.start(*each) for each in others))
        owners = await dealt(web, await swarm.ids())
        await swarm.add([url for address in owners for url in web.urls(address)])
        ending = asyncio.create_task(swarm.end())
        deadline = asyncio.get_running_loop().time() + 2 * equal_s() + END_S
        while not ending.done():
            await asyncio.wait([ending], timeout=SHOW_S)
            say(f"{sum(web.seen.urls.values())} of {PAGES} pages")
            if asyncio.get_running_loop().time() > deadline:
                ending.cancel()
                raise RuntimeError(f"{balance}: not over after {2 * equal_s() + END_S:.0f} s; see {directory}")
        ending.result()
    seen = web.seen
    if seen.first_at is None or seen.strangers:
        raise RuntimeError(f"{balance}: nothing was fetched, or from elsewhere; see {directory}")
    ends = tuple(line.last_at - seen.first_at if line.pages else 0.0 for line in capped)
    return CrawlRun(
        balance=balance,
        makespan_s=max(ends),
        over_bound=max(ends) / bound_s(),
        pages=tuple(line.pages for line in capped),
        ends_s=ends,
        repeated=sum(times - 1 for times in seen.urls.values()),
        missed=PAGES - len(seen.urls),
    )


async def dealt(web: CappedWeb, ids: Sequence[int]) -> list[str]:
    """Open `SITES` sites for each of these peers to own. Return their addresses."""
    partitioner = Partitioner("host", CELL_BITS)
    owned = dict.fromkeys(ids, 0)
    opened: list[str] = []
    await web.open("127.0.2.0")  # Is no site, but chooses the port.
    for number in count():
        address = f"127.0.{3 + number // 256}.{number % 256}"
        place = anchor(partitioner.locate(f"http://{address}:{web.port}/").cell, CELL_BITS)
        owner = min(ids, key=lambda one: one ^ place)
        if owned[owner] < SITES:
            owned[owner] += 1
            await web.open(address)
            opened.append(address)
        if len(opened) == SITES * len(ids):
            break
    return opened


class CappedSwarm:
    """Processes of peers, each with a line of its own to the web."""

    def __init__(self, directory: Path, balance: str, network: Path | None, solver: str) -> None:
        self._key = SwarmKey.generate().text
        directory.mkdir(parents=True)
        self._directory = directory
        self._balance = balance
        self._network = network
        self._solver = solver
        self._peers: list[PeerProcess] = []

    async def start(self, number: int, node: MachineProfile, asker: str) -> None:
        """Start a peer with the powers of `node`, and wait until the peer has joined the first."""
        name = f"peer-{number}"
        job = ["--balance", self._balance, "--delay", "0"]
        if self._balance != "off":
            job += ["--block", str(BLOCK_URLS), "--update", str(UPDATE_S)]
        if self._balance == "predictive":
            job += ["--solver", self._solver]
        command = ["join", "--bootstrap", self._peers[0].address] if self._peers else ["start", *job]
        powers = [f"--power={field}={getattr(node, field)}" for field in node.__dataclass_fields__]
        if self._balance != "predictive":
            powers = []
        network = [] if self._network is None else ["--network", str(self._network)]
        said = self._directory / f"{name}.said"
        with said.open("wb") as file:
            process = await asyncio.create_subprocess_exec(
                *[sys.executable, "-m", "scripts.five_peers.peer", asker, *command],
                *["--listen", "127.0.0.1:0", "--data", str(self._directory / name), "--allow-network", LOOPBACK],
                *["--fetches", str(FETCHES), "--exit-when-done", *powers, *network],
                stdin=asyncio.subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
                env={
                    name: value
                    for name, value in os.environ.items()
                    if not name.startswith("KADCRAWL_") or name == "KADCRAWL_LOG"
                }
                | {"KADCRAWL_KEY": self._key},
            )
        peer = PeerProcess(name, PeerHost("127.0.0.1", []), self._directory / name, said, process)
        self._peers.append(peer)
        await peer.ready()

    @property
    def pids(self) -> list[int]:
        """The processes, in the order of their start."""
        return [peer.process.pid for peer in self._peers]

    async def ids(self) -> list[int]:
        """Return the IDs of all, once each knows of all others. Raises TimeoutError."""
        async with asyncio.timeout(COMMAND_S):
            while True:
                rows = [json.loads(await peer.command("status", "--json"))["peers"] for peer in self._peers]
                if all(len(row) == len(self._peers) for row in rows):
                    return [int(one["id"], 16) for one in rows[0]]

    async def add(self, urls: Sequence[str]) -> None:
        """Hand them these URLs."""
        await self._peers[0].command("add", *urls)

    async def end(self) -> None:
        """Wait until all have ended. Raises RuntimeError if one did not as it should."""
        for peer in self._peers:
            if await peer.process.wait():
                raise RuntimeError(f"{peer.name} ended with {peer.process.returncode}: {peer.said.read_text().strip()}")

    async def close(self) -> None:
        """Kill those that still run."""
        for peer in self._peers:
            if peer.process.returncode is None:
                peer.process.kill()
        await asyncio.gather(*(peer.process.wait() for peer in self._peers))
