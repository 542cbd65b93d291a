"""The conversation that counts the time of the crawl, and pauses the crawler once `--max-time` is over.

Tests: tests/peer/test_max_time.py, tests/leaf/test_leaf.py
"""

import asyncio
import logging
from collections.abc import Callable

from kadcrawl.crawl.crawl_limits import CrawlLimits
from kadcrawl.crawl.pause_reasons import Pausable, PauseReason
from kadcrawl.store.meta_table import MetaTable

TICK_S = 0.25
"""Seconds between two looks: a heartbeat tells a time that is at most so old."""
JOURNAL_S = 5.0
"""Seconds of counted time between two entries in the journal: so much is forgotten after a crash, at most."""
CRAWL_TIME = "crawl_ms"
"""The name of the counted time in the journal, in milliseconds."""

log = logging.getLogger(__name__)


async def count_time(
    limits: CrawlLimits,
    crawler: Pausable,
    meta: MetaTable,
    now: Callable[[], float],
    *,
    is_crawling: Callable[[], bool],
    tell: Callable[[int], None] = lambda milliseconds: None,
    hurry: Callable[[], None] = lambda: None,
    reached: Callable[[], None] = lambda: None,
) -> None:
    """Count the time in which this peer crawls, until cancelled. The limits have one of time.

    `is_crawling` returns whether the peer has URLs to fetch, and `tell` receives the counted milliseconds for others.
    `hurry` tells others at once, when this peer has no more to fetch: another that begins soon after must count on.
    `reached` is called at the limit: a swarm that rests until pages are due has nothing to wait for any more.
    """
    time, journaled_s, has_crawled = limits.time, 0.0, False
    while True:
        crawls = not crawler.pause_reasons and is_crawling()
        time.count(now(), is_crawling=crawls)
        counted_s = time.counted_s(now())
        tell(milliseconds(counted_s))
        if has_crawled and not crawls:
            hurry()
        has_crawled = crawls
        if counted_s >= journaled_s + JOURNAL_S:
            journaled_s = counted_s
            keep_time(limits, meta, now())
        if time.is_over(now()) and PauseReason.LIMIT not in crawler.pause_reasons:
            log.info("crawl.limit_reached limit=max-time seconds=%.1f", counted_s)
            crawler.pause_reasons.add(PauseReason.LIMIT)
            keep_time(limits, meta, now())
            crawler.wake()
            reached()
        left_s = time.left_s(now())
        await asyncio.sleep(min(TICK_S, left_s) if left_s else TICK_S)


def milliseconds(counted_s: float) -> int:
    """Return a counted time as it travels and is journaled."""
    return round(counted_s * 1000)


def keep_time(limits: CrawlLimits, meta: MetaTable, now: float) -> None:
    """Journal the counted time, if there is a limit."""
    if limits.time.limit_s is not None:
        meta.set(CRAWL_TIME, str(milliseconds(limits.time.counted_s(now))).encode())


def journaled_s(meta: MetaTable) -> float:
    """Return the time that earlier runs in this directory have counted, in seconds."""
    return (meta.read(CRAWL_TIME, int) or 0) / 1000
