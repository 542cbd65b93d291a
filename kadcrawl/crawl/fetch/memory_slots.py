"""The places for large things that one page has, from when it gets them until its content has been read.

Whoever makes such a thing takes the place, whoever asked for it keeps the hold: so no more of them are in memory than
there are places, wherever they are waited with. Who has the last kind it needs waits for nothing but its turn on the
loop, and none takes a former kind after a later one; so all come to their end.

Tests: tests/crawl/fetch/test_fetcher.py
"""

import asyncio


class MemorySlots:
    """What one page has."""

    def __init__(self) -> None:
        self._acquired: list[asyncio.Semaphore] = []

    async def acquire(self, slots: asyncio.Semaphore) -> None:
        """Wait for one of these places, unless it has one of them."""
        if slots not in self._acquired:
            await slots.acquire()
            self._acquired.append(slots)

    def release(self) -> None:
        """Give back all it has; what was made there is gone, or will be before anything is awaited."""
        while self._acquired:
            self._acquired.pop().release()
