"""The interface of a sink, and the thread that keeps a blocking sink off the loop.

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
    """A sink refused a batch, because it is down, full, or of another kind. The delivery is retried."""


class BlockingSink(Protocol):
    """A sink whose calls block. Two threads never call it at once. Every call may raise any exception."""

    @property
    def size(self) -> BatchSize:
        """The size of its batches."""
        ...

    def open(self) -> None:
        """Connect, and make missing tables or files."""
        ...

    def offset(self, table: str, source: str) -> int:
        """Return the offset in this log, in bytes, up to which all lines are durable in the sink."""
        ...

    def put(self, batch: DocumentBatch) -> Sequence[str]:
        """Make the batch durable by key and its end the offset, and return the reasons for refused documents."""
        ...

    def close(self) -> None:
        """Release the resources of `open`, even if `open` failed."""
        ...


class Sink(Protocol):
    """A sink whose calls do not block the loop. Otherwise it is a `BlockingSink`."""

    @property
    def size(self) -> BatchSize:
        """The size of its batches."""
        ...

    async def open(self) -> None: ...
    async def offset(self, table: str, source: str) -> int: ...
    async def put(self, batch: DocumentBatch) -> Sequence[str]: ...
    async def close(self) -> None: ...


class Threaded:
    """A blocking sink in threads, with one call at a time, even after a call was given up."""

    def __init__(self, sink: BlockingSink, executor: Executor) -> None:
        """Nothing waits for the threads of `executor` at the exit, as a call may hang."""
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
        if not self._call.is_busy:  # A call that hangs keeps its resources. The process ends without it.
            await self._call(self._sink.close)


class OneCall:
    """A caller that runs blocking calls in an executor, never two at once."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._running: asyncio.Future[Any] | None = None

    @property
    def is_busy(self) -> bool:
        """True while a call runs."""
        return self._running is not None and not self._running.done()

    async def __call__(
        self, function: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Result:
        """Run the function once calls that were given up have ended, and return its result."""
        if self._running is not None:
            await asyncio.wait([self._running])
        running = asyncio.get_running_loop().run_in_executor(self._executor, lambda: function(*args, **kwargs))
        # Retrieved here, as the caller may be gone.
        running.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._running = running
        return await asyncio.shield(running)
