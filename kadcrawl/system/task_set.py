"""The background tasks of one object: each has a name, and closing the object ends them all.

Tests: tests/overlay/test_overlay.py
"""

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any


class TaskSet:
    """The tasks of one owner. An exception in a task goes to the loop's exception handler."""

    def __init__(self, owner: str) -> None:
        """`owner` begins the names of the tasks."""
        self._owner = owner
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self.closed = False

    def __iter__(self) -> Iterator[asyncio.Task[Any]]:
        return iter(self._tasks)

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Start a task. Raises RuntimeError if the set is closed."""
        if self.closed:
            work.close()
            raise RuntimeError(f"the {self._owner} is closed")
        task = asyncio.get_running_loop().create_task(work, name=f"{self._owner} {name}")
        self._tasks[task] = None
        task.add_done_callback(self._finished)
        return task

    async def close(self) -> None:
        """Cancel and await every task, also those that end meanwhile."""
        self.closed = True
        while self._tasks:
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        del self._tasks[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            context = {"message": f"{self._owner} task failed", "exception": error, "task": task}
            task.get_loop().call_exception_handler(context)
