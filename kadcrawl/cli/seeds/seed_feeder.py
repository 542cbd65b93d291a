"""Sends the seeds of a file or pipe to a peer, batch by batch, and goes on where the same file was read before.

A peer answers a batch when the owners of its seeds and their backups have journaled them. Two batches are on their way
at a time, so reading never runs ahead. Each message carries the place before which all was answered, and the peer
journals it. While the input is silent, empty messages keep the stream open, so that the crawl does not end.

Tests: tests/cli/seeds/test_seed_feeder.py
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from kadcrawl.cli.seeds.seed_file import SeedBatch, SeedFile
from kadcrawl.link.wire.seed_messages import STREAM_ID_BYTES, SeedsStreamed, StreamSeeds
from kadcrawl.system.daemon_threads import DaemonThreadExecutor

BATCHES_MAX = 2
"""Batches without an answer at a time."""
KEEP_OPEN_S = 20.0
"""Seconds of silence after which a message keeps the stream open: a third of what a peer allows."""

Result = TypeVar("Result")
Send = Callable[[StreamSeeds], Awaitable[SeedsStreamed]]


@dataclass(slots=True)
class FeedFigures:
    """The figures of one feed, for a person."""

    skipped: int = 0
    """Lines that were read in an earlier run."""
    lines: int = 0
    """Lines whose seeds are journaled, with those skipped."""
    seeds: int = 0
    """Seeds of this run that are journaled."""
    again: int = 0
    """Seeds that had failed, and are fetched again."""


class SeedFeeder:
    """The feed of one input."""

    def __init__(
        self,
        seeds: SeedFile,
        send: Send,
        *,
        check: Callable[[SeedBatch], None] = lambda _: None,
        on_progress: Callable[[FeedFigures], None] = lambda _: None,
    ) -> None:
        """`send` sends a message to a peer until one answers. `check` raises ConfigError for a batch to be refused."""
        self._seeds = seeds
        self._send = send
        self._check = check
        self._on_progress = on_progress
        self._stream = secrets.token_bytes(STREAM_ID_BYTES)
        self._under_way: deque[tuple[asyncio.Task[SeedsStreamed], SeedBatch]] = deque()
        self._offset = 0
        self._only_failed = False
        """The input was read to its end before, and is read once more for the seeds that failed."""
        self.figures = FeedFigures()

    async def run(self) -> FeedFigures:
        """Feed the input to its end, and return the figures. Raises ConfigError, and what `send` raises.

        A file that was read to its end before is read once more if URLs of the crawl failed: a seed that failed is
        fetched again.
        """
        before = await self._send(self._message([]))
        if self._seeds.input and before.offset:
            await _in_thread(lambda: self._seeds.skip_to(before.offset, before.lines))
            self._offset = before.offset
            self.figures.lines = self.figures.skipped = before.lines
        self._on_progress(self.figures)
        try:
            await self._read_on()
            self._offset, self.figures.lines = self._seeds.offset, self._seeds.lines
            if before.failed and self.figures.skipped == self.figures.lines:
                self._only_failed = True
                await _in_thread(lambda: self._seeds.skip_to(0, 0))
                await self._read_on()
            await self._send(self._message([], is_last=True))
        finally:
            tasks = [task for task, _ in self._under_way]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        self._on_progress(self.figures)
        return self.figures

    async def _read_on(self) -> None:
        """Send the seeds from here to the end of the input, and return when all are answered."""
        while (batch := await self._next_batch()) is not None:
            self._check(batch)
            while len(self._under_way) >= BATCHES_MAX:
                await self._settle_first()
            task = asyncio.create_task(self._deliver(self._message(batch.urls)), name="seeds")
            self._under_way.append((task, batch))
        while self._under_way:
            await self._settle_first()

    async def _next_batch(self) -> SeedBatch | None:
        """Wait for the next batch, and meanwhile settle what is answered and keep the stream open."""
        reading = _in_thread(self._seeds.next_batch)
        while True:
            waiting: list[asyncio.Future[Any]] = [reading, *(task for task, _ in list(self._under_way)[:1])]
            await asyncio.wait(waiting, timeout=KEEP_OPEN_S, return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                return reading.result()
            if not self._under_way:
                await self._send(self._message([]))
            elif self._under_way[0][0].done():
                await self._settle_first()

    async def _settle_first(self) -> None:
        task, batch = self._under_way[0]
        answer = await task
        self._under_way.popleft()
        self.figures.again += answer.again
        if not self._only_failed:
            self._offset, self.figures.lines = batch.offset, batch.lines
            self.figures.seeds += len(batch.urls)
        self._on_progress(self.figures)

    async def _deliver(self, message: StreamSeeds) -> SeedsStreamed:
        return await self._send(message)

    def _message(self, urls: list[str], *, is_last: bool = False) -> StreamSeeds:
        place = (self._offset, self.figures.lines) if self._seeds.input else (0, 0)
        return StreamSeeds(self._stream, urls, is_last, self._seeds.input, *place, self._only_failed)


def _in_thread(call: Callable[[], Result]) -> asyncio.Future[Result]:
    """Call in a thread that the exit does not wait for, as a pipe may stay silent."""
    return asyncio.get_running_loop().run_in_executor(DaemonThreadExecutor(), call)
