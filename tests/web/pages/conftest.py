from collections.abc import AsyncIterator

import pytest_asyncio

from tests.web.pages.browser import Browser, browsing


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """One Chromium for all tests."""
    async with browsing() as running:
        yield running
