"""`Event`: the event of asyncio with a fraction of the memory.

The event of the standard library has a deque, which allocates room for 64 waiting tasks at once. A peer has about
thirty events, most of which no task or a single task waits for.

Tests: tests/system/test_event.py
"""

import asyncio


class Event:
    """An event of one loop, as `asyncio.Event`. It makes a list of waiting tasks when a second task waits."""

    __slots__ = ("_is_set", "_waiting")

    def __init__(self) -> None:
        self._is_set = False
        self._waiting: asyncio.Future[None] | list[asyncio.Future[None]] | None = None

    def is_set(self) -> bool:
        """Return whether the event is set."""
        return self._is_set

    def set(self) -> None:
        """Set the event, and wake all tasks that wait for it."""
        if self._is_set:
            return
        self._is_set = True
        if self._waiting is not None:
            for future in self._waiting if isinstance(self._waiting, list) else (self._waiting,):
                if not future.done():
                    future.set_result(None)

    def clear(self) -> None:
        """Let later calls of `wait` wait. A task that was woken goes on."""
        self._is_set = False

    async def wait(self) -> None:
        """Return once the event is set."""
        if self._is_set:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._waiting is None:
            self._waiting = future
        elif isinstance(self._waiting, list):
            self._waiting.append(future)
        else:
            self._waiting = [self._waiting, future]
        try:
            await future
        finally:
            if isinstance(self._waiting, list):
                self._waiting.remove(future)
            else:
                self._waiting = None
