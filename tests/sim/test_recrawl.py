"""A swarm recrawls its pages for minutes of virtual time, while peers die, come back, join and leave."""

import asyncio
import tempfile
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from sim.loop import world
from sim.machines import Machines
from sim.plan import LEAF_FIRST
from sim.web_server import WebServer
from tests.support.sites.changing_pages import DELAY_S, PAGES, SITES, ChangingPages
from tests.support.sites.sim_pages import MEMORY, WEB_IP

pytestmark = pytest.mark.worlds

PERIOD_S = 30.0
PEERS = 5
LIVE_S = 240.0
LATE_S = 20.0
"""The most seconds by which a page is late: its owner is missed, another catches up, and leaves the site alone."""


async def _live_with_visits(machines: Machines, *, leaves: int = 0) -> None:
    machines.start(1)
    for number in range(2, PEERS + 1):
        await asyncio.sleep(0.5)
        machines.join(number)
    while not all(machine.begun for machine in machines.live):
        await asyncio.sleep(0.5)
    for number in range(leaves):
        machines.hang(LEAF_FIRST + number)
    first = machines.machines[1]
    assert first.peer is not None
    await first.host.spawn(first.peer.crawl([f"http://site-{site}.example/0" for site in range(SITES)]))
    await asyncio.sleep(50)
    machines.kill(2)
    await asyncio.sleep(25)
    machines.join(6)
    machines.kill(3)
    await asyncio.sleep(25)
    machines.join(2, "same")
    machines.leave(4)
    await asyncio.sleep(30)
    machines.kill(5)
    machines.kill(6)
    await asyncio.sleep(1)
    machines.join(5, "none")
    await asyncio.sleep(LIVE_S - 131)


@pytest.mark.parametrize(("seed", "lends"), [(1, False), (2, False), (3, False), (4, False), (1, True), (5, True)])
def test_pages_come_round_in_time_whoever_dies_and_whoever_fetches_them(
    seed: int, lends: bool, lendings: Counter[str]
) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory, world(seed) as loop:
        web = ChangingPages()
        server = WebServer(web)
        job = Job(scope="host", delay_s=DELAY_S, recrawl_after_s=PERIOD_S, balance="off")
        if lends:
            job = replace(job, balance="level", block_urls=1, update_s=1.0)
        disks = Path(directory) / "disks"
        with Machines(
            loop, web, job=job, limits=Limits(), seed=seed, directory=disks, work_area=1 if lends else None
        ) as machines:
            host = loop.network.host(WEB_IP)
            loop.run_until_complete(host.spawn(loop.create_server(server.connect, WEB_IP, 80)))
            loop.run_until_complete(_live_with_visits(machines, leaves=2 if lends else 0))
            assert [] == machines.errors
        lines = [line for machine in machines.machines.values() for line in machine.lines()]
    ended_at = loop.time()
    visits: defaultdict[str, list[float]] = defaultdict(list)
    sites: defaultdict[str, list[float]] = defaultdict(list)
    for request in server.log:
        sites[request.host].append(request.time)
        if request.path != "/robots.txt":
            visits[request.url].append(request.time)
    assert SITES * PAGES == len(visits)
    assert lends == (sum(lendings.values()) > 15)
    assert lends == (max(lendings.values(), default=0) > 1), "some of them were visits to known pages"
    for url, times in visits.items():
        gaps = [later - earlier for earlier, later in pairwise(times)]
        late = [gap for gap in [*gaps, ended_at - times[-1]] if gap > PERIOD_S + LATE_S]
        assert not late, (url, times)
        # Whoever died in the middle of a visit makes another one due; nothing else does.
        assert sum(gap < PERIOD_S - 1 for gap in gaps) <= 2, (url, times)
    for site, times in sites.items():
        ordered = sorted(times)
        gaps = [later - earlier for earlier, later in pairwise(ordered)]
        assert min(gaps) >= DELAY_S - 1e-5, site
    changed = [line for line in lines if line["url"].endswith("/1")]
    same = [line for line in lines if not line["url"].endswith("/1")]
    assert {None} == {line.get("unchanged") for line in changed}
    assert all((line.get("unchanged") is None) == (line.get("visit", 0) == 0) for line in same)
    rounds = defaultdict(set)
    for line in lines:
        rounds[line["url"]].add(line.get("visit", 0))
    assert all(numbers == set(range(len(numbers))) for numbers in rounds.values()), "each round is somewhere"
