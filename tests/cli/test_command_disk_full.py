"""The command on a disk that is full indeed: a small file system of its own, where the machine lets us make one."""

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.sites.endless_web import endless_web
from tests.support.swarm.command import (
    SITES,
    address_of,
    crawl,
    ended,
    finished,
    joinable,
    kadcrawl,
    slow_web,
    start,
    until,
)

DISK_BYTES = 72 * 1024 * 1024
"""A little more than the reserve."""
PAGES = 300


class SmallDisk:
    """A file system of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path / "filler"

    def fill(self, left_bytes: int) -> None:
        """Leave so much room."""
        found = os.statvfs(self.path)
        with suppress(OSError), self._filler.open("ab", buffering=0) as filler:  # Others write as well.
            for _ in range(found.f_bavail - left_bytes // found.f_frsize):
                filler.write(bytes(found.f_frsize))

    def clear(self) -> None:
        self._filler.unlink()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    path = tmp_path / "disk"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(path)]
    try:
        subprocess.run(mount, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting a file system takes root")
    yield SmallDisk(path)
    subprocess.run(["umount", "-l", str(path)], check=True)


async def test_status_says_that_a_peer_waits_for_room(small_disk: SmallDisk) -> None:
    job = ("--delay", "0", "--scope", "any", "--exit-when-done")
    async with endless_web() as endless:
        peer = await joinable(endless.seed, *job, data=small_disk.path / "one")
        address = await address_of(peer)
        await until(lambda: len(finished(small_disk.path)) > 20, peer)
        small_disk.fill(left_bytes=8 * 1024 * 1024)
        states: list[str] = []
        async with asyncio.timeout(60):
            while states != ["paused: disk full"]:
                run = await kadcrawl("status", "--peer", address, "--json")
                assert run.out, run
                status = json.loads(run.out)
                states = [row["state"] for row in status["peers"]]
        assert status["state"] == "paused: disk full"
        assert (await kadcrawl("status", "--peer", address)).out.startswith("paused: disk full: ")
        small_disk.clear()
        endless.end()
        run = await ended(peer)
        assert run.code == 0, run
        assert dict.fromkeys(endless.linked, 1) == dict(finished(small_disk.path))


async def test_a_local_crawl_on_a_full_disk_waits_for_room_and_loses_nothing(small_disk: SmallDisk) -> None:
    async with slow_web(PAGES) as site:
        process = await start(*crawl(small_disk.path, site.url("/0"), peers=3))
        await until(lambda: len(finished(small_disk.path)) > 20, process)
        small_disk.fill(left_bytes=0)
        assert process.stderr is not None
        async with asyncio.timeout(60):
            await process.stderr.readuntil(b"paused: disk full")
        small_disk.clear()
        run = await ended(process)
        assert run.code == 0, run
        assert {site.url(f"/{n}", site=n % SITES) for n in range(PAGES)} == set(finished(small_disk.path))
        assert "died" not in run.err
