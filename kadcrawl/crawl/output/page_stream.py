"""Passes finished pages, in turn, to an embedding application.

The crawl waits while `BUFFERED_MAX` pages or `BUFFERED_BYTES_MAX` bytes of pages are unread. A slow reader therefore
slows the crawl down, and memory stays bounded.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from kadcrawl.crawl.content.page import Page

BUFFERED_MAX = 64
"""Limit on the pages that an application has not read yet. The crawl waits at this number."""
BUFFERED_BYTES_MAX = 16 * 1024 * 1024
"""Limit on the bytes of these pages."""

PageReader = Callable[[Page], Awaitable[None]]


class PageStream:
    """A bounded queue of pages that can be ended."""

    def __init__(self) -> None:
        self._pages: deque[Page] = deque()
        self._bytes = 0
        self._changed = asyncio.Condition()
        self._ended = False

    async def put(self, page: Page) -> None:
        """Add a page when there is room, or drop the page if the stream has ended."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._has_room or self._ended)
            if not self._ended:
                self._pages.append(page)
                self._bytes += len(page.content)
                self._changed.notify_all()

    async def get(self) -> Page | None:
        """Return the next page, or None once the stream has ended and all pages were read."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._pages or self._ended)
            page = self._pages.popleft() if self._pages else None
            self._bytes -= len(page.content) if page else 0
            self._changed.notify_all()
            return page

    async def end(self) -> None:
        """End the stream: no page is added any more."""
        async with self._changed:
            self._ended = True
            self._changed.notify_all()

    @property
    def _has_room(self) -> bool:
        return len(self._pages) < BUFFERED_MAX and self._bytes < BUFFERED_BYTES_MAX


class PageFeed:
    """The way of fetched pages from all crawlers of a peer to the application, while the application reads them."""

    def __init__(self) -> None:
        self._reader: PageReader | None = None

    @property
    def is_read(self) -> bool:
        """The application reads pages."""
        return self._reader is not None

    def show(self, reader: PageReader | None) -> None:
        """Await `reader` with each page fetched from now on, which slows the crawl to its pace. None ends that."""
        self._reader = reader

    async def put(self, page: Page) -> None:
        """Wait until the application has taken the page, if the application reads pages."""
        if self._reader is not None:
            await self._reader(page)
