"""The page shows a real swarm of processes, by the real dashboard of one of them."""

import asyncio
from pathlib import Path

import pytest

from kadcrawl.cli.commands.web import read_dashboard
from kadcrawl.system.file_names import DASHBOARD
from tests.support.swarm.command import address_of, interrupted, joinable, joined, slow_web
from tests.support.viewers import token_of
from tests.web.pages.browser import Browser

pytestmark = [
    pytest.mark.browser,
    pytest.mark.xdist_group("browser"),
    pytest.mark.asyncio(loop_scope="session"),
]

SHOWN_S = 10
"""Seconds within which the page shows that a peer is gone."""


async def test_a_killed_peer_is_shown_within_ten_seconds(browser: Browser, tmp_path: Path) -> None:
    data = tmp_path / "one"
    async with slow_web(2_000, 0.1) as site:
        first = await joinable(site.url("/"), "--web=127.0.0.1:0", "--scope", "any", "--delay", "0", data=data)
        address = await address_of(first)
        second, third = [await joined(address, tmp_path / name) for name in ("two", "three")]
        async with browser.page() as page:
            await page.do("goto", f"{read_dashboard(data / DASHBOARD).url}#token={token_of(data)}")
            await page.shows("3 full, 0 leaves", ".peers")
            await page.until("() => document.querySelectorAll('.ring .arc').length === 3")
            await page.until("() => /[1-9][0-9,]* pages? at/.test(document.querySelector('.figures').innerText)")
            await page.shows("Not done", ".verdict")
            third.kill()
            async with asyncio.timeout(SHOWN_S):
                await page.shows("✕ not heard", ".peers")
            await page.until("() => document.querySelectorAll('.ring .arc').length === 2")
            assert "1 not heard" in (await page.js("() => document.querySelector('.peers').innerText"))
            # The peer that serves the page ends: the page says so, and asks again.
            await interrupted(first)
            await page.shows("trying again", ".link.lost")
            assert [] != await page.do("problems"), "the browser says that nobody answers"
        await interrupted(second)
        await third.wait()


async def test_a_swarm_is_steered_from_the_page_by_the_session_alone(browser: Browser, tmp_path: Path) -> None:
    data = tmp_path / "one"
    options = ("--web=127.0.0.1:0", "--web-control", "--scope", "any", "--delay", "2")
    async with slow_web(2_000) as site:
        peer = await joinable(site.url("/"), *options, data=data)
        address = f"{read_dashboard(data / DASHBOARD).url}#token={token_of(data)}"
        async with browser.page() as page:
            await page.do("goto", address)
            row = ".sites tbody tr:first-child"
            await page.until("(row) => document.querySelector(row + ' button')", row)
            # The order of the rows changes while the crawl goes on: the names do not.
            await page.do("click", ".sites th button >> text=Site")
            await page.do("click", f"{row} button >> text=Pause")
            await page.shows("paused", row)
            await page.do("click", f"{row} button >> text=Resume")
            await page.shows("Pause", row)
            await page.do("click", f"{row} button >> text=Slow")
            await page.do("fill", "dialog input", "45")
            await page.do("click", "dialog button[type=submit]")
            await page.shows("slowed", row)
            await page.do("click", f"{row} button >> text=Slow")
            await page.do("click", "dialog button >> text=Its own delay")
            await page.until("(row) => !document.querySelector(row).innerText.includes('slowed')", row)
            await page.do("fill", ".way input", site.url("/"))
            await page.do("keyboard.press", "Enter")
            await page.shows("State done", ".way")
            await page.until("() => document.querySelector('.ring .needle.owner')")
            await page.do("click", "text=Pause the crawl")
            await page.shows("Not done: the swarm is paused", ".verdict")
            await page.do("click", "text=Resume the crawl")
            await page.shows("Crawling", ".figures")
        async with browser.page() as thief:
            await thief.do("goto", address)
            await thief.shows("There is no session.")
            assert ["401" in problem for problem in await thief.do("problems")] == [True, True]
        await interrupted(peer)
