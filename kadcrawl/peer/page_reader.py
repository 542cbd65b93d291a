"""How an embedding application reads the pages of its peer, one by one, until the crawl is over.

Tests: tests/peer/test_peer.py, tests/peer/test_embed.py
"""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from kadcrawl.crawl.content.page import Page
from kadcrawl.crawl.output.page_stream import PageStream

if TYPE_CHECKING:
    from kadcrawl.peer.peer import Peer


async def read(peer: "Peer") -> AsyncIterator[Page]:
    """Yield each page the peer fetches from now on, until the swarm is quiescent."""
    stream = PageStream()
    peer.balancing.loans.show_pages(stream.put)
    watcher = asyncio.create_task(_end_with_crawl(peer, stream), name="pages end")
    try:
        while (page := await stream.get()) is not None:
            yield page
    finally:
        watcher.cancel()
        peer.balancing.loans.show_pages(None)
        await stream.end()


async def _end_with_crawl(peer: "Peer", stream: PageStream) -> None:
    await peer.wait_done()
    await stream.end()
