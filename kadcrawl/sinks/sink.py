"""What a sink is, and how one that blocks is kept off the loop.

Tests: tests/sinks/test_delivery.py, tests/sinks/test_sinks.py
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any, ParamSpec, Protocol, TypeVar

from kadcrawl.errors import KadcrawlError
from kadcrawl.sinks.batch import BatchSize, DocumentBatch

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class SinkError(KadcrawlError):
    """A sink could not take what it was given: it is down, full, or not what it was taken for. It is tried again."""


class BlockingSink(Protocol):
    """A sink whose calls wait; never called by two threads at once. Every call may raise any exception."""

    @property
    def size(self) -> BatchSize:
        """How much it takes at once."""
        ...

    def open(self) -> None:
        """Connect, and make what is missing."""
        ...

    def offset(self, table: str, source: str) -> int:
        """Return the byte of this log up to which everything is durable here."""
        ...

    def put(self, batch: DocumentBatch) -> Sequence[str]:
        """Make the batch durable by key, and its end the mark; return why which documents were refused for good."""
        ...

    def close(self) -> None:
        """Let go of what `open` took; also if that failed."""
        ...


class Sink(Protocol):
    """The same without blocking the loop."""

    @property
    def size(self) -> BatchSize:
        """How much it takes at once."""
        ...

    async def open(self) -> None: ...
    async def offset(self, table: str, source: str) -> int: ...
    async def put(self, batch: DocumentBatch) -> Sequence[str]: ...
    async def close(self) -> None: ...


class Threaded:
    """A blocking sink in threads, one call at a time, even if the last one is not waited for any more."""

    def __init__(self, sink: BlockingSink, executor: Executor) -> None:
        """`executor` is one whose threads nobody waits for at the exit, as a call may hang."""
        self._sink = sink
        self._call = OneCall(executor)

    @property
    def size(self) -> BatchSize:
        return self._sink.size

    async def open(self) -> None:
        await self._call(self._sink.open)

    async def offset(self, table: str, source: str) -> int:
        return await self._call(self._sink.offset, table, source)

    async def put(self, batch: DocumentBatch) -> Sequence[str]:
        return await self._call(self._sink.put, batch)

    async def close(self) -> None:
        if not self._call.is_busy:  # A call that hangs keeps what it has; the process ends without it.
            await self._call(self._sink.close)


class OneCall:
    """Runs blocking calls in an executor, one after the other."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._running: asyncio.Future[Any] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a call has not ended."""
        return self._running is not None and not self._running.done()

    async def __call__(
        self, function: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Result:
        """Return what the function returns; it begins once calls that were given up have ended."""
        if self._running is not None:
            await asyncio.wait([self._running])
        running = asyncio.get_running_loop().run_in_executor(self._executor, lambda: function(*args, **kwargs))
        running.add_done_callback(lambda done: done.cancelled() or done.exception())  # Nobody else may look.
        self._running = running
        return await asyncio.shield(running)
