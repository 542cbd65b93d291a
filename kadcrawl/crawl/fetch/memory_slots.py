"""Memory slots limit how many large bodies and contents are in memory at a time.

A page takes a slot when it allocates something large, and releases the slot after its content has been parsed. The code
that allocates acquires the slot, and the code that asked for the page keeps the `MemorySlots`: so no more large things
are in memory than there are slots, wherever they wait. A page that has the last kind of slot it needs waits only for
its turn on the loop, and no page acquires an earlier kind after a later kind. So all pages come to their end.

Tests: tests/crawl/fetch/test_fetcher.py
"""

import asyncio


class MemorySlots:
    """The slots that one page holds."""

    def __init__(self) -> None:
        self._acquired: list[asyncio.Semaphore] = []

    async def acquire(self, slots: asyncio.Semaphore) -> None:
        """Wait for one of these places, unless it has one of them."""
        if slots not in self._acquired:
            await slots.acquire()
            self._acquired.append(slots)

    def release(self) -> None:
        """Release all slots. The memory they stand for is free already, or will be before anything is awaited."""
        while self._acquired:
            self._acquired.pop().release()
