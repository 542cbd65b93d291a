"""`ResponseWatch` cancels a fetch when its deadline is over: one timer for each fetch, and no cost for each chunk.

Tests: tests/crawl/fetch/test_response_watch.py, tests/crawl/fetch/test_fetcher.py
"""

import asyncio

from kadcrawl.crawl.fetch.result import FetchError
from kadcrawl.crawl.fetch.timeouts import ResponseDeadline

LATE_S = 1.0
"""Lateness of a look from which the loop stood still. So long it has afterwards to read what waits in the socket."""


class ResponseWatch:
    """A watch cancels the work inside its `scope` when the deadline is over.

    A loop that stood still looks late, and has not read what came meanwhile. That time does not count.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, deadline: ResponseDeadline) -> None:
        self.scope = asyncio.timeout(None)
        self.verdict: FetchError | None = None
        self._loop = loop
        self._deadline = deadline
        self._look_at = deadline.look_again_at(loop.time())
        self._timer = loop.call_at(self._look_at, self._look)

    def stop(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        now = self._loop.time()
        if now - self._look_at > LATE_S:
            self._deadline.stood_still(now - self._look_at + LATE_S)
        self.verdict = self._deadline.verdict(now)
        if self.verdict is not None:
            self.scope.reschedule(now)
        else:
            self._look_at = self._deadline.look_again_at(now)
            self._timer = self._loop.call_at(self._look_at, self._look)
