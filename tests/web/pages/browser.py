"""The browser of the tests. A test is skipped where the machine has none, or fails if it may not be."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from scripts.browser import chromium
from scripts.browser.chromium import MODULES, Browser, Page

__all__ = ["MODULES", "Browser", "Page", "browsing"]


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    """Run Chromium until the block ends."""
    if lacks := chromium.lacks():
        reason = f"the pages of the dashboard are tested in a browser, which needs {lacks}"
        if os.environ.get("KADCRAWL_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    async with chromium.browsing() as browser:
        yield browser
