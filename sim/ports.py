"""Interfaces between the simulated network, its event loop and its TCP streams.

`sim/network.py` schedules events on a loop and resets the streams of a killed host. It knows both through these
protocols only, so it imports neither `sim/loop.py` nor `sim/tcp.py`.

Tests: tests/sim/test_loop.py, tests/sim/test_tcp.py
"""

import asyncio
import contextvars
from collections.abc import Callable
from typing import Any, Protocol, TypeVarTuple, Unpack

from .handles import SimHandle

Ts = TypeVarTuple("Ts")


class Timeline(Protocol):
    """The event loop as the network and the streams see it: virtual time and callbacks in a fixed order."""

    now: float
    """The instant, in seconds since the world began."""

    def post(self, at: float, event: Callable[[Unpack[Ts]], object], *args: *Ts) -> None:
        """Schedule an event that belongs to no host and cannot be canceled."""

    def make_up(self, at: float, handle: SimHandle) -> None:
        """Run at the instant `at` a callback that a frozen host has missed."""

    def call_soon(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> SimHandle:
        """Schedule a callback, as `asyncio.AbstractEventLoop.call_soon` does."""

    def create_task(
        self, coro: Any, *, name: str | None = None, context: contextvars.Context | None = None
    ) -> asyncio.Task[Any]:
        """Start a coroutine, as `asyncio.AbstractEventLoop.create_task` does."""


class ListeningPort(Protocol):
    """A TCP port on which a host accepts streams."""

    factory: Callable[[], Any]
    """Makes the asyncio protocol of each accepted stream."""


class Stream(Protocol):
    """One end of a TCP stream, held by its host."""

    def cease(self) -> None:
        """Reset the stream, because the host was killed."""

    def pump(self) -> None:
        """Hand the received bytes to the asyncio protocol."""
