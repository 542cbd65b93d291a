"""Scheduled callbacks of the simulated loop, lighter than those of asyncio. A seed makes some 50,000 of them.

Tests: tests/sim/test_loop.py
"""

import contextvars
from typing import Any

import msgspec


class SimHandle(msgspec.Struct, eq=False):
    """A scheduled callback. A seed makes some 50,000, so it is lighter than `asyncio.Handle`."""

    context: contextvars.Context | None
    callback: Any
    args: Any
    canceled: bool = False

    def cancel(self) -> None:
        """Give the callback up. The handle stays where it waits, but holds nothing any more."""
        self.canceled = True
        self.context = self.callback = self.args = None

    def cancelled(self) -> bool:
        """Return whether the callback is given up."""
        return self.canceled


class TimerCount(msgspec.Struct, eq=False):
    """The timers of one loop that were canceled while they wait."""

    canceled: int = 0


class SimTimer(SimHandle):
    """A callback at an instant. A canceled timer stays in the heap for a while."""

    at: float = 0.0
    count: TimerCount | None = None
    """Counts the timer when it is canceled. None once the timer waits no more."""

    def cancel(self) -> None:
        """Give the callback up, and count the timer if it still waits."""
        self.canceled = True
        self.context = self.callback = self.args = None
        if self.count is not None:
            self.count.canceled += 1
            self.count = None

    def when(self) -> float:
        """Return the instant of the callback."""
        return self.at
