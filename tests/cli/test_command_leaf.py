"""Test `kadcrawl join --leaf`: a process that listens on no port, fetches its part, and returns its loans when it
stops."""

import asyncio
import json
import os
import re
import signal
from pathlib import Path

import pytest
from aiohttp import web

from tests.support.sites.endless_web import endless_web
from tests.support.swarm.command import (
    LOOPBACK,
    SITES,
    address_of,
    ended,
    finished,
    force,
    joinable,
    kadcrawl,
    slow_web,
    start,
    until,
)

PAGES = 400
SOME = 20
JOB = ("--delay", "0", "--scope", "any", "--exit-when-done", "--fetches", "4")


async def leaf_of(address: str, data: Path) -> asyncio.subprocess.Process:
    process = await start("join", "--leaf", "--bootstrap", address, "--data", str(data), *LOOPBACK, "--exit-when-done")
    assert process.stderr is not None
    async with asyncio.timeout(60):
        await process.stderr.readuntil(b"it listens on nothing")
    return process


async def until_states_shown(address: str, states: set[str]) -> None:
    """Return when the status of the peer at this address shows these states and no others."""
    async with asyncio.timeout(60):
        while True:
            run = await kadcrawl("status", "--peer", address, "--json")
            assert run.code == 0, run
            if states == {row["state"] for row in json.loads(run.out)["peers"]}:
                return


def open_to_others(process: asyncio.subprocess.Process) -> list[str]:
    """Return the lines of the system's tables for the sockets by which others could begin to talk to a process."""
    directory = Path(f"/proc/{process.pid}/fd")
    links = [os.readlink(directory / name) for name in os.listdir(directory)]
    inodes = {link[8:-1] for link in links if link.startswith("socket:[")}
    found = []
    for table, states in (("tcp", {"0A"}), ("tcp6", {"0A"}), ("udp", {"07"}), ("udp6", {"07"})):
        for line in Path(f"/proc/{process.pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] in inodes and fields[3] in states:
                found.append(line)
    return found


async def test_a_leaf_crawls_with_the_others_and_ends_with_them(tmp_path: Path) -> None:
    async with slow_web(PAGES) as site:
        page, looked = site.fallback, asyncio.Event()

        async def held(request: web.BaseRequest) -> web.StreamResponse:
            """Most pages are not answered before both have been looked at: on a busy machine the crawl were over."""
            if int(request.path.strip("/")) >= PAGES // 4:
                await looked.wait()
            answer = page(request)
            return answer if isinstance(answer, web.StreamResponse) else await answer

        site.fallback = held
        one = await joinable(site.url("/0"), *JOB, data=tmp_path / "one")
        address = await address_of(one)
        leaf = await leaf_of(address, tmp_path / "leaf")
        assert open_to_others(one)
        assert [] == open_to_others(leaf)
        await until_states_shown(address, {"crawling", "leaf: crawling"})
        looked.set()
        runs = [await ended(one), await ended(leaf)]
        assert [0, 0] == [run.code for run in runs], runs
        assert len(finished(tmp_path / "leaf")) > PAGES // 10
        assert re.search(r"^[0-9]+ pages? fetched by this peer, 0 URLs left on it", runs[1].out)
        assert {site.url(f"/{n}", site=n % SITES): 1 for n in range(PAGES)} == dict(finished(tmp_path))


async def test_a_leaf_pauses_and_stops_with_the_swarm(tmp_path: Path) -> None:
    async with endless_web() as endless:
        one = await joinable(endless.seed, *JOB, data=tmp_path / "one")
        address = await address_of(one)
        leaf = await leaf_of(address, tmp_path / "leaf")
        await until(lambda: len(finished(tmp_path / "leaf")) > SOME, leaf)
        assert (await kadcrawl("pause", "--peer", address)).code == 0
        await until_states_shown(address, {"paused", "leaf: paused"})
        before = len(finished(tmp_path / "leaf"))
        assert (await kadcrawl("resume", "--peer", address)).code == 0
        await until(lambda: len(finished(tmp_path / "leaf")) > before + SOME, leaf)
        assert (await kadcrawl("stop", "--peer", address)).code == 0
        runs = [await ended(one), await ended(leaf)]
        assert [0, 0] == [run.code for run in runs], runs
        assert {1} == set(finished(tmp_path).values())
        told = await kadcrawl("status", "--data", str(tmp_path / "one"))
        assert re.search(r"leaf: left +[1-9]", told.out), told


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_the_first_signal_lets_a_leaf_give_back_what_it_has_and_go(
    number: signal.Signals, tmp_path: Path
) -> None:
    async with endless_web() as endless:
        one = await joinable(endless.seed, *JOB, data=tmp_path / "one")
        leaf = await leaf_of(await address_of(one), tmp_path / "leaf")
        await until(lambda: len(finished(tmp_path / "leaf")) > SOME, leaf)
        leaf.send_signal(number)
        gone = await ended(leaf)
        assert gone.code == 11, gone
        assert "giving back and leaving" in gone.err
        assert "0 URLs left on it" in gone.out
        endless.end()
        stayed = await ended(one)
        assert stayed.code == 0, stayed
        assert dict.fromkeys(endless.linked, 1) == dict(finished(tmp_path))


async def test_the_second_signal_ends_a_leaf_at_once(tmp_path: Path) -> None:
    """Here it could give nothing back: its only full peer hangs."""
    async with endless_web() as endless:
        one = await joinable(endless.seed, *JOB, data=tmp_path / "one")
        leaf = await leaf_of(await address_of(one), tmp_path / "leaf")
        await until(lambda: len(finished(tmp_path / "leaf")) > SOME, leaf)
        one.send_signal(signal.SIGSTOP)
        leaf.send_signal(signal.SIGTERM)
        await force(leaf, signal.SIGTERM)
        run = await ended(leaf)
        assert run.code == 11, run
        assert "Traceback" not in run.err
        one.kill()
        await one.communicate()


async def test_what_no_leaf_can_do_is_said(tmp_path: Path) -> None:
    one = await joinable("--max-bytes", "5MiB", data=tmp_path / "one")
    join = ["join", "--leaf", "--bootstrap", await address_of(one), "--data", str(tmp_path / "leaf")]
    refused = await kadcrawl(*join)
    assert (2, "") == (refused.code, refused.out)
    assert "a crawl with --max-bytes has no leaves" in refused.err
    refused = await kadcrawl(*join, "--listen", "127.0.0.1:0")
    assert (2, "kadcrawl: a leaf listens on nothing: leave out --listen\n") == (refused.code, refused.err)
    one.send_signal(signal.SIGINT)
    assert (await ended(one)).code == 11
