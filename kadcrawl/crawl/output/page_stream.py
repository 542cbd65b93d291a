"""Finished pages on their way to an embedding application, a few at a time.

The crawl waits while `BUFFERED_MAX` pages or `BUFFERED_BYTES_MAX` bytes of them are unread, so a slow reader slows it
down instead of filling memory.
"""

import asyncio
from collections import deque

from kadcrawl.crawl.content.page import Page

BUFFERED_MAX = 64
BUFFERED_BYTES_MAX = 16 * 1024 * 1024


class PageStream:
    """A bounded queue with an end."""

    def __init__(self) -> None:
        self._pages: deque[Page] = deque()
        self._bytes = 0
        self._changed = asyncio.Condition()
        self._ended = False

    async def put(self, page: Page) -> None:
        """Hand over a page; waits for room, unless nobody reads any more."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._has_room or self._ended)
            if not self._ended:
                self._pages.append(page)
                self._bytes += len(page.content)
                self._changed.notify_all()

    async def get(self) -> Page | None:
        """Return the next page; None once the stream has ended and all were read."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._pages or self._ended)
            page = self._pages.popleft() if self._pages else None
            self._bytes -= len(page.content) if page else 0
            self._changed.notify_all()
            return page

    async def end(self) -> None:
        """No more pages will come, or nobody will read them."""
        async with self._changed:
            self._ended = True
            self._changed.notify_all()

    @property
    def _has_room(self) -> bool:
        return len(self._pages) < BUFFERED_MAX and self._bytes < BUFFERED_BYTES_MAX
