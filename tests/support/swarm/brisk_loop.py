"""An event loop on whose clock waiting passes quickly, for peers that live in the process of their test.

Such a test mostly waits: for heartbeats, leases, the next look at something, a site's delay. None of that needs the
machine's time, only the same order of events, and all of it comes from the loop's clock. So here the clock runs as fast
as the machine's while the loop has something to do, and `PACE` times as fast while it waits for nothing but its timers.
It never passes the first of them, so a machine that is busy elsewhere looks no busier than it does on the usual loop.

What others do in real time still takes its time: while a thread of an executor works, or a process started from the
loop lives, the clock runs as usual.
"""

import asyncio
import selectors
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

PACE = 10.0
"""Seconds of the clock in one second of waiting.

On loopback, within one process, a sent message arrives at once.
"""


class BriskSelector(selectors.DefaultSelector):
    """Wait for a part of the requested time, and add up the time left out."""

    def __init__(self, others_work: Callable[[], bool]) -> None:
        super().__init__()
        self.left_out_s = 0.0
        self._others_work = others_work

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0 or self._others_work():
            return super().select(timeout)
        # What is there already is not waited for, however long a busy machine takes to hand it over.
        if found := super().select(0):
            return found
        began = time.monotonic()
        found = super().select(timeout / PACE)
        waited_s = time.monotonic() - began
        passed_s = min(timeout, PACE * waited_s) if found else timeout
        self.left_out_s += max(0.0, passed_s - waited_s)
        return found


class BriskLoop(asyncio.SelectorEventLoop):
    """The usual loop with such a clock."""

    def __init__(self) -> None:
        self._calls = 0
        self._processes: list[asyncio.SubprocessTransport] = []
        self._brisk = BriskSelector(self._others_work)
        super().__init__(self._brisk)
        self._began, self._began_wall = self.time(), time.time()

    def time(self) -> float:
        return super().time() + self._brisk.left_out_s

    @property
    def left_out_s(self) -> float:
        """Seconds of the clock in which nobody waited."""
        return self._brisk.left_out_s

    def wall(self) -> float:
        """Return the seconds since 1970 by the loop's clock, so that they agree among all who begin on it."""
        return self._began_wall + self.time() - self._began

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = super().run_in_executor(executor, func, *args)
        self._calls += 1
        future.add_done_callback(self._returned)
        return future

    def stall(self, seconds: float) -> None:
        """Let the clock pass, as while a busy machine runs nothing of this loop."""
        self._brisk.left_out_s += seconds

    async def subprocess_exec(self, *args: Any, **kwargs: Any) -> Any:
        transport, protocol = await super().subprocess_exec(*args, **kwargs)
        self._processes.append(transport)
        return transport, protocol

    def _returned(self, _: asyncio.Future[Any]) -> None:
        self._calls -= 1

    def _others_work(self) -> bool:
        self._processes = [process for process in self._processes if process.get_returncode() is None]
        return bool(self._calls or self._processes)


def stall(seconds: float) -> None:
    """Stall the running loop, which is such a loop."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, BriskLoop)
    loop.stall(seconds)
