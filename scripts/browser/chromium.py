"""Drives a headless Chromium: playwright-core in a process of Node, told what to do line by line.

Tests: tests/web/pages/test_pages.py
"""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
MODULES = ROOT / ".cache" / "web" / "node_modules"
"""Where `make test-web` installs playwright-core and axe-core."""
DRIVER = Path(__file__).parent / "driver.mjs"
NAMES = ("chromium", "chromium-browser", "google-chrome")
LINE_BYTES = 64_000_000
"""The limit of one answer: screenshots are files, so answers are small."""
DEADLINE_S = 30.0


def chromium() -> str | None:
    """Return the path of Chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def lacks() -> str | None:
    """Return what a browser needs and this machine does not have, or None."""
    if chromium() is None:
        return "Chromium"
    if shutil.which("node") is None:
        return "node and npm"
    return None if (MODULES / "playwright-core").is_dir() else "make test-web"


class Browser:
    """A running Chromium, with the pages that tests open."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin
        assert process.stdout
        self._orders = process.stdin
        self._answers = process.stdout
        self._number = 0

    async def ask(self, **order: Any) -> Any:
        """Have one order carried out, and return its value."""
        self._number += 1
        self._orders.write(json.dumps({"id": self._number, **order}).encode() + b"\n")
        async with asyncio.timeout(DEADLINE_S):
            answer = json.loads(await self._answers.readline())
        assert self._number == answer["id"]
        assert "error" not in answer, answer["error"]
        return answer["value"]

    @asynccontextmanager
    async def page(self, **options: Any) -> AsyncIterator["Page"]:
        """Open a page in a context with these options. No error of the page may be left at the end."""
        page = Page(self, await self.ask(open=options or {"viewport": {"width": 1280, "height": 900}}))
        try:
            yield page
            problems = await page.do("problems")
            assert not problems, problems
        finally:
            await page.do("close")


class Page:
    """One page in the browser."""

    def __init__(self, browser: Browser, number: int) -> None:
        self._browser = browser
        self._number = number

    async def do(self, method: str, *args: Any) -> Any:
        """Call a method of playwright's page, such as `click` or `keyboard.press`."""
        return await self._browser.ask(page=self._number, method=method, args=list(args))

    async def js(self, function: str, argument: Any = None) -> Any:
        """Return what a function of JavaScript returns in the page."""
        return await self.do("evaluate", function, argument)

    async def metrics(self) -> dict[str, float]:
        """Return the counts and times that Chromium keeps of the page (Performance.getMetrics), since it was opened."""
        return {name: float(value) for name, value in await self.do("metrics")}

    async def until(self, function: str, argument: Any = None) -> None:
        """Wait until a function of JavaScript returns something true in the page."""
        async with asyncio.timeout(DEADLINE_S):
            while not await self.js(function, argument):  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    async def shows(self, text: str, within: str = "body") -> None:
        """Wait until a part of the page has this text."""
        found = "([at, text]) => document.querySelector(at)?.innerText.replace(/\\s+/g, ' ').includes(text)"
        try:
            await self.until(found, [within, text])
        except TimeoutError:
            shown = await self.js("(at) => document.querySelector(at)?.innerText", within)
            raise AssertionError(f"{text!r} is not in {shown!r}") from None


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    """Run Chromium until the block ends."""
    path = chromium()
    assert path is not None, "`lacks` says so before"
    command = ["node", str(DRIVER), str(MODULES / "playwright-core"), path]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=LINE_BYTES)
    try:
        yield Browser(process)
    finally:
        assert process.stdin
        process.stdin.close()
        try:
            async with asyncio.timeout(10):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
