"""Test `kadcrawl crawl` when more peers die at once than a page has copies.

The command says how many URLs are left, and the same command goes on with them.
"""

import asyncio
import json
import os
import re
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from aiohttp import web

from kadcrawl.cli.exits import DONE, LEFT_BEHIND
from kadcrawl.cli.local.salvage import pending_urls
from kadcrawl.system.file_names import JOURNAL
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


def pages_granted(directory: Path) -> tuple[int, int]:
    """Return the pages that the peer of this directory was granted, and those it has not begun, by its journal."""
    if not (directory / JOURNAL).exists():
        return 0, 0
    with closing(sqlite3.connect(directory / JOURNAL)) as journal:
        try:
            named = "SELECT name, value FROM meta WHERE name IN ('granted', 'pages_begun')"
            meta = dict(journal.execute(named))
        except sqlite3.OperationalError:
            return 0, 0  # The peer has made the file and not yet its tables.
    granted = int(meta.get("granted", 0))
    return granted, granted - int(meta.get("pages_begun", 0))


@pytest.mark.chaos
async def test_pages_granted_to_a_dead_peer_are_told_of_and_the_same_command_fetches_them(tmp_path: Path) -> None:
    async with Web(SITES) as site:
        go_on, max_pages = asyncio.Event(), SITES
        urls = [site.url(f"/page{page}", site=number) for page in range(2) for number in range(SITES)]

        async def waiting(request: web.BaseRequest) -> web.StreamResponse:
            await go_on.wait()
            return html()

        site.pages["/0"] = lambda request: html(*urls)
        site.fallback = waiting
        summary = tmp_path / "summary.json"
        command = [*crawl(tmp_path, site.url("/0"), peers=3), "--max-pages", str(max_pages), "--summary", str(summary)]
        process = await start(*command, program=IMPATIENT)
        peers = [tmp_path / f"peer-{number}" for number in range(1, 4)]

        def lost(peer: Path) -> int:
            return pages_granted(peer)[1]

        # All pages but the first wait. A peer may keep a page for which it has no URL yet, while its others wait.
        await until(
            lambda: sum(pages_granted(peer)[0] for peer in peers) == max_pages and max(map(lost, peers)), process
        )
        victim = max(peers, key=lost)
        os.kill(next(pid for pid in children(process) if locked_by(victim / "lock", pid)), signal.SIGKILL)
        go_on.set()
        run = await ended(process)
        assert run.code == LEFT_BEHIND, run
        figures = json.loads(summary.read_text())
        missing = figures["pages_lost"]
        assert missing > 0
        assert "pages" == figures["limit_reached"]
        assert max_pages - missing == figures["pages"] == len(finished(tmp_path))
        pages = f"{missing} page{'s' if missing > 1 else ''}"
        assert 1 + len(urls) == figures["urls_found"]
        left = figures["urls_found"] - figures["urls_done"]
        said = f"--max-pages {max_pages} ended it {pages} early, granted to peers that crashed: {left} URLs are left"
        assert said in run.out
        assert re.search(r"next:\n  the same command +goes on with the URLs that are left", run.out)
        at_rest = await kadcrawl("summary", "--data", str(tmp_path))
        assert said in at_rest.out
        assert re.search(r"next:\n  the same command +goes on with the URLs that are left", at_rest.out)

        run = await kadcrawl(*command)
        assert run.code == DONE, run
        assert max_pages == len(finished(tmp_path))
        figures = json.loads(summary.read_text())
        assert (max_pages, 0) == (figures["pages"], figures["pages_lost"])
