"""The streams of seeds that commands send to this peer, message by message (link/wire/seed_messages.py).

Between two messages of a stream nothing is under way, and still the crawl is not over. So each stream counts as
unacknowledged until its last message, or until a silence: then its command is gone. The place up to which the owners
have the seeds of a file is journaled with the next message, so that the same command goes on there after a crash.

Tests: tests/peer/swarm/test_seed_streams.py
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping

from kadcrawl.errors import ConfigError
from kadcrawl.link.server import Handler
from kadcrawl.link.wire.messages import Message, Refused, SeedsStreamed, StreamSeeds
from kadcrawl.peer.runtime import Runtime
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
        runtime.count_streams(self.open)

    def handlers(self) -> Mapping[type[Message], Handler]:
        """Return the handler of each message type."""
        return {StreamSeeds: self.add}

    def open(self) -> int:
        """Return the number of streams that have not ended."""
        silent = self._now() - SILENCE_S
        quiet = [stream for stream, heard_at in self._heard_at.items() if heard_at <= silent]
        for stream in [stream for stream in quiet if stream not in self._answering]:
            del self._heard_at[stream]
            log.warning("seeds.abandoned stream=%s", stream.hex()[:8])
        return len(self._heard_at)

    async def add(self, message: StreamSeeds) -> SeedsStreamed | Refused:
        """Add the seeds of one message, and return the place up to which the input was read before."""
        if message.stream not in self._heard_at and self.open() >= STREAMS_MAX:
            return Refused(f"{STREAMS_MAX} streams of seeds come in here already; wait, or ask another peer")
        seeds = [url for url in dict.fromkeys(message.urls) if is_canonical(url)]
        self._heard_at[message.stream] = self._now()
        if seeds:
            self._answering[message.stream] += 1
            try:
                await add_seeds(self._runtime, seeds, STREAMED_NAMED_MAX)
            except ConfigError as error:
                self._heard_at.pop(message.stream, None)
                return Refused(str(error))
            finally:
                self._answering -= Counter([message.stream])  # Only what is left stays.
            self._heard_at[message.stream] = self._now()
        table = self._runtime.resources.store.reach
        if message.input and message.offset > table.place(message.input)[0]:
            table.keep_place(message.input, message.offset, message.lines)
            await self._runtime.resources.store.journal.durable()
        if message.is_last:
            self._heard_at.pop(message.stream, None)
            log.info("seeds.streamed stream=%s lines=%d", message.stream.hex()[:8], message.lines)
        return SeedsStreamed(*table.place(message.input), refused=len({*message.urls}) - len(seeds))

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
