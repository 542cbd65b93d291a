"""The streams of seeds that commands send to this peer, message by message (link/wire/seed_messages.py).

Seeds that failed before are fetched again. A crawl without failed URLs asks nobody about them.

Between two messages of a stream nothing is under way, and still the crawl is not over. So each stream counts as
unacknowledged until its last message, or until a silence: then its command is gone. The place up to which the owners
have the seeds of a file is journaled with the next message, so that the same command goes on there after a crash.

Tests: tests/peer/swarm/test_seed_streams.py
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence

from kadcrawl.errors import ConfigError
from kadcrawl.link.handler import Handler
from kadcrawl.link.wire.basics import COUNT_MAX
from kadcrawl.link.wire.messages import Message, Refused, SeedsStreamed, StreamSeeds
from kadcrawl.link.wire.unresolved import still_failed
from kadcrawl.peer.runtime import Runtime
from kadcrawl.peer.swarm.census import take_census
from kadcrawl.peer.swarm.fetch_again import fetch_again
from kadcrawl.peer.swarm.seeds import STREAMED_NAMED_MAX, add_seeds
from kadcrawl.urls import is_canonical

log = logging.getLogger(__name__)

STREAMS_MAX = 64
"""Streams at a time."""
SILENCE_S = 60.0
"""Seconds without a message after which a stream counts as abandoned."""


class SeedStreams:
    """The streams of seeds that come in at one peer."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._heard_at: dict[bytes, float] = {}
        """Stream -> the loop second of its last message, or of the last answer."""
        self._answering: Counter[bytes] = Counter()
        """Stream -> its messages that are being answered."""
        self._failed: dict[bytes, int] = {}
        """Stream -> failed URLs of the crawl when the stream began, or 0 if the crawl does not remember them."""
        runtime.count_streams(self.open)

    def handlers(self) -> Mapping[type[Message], Handler]:
        """Return the handler of each message type."""
        return {StreamSeeds: self.add}

    def open(self) -> int:
        """Return the number of streams that have not ended."""
        silent = self._now() - SILENCE_S
        quiet = [stream for stream, heard_at in self._heard_at.items() if heard_at <= silent]
        for stream in [stream for stream in quiet if stream not in self._answering]:
            self._end(stream)
            log.warning("seeds.abandoned stream=%s", stream.hex()[:8])
        return len(self._heard_at)

    async def add(self, message: StreamSeeds) -> SeedsStreamed | Refused:
        """Add the seeds of one message, and return the place up to which the input was read before."""
        stream, is_first = message.stream, message.stream not in self._heard_at
        if is_first and self.open() >= STREAMS_MAX:
            return Refused(f"{STREAMS_MAX} streams of seeds come in here already; wait, or ask another peer")
        seeds = [url for url in dict.fromkeys(message.urls) if is_canonical(url)]
        self._heard_at[stream] = self._now()
        self._answering[stream] += 1
        try:
            if is_first:
                self._failed[stream] = await self._count_failed()
            again = await self._add(seeds, only_failed=message.only_failed, failed=self._failed.get(stream, 0))
        except ConfigError as error:
            self._end(stream)
            return Refused(str(error))
        finally:
            self._answering -= Counter([stream])  # Only what is left stays.
        self._heard_at[stream] = self._now()
        table = self._runtime.resources.store.reach
        if message.input and message.offset > table.place(message.input)[0]:
            table.keep_place(message.input, message.offset, message.lines)
            await self._runtime.resources.store.journal.durable()
        failed = self._failed.get(stream, 0) if is_first else 0
        if message.is_last:
            self._end(stream)
            log.info("seeds.streamed stream=%s lines=%d", stream.hex()[:8], message.lines)
        refused = len({*message.urls}) - len(seeds)
        return SeedsStreamed(*table.place(message.input), refused=refused, again=again, failed=failed)

    async def _add(self, seeds: Sequence[str], *, only_failed: bool, failed: int) -> int:
        """Add these seeds, and return how many had failed and are fetched again."""
        again = 0
        if seeds and failed:
            # First, as a new seed may fail at once, and must not be fetched again.
            again = (await fetch_again(self._runtime, seeds, only_failed=True))["again"]
        if seeds and not only_failed:
            await add_seeds(self._runtime, seeds, STREAMED_NAMED_MAX)
        return again

    async def _count_failed(self) -> int:
        """Return the failed URLs of the crawl, or 0 if it does not remember them."""
        if self._runtime.job.history != "exact":
            return 0
        rows = (await take_census(self._runtime.waves)).rows
        failed = still_failed(row.counters for row in rows)
        return min(sum(failed.values()), COUNT_MAX)  # Peers may name any number.

    def _end(self, stream: bytes) -> None:
        self._heard_at.pop(stream, None)
        self._failed.pop(stream, None)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
