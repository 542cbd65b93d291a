"""A swarm of two releases: peers of neighboring versions of the wire crawl together, and are upgraded one by one."""

import asyncio
import sys
from pathlib import Path

import pytest

from kadcrawl.link.wire.basics import is_spoken
from tests.support.swarm.command import (
    KADCRAWL,
    LOOPBACK,
    address_of,
    ended,
    finished,
    interrupted,
    kadcrawl,
    slow_web,
    start,
    until,
)
from tests.support.swarm.last_release import install, last_release, wire_version

pytestmark = pytest.mark.chaos

THIS = (KADCRAWL,)
NEXT = (sys.executable, "-m", "tests.support.swarm.next_release")
ROOT = Path(__file__).parents[2]
PAGES = 240


async def entered(
    *arguments: str, program: tuple[str, ...], data: Path, place: Path = ROOT
) -> asyncio.subprocess.Process:
    """Start a peer of a release in a directory, and return when it is in."""
    options = ("--data", str(data), "--listen", "127.0.0.1:0", "--exit-when-done", *LOOPBACK)
    process = await start(*arguments, *options, program=program, directory=place)
    assert process.stderr is not None
    async with asyncio.timeout(60):
        await process.stderr.readuntil(b"others join with")
    return process


async def test_peers_of_two_releases_crawl_together_and_are_upgraded_one_by_one(tmp_path: Path) -> None:
    async with slow_web(PAGES, 0.1) as site:
        old = await entered("start", "--delay", "0.1", "--scope", "any", program=THIS, data=tmp_path / "a")
        old_at = await address_of(old)
        new = await entered("join", "--bootstrap", old_at, program=NEXT, data=tmp_path / "b")
        new_at = await address_of(new)
        other = await entered("join", "--bootstrap", new_at, program=THIS, data=tmp_path / "c")
        assert 0 == (await kadcrawl("add", site.url("/0"), "--peer", old_at)).code
        await until(lambda: all(len(finished(tmp_path / name)) > 3 for name in "abc"), other)
        left = await interrupted(old)
        assert 11 == left.code, left
        upgraded = await entered("start", program=NEXT, data=tmp_path / "a")
        runs = [await ended(process) for process in (new, other, upgraded)]
        assert [0, 0, 0] == [run.code for run in runs], runs
        assert {site.url(f"/{n}", site=n % 20): 1 for n in range(PAGES)} == dict(finished(tmp_path))
        for name in "abc":
            assert "malformed" not in (tmp_path / name / "peer.log").read_text()


@pytest.mark.timeout(300)  # It installs a release.
async def test_peers_of_the_last_release_crawl_with_those_of_this(tmp_path: Path) -> None:
    release = last_release()
    if release is None:
        pytest.skip("there is no git history with a release to take")
    if not is_spoken(wire_version(release)):
        pytest.skip(f"{release} speaks version {wire_version(release)} of the wire, which this release does not")
    outside = tmp_path / "release"
    outside.mkdir()
    old = await asyncio.to_thread(install, release, outside)
    async with slow_web(PAGES, 0.1) as site:
        seed = ("start", "--delay", "0.1", "--scope", "any")
        first = await entered(*seed, program=old, data=tmp_path / "a", place=outside)
        at = await address_of(first)
        other = await entered("join", "--bootstrap", at, program=THIS, data=tmp_path / "b")
        assert 0 == (await kadcrawl("add", site.url("/0"), "--peer", at)).code
        await until(lambda: all(len(finished(tmp_path / name)) > 3 for name in "ab"), other)
        left = await interrupted(first)
        assert 11 == left.code, left
        upgraded = await entered("start", program=THIS, data=tmp_path / "a")
        runs = [await ended(process) for process in (other, upgraded)]
        assert [0, 0] == [run.code for run in runs], runs
        assert {site.url(f"/{n}", site=n % 20): 1 for n in range(PAGES)} == dict(finished(tmp_path))
        for name in "ab":
            assert "malformed" not in (tmp_path / name / "peer.log").read_text()
