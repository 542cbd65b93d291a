"""Balance by seconds to drain in virtual time: a slow machine with few pages sheds them, and each is fetched once."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kadcrawl.crawl.scope.partitioner import Partitioner
from kadcrawl.keys import anchor
from kadcrawl.peer import Peer
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from sim.loop import world
from sim.machines import Machines
from sim.synthetic_web import SyntheticResponse
from sim.web_server import Head, WebServer
from tests.support.sites.sim_pages import MEMORY, WEB_IP

LIMITS = Limits(fetches_max=2)
PEERS, SLOW = 4, 1
"""The number of machines, and the index of the slow machine."""
SLOW_S, QUICK_S = 4.0, 0.4
"""Seconds from the request to the answer, for 0.5 and 5 URLs a second."""
SITES = 4
"""Sites of each machine."""
FEW, MANY = 10, 25
"""Pages of a site of the slow machine, and of a quick machine."""
BOUND_S = (SITES * FEW + (PEERS - 1) * SITES * MANY) / (2 / SLOW_S + (PEERS - 1) * 2 / QUICK_S)
ENOUGH_S = 300


class PlainPages:
    """Any page of any host, without links."""

    def address(self, host: str) -> str:
        return WEB_IP

    def answer(self, host: str, target: str, asked: int) -> SyntheticResponse:
        if target == "/robots.txt":
            return SyntheticResponse(404)
        return SyntheticResponse(200, (("Content-Type", "text/html"),), b"<p>")


class PacedServer(WebServer):
    """Answers one machine late."""

    late = ""
    """The address of the slow machine."""

    def take(self, now: float, head: Head, peer: str, form: bytes = b"") -> SyntheticResponse:
        return super().take(now, head, peer, form)._replace(latency_s=SLOW_S if peer == self.late else QUICK_S)


def dealt(peers: Sequence[Peer]) -> list[list[str]]:
    """Return, for each of these, the URLs of as many sites as it is to own."""
    partitioner = Partitioner("host", 16)
    hosts: list[list[str]] = [[] for _ in peers]
    for number in range(10_000):
        host = f"site-{number}.example"
        place = anchor(partitioner.locate(f"http://{host}/").cell, 16)
        owner = min(range(len(peers)), key=lambda index: peers[index].contact.number ^ place)
        if len(hosts[owner]) < SITES:
            hosts[owner].append(host)
    assert all(len(owned) == SITES for owned in hosts)
    return [
        [f"http://{host}/{page}" for host in owned for page in range(FEW if number == SLOW else MANY)]
        for number, owned in enumerate(hosts, 1)
    ]


class Crawled:
    """The result of a crawl."""

    def __init__(self, balance: str, seed: int) -> None:
        self.fetched: Counter[str] = Counter()
        self.makespan_s = 0.0
        self.own: list[list[str]] = []
        self.lent: list[int] = []
        """URLs others fetched for each."""
        self.lines: Counter[str] = Counter()
        with tempfile.TemporaryDirectory(dir=MEMORY) as directory, world(seed) as loop:
            web = PlainPages()
            server = PacedServer(web)
            job: Any = Job(scope="any", delay_s=0.0, balance=balance, block_urls=2, update_s=1.0)  # type: ignore[arg-type]
            with Machines(
                loop, web, job=job, limits=LIMITS, seed=seed, directory=Path(directory) / "disks"
            ) as machines:
                host = loop.network.host(WEB_IP)
                loop.run_until_complete(host.spawn(loop.create_server(server.connect, WEB_IP, 80)))
                loop.run_until_complete(self._live(machines, server))
                assert [] == machines.errors
            for machine in machines.machines.values():
                self.lines.update(line["url"] for line in machine.lines())
        pages = [request for request in server.log if request.path != "/robots.txt"]
        self.fetched = Counter(request.url for request in pages)
        self.makespan_s = max(server.overs) - min(request.time for request in pages)

    async def _live(self, machines: Machines, server: PacedServer) -> None:
        machines.start(1)
        for number in range(2, PEERS + 1):
            await asyncio.sleep(0.5)
            machines.join(number)
        async with asyncio.timeout(ENOUGH_S):
            while not all(machine.begun for machine in machines.live):
                await asyncio.sleep(0.5)
        server.late = machines.machines[SLOW].host.ip
        peers = [machine.peer for machine in machines.live if machine.peer is not None]
        self.own = dealt(peers)
        first = machines.machines[1].host
        await first.spawn(peers[0].crawl([url for urls in self.own for url in urls]))
        async with asyncio.timeout(ENOUGH_S):
            while not all(peer.ended for peer in peers):
                await asyncio.sleep(0.5)
        self.lent = [peer.balancing.loans.lender.done for peer in peers]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_slow_machine_with_few_pages_sheds_them_and_nothing_bounces(seed: int, lendings: Counter[str]) -> None:
    found = Crawled("drain", seed)
    every = [url for urls in found.own for url in urls]
    assert Counter(every) == found.fetched
    assert Counter(every) == found.lines
    assert found.lent[SLOW - 1] >= SITES * FEW // 2
    assert max(lendings.values()) <= 2
    assert found.makespan_s < 1.5 * BOUND_S


def test_left_to_itself_it_is_the_last_by_far(lendings: Counter[str]) -> None:
    assert Crawled("off", 1).makespan_s > 3 * BOUND_S
    assert not lendings
