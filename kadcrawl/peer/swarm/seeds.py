"""A person's seeds on their way into the swarm: first every peer learns their reach, then the seeds' owners get them.

The job names the first seeds, so that every peer knows a short list in full. Of all further seeds the other peers learn
the reach only (crawl/scope/seed_reach.py), so their number has no limit. Until both are done the crawl is not over:
`Runtime.unacknowledged` counts each call under way.

Tests: tests/peer/test_peer.py, tests/peer/test_swarm.py, tests/peer/swarm/test_seed_streams.py
"""

import asyncio
import logging
from collections.abc import AsyncIterable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.errors import ConfigError, RemoteError
from kadcrawl.link.wire.messages import BATCH_MAX, Link, NewReach, NewSeeds
from kadcrawl.link.wire.seed_messages import STREAM_CHARS_MAX, STREAM_URLS_MAX
from kadcrawl.peer.runtime import Runtime
from kadcrawl.peer.swarm.swarm_state import nameable
from kadcrawl.settings.job import SEEDS_MAX, Job

log = logging.getLogger(__name__)

STREAMED_NAMED_MAX = 1_000
"""Streamed seeds that the job names, while it names no more than these."""
BATCHES_MAX = 2
"""Batches of a stream in hand at a time: one is being told to all peers while the seeds of the other are offered."""


def why_no_stream(job: Job) -> str | None:
    """Return the reason why this job takes no more seeds than it can name, or None if it does."""
    if job.history != "bloom" or job.recrawl_after_s is None:
        return None
    return (
        "a crawl with --history bloom and --recrawl-after begins each round at the seeds that its job names, and its "
        "fingerprints have no URL to begin at: give at most as many seeds as a job has room for, or use --history exact"
    )


async def add_seeds(runtime: Runtime, seeds: Sequence[str], named_max: int = SEEDS_MAX) -> None:
    """Add these canonical URLs to the crawl, and return when their owners have journaled them.

    The job names as many as it has room for, and streamed seeds up to `named_max` seeds in all. A part of the swarm
    that does not answer hears of the others by heartbeats. Raises ConfigError if this job takes no more seeds.
    """
    with _seeding(runtime, is_first=not runtime.job.seeds):  # The caller may still ask for `pages`.
        named = nameable(runtime.job, seeds, named_max)
        if len(named) < len(seeds) and (why := why_no_stream(runtime.job)) is not None:
            raise ConfigError(why)
        for urls in _slices(named):
            await _tell_all(runtime, NewSeeds(list(urls)))
        runtime.add_seeds(named)
        for segment in runtime.add_reach_of(seeds):
            await _tell_all(runtime, NewReach(segment))
        await _offer(runtime, seeds)
        await runtime.resources.store.journal.durable()


async def stream_seeds(runtime: Runtime, seeds: AsyncIterable[str], named_max: int = STREAMED_NAMED_MAX) -> int:
    """Add canonical URLs of any number, read no faster than their owners accept them, and return their number.

    The job names them while it names fewer than `named_max` seeds.
    If they are the first seeds, and the scope depends on them, this peer fetches nothing before all are read. Raises
    ConfigError if this job takes no more seeds, and what reading raises.
    """
    count = 0
    slots = asyncio.Semaphore(BATCHES_MAX)

    async def add(batch: list[str]) -> None:
        try:
            await add_seeds(runtime, batch, named_max)
        finally:
            slots.release()

    is_first = not runtime.job.seeds and runtime.job.scope != "any"
    with _seeding(runtime, is_first=is_first):
        try:
            async with asyncio.TaskGroup() as group:
                async for batch in _batches(seeds):
                    await slots.acquire()
                    group.create_task(add(batch), name="seeds")
                    count += len(batch)
        except* ConfigError as errors:
            raise errors.exceptions[0] from None
    return count


@contextmanager
def _seeding(runtime: Runtime, *, is_first: bool) -> Iterator[None]:
    """Count seeds as under way. While the first seeds are, this peer fetches nothing."""
    crawler = runtime.components.crawler
    with runtime.seeding():
        if is_first:
            crawler.pause_reasons.add(PauseReason.SEEDING)
        try:
            yield
        finally:
            if runtime.seedings == 1:
                crawler.pause_reasons.discard(PauseReason.SEEDING)
                crawler.wake()


def _slices(urls: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield as many URLs at a time as one message has."""
    for start in range(0, len(urls), BATCH_MAX):
        yield urls[start : start + BATCH_MAX]


async def _batches(seeds: AsyncIterable[str]) -> AsyncIterable[list[str]]:
    batch: list[str] = []
    chars = 0
    async for url in seeds:
        batch.append(url)
        chars += len(url)
        if len(batch) >= STREAM_URLS_MAX or chars >= STREAM_CHARS_MAX:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch


def refuse_text(urls: object) -> None:
    """Raise ConfigError for one text in place of several URLs, as each of its characters would count as a URL."""
    if isinstance(urls, str | bytes):
        raise ConfigError("give the URLs as a list, such as ['https://example.org/'], also if there is only one")


async def each(seeds: AsyncIterable[str] | Iterable[str]) -> AsyncIterable[str]:
    """Yield the URLs of either kind of iterable."""
    if isinstance(seeds, AsyncIterable):
        async for url in seeds:
            yield url
        return
    for url in seeds:
        yield url


async def _tell_all(runtime: Runtime, news: NewSeeds | NewReach) -> None:
    """Tell every peer, unless a part of the swarm does not answer, which hears of the news by heartbeats."""
    try:
        await runtime.waves.reach_all(news)
    except RemoteError as error:
        log.warning("seeds.late news=%s why=%s", type(news).__name__, error)


async def _offer(runtime: Runtime, seeds: Sequence[str]) -> None:
    """Send seeds to their owners, some at a time, and return when their owners have journaled them."""

    async def offer(urls: Sequence[str]) -> None:
        async with runtime.resources.seed_slots:
            await runtime.components.forwarder.forward([Link(url, 0, 0) for url in urls], None).acknowledged

    await asyncio.gather(*(offer(urls) for urls in _slices(seeds)))
