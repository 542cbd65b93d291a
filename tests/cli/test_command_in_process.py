"""Test `kadcrawl crawl --in-process N`: a swarm in one process crawls, ends, is killed and goes on like any other."""

import json
import os
import re
import resource
import signal
import sys
from pathlib import Path

import pytest

from tests.support.swarm.command import (
    LOOPBACK,
    SITES,
    children,
    ended,
    finished,
    force,
    kadcrawl,
    slow_web,
    start,
    until,
)

pytestmark = pytest.mark.chaos

PEERS = 12
PAGES = 300
LIMITED = "import resource, runpy; resource.setrlimit(resource.RLIMIT_NOFILE, (150, {})); runpy.run_module('kadcrawl')"
"""The command with limits on open files."""


def crawl_inside(data: Path, url: str, peers: int = PEERS) -> list[str]:
    number = ("--in-process", str(peers))
    return ["crawl", url, *number, "--delay", "0", "--scope", "any", *LOOPBACK, "--data", str(data)]


async def test_peers_of_one_process_crawl_each_page_once(tmp_path: Path) -> None:
    async with slow_web(PAGES, 0.0) as site:
        summary = tmp_path / "summary.json"
        run = await kadcrawl(*crawl_inside(tmp_path / "data", site.url("/0")), "--summary", str(summary))
        assert 0 == run.code, run
        assert {site.url(f"/{n}", site=n % SITES): 1 for n in range(PAGES)} == dict(finished(tmp_path / "data"))
        rows = json.loads(summary.read_text())["peers"]
        assert PEERS == len(rows)
        assert sum(row["pages"] > 0 for row in rows) > 1
        log = (tmp_path / "data" / "peer.log").read_text()
        assert {f"peer-{number}" for number in range(1, PEERS + 1)} == set(re.findall(r" (peer-\d+) ", log))


async def test_peers_of_one_process_that_is_killed_go_on_in_processes_and_back(tmp_path: Path) -> None:
    async with slow_web(PAGES) as site:
        process = await start(*crawl_inside(tmp_path, site.url("/0"), 4))
        await until(lambda: sum(finished(tmp_path).values()) >= 60, process)
        assert [] == children(process)
        process.kill()
        await ended(process)
        before, asked_before = finished(tmp_path), len(site.requests)
        command = crawl_inside(tmp_path, site.url("/0"), 4)
        if len(before) < PAGES // 2:
            process = await start(*[word.replace("--in-process", "--peers") for word in command])
            await until(lambda: sum(finished(tmp_path).values()) >= len(before) + 60, process)
            for pid in (*children(process), process.pid):
                os.kill(pid, signal.SIGKILL)
            await ended(process)
        run = await kadcrawl(*command)
        assert 0 == run.code, run
        assert not {url for _, url in site.requests[asked_before:]} & set(before)
        assert {site.url(f"/{n}", site=n % SITES): 1 for n in range(PAGES)} == dict(finished(tmp_path))


async def test_an_interrupt_ends_all_peers_of_a_process_in_order(tmp_path: Path) -> None:
    async with slow_web(PAGES, 0.1) as site:
        process = await start(*crawl_inside(tmp_path, site.url("/0"), 4))
        await until(lambda: sum(finished(tmp_path).values()) >= 40, process)
        process.send_signal(signal.SIGINT)
        run = await ended(process)
        assert 11 == run.code, run
        assert "interrupted; the same command goes on" in run.err
        assert "Traceback" not in run.err + (tmp_path / "peer.log").read_text()
        asked = {url for _, url in site.requests if not url.endswith("/robots.txt")}
        assert asked == set(finished(tmp_path)), "what was asked for is on the disk"


async def test_a_second_interrupt_ends_a_process_of_peers_at_once(tmp_path: Path) -> None:
    async with slow_web(PAGES, 8.0) as site:
        process = await start(*crawl_inside(tmp_path, site.url("/0"), 3))
        await until(lambda: bool(site.requests), process)
        process.send_signal(signal.SIGINT)
        await force(process)
        run = await ended(process)
        assert 11 == run.code, run
        assert "Traceback" not in run.err


async def test_too_few_files_for_the_peers_is_one_sentence_that_says_what_to_run(tmp_path: Path) -> None:
    words = crawl_inside(tmp_path / "data", "http://127.0.0.1:9/", 20)
    process = await start("-c", LIMITED.format(150), *words, program=(sys.executable,))
    run = await ended(process)
    assert 2 == run.code, run
    assert re.search(
        r"^kadcrawl: 20 peers in one process open \d+ files, and this process may open 150: ", run.err, re.M
    )
    assert "ulimit" in run.err or "prlimit" in run.err
    assert not (tmp_path / "data").exists()


async def test_a_low_soft_limit_on_files_is_raised(tmp_path: Path) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with slow_web(40, 0.0) as site:
        words = crawl_inside(tmp_path, site.url("/0"))
        process = await start("-c", LIMITED.format(hard), *words, program=(sys.executable,))
        run = await ended(process)
        assert 0 == run.code, run
        assert 40 == len(finished(tmp_path))


@pytest.mark.parametrize("peers", [["--peers", "3"], ["--peers", "1"]])
async def test_two_numbers_of_peers_are_refused(peers: list[str], tmp_path: Path) -> None:
    run = await kadcrawl(*crawl_inside(tmp_path, "http://127.0.0.1:9/"), *peers)
    assert (2, True) == (run.code, "leave out one of them" in run.err), run
