"""The paper's eight peers as real peers in the simulated network, on URLs that arrive at random (P1 2.2, Table 2).

Time is scaled: a second of the run is `speed` seconds of the paper, so rates are `speed` times as high and T is that
much shorter. Round trips, leases and heartbeats are not scaled, so they take `speed` times as long as they would at the
paper's rates. A URL arrives as a link that any of the eight peers has found, and its owner gets it by a message.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from random import Random
from typing import Any
from unittest import mock

from kadcrawl.balance.level import BlockLoad
from kadcrawl.keys import anchor, cell_of, site_hash, url_key
from kadcrawl.lending.balancer import Balancer
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import GetLoad, Lend, Lent, Link, Message
from kadcrawl.peer import Peer, build
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits

from ..machines import Machine
from .balancing import POLICIES
from .level_model import Setting, arrival_times
from .swarm import Swarm, simulated
from .table2 import BLOCK, PEERS
from .unequal_web import ROBOTS_PATH, EmptyWeb, PacedServer

SPEED = 20.0
"""Seconds of the paper in one second of the run, unless its rates are the paper's own."""
SITES = 8
"""Sites of each peer. A loan is of one site."""
POLL_S = 20.0
"""Seconds of the paper between two looks at all loads."""
LIMITS = Limits(fetches_max=1)


@dataclass(slots=True)
class PeerSample:
    """The measurements of one period, of all peers. Times are the paper's seconds."""

    ends_at: float
    lasted_s: float
    pages: int
    arrived: int
    requests: int
    """Questions among peers, of all kinds."""
    datagrams: int
    """Messages of the overlay."""
    ratios: list[float]
    """Mean load ratio u of each peer."""


@dataclass(slots=True)
class PeerRun:
    """The result of one run of real peers."""

    samples: list[PeerSample] = field(default_factory=list)
    crawled: list[int] = field(default_factory=list)
    """Pages by each peer, in the order of Table 2."""
    arrived: int = 0
    fetched_twice: int = 0
    pending_settled: int = 0
    pending: int = 0
    lowest: list[float] = field(default_factory=list)
    """Of each peer, its lowest load ratio after the transient."""
    highest: list[float] = field(default_factory=list)
    flipped: int = 0
    """The number of loans by which a peer that was not heavy became heavy."""
    loans: int = 0
    lent: int = 0
    """URLs in accepted loans."""
    questions: int = 0
    """Questions for a load."""
    requests: int = 0
    datagrams: int = 0

    @property
    def pages(self) -> int:
        """Pages of all peers."""
        return sum(self.crawled)


class Table2Swarm:
    """Eight peers with the rates and work areas of Table 2, and their arrivals."""

    def __init__(self, swarm: Swarm, seed: int, until: float, share: float, result: PeerRun, speed: float) -> None:
        """`until` is in the paper's seconds, and `share` scales the arrivals."""
        self._swarm = swarm
        self._speed = speed
        self._seed = seed
        self._until = until
        self._share = share
        self._result = result
        self._began = 0.0

    @property
    def now(self) -> float:
        """The paper's seconds since the first arrival could come."""
        return (self._swarm.loop.time() - self._began) * self._speed

    async def play(self, sample_s: float, settled_at: float, progress: Callable[[float], None]) -> None:
        """Grow the swarm, let URLs arrive, and measure until the end."""
        swarm = self._swarm
        await swarm.begin()
        await swarm.grow(len(PEERS))
        machines = [swarm.machines.machines[number] for number in range(len(PEERS))]
        self._began = swarm.loop.time()
        self._result.requests = 0  # Those of the joins do not count.
        arrivals = [
            asyncio.ensure_future(self._arrive(number, setting, hosts, machines))
            for (number, setting), hosts in zip(enumerate(PEERS), self._hosts(), strict=True)
        ]
        await self._measure(sample_s, settled_at, progress)
        for each in arrivals:
            each.cancel()

    def _hosts(self) -> list[list[str]]:
        """Return `SITES` hosts that each peer owns."""
        ids = [_peer(machine).contact.id for machine in self._machines]
        found: list[list[str]] = [[] for _ in ids]
        bits = _peer(self._machines[0]).job.bits
        number = 0
        while min(map(len, found)) < SITES:
            host = f"site{number}-{self._seed}.test"
            number += 1
            point = anchor(cell_of(url_key(site_hash(host), host), bits), bits)
            owner = min(range(len(ids)), key=lambda peer: int.from_bytes(ids[peer], "big") ^ point)
            if len(found[owner]) < SITES:
                found[owner].append(host)
        return found

    @property
    def _machines(self) -> Sequence[Machine]:
        machines = self._swarm.machines.machines
        return [machines[number] for number in range(len(PEERS))]

    async def _arrive(self, number: int, setting: Setting, hosts: Sequence[str], machines: Sequence[Machine]) -> None:
        """Let URLs of one peer arrive, each found by any peer."""
        chance = Random(f"finders {self._seed} {number}")
        times = arrival_times(Random(f"arrivals {self._seed} {number}"), setting.arrivals * self._share, self._until)
        for count, at in enumerate(times):
            if at >= self._until:
                return
            await asyncio.sleep(max(0.0, at - self.now) / self._speed)
            finder = machines[chance.randrange(len(machines))]
            url = f"http://{hosts[chance.randrange(len(hosts))]}/{count}"
            await finder.host.spawn(_find(_peer(finder), url))
            self._result.arrived += 1

    async def _measure(self, sample_s: float, settled_at: float, progress: Callable[[float], None]) -> None:
        result, sampler = self._result, _Sampler(self)
        result.lowest, result.highest = [0.0] * len(PEERS), [0.0] * len(PEERS)
        settled = False
        while self.now < self._until:
            await self._swarm.wait(POLL_S / self._speed)
            loads = self.loads()
            sampler.look(loads)
            ratios = [load.ratio for load in loads]
            if not settled and self.now >= settled_at:
                settled = True
                result.pending_settled = sum(load.pending for load in loads)
                result.lowest, result.highest = ratios, ratios
            result.lowest = [*map(min, result.lowest, ratios)]
            result.highest = [*map(max, result.highest, ratios)]
            if self.now - sampler.at >= sample_s - POLL_S / 2:
                sampler.take()
            progress(min(1.0, self.now / self._until))
        result.pending = sum(load.pending for load in self.loads())
        result.datagrams = sum(sample.datagrams for sample in result.samples)
        result.crawled = [_peer(machine).counters.pages for machine in self._machines]
        log = [one.url for one in self._swarm.server.log if one.path != ROBOTS_PATH]
        result.fetched_twice = len(log) - len(set(log))

    def loads(self) -> list[BlockLoad]:
        """Return the load of each peer at this moment, by the work areas of Table 2."""
        return [load_of(_peer(machine), setting) for machine, setting in zip(self._machines, PEERS, strict=True)]

    def level_of(self, balancer: Balancer) -> float:
        """Return the level of the peer with this balancer, in blocks."""
        return next(
            load_of(_peer(machine), setting).level
            for machine, setting in zip(self._machines, PEERS, strict=True)
            if _peer(machine).balancing is balancer
        )

    @property
    def totals(self) -> tuple[int, int, int, int]:
        """The pages, arrivals, requests and datagrams so far."""
        peers = [_peer(machine) for machine in self._machines]
        return (
            sum(peer.counters.pages for peer in peers),
            self._result.arrived,
            self._result.requests,
            sum(peer.overlay.counters.sent for peer in peers),
        )

    def take_sample(self, sample: PeerSample) -> None:
        """Keep a sample."""
        self._result.samples.append(sample)


