"""Test `kadcrawl crawl` when more peers die at once than a page has copies.

The command says how many URLs are left, and the same command goes on with them.
"""

import asyncio
import json
import os
import re
import signal
from pathlib import Path

import pytest
from aiohttp import web

from kadcrawl.cli.local.salvage import pending_urls
from tests.support.sites.web import Web, html
from tests.support.swarm.command import (
    IMPATIENT,
    SITES,
    children,
    crawl,
    ended,
    finished,
    kadcrawl,
    locked_by,
    start,
    until,
)

PEERS = 4
HOLDERS = 3


@pytest.mark.chaos
async def test_what_only_dead_peers_knew_is_counted_and_the_same_command_goes_on(tmp_path: Path) -> None:
    async with Web(SITES) as site:
        go_on = asyncio.Event()
        urls = [site.url("/page", site=number) for number in range(SITES)]

        async def waiting(request: web.BaseRequest) -> web.StreamResponse:
            await go_on.wait()
            return html()

        site.pages["/0"] = lambda request: html(*urls)
        site.pages["/page"] = waiting
        summary = tmp_path / "summary.json"
        command = [*crawl(tmp_path, site.url("/0"), peers=PEERS), "--summary", str(summary)]
        process = await start(*command, program=IMPATIENT)
        directories = [tmp_path / f"peer-{number}" for number in range(1, PEERS + 1)]

        def known() -> dict[Path, set[str]]:
            """Return the unfinished URLs that each peer knows."""
            return {directory: set(pending_urls(directory)) for directory in directories if directory.exists()}

        def copied() -> bool:
            held = [url for pending in known().values() for url in pending if url in urls]
            return len(held) == HOLDERS * SITES and finished(tmp_path).total() == 1

        await until(copied, process)
        # Of the four peers one is no holder of the first page: it alone is left alive.
        survivor = next(directory for directory, pending in known().items() if urls[0] not in pending)
        left = set(urls) - known()[survivor]
        victims = [pid for pid in children(process) if not locked_by(survivor / "lock", pid)]
        assert PEERS - 1 == len(victims)
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        go_on.set()
        run = await ended(process)
        assert run.code == 3, run
        assert f"kadcrawl: {len(left)} URLs known only to crashed peers were not fetched." in run.err
        assert "Run the same command to continue." in run.err
        assert len(left) == json.loads(summary.read_text())["left_behind"]
        assert PEERS - 1 == len(re.findall(r"^peer-\d died \(exit status -9", run.err, re.M)), run
        assert left == set(urls) - set(finished(tmp_path))

        run = await kadcrawl(*command)
        assert run.code == 0, run
        assert {site.url("/0"), *urls} == set(finished(tmp_path))
        assert 0 == json.loads(summary.read_text())["left_behind"]
