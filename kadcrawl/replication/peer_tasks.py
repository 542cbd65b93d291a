"""`PeerTasks` starts the tasks of replication, which end with the peer.

The tasks belong to one TaskGroup, open while `Cells.run` runs. Before and after it no task can start.

Tests: tests/replication/test_cells.py, tests/replication/test_replicator.py
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from kadcrawl.errors import KadcrawlError

Spawn = Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]
"""(work, name) -> the started task."""


class NotRunningError(KadcrawlError):
    """The peer does not run its replication just now."""


class PeerTasks:
    """The TaskGroup of one peer's replication."""

    def __init__(self) -> None:
        self._group: asyncio.TaskGroup | None = None

    @property
    def is_running(self) -> bool:
        """True if tasks can start."""
        return self._group is not None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Let tasks start inside this block, which ends when they have ended."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                yield
        finally:
            self._group = None

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Start a task that ends with the peer. Raises NotRunningError outside of `running`."""
        try:
            if self._group is not None:
                return self._group.create_task(work, name=name)
        except RuntimeError:
            pass  # The group is ending.
        work.close()
        raise NotRunningError(f"cannot start {name!r}: this peer is starting or ending; try again in a moment")