class _Sampler:
    """Takes samples of the changes since the last sample."""

    def __init__(self, world: Table2Swarm) -> None:
        self._world = world
        self.at = world.now
        self._totals = world.totals
        self._ratios: list[list[float]] = []

    def look(self, loads: Sequence[BlockLoad]) -> None:
        self._ratios.append([load.ratio for load in loads])

    def take(self) -> None:
        now, totals = self._world.now, self._world.totals
        pages, arrived, requests, datagrams = (new - old for new, old in zip(totals, self._totals, strict=True))
        ratios = [sum(each) / len(each) for each in zip(*self._ratios, strict=True)]
        self._world.take_sample(PeerSample(now, now - self.at, pages, arrived, requests, datagrams, ratios))
        self.at, self._totals, self._ratios = now, totals, []


def run_peers(
    policy: str,
    *,
    seed: int,
    until: float,
    interval_s: float,
    settled_at: float,
    sample_s: float,
    share: float = 1.0,
    speed: float = SPEED,
    progress: Callable[[float], None] = lambda share: None,
) -> PeerRun:
    """Let the eight peers crawl by a policy of `balancing` until `until`. All times are the paper's seconds."""
    result = PeerRun()
    balance, instead = POLICIES[policy]
    job = Job(scope="any", delay_s=0.0, balance=balance, block_urls=BLOCK, update_s=interval_s / speed)
    web = EmptyWeb()
    rates = {f"10.0.0.{number}": setting.crawls * speed for number, setting in enumerate(PEERS, 1)}
    work_areas = {number: setting.blocks_wide * BLOCK for number, setting in enumerate(PEERS)}
    with (
        mock.patch.object(build, *instead) if instead else nullcontext(),
        simulated(seed, web, job=job, limits=LIMITS, work_area=work_areas, server=PacedServer(web, rates)) as swarm,
    ):
        world = Table2Swarm(swarm, seed, until, share, result, speed)
        with counted(world, result):
            swarm.run(world.play(sample_s, settled_at, progress))
    return result


def load_of(peer: Peer, setting: Setting) -> BlockLoad:
    """Return the load of a peer: its own URLs that are not lent, and those that it borrowed."""
    loans = peer.balancing.loans
    own = max(0, peer.components.frontier.pending - loans.lender.urls)
    return BlockLoad(own + loans.borrower.urls, setting.blocks_wide * BLOCK, BLOCK)


@contextmanager
def counted(world: Table2Swarm, result: PeerRun) -> Iterator[None]:
    """Count the requests among peers and the loans, while the context is open."""
    ask, accept_loan = LinkClient.ask, Balancer.accept_loan

    def accepted(balancer: Balancer, lend: Lend) -> bool:
        was_heavy = world.level_of(balancer) > 0
        is_accepted = accept_loan(balancer, lend)
        result.flipped += is_accepted and not was_heavy and world.level_of(balancer) > 0
        return is_accepted

    async def asked(client: LinkClient, address: Any, message: Message, *rest: Any) -> Any:
        result.requests += 1
        result.questions += isinstance(message, GetLoad)
        answer = await ask(client, address, message, *rest)
        if isinstance(message, Lend) and isinstance(answer, Lent) and answer.accepted:
            result.loans += 1
            result.lent += len(message.pending)
        return answer

    with mock.patch.object(LinkClient, "ask", asked), mock.patch.object(Balancer, "accept_loan", accepted):
        yield


def _peer(machine: Machine) -> Peer:
    assert machine.peer is not None
    return machine.peer


async def _find(peer: Peer, url: str) -> None:
    peer.components.forwarder.forward([Link(url, 0, 0)], None)
