"""Real processes of which one has a bad network: the others fetch its share, and nothing fails for all."""

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path

import pytest
from aiohttp import web

from scripts.kadcrawl_run import page_lines
from tests.support.swarm.command import LOOPBACK, address_of, ended, joinable, kadcrawl, slow_web, start

PAGES = 500
NO_ROUTE = (sys.executable, "-m", "tests.support.swarm.no_route")


@pytest.mark.parametrize(
    ("program", "options", "told"),
    [
        (NO_ROUTE, LOOPBACK, "this peer does not reach sites that other peers reach"),
        (None, (), "start again with --allow-network 127.0.0.0/8"),
    ],
    ids=["no route", "refused"],
)
async def test_a_peer_with_a_bad_network_fails_no_url_for_the_others(
    program: tuple[str, ...] | None, options: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    job = ("--delay", "0", "--scope", "any", "--exit-when-done", "--balance", "off")
    all_there = asyncio.Event()
    async with slow_web(PAGES) as site:
        rest = site.fallback

        async def root(request: web.BaseRequest) -> web.StreamResponse:
            await all_there.wait()
            page = rest(request)
            return page if isinstance(page, web.StreamResponse) else await page

        site.pages["/0"] = root
        first = await joinable(site.url("/0"), *job, data=good)
        address = await address_of(first)
        join = ("join", "--bootstrap", address, "--data", str(bad), "--listen", "127.0.0.1:0", "--exit-when-done")
        second = await start(*join, *options, program=program)
        assert second.stderr is not None
        await second.stderr.readuntil(b"others join with")
        all_there.set()
        runs = [await ended(process) for process in (first, second)]
        assert [0, 0] == [run.code for run in runs], runs
        lines = [*page_lines(tmp_path)]
        assert Counter({(200, None): PAGES}) == Counter((line.status, line.failed) for line in lines)
        by_others = [line for line in page_lines(bad) if "via" in line.fields]
        assert len(by_others) == len([*page_lines(bad)]) > PAGES // 10
        assert told in runs[1].err


async def test_a_local_crawl_without_network_says_so_and_ends_after_its_wait(tmp_path: Path) -> None:
    seeds = [f"http://127.0.0.{number}:9/" for number in range(2, 30)]
    run = await kadcrawl(
        "crawl", *seeds, "--peers", "2", "--delay", "0", *LOOPBACK, "--data", str(tmp_path / "data"),
        "--network-wait", "2s", "--summary", str(tmp_path / "summary.json"),
    )  # fmt: skip
    assert 1 == run.code, run
    assert "network unreachable: for a while no peer reached any site" in run.out
    assert {"connect": len(seeds)} == json.loads((tmp_path / "summary.json").read_text())["urls_failed"]
