"""`Event`: an `asyncio.Event` that takes a fraction of the memory.

The event of the standard library has a deque, which allocates room for 64 waiting tasks at once. A peer has about
thirty events, most of which no task or a single task waits for.

Tests: tests/system/test_event.py
"""

import asyncio


class Event:
    """A flag for which tasks wait."""

    __slots__ = ("_is_set", "_waiters")

    def __init__(self) -> None:
        self._is_set = False
        self._waiters: list[asyncio.Future[None]] = []

    def is_set(self) -> bool:
        """Return whether the flag is set."""
        return self._is_set

    def set(self) -> None:
        """Set the flag, and wake all tasks that wait for it."""
        if not self._is_set:
            self._is_set = True
            for waiter in self._waiters:
                if not waiter.done():
                    waiter.set_result(None)

    def clear(self) -> None:
        """Unset the flag. Tasks that `set` has woken go on all the same."""
        self._is_set = False

    async def wait(self) -> None:
        """Return once the flag is set, at once if it is."""
        if self._is_set:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            self._waiters.remove(waiter)
