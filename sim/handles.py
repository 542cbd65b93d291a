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


class SimTimer(SimHandle):
    """A callback at an instant. A canceled timer stays in the heap for a while."""

    at: float = 0.0

    def when(self) -> float:
        """Return the instant of the callback."""
        return self.at
