"""Keeping one sink's work going: look, deliver, wait; after a failure wait longer, and try again for ever.

`run` is a background task of the peer, which nothing waits for until the end; then `finish` lets it deliver what there
is, and gives up when nothing moves any more. What is left stays in the peer's files, for the next run or for
`kadcrawl export`.
"""

import asyncio
import logging
from contextlib import suppress
from typing import Protocol

from kadcrawl.sinks.names import SinkName

LOG_POLL_S = 0.5
"""Between two looks at files that have nothing new."""
DELIVERY_RETRY_S = 1.0
RETRY_S_MAX = 60.0
"""Waits after failures: the first, and the longest, each twice the one before."""
DELIVERY_STALL_S = 10.0
"""At the end: how long nothing may move, once a try has failed; until then a connection is perhaps being made."""
FINISH_S = 180.0
"""At the end: how long it may take in all; whoever waits for the process waits longer (cli/local/supervisor.py)."""

log = logging.getLogger(__name__)


class Work(Protocol):
    """What is to be done for one sink, step by step."""

    name: SinkName
    moved: int
    """Bytes delivered by this object."""
    refused: int
    """Documents the sink will never take; why is in the log."""

    @property
    def lag(self) -> int:
        """Bytes still to be delivered."""
        ...

    @property
    def lacking(self) -> str:
        """The same for a person; empty if it is nothing."""
        ...

    @property
    def done(self) -> str:
        """What this object has delivered, repeats included, for a person."""
        ...

    async def step(self, hurry: bool) -> bool:
        """Deliver something, if something is due, or in a `hurry` if there is anything; return whether there was."""
        ...

    async def close(self) -> None:
        """Disconnect; the next step connects anew."""
        ...


class Delivery:
    """One sink of one directory, kept going."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.why: str | None = None
        """Why it does not get on; None while it does."""
        self._failures = 0
        self._hurry = asyncio.Event()
        self._settled = asyncio.Event()

    async def run(self) -> None:
        """Deliver until cancelled."""
        wait_s = DELIVERY_RETRY_S
        try:
            while True:
                hurry = self._hurry.is_set()
                try:
                    while await self.work.step(hurry):
                        self._gets_on()
                except Exception as error:  # Of whatever library is behind it: the crawl goes on.
                    self._fails(error)
                    with suppress(Exception):
                        await self.work.close()
                    await self._pause(DELIVERY_RETRY_S if hurry else wait_s, hurry)
                    wait_s = min(2 * wait_s, RETRY_S_MAX)
                    continue
                self._gets_on()
                wait_s = DELIVERY_RETRY_S
                if hurry:
                    self._settled.set()
                await self._pause(LOG_POLL_S, hurry)
        finally:
            with suppress(Exception):
                await self.work.close()

    async def finish(self, patience_s: float = DELIVERY_STALL_S) -> None:
        """Return when all there is now is delivered, or nothing has moved for so long and a try has failed."""
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
        """Say what the sink lacks, and why; None if it has everything."""
        if not (lacking := self.work.lacking):
            return None
        return f"the sink {self.work.name.shown} lacks {lacking}" + (f": {self.why}" if self.why else "")

    async def _pause(self, seconds: float, hurry: bool) -> None:
        """Wait, but not longer than until the hurry begins."""
        if hurry:
            await asyncio.sleep(seconds)
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self._hurry.wait(), seconds)

    def _gets_on(self) -> None:
        if self.why is not None:
            log.info("sink.up sink=%s", self.work.name.shown)
            self.why = None

    def _fails(self, error: Exception) -> None:
        why = self.work.name.clean(f"{type(error).__name__}: {error}")[:1000]
        if why != self.why:
            log.warning("sink.down sink=%s why=%s", self.work.name.shown, why)
        self.why = why
        self._failures += 1
