"""Test each scenario of real processes and a bad network, and the faults that a partition excuses."""

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

import pytest

from scripts.chaos.dealt_web import DealtWeb, made_up
from scripts.chaos.machines import Loopback, OnHub
from scripts.chaos.network import NETWORK
from scripts.chaos.parted import Across, NetworkSplit, across, views
from scripts.chaos.run import PEERS, RUN_S_MAX, RunSize, run
from sim.judge import Access, judge
from sim.plan import RECOVERY_S

SMALL = RunSize(peers=5, delay_s=0.2, freeze_s=6.0, duplicates_max=0.15)
"""The run is small, so the pages that a dying peer has fetched but not finished are a larger share."""
SITES = 8
SITE = "http://10.77.1.1:80"
FEW, MANY = "10.77.0.1", "10.77.0.2"
PARTING = NetworkSplit(frozenset({FEW}), 100.0, 130.0)


def access_by(time: float, asker: str, path: str = "/") -> Access:
    return Access(time, SITE, path, 200, "", asker)


def hurried(*log: Access) -> int:
    """Return how many requests the judge finds too early for a delay of a second, on either side."""
    found = (judge(view, {}, (), {SITE: 1.0}).hurried for view in views(log, PARTING))
    return len({sentence for sentences in found for sentence in sentences})


# --- what a partition excuses -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "later", "expected"),
    [
        (access_by(110.0, FEW), access_by(110.2, MANY), 0),
        (access_by(110.0, MANY), access_by(110.2, FEW), 0),
        (access_by(99.9, MANY), access_by(100.1, FEW), 1),
        (access_by(110.0, FEW), access_by(110.2, FEW, "/x"), 1),
        (access_by(110.0, MANY), access_by(110.2, MANY, "/x"), 1),
        (access_by(90.0, FEW), access_by(90.2, MANY), 1),
        (access_by(130.0 + RECOVERY_S + 1, FEW), access_by(130.2 + RECOVERY_S + 1, MANY), 1),
    ],
)
def test_a_site_may_be_hurried_only_across_a_partition(before: Access, later: Access, expected: int) -> None:
    assert expected == hurried(before, later)
    assert 1 - expected == across([later, before], PARTING, 1.0).hurried


def test_what_came_before_a_partition_counts_for_its_own_side() -> None:
    assert 1 == hurried(access_by(99.9, MANY), access_by(100.1, MANY, "/x"))


def test_without_a_partition_the_log_is_judged_once_and_whole() -> None:
    log = [access_by(1.0, FEW), access_by(1.1, MANY)]
    assert [log] == views(log, None)
    assert Across(0, 0, 0.0) == across(log, None, 1.0)


def test_only_what_both_sides_asked_for_is_repeated_across() -> None:
    log = [
        access_by(50.0, MANY, "/before"),
        access_by(110.0, FEW, "/before"),  # Across: the few did not know.
        access_by(112.0, FEW, "/twice"),
        access_by(114.0, FEW, "/twice"),  # Its own fault.
        access_by(116.0, MANY, "/robots.txt"),
        access_by(118.0, FEW, "/robots.txt"),
        access_by(190.0, MANY, "/twice"),  # Long after.
    ]
    assert Across(0, 1, 0.0) == across(log, PARTING, 1.0)


def test_it_says_how_long_the_sides_were_strangers_after_healing() -> None:
    log = [access_by(134.0, FEW), access_by(134.5, MANY, "/x"), access_by(137.0, FEW, "/y")]
    assert Across(1, 0, 4.5) == across(log, PARTING, 1.0)


# --- real runs ----------------------------------------------------------------------------------------------------


def test_on_loopback_everybody_is_on_this_machine() -> None:
    loopback = Loopback()
    assert ("127.0.0.2", "127.0.0.9") == (loopback.site(0), loopback.site(7))
    assert ("127.0.0.1", []) == loopback.peer("peer-3")


@pytest.mark.chaos
@pytest.mark.timeout(RUN_S_MAX + 60)
@pytest.mark.parametrize("scenario", [name for name in NETWORK if name != "partition"])
@pytest.mark.usefixtures("namespaces")
async def test_whatever_happens_to_the_network_the_swarm_finishes_the_crawl(scenario: str, tmp_path: Path) -> None:
    """The scenario of a partition alone is left out: a partition with a kill contains it."""
    async with OnHub(SMALL.peers, SITES, Random(1)) as machines, DealtWeb(made_up(120), SITES, machines) as web:
        outcome = await run(NETWORK[scenario], 1, web, tmp_path / "run", SMALL)
    assert [] == outcome.faults
    assert (120, 120, 0, 0) == (outcome.pages, outcome.fetched, outcome.lost, outcome.hurried)
    assert (outcome.packets["lost"] > 0) == (scenario == "lossy")
    assert (outcome.packets["cut"] > 0) == (scenario != "lossy")
    assert {access.asker for access in web.access_log} <= {f"10.77.0.{number}" for number in range(1, 6)}


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let processes that start now hear a Ctrl-C.

    In the background of a script, processes ignore it, and the tests may run there.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def command_line(pid: str) -> bytes:
    """Return the command line of a process, or nothing if the process is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.usefixtures("namespaces", "interruptible")
async def test_ctrl_c_leaves_neither_processes_nor_namespaces(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "scripts.chaos", "--network"),
        stdout=asyncio.subprocess.DEVNULL,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        start_new_session=True,
    )
    namespaces = partial(Path("/run/netns").glob, f"kadcrawl-{process.pid}-*")
    peers: list[int] = []
    async with asyncio.timeout(120):
        while not peers:
            assert process.returncode is None
            await asyncio.sleep(0.1)
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            peers = [int(pid) for pid in children if b"kadcrawl\0join" in command_line(pid)]
            peers = peers if len(list(namespaces())) > PEERS else []
        process.send_signal(signal.SIGINT)
        await process.wait()
    assert 11 == process.returncode
    assert [] == list(namespaces())
    assert not any(Path(f"/proc/{pid}").exists() for pid in peers)
