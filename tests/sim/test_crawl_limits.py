"""--max-time and --max-bytes, judged from outside while peers die, come back, join and leave: by the web's own log."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from kadcrawl.crawl import byte_budget
from kadcrawl.crawl.byte_budget import share_bytes
from kadcrawl.crawl.crawl_time import CrawlTime
from kadcrawl.crawl.page_budget import Budget
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from sim.loop import world
from sim.machines import Machines
from sim.plan import LEAF_FIRST
from sim.synthetic_web import SyntheticWeb
from sim.web_server import WebServer
from tests.support.sites.sim_pages import MEMORY, WEB_IP

pytestmark = pytest.mark.worlds

PEERS = 5
LIMIT_S = 40.0
LATE_S = 3.0
"""Virtual seconds after the limit within which the last request starts: a heartbeat, and a look at the clock."""
EARLY_S = 8.0
"""Virtual seconds before the limit from which a request may be the last, as sites have delays of their own."""
LIMIT_BYTES = 80_000
LIMIT_PAGES = 150
LEFT_PAGES = 60
"""Limit of pages of which the peer that leaves has unused ones."""
LENDING: dict[str, Any] = {"balance": "level", "block_urls": 1, "update_s": 1.0}
UNDER_WAY_MAX = 12
"""Bodies under way at a time: one of each site."""
END_S = 600.0


class World:
    """A web and the machines that crawl it."""

    def __init__(self, machines: Machines, web: SyntheticWeb, server: WebServer, job: Job) -> None:
        self.machines, self.web, self.server, self.job = machines, web, server, job

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [line for machine in self.machines.machines.values() for line in machine.lines()]

    async def until_over(self) -> None:
        async with asyncio.timeout(END_S):
            while not all(one.begun and one.peer is not None and one.peer.ended for one in self.machines.live):
                await asyncio.sleep(0.5)

    async def live(self, *, leaves: int = 0) -> None:
        """Crawl until the limit, while a peer dies and comes back, a peer joins, and a peer leaves."""
        machines = self.machines
        machines.start(1)
        for number in range(2, PEERS + 1):
            await asyncio.sleep(0.5)
            machines.join(number)
        for number in range(leaves):
            machines.hang(LEAF_FIRST + number)
        await asyncio.sleep(8)
        if leaves:
            machines.kill(LEAF_FIRST)
        machines.kill(2)
        await asyncio.sleep(8)
        machines.join(PEERS + 1)
        await asyncio.sleep(4)
        machines.join(2, "same")
        machines.leave(3)
        await asyncio.sleep(10)
        await self.until_over()

    async def go_on(self) -> None:
        """Start all machines again with a job without a limit, and crawl to the end."""
        machines = self.machines
        numbers = [machine.number for machine in machines.live]
        for number in numbers:
            machines.kill(number)
        machines._job = replace(self.job, max_time_s=None, max_bytes=None, max_pages=None)
        for number in numbers:
            machines.join(number, "same")
            await asyncio.sleep(0.5)
        await self.until_over()


@contextmanager
def opened(seed: int, **limits: Any) -> Iterator[World]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory, world(seed) as loop:
        web = SyntheticWeb(seed, sites=12, pages=500, seeds=3, addresses=(WEB_IP,))
        server = WebServer(web)
        job = Job(seeds=web.seeds, scope="any", delay_s=1.0, **limits)
        bounds = Limits(retry_base_s=1.0, robots_retry_s=1.0)
        disks = Path(directory) / "disks"
        work_area = 1 if job.balance == "level" else None
        with Machines(loop, web, job=job, limits=bounds, seed=seed, directory=disks, work_area=work_area) as machines:
            loop.run_until_complete(loop.network.host(WEB_IP).spawn(loop.create_server(server.connect, WEB_IP, 80)))
            yield World(machines, web, server, job)


def lateness_s(one: World) -> float:
    """Return how many seconds after the limit of time the last request started."""
    times = [request.time for request in one.server.log]
    return times[-1] - times[0] - LIMIT_S


def excess_bytes(one: World) -> int:
    """Return how many bytes more than the limit the page lines tell."""
    return sum(int(line["bytes"]) for line in one.lines) - LIMIT_BYTES


@pytest.mark.parametrize("seed", [1, 2])
def test_no_request_starts_after_max_time_and_a_crawl_without_it_loses_nothing(seed: int) -> None:
    with opened(seed, max_time_s=LIMIT_S) as one:
        loop = one.machines.loop
        loop.run_until_complete(one.live())
        assert -EARLY_S <= lateness_s(one) <= LATE_S
        assert len({line["url"] for line in one.lines}) < len(one.web.truth(3))
        loop.run_until_complete(one.go_on())
        assert one.web.truth(3).keys() <= {line["url"] for line in one.lines}
        assert [] == one.machines.errors


@pytest.mark.parametrize("seed", [1, 2])
def test_no_more_bytes_come_than_max_bytes_and_the_bodies_under_way(seed: int) -> None:
    with opened(seed, max_bytes=LIMIT_BYTES) as one:
        loop = one.machines.loop
        loop.run_until_complete(one.live())
        largest = max(line["bytes"] for line in one.lines)
        assert -largest <= excess_bytes(one) <= UNDER_WAY_MAX * largest
        loop.run_until_complete(one.go_on())
        assert one.web.truth(3).keys() <= {line["url"] for line in one.lines}
        assert [] == one.machines.errors


def test_a_peer_that_learns_no_time_of_others_is_found() -> None:
    with patch.object(CrawlTime, "learn", lambda *_: None), opened(1, max_time_s=LIMIT_S) as one:
        one.machines.loop.run_until_complete(one.live())
        assert lateness_s(one) > LATE_S


def test_a_sharer_that_grants_too_much_is_found() -> None:
    def generous(max_bytes: int, *rest: Any) -> Any:
        return share_bytes(2 * max_bytes, *rest)

    with patch.object(byte_budget, "share_bytes", generous), opened(1, max_bytes=LIMIT_BYTES) as one:
        one.machines.loop.run_until_complete(one.live())
        assert excess_bytes(one) > UNDER_WAY_MAX * max(line["bytes"] for line in one.lines)


def excess_pages(one: World) -> int:
    """Return how many pages more than the limit were fetched."""
    return len({line["url"] for line in one.lines if line["status"] is not None}) - LIMIT_PAGES


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_no_more_pages_are_fetched_than_max_pages_whoever_borrows_and_dies(seed: int, lendings: Counter[str]) -> None:
    with opened(seed, max_pages=LIMIT_PAGES, **LENDING) as one:
        loop = one.machines.loop
        loop.run_until_complete(one.live(leaves=2))
        assert sum(lendings.values()) > 10
        assert -LIMIT_PAGES // 3 <= excess_pages(one) <= 0
        assert [] == one.machines.errors


def test_a_newcomer_that_shares_the_budget_out_and_knows_no_grants_of_the_dead_is_found() -> None:
    with patch.object(Budget, "hear", lambda *_: None), opened(3, max_pages=LIMIT_PAGES, balance="off") as one:
        one.machines.loop.run_until_complete(one.live())
        assert excess_pages(one) > 0


def test_a_lender_that_does_not_pay_for_its_loans_is_found(lendings: Counter[str]) -> None:
    with (
        patch.object(Budget, "lend", lambda *_: None),
        patch.object(Budget, "take_back", lambda *_: None),
        opened(1, max_pages=LIMIT_PAGES, **LENDING) as one,
    ):
        with suppress(TimeoutError):  # Most such worlds do not end, as too much is granted to share out the rest.
            one.machines.loop.run_until_complete(one.live(leaves=2))
        assert excess_pages(one) > 0


async def _live_until_one_leaves(one: World, leaver: int) -> None:
    one.machines.start(1)
    for number in (2, 3):
        await asyncio.sleep(0.5)
        one.machines.join(number)
    await asyncio.sleep(3.0)
    one.machines.leave(leaver)
    await one.until_over()


@pytest.mark.parametrize(("seed", "leaver"), [(1, 2), (2, 3), (3, 1)])
def test_the_unused_grant_of_a_peer_that_leaves_is_used_by_others(seed: int, leaver: int) -> None:
    """With seed 1 the leaver shares the budget out, and the others never heard of what it gave back."""
    with opened(seed, max_pages=LEFT_PAGES, balance="off") as one:
        one.machines.loop.run_until_complete(_live_until_one_leaves(one, leaver))
        assert len({line["url"] for line in one.lines}) == LEFT_PAGES
        assert [] == one.machines.errors
