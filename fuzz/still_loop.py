"""A minimal event loop with timers and callbacks, in a time that stands still until `advance`.

For decisions behind a socket that set timers and start no tasks. A whole simulated world (sim/loop.py) would cost a
hundred times as much as a datagram does.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from itertools import count
from typing import Any

CALLS_MAX = 100_000
"""The most calls in one `advance`. More are a fault of the code that sets timers."""


class StillLoop:
    """An event loop whose time moves only by `advance`."""

    def __init__(self) -> None:
        self._now = 0.0
        self._number = count()
        self._coming: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._as_loop: Any = self

    @contextmanager
    def running(self) -> Iterator[None]:
        """Make this the running loop of the thread while the context is open."""
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self._as_loop)
        try:
            yield
        finally:
            asyncio._set_running_loop(before)

    def advance(self, seconds: float) -> None:
        """Move the time by `seconds` and call the callbacks that are due, in order."""
        until = self._now + seconds
        for _ in range(CALLS_MAX):
            if not self._coming or self._coming[0][0] > until:
                break
            when, _, handle = heappop(self._coming)
            self._now = max(self._now, when)
            if not handle.cancelled():
                # Not by `Handle._run`, which would report a fault to the loop in place of the fuzzer.
                callback: Any = handle._callback  # type: ignore[attr-defined]
                callback(*handle._args)
        else:
            raise AssertionError("timers set timers without end")
        self._now = until

    # --- methods of an event loop

    def time(self) -> float:
        return self._now

    def get_debug(self) -> bool:
        return False

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self._as_loop)

    def call_at(self, when: float, callback: Callable[..., Any], *args: Any, context: Any = None) -> Any:
        handle = asyncio.TimerHandle(when, callback, args, self._as_loop, context)
        heappush(self._coming, (when, next(self._number), handle))
        return handle

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any, context: Any = None) -> Any:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Any = None) -> Any:
        return self.call_at(self._now, callback, *args, context=context)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Do nothing: a canceled timer stays in the heap until its time comes."""
