"""The benchmark of many peers crawls the whole web in each way, and divides the cost by the peers."""

import asyncio
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scripts import bench_many_peers
from scripts.bench_many_peers import (
    PAGES,
    SITES,
    PeerCost,
    RunError,
    SmallWeb,
    crawl_inside,
    crawl_simulated,
    measure,
    of_one_more,
)
from scripts.measure import Cost


async def test_peers_of_one_process_crawl_all_pages(tmp_path: Path) -> None:
    async with SmallWeb() as sites:
        assert SITES * PAGES == await crawl_inside(2, sites.url(0), tmp_path)


def test_simulated_peers_crawl_as_many_pages_and_their_hub() -> None:
    assert SITES * PAGES + 1 == crawl_simulated(2)


def test_the_cost_of_a_run_is_divided_by_its_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_many_peers, "cost_of", lambda command, output: Cost(0, 9.0, 3.0, 60_000_000))
    found = asyncio.run(measure("inside", 6))
    assert (6, 10.0, 0.5, 9.0) == (found.peers, found.mb_a_peer, found.cpu_s_a_peer, found.wall_s)


def test_a_run_that_fails_has_no_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    def failed(command: list[str], output: Path) -> Cost:
        output.write_text("no room")
        return Cost(2, 1.0, 1.0, 1)

    monkeypatch.setattr(bench_many_peers, "cost_of", failed)
    with pytest.raises(RunError, match="processes with 3 peers ended with 2: no room"):
        asyncio.run(measure("processes", 3))


def test_one_more_peer_of_a_process_costs_the_difference() -> None:
    costs = [PeerCost("in-process", 1, 70.0, 1.0, 3.0), PeerCost("in-process", 201, 1.0, 0.1, 30.0)]
    assert of_one_more(costs) == "one more peer of a process: 0.66 MB, between 1 and 201 peers"
    assert of_one_more(costs[1:]) is None


def test_a_benchmark_that_is_terminated_leaves_no_process_and_no_directory(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "scripts.bench_many_peers", "--way", "processes", "--processes", "2"]
    with subprocess.Popen(command, env=os.environ | {"TMPDIR": str(tmp_path)}, stdout=subprocess.DEVNULL) as process:
        measured = _measured_by(process)
        process.terminate()
        assert 128 + signal.SIGTERM == process.wait(60)
    assert select.select([measured], [], [], 60)[0], "it is dead"
    os.close(measured)
    assert [] == [*tmp_path.glob("kadcrawl-many-*")]


def _measured_by(process: "subprocess.Popen[bytes]") -> int:
    """Return the descriptor of the crawl that the benchmark has started."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        for task in Path(f"/proc/{process.pid}/task").iterdir():  # A thread has started it.
            if found := (task / "children").read_text().split():
                return os.pidfd_open(int(found[0]))
        time.sleep(0.05)
    raise AssertionError("it has started no crawl")


async def test_the_command_measures_the_files_of_peers_in_one_process() -> None:
    found = await measure("in-process", 2)
    assert found.files_a_peer > 10
