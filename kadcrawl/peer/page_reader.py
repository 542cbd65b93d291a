"""The pages of a peer as an asynchronous iterator, for the program that embeds it.

Tests: tests/peer/test_embed.py, tests/peer/test_peer.py
"""

import asyncio
from collections.abc import AsyncIterator

from kadcrawl.crawl.content.page import Page
from kadcrawl.crawl.output.page_stream import PageStream
from kadcrawl.lending.loans import Loans
from kadcrawl.overlay.waves.activity import Activity


async def read(loans: Loans, activity: Activity) -> AsyncIterator[Page]:
    """Yield each page that is fetched from now on, until the swarm is quiescent. Loans know all pages fetched here."""
    stream = PageStream()
    loans.show_pages(stream.put)
    watcher = asyncio.create_task(_end_with_crawl(activity, stream), name="pages end")
    try:
        while (page := await stream.get()) is not None:
            yield page
    finally:
        watcher.cancel()
        loans.show_pages(None)
        await stream.end()


async def _end_with_crawl(activity: Activity, stream: PageStream) -> None:
    await activity.over.wait()
    await stream.end()
