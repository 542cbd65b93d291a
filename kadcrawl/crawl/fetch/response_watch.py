"""`ResponseWatch` cancels a fetch when its deadline is over: one timer for each fetch, and no cost for each chunk.

It does what `asyncio.timeout` does. A timer of its own asks the deadline, which `asyncio.timeout` cannot.

Tests: tests/crawl/fetch/test_response_watch.py, tests/crawl/fetch/test_fetcher.py
"""

import asyncio
from types import TracebackType

from kadcrawl.crawl.fetch.result import FetchError
from kadcrawl.crawl.fetch.timeouts import ResponseDeadline

LATE_S = 1.0
"""Lateness of a look from which the loop stood still. So long it has afterwards to read what waits in the socket."""


class ResponseWatch:
    """A watch cancels the work inside its context when the deadline is over, which ends in a TimeoutError then.

    A loop that stood still looks late, and has not read what came meanwhile. That time does not count.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, deadline: ResponseDeadline) -> None:
        self.verdict: FetchError | None = None
        self._loop = loop
        self._deadline = deadline
        self._look_at = deadline.look_again_at(loop.time())
        self._timer = loop.call_at(self._look_at, self._look)

    def __enter__(self) -> None:
        """Begin the work of the current task that the watch may cancel."""
        task = asyncio.current_task(self._loop)
        assert task is not None, "a fetch runs in a task"
        self._task, self._cancelling = task, task.cancelling()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop the watch. Raises TimeoutError if the watch, and nobody else, has cancelled the work."""
        self._timer.cancel()
        if self.verdict is None:
            return
        if self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def _look(self) -> None:
        now = self._loop.time()
        if now - self._look_at > LATE_S:
            self._deadline.stood_still(now - self._look_at + LATE_S)
        self.verdict = self._deadline.verdict(now)
        if self.verdict is not None:
            self._task.cancel()
        else:
            self._look_at = self._deadline.look_again_at(now)
            self._timer = self._loop.call_at(self._look_at, self._look)
