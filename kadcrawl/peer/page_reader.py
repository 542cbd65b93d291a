"""The pages of a peer as an asynchronous iterator, for the program that embeds it.

Tests: tests/peer/test_embed.py, tests/peer/test_peer.py
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

from kadcrawl.crawl.content.page import Page
from kadcrawl.crawl.output.page_stream import PageStream
from kadcrawl.errors import StorageError
from kadcrawl.lending.loans import Loans


async def read(loans: Loans, wait_done: Callable[[], Awaitable[None]]) -> AsyncIterator[Page]:
    """Yield each page that is fetched from now on, until the swarm is quiescent or the peer ends.

    Loans know all pages fetched here. `wait_done` raises StorageError if the peer ends first.
    """
    stream = PageStream()
    loans.show_pages(stream.put)
    watcher = asyncio.create_task(_end_with_crawl(wait_done, stream), name="pages end")
    try:
        while (page := await stream.get()) is not None:
            yield page
    finally:
        watcher.cancel()
        loans.show_pages(None)
        await stream.end()


async def _end_with_crawl(wait_done: Callable[[], Awaitable[None]], stream: PageStream) -> None:
    with suppress(StorageError):
        await wait_done()
    await stream.end()
