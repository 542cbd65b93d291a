"""Test Ctrl-C, SIGTERM and a closed terminal: the first lets a peer hand over and leave, the second ends it at once."""

import asyncio
import json
import os
import re
import signal
from pathlib import Path

import pytest

from kadcrawl.cli.run import Interrupts
from tests.support.sites.endless_web import endless_web
from tests.support.swarm.command import address_of, ended, finished, force, joinable, joined, kadcrawl, until

JOB = ("--delay", "0", "--scope", "any", "--exit-when-done")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_the_first_signal_lets_a_peer_hand_over_and_go(number: signal.Signals, tmp_path: Path) -> None:
    async with endless_web() as endless:
        one = await joinable(endless.seed, *JOB, data=tmp_path / "one")
        address = await address_of(one)
        two = await joined(address, tmp_path / "two", "--exit-when-done")
        await until(lambda: len(finished(tmp_path / "two")) > 5, two)
        two.send_signal(number)
        gone = await ended(two)
        assert gone.code == 11, gone
        assert "handing over and leaving" in gone.err
        assert "0 URLs left on it" in gone.out
        while not (shown := await kadcrawl("status", "--peer", address, "--json")).out:
            assert "again" in shown.err or "answer" in shown.err, shown
        rows = json.loads(shown.out)["peers"]
        assert [address] == [row["address"] for row in rows]
        endless.end()
        stayed = await ended(one)
        assert stayed.code == 0, stayed
        assert dict.fromkeys(endless.linked, 1) == dict(finished(tmp_path))


async def test_a_peer_that_is_alone_says_what_is_left_on_it(tmp_path: Path) -> None:
    async with endless_web() as endless:
        one = await joinable(endless.seed, *JOB, data=tmp_path / "one")
        await until(lambda: len(finished(tmp_path / "one")) > 5, one)
        one.send_signal(signal.SIGTERM)
        gone = await ended(one)
        done = len(finished(tmp_path / "one"))
        counts = re.search(r"^([0-9]+) pages fetched by this peer, ([0-9]+) URLs left on it", gone.out)
        assert counts is not None, gone
        assert (done, True) == (int(counts[1]), 0 < int(counts[2]) <= len(endless.linked) - done)
        assert re.search(r"^  the same command +goes on with the URLs that are left$", gone.out, re.MULTILINE), gone


async def test_a_second_hangup_forces_nothing() -> None:
    asked = asyncio.get_running_loop()
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # As without `nohup` around the tests.
    interrupts = Interrupts()
    try:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGHUP)
            async with asyncio.timeout(60):
                await interrupts.first.wait()
        await asyncio.sleep(0)  # A cancellation would arrive here.
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asked.remove_signal_handler(number)
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_that_comes_twice_at_once_is_one_signal(first: signal.Signals) -> None:
    """GNU `timeout` signals its command, and then the group of that command."""
    loop, heard = asyncio.get_running_loop(), asyncio.Event()
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    interrupts = Interrupts()
    loop.add_signal_handler(signal.SIGUSR1, heard.set)
    try:
        os.kill(os.getpid(), first)
        async with asyncio.timeout(60):
            await interrupts.first.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGUSR1)
        async with asyncio.timeout(60):
            await heard.wait()  # The loop takes signals in their order.
        await asyncio.sleep(0)  # A cancellation would arrive here.
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            loop.remove_signal_handler(number)
        signal.signal(signal.SIGHUP, before)


async def test_a_hangup_that_nohup_has_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        Interrupts()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().remove_signal_handler(number)
        signal.signal(signal.SIGHUP, before)


async def test_the_second_signal_ends_a_peer_at_once(tmp_path: Path) -> None:
    """Here it could not even hand over: the only other peer hangs."""
    async with endless_web() as endless:
        one = await joinable(endless.seed, *JOB, data=tmp_path / "one")
        two = await joined(await address_of(one), tmp_path / "two", "--exit-when-done")
        await until(lambda: len(finished(tmp_path / "two")) > 5, two)
        one.send_signal(signal.SIGSTOP)
        two.send_signal(signal.SIGTERM)
        await force(two, signal.SIGTERM)
        async with asyncio.timeout(60):
            _, said = await two.communicate()
        assert two.returncode == 11
        assert b"kadcrawl: interrupted; run the same command again" in said
        assert b"Traceback" not in said
        one.kill()
        await one.communicate()
