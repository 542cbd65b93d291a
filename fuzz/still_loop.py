"""As much of an event loop as timers and callbacks need, in a time that stands still until it is told to go on.

For decisions behind a socket that set timers and start no tasks; a whole simulated world (sim/loop.py) would cost a
hundred times what a datagram does.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from itertools import count
from typing import Any

CALLS_MAX = 100_000
"""In one stretch of time; more are a fault of whoever sets timers."""


class StillLoop:
    """A loop whose time is moved by `advance`."""

    def __init__(self) -> None:
        self._now = 0.0
        self._number = count()
        self._coming: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._as_loop: Any = self

    @contextmanager
    def running(self) -> Iterator[None]:
        """Be the loop that runs in this thread."""
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self._as_loop)
        try:
            yield
        finally:
            asyncio._set_running_loop(before)

    def advance(self, seconds: float) -> None:
        """Let so much time go by, and call what is due, in order."""
        until = self._now + seconds
        for _ in range(CALLS_MAX):
            if not self._coming or self._coming[0][0] > until:
                break
            when, _, handle = heappop(self._coming)
            self._now = max(self._now, when)
            if not handle.cancelled():
                # Not by `Handle._run`, which would tell the loop of a fault in place of the fuzzer.
                callback: Any = handle._callback  # type: ignore[attr-defined]
                callback(*handle._args)
        else:
            raise AssertionError("timers set timers without end")
        self._now = until

    # --- what is asked of a loop

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
        """A cancelled timer stays where it is until its time comes."""
