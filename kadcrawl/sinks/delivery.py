"""The delivery to one sink: read, deliver, wait. After a failure it waits longer, and retries for ever.

`run` is a background task of the peer. At the end, `finish` lets it deliver the remaining items, and gives up when it
makes no progress. Undelivered items stay in the peer's files, for the next run or for `kadcrawl export`.
"""

import asyncio
import logging
from contextlib import suppress
from typing import Protocol

from kadcrawl.errors import KadcrawlError
from kadcrawl.sinks.sink_names import SinkName
from kadcrawl.system.event import Event

LOG_POLL_S = 0.5
"""Seconds between two reads of files without new lines."""
DELIVERY_RETRY_S = 1.0
"""Seconds before the first retry after a failure. Each wait doubles, up to `RETRY_S_MAX`."""
RETRY_S_MAX = 60.0
"""Longest wait after a failure, in seconds."""
DELIVERY_STALL_S = 10.0
"""Seconds without progress after which `finish` gives up, once a try has failed.

Before the first failure, a connection may still be under way."""
FINISH_S = 180.0
"""Limit on the whole of `finish`, in seconds. The parent of the process waits longer (cli/local/supervisor.py)."""

log = logging.getLogger(__name__)


class Work(Protocol):
    """The work for one sink, in steps."""

    name: SinkName
    moved: int
    """Number of bytes that this object has delivered."""
    refused: int
    """Number of documents that the sink will never take, with the reasons in the log."""

    @property
    def lag(self) -> int:
        """Number of bytes still to be delivered."""
        ...

    @property
    def lacking(self) -> str:
        """The missing items for a person, or empty."""
        ...

    @property
    def done(self) -> str:
        """The items that this object has delivered, with repeats, for a person."""
        ...

    async def step(self, hurry: bool) -> bool:
        """Deliver the next items if they are due, and return whether there were any.

        In a `hurry`, all items are due.
        """
        ...

    async def close(self) -> None:
        """Disconnect. The next step connects again."""
        ...


class Delivery:
    """The delivery to one sink of one directory, with retries."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.why: str | None = None
        """Reason of the last failure, or None after a success."""
        self._failures = 0
        self._hurry = Event()
        self._settled = Event()

    async def run(self) -> None:
        """Deliver until cancelled."""
        wait_s = DELIVERY_RETRY_S
        try:
            while True:
                hurry = self._hurry.is_set()
                try:
                    while await self.work.step(hurry):
                        self._note_success()
                except Exception as error:  # Any library may be behind the sink. The crawl goes on.
                    self._note_failure(error)
                    with suppress(Exception):
                        await self.work.close()
                    await self._pause(DELIVERY_RETRY_S if hurry else wait_s, hurry)
                    wait_s = min(2 * wait_s, RETRY_S_MAX)
                    continue
                self._note_success()
                wait_s = DELIVERY_RETRY_S
                if hurry:
                    self._settled.set()
                await self._pause(LOG_POLL_S, hurry)
        finally:
            with suppress(Exception):
                await self.work.close()

    async def finish(self, patience_s: float = DELIVERY_STALL_S) -> None:
        """Return when all items of now are delivered, or after `patience_s` without progress and a failed try."""
        self._settled.clear()
        self._hurry.set()
        failures = self._failures
        with suppress(TimeoutError):
            async with asyncio.timeout(FINISH_S):
                before = -1
                while not self._settled.is_set() and (self.work.moved != before or self._failures == failures):
                    before = self.work.moved
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._settled.wait(), patience_s)

    @property
    def shortfall(self) -> str | None:
        """A sentence about the missing items and the reason, or None if the sink is complete."""
        if not (lacking := self.work.lacking):
            return None
        return f"the sink {self.work.name.shown} lacks {lacking}" + (f": {self.why}" if self.why else "")

    async def _pause(self, seconds: float, hurry: bool) -> None:
        """Wait for these seconds, or until the hurry begins."""
        if hurry:
            await asyncio.sleep(seconds)
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self._hurry.wait(), seconds)

    def _note_success(self) -> None:
        if self.why is not None:
            log.info("sink.up sink=%s", self.work.name.shown)
            self.why = None

    def _note_failure(self, error: Exception) -> None:
        said = str(error) if isinstance(error, KadcrawlError) else f"{type(error).__name__}: {error}"
        why = self.work.name.clean(said)[:1000]
        if why != self.why:
            log.warning("sink.down sink=%s why=%s", self.work.name.shown, why)
        self.why = why
        self._failures += 1
