"""The page shows a swarm of 200 simulated peers while they join, leave, die and lend, within a budget for each frame.

The documents are what one of the peers gathered in virtual time, and the real server turns them into events.
"""

import asyncio
import sys
from pathlib import Path

import pytest
import pytest_asyncio

from scripts.browser.frames import QUIET, frame_of_next, open_first
from scripts.browser.replay import replaying
from sim.dashboard_recording import Gathered, read_recording
from tests.web.pages.browser import Browser

pytestmark = [
    pytest.mark.browser,
    pytest.mark.xdist_group("browser"),
    pytest.mark.asyncio(loop_scope="session"),
]

PEERS = 200
TOUCHED_MAX = 800
"""Elements, attributes and texts that a change of all 200 peers may touch: rows in view, figures and events."""
LAYOUTS_MAX = 12
"""A script that measures each row or arc between two changes would cause hundreds."""
STYLES_MAX = 16
ELEMENTS_MAX = 4_500 + 3 * PEERS
ROWS_MAX = 30
"""Rows of the table of peers: those in view, and some above and below."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def looks(tmp_path_factory: pytest.TempPathFactory) -> list[Gathered]:
    """The looks at the swarm. The world is a process of its own, so that it leaves nothing here."""
    file = tmp_path_factory.mktemp("recording") / "looks.json"
    command = [sys.executable, "-m", "sim.dashboard_recording", "--peers", str(PEERS), str(file)]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    _, said = await process.communicate()
    assert 0 == process.returncode, said.decode()
    return read_recording(file)


async def test_the_recording_has_peers_that_come_go_die_and_lend(looks: list[Gathered]) -> None:
    events = {event["kind"] for event in looks[-1].document["events"].values()}
    assert {"peer.joined", "peer.left", "peer.silent", "cells.moved", "loan.moved"} <= events
    assert PEERS - 10 <= len(looks[-1].document["peers"]) <= PEERS
    assert "Not done" in looks[-1].document["crawl"]["verdict"]["sentence"]


async def test_each_change_of_a_simulated_swarm_is_drawn_within_the_budget(
    browser: Browser, looks: list[Gathered], tmp_path: Path
) -> None:
    async with replaying(looks, tmp_path) as replay, browser.page(**QUIET) as page:
        await open_first(page, replay)
        for look in looks[1:]:
            frame = await frame_of_next(page, replay)
            crawl = look.document["crawl"]
            await page.shows(f"{crawl['pages']:,} page", ".figures")
            await page.shows(f"{crawl['pending']:,} pending", ".figures")
            await page.shows(crawl["verdict"]["sentence"], ".verdict")
            assert frame.touched <= TOUCHED_MAX
            assert frame.layouts <= LAYOUTS_MAX
            assert frame.styles <= STYLES_MAX
            assert frame.elements <= ELEMENTS_MAX
            assert ROWS_MAX >= await page.js("() => document.querySelectorAll('.peers tbody tr').length")
        there = {peer for peer, row in looks[-1].document["peers"].items() if row["kind"] == "full"}
        assert len(there) == await page.js("() => document.querySelectorAll('.ring .arc').length")
        await page.shows("not heard", ".peers")
