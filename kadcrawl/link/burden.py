"""What one member has a peer do at a time, by all its connections, living and dead: bytes, and the loop's time.

Of its questions a few begin in each round of the loop, so that however many it asks at once others have their turn
soon; and none while it leaves more than so much of what it was answered unread.
"""

import asyncio
from collections import deque

BURDEN_BYTES_MAX = 32 * 1024 * 1024
"""Of all questions of one peer that are being handled: some of the largest, and what honest peers ask is far below."""
AT_ONCE_MAX = 4
"""Questions that begin in one round of the loop: the dearest take ten milliseconds each."""
UNSENT_BYTES_MAX = 8 * 1024 * 1024
"""Of answers to one peer that wait to be sent, before another of its questions begins; one more answer comes on top."""


class Burden:
    """That of one member."""

    def __init__(self) -> None:
        self._bytes = 0
        """Of questions."""
        self._lighter = asyncio.Event()
        self._unsent = 0
        """Bytes of answers."""
        self._waiting: deque[asyncio.Future[None]] = deque()
        """Questions that have not begun, in their order."""
        self._begins = 0
        """Questions that begin in this round of the loop."""
        self._looks_soon = False
        self._loop = asyncio.get_running_loop()

    async def add(self, count: int) -> None:
        """Wait until there is room for a question of so many bytes; there always is for one alone."""
        while self._bytes and self._bytes + count > BURDEN_BYTES_MAX:
            self._lighter.clear()
            await self._lighter.wait()
        self._bytes += count

    def drop(self, count: int) -> None:
        self._bytes -= count
        self._lighter.set()

    async def turn(self) -> None:
        """Wait until a question may begin, which it does at once then; most need not wait."""
        if self._begins >= AT_ONCE_MAX or self._waiting or self._unsent > UNSENT_BYTES_MAX:
            one = self._loop.create_future()
            self._waiting.append(one)
            await one
        else:
            self._begins += 1
            self._look_soon()

    def hold(self, count: int) -> None:
        """An answer of so many bytes is to be sent."""
        self._unsent += count

    def release(self, count: int) -> None:
        """It was sent, or never will be."""
        self._unsent -= count
        self._wake()

    def _wake(self) -> None:
        while self._waiting and self._begins < AT_ONCE_MAX and self._unsent <= UNSENT_BYTES_MAX:
            one = self._waiting.popleft()
            if not one.done():
                self._begins += 1
                one.set_result(None)
                self._look_soon()

    def _look_soon(self) -> None:
        if not self._looks_soon:
            self._looks_soon = True
            self._loop.call_soon(self._look)

    def _look(self) -> None:
        self._looks_soon = False
        self._begins = 0
        self._wake()
