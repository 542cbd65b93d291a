"""The screenshots of the documentation: `make screenshots` writes them, and each run of the tests takes them."""

import os
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.web.pages.browser import Browser
from tests.web.pages.fake_dashboard import serving
from tests.web.pages.made_up import NOW, document

ROOT = Path(__file__).parents[3]
UPDATE = bool(os.environ.get("UPDATE_SCREENSHOTS"))
BYTES_MAX = 250_000
PICTURES: dict[str, tuple[int, dict[str, Any]]] = {
    "dashboard.png": (12, {"viewport": {"width": 1280, "height": 1060}, "colorScheme": "light"}),
    "dashboard-dark.png": (12, {"viewport": {"width": 1280, "height": 620}, "colorScheme": "dark"}),
}
"""File -> number of peers, and options of the browser."""


@pytest.mark.browser
@pytest.mark.xdist_group("browser")
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("name", PICTURES)
async def test_the_screenshots_of_the_documentation_can_be_taken(browser: Browser, tmp_path: Path, name: str) -> None:
    peers, options = PICTURES[name]
    path = (ROOT / "docs" / "assets" if UPDATE else tmp_path) / name
    options = options | {"timezoneId": "UTC", "locale": "en-US", "reducedMotion": "reduce"}
    async with serving(document(peers)) as dashboard, browser.page(**options) as page:
        await page.do("clock.setFixedTime", NOW * 1000)
        await page.do("goto", dashboard.url + "/#token=once")
        await page.shows("pending", ".sentence")
        await page.until("() => document.querySelectorAll('.plots canvas').length === 2")
        if "dark" in name:
            await page.do("check", "input[value=tree]")
        await page.do("screenshot", {"path": str(path)})
    picture = path.read_bytes()
    viewport = options["viewport"]
    assert (viewport["width"], viewport["height"]) == struct.unpack(">II", picture[16:24])
    assert 30_000 < len(picture) < BYTES_MAX, "it shows something, and is small"


@pytest.mark.parametrize("name", PICTURES)
def test_the_documentation_shows_them(name: str) -> None:
    picture = (ROOT / "docs" / "assets" / name).read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert f"../assets/{name}" in (ROOT / "docs" / "how-to" / "dashboard.md").read_text()
