"""`DashboardHub` has the one gatherer of a peer's dashboard: all viewers share it, and it runs while somebody looks.

A viewer holds nothing in the hub but its turn: it asks the document for what it lacks, whenever something is new.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from kadcrawl.errors import KadcrawlError
from kadcrawl.system.event import Event
from kadcrawl.web.live_document import LiveDocument
from kadcrawl.web.merge_patch import Json

STEP_S = 1.0
"""Least time between two looks at the swarm."""
PEERS_PER_S = 50
"""Peers that are asked in one second, at the mean: each look asks all of them."""
STEP_MOST_S = 5.0
"""Most time between two looks, so that a peer that dies is shown within seconds."""

REST_S = 0.2
"""Time between two looks, at least, if a look takes longer than a step."""

log = logging.getLogger(__name__)


class DashboardHub:
    """The gatherer of one peer's dashboard."""

    def __init__(self, gather: Callable[[], Awaitable[Json]], now: Callable[[], float], run: str) -> None:
        """`gather` looks at the swarm, `now` returns the peer's second, `run` is a name of this run."""
        self._gather = gather
        self._now = now
        self.document = LiveDocument(run)
        self.viewers = 0
        """Viewers at this moment."""
        self.gatherings = 0
        """Looks at the swarm since the peer began."""
        self._task: asyncio.Task[None] | None = None
        self._news = Event()

    @contextmanager
    def viewer(self) -> Iterator[None]:
        """Count a viewer, and gather while there is one."""
        self.viewers += 1
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="dashboard")
        try:
            yield
        finally:
            self.viewers -= 1
            if not self.viewers:
                self.stop()

    def stop(self) -> None:
        """Gather no more until the next viewer comes."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def news(self) -> None:
        """Return once something is new."""
        await self._news.wait()

    async def _run(self) -> None:
        time = asyncio.get_running_loop().time
        while True:
            due = time()
            step_s = min(max(STEP_S, self.document.peers / PEERS_PER_S), STEP_MOST_S)
            try:
                self.gatherings += 1
                self.document.take(await self._gather(), self._now(), step_s)
            except KadcrawlError as error:
                log.warning("web.look_failed why=%s", error)
            news, self._news = self._news, Event()
            news.set()
            await asyncio.sleep(max(due + step_s - time(), REST_S))
