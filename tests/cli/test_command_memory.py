"""Test `--memory SIZE` with real processes: they finish a crawl of large pages within it, and say what has no room."""

import asyncio
import random
import sys
from pathlib import Path

import pytest
from aiohttp import web

from tests.support.sites.web import Web, slow
from tests.support.swarm.bounded_process import memory_group, peak_private_bytes
from tests.support.swarm.command import KADCRAWL, LOOPBACK, address_of, ended, finished, joinable, kadcrawl, start

pytestmark = pytest.mark.usefixtures("new_processes")  # A fork shares memory with the process that forked it.

PAGES = 150
JOB = ("--delay", "0", "--exit-when-done")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells private memory")
_WORDS = "".join(chr(97 + number % 26) for number in range(1000))


def large_page(request: web.BaseRequest) -> web.StreamResponse:
    """Answer by a page of 300 kB with 1,000 links to few pages."""
    number = int(request.path.strip("/") or 0)
    draw = random.Random(number)
    links = "".join(f"<p>{_WORDS[:250]}<a href='/{draw.randrange(PAGES)}'>t</a>" for _ in range(1_000))
    return web.Response(text=f"<a href='/{(number + 1) % PAGES}'>n</a>{links}", content_type="text/html")


async def run_bounded(name: str, memory: int, *words: str) -> tuple[int, asyncio.subprocess.Process]:
    """Run a command with this memory, in MB, and return its peak of private memory and the ended process."""
    with memory_group(name, memory * 1_000_000) as first:
        process = await start(*words, "--memory", f"{memory}MB", *LOOPBACK, program=(*first, KADCRAWL))
        peak, run = await asyncio.gather(peak_private_bytes(process), ended(process))
        assert run.code == 0, run
        assert f"--memory {memory} MB: at most" in run.err
        return peak, process


@LINUX
async def test_a_peer_finishes_a_crawl_of_large_pages_in_64_mb(tmp_path: Path) -> None:
    async with Web() as site:
        site.fallback = large_page
        peak, _ = await run_bounded(
            *("peer", 64, "start", site.url("/0"), *JOB, "--listen", "127.0.0.1:0", "--data", str(tmp_path / "one"))
        )
        assert {site.url(f"/{number}"): 1 for number in range(PAGES)} == dict(finished(tmp_path))
    assert peak <= 64_000_000


@LINUX
async def test_a_leaf_finishes_a_crawl_of_large_pages_in_48_mb(tmp_path: Path) -> None:
    async with Web() as site:
        site.fallback = slow(large_page, 0.05)
        one = await joinable(site.url("/0"), *JOB, "--fetches", "1", data=tmp_path / "one")
        leaf = ("join", "--leaf", "--bootstrap", await address_of(one), "--data", str(tmp_path / "leaf"))
        (peak, _), run = await asyncio.gather(run_bounded("leaf", 48, *leaf, "--exit-when-done"), ended(one))
        assert run.code == 0, run
        assert {site.url(f"/{number}"): 1 for number in range(PAGES)} == dict(finished(tmp_path))
        assert finished(tmp_path / "leaf")
    assert peak <= 48_000_000


async def test_a_body_without_room_is_cut_off_and_recorded(tmp_path: Path) -> None:
    async with Web() as site:
        site.fallback = lambda request: web.Response(body=b"x" * 3_000_000, content_type="text/html")
        run = await kadcrawl(
            *("crawl", site.url("/0"), "--delay", "0", "--memory", "64MB", *LOOPBACK, "--data", str(tmp_path / "data"))
        )
    assert "1 no_memory" in run.out, run


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--memory", "20MB"), "--memory 20 MB is too little: give at least 55 MB"),
        (("--memory", "60MB", "--history", "bloom"), "has no room for --history bloom"),
        (("--memory", "60MB", "--sink", "parquet:out"), "does not bound the library of a sink of the kind parquet"),
        (("--memory", "60MB", "--in-process", "2"), "--in-process has all peers in one"),
        (("--memory", "much"), "'much' is no size"),
    ],
)
async def test_what_has_no_room_is_refused_with_a_reason(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    run = await kadcrawl("crawl", "http://127.0.0.1:1/", *LOOPBACK, "--data", str(tmp_path / "data"), *words)
    assert run.code == 2, run
    assert said in " ".join(run.err.split())
