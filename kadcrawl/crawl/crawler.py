"""The crawler of one frontier: starts an attempt (crawl/attempt.py) at each entry that may be fetched now.

The crawler starts no attempt while there is a reason to pause, while a limit of the crawl is reached
(crawl/crawl_limits.py), or while too many requests, unfinished pages or bytes are in progress (crawl/capacity.py). A
peer has one crawler for its own pages and one for borrowed pages.
"""

import asyncio
import logging

from kadcrawl.crawl.attempt import Attempt, AttemptContext
from kadcrawl.crawl.content.link_finder import LinkFinder
from kadcrawl.crawl.dependencies import CrawlDependencies, CrawlHooks, CrawlSource
from kadcrawl.crawl.early_waits import EarlyWaits
from kadcrawl.crawl.finishing import PageFinisher
from kadcrawl.crawl.page_processor import PageProcessor
from kadcrawl.crawl.pause_reasons import LETTING_END, PauseReason
from kadcrawl.crawl.robots_fetch import RobotsSearch
from kadcrawl.store.frontier_entry import FrontierEntry

FILES_WAIT_S = 5.0
"""Seconds for which the crawler pauses when this machine has no socket left, while other requests end."""
WAITS_PER_TURN_MAX = 64
"""Limit on the entries that are found to wait before other tasks have their turn. So many take some 3 ms."""
log = logging.getLogger(__name__)


class Crawler:
    """Crawls the entries of one frontier, until cancelled."""

    def __init__(self, parts: CrawlDependencies, source: CrawlSource, hooks: CrawlHooks) -> None:
        self.pause_reasons = parts.pause_reasons
        """Reasons to start no request, shared by all crawlers of the peer. Call `wake` after removing a reason."""
        self.hooks = hooks
        self._clock = parts.clock
        self._limits = parts.crawl_limits
        self._forwarder = parts.forwarder
        self._capacity = parts.capacity
        self._store = source.store
        self._frontier = source.frontier
        self._activity = source.activity
        self._work = parts.capacity.join()
        self._files_timer: asyncio.TimerHandle | None = None
        search = RobotsSearch(
            limits=parts.limits,
            site_settings=parts.site_settings,
            clock=parts.clock,
            frontier=source.frontier,
            robots=source.robots,
            outputs=parts.outputs,
            activity=source.activity,
            poison_pages=parts.poison_pages,
        )
        self._finisher = PageFinisher(parts, source)
        self._early_waits = EarlyWaits(parts, source, hooks, search, self.wake)
        self._context = AttemptContext(
            parts,
            source,
            hooks,
            search,
            _page_processor(parts),
            self._work,
            self._finisher,
            self._wait_for_files,
            self.wake,
        )

    # --- for other modules ---------------------------------------------------------------------------------------

    @property
    def in_flight(self) -> int:
        """Entries taken from the frontier whose request is not over."""
        return len(self._work.slots)

    @property
    def pending(self) -> int:
        """URLs of any cell still to be fetched. With a limit of the crawl reached, only those begun or lent count."""
        return self._limits.unfinished if self._limits.reached else self._store.pending

    def is_taken(self, entry: FrontierEntry) -> bool:
        """Return whether the entry is with the crawler: being fetched, or waiting for its links to arrive."""
        return entry.seq in self._work.taken

    def wake(self) -> None:
        """Look again for entries to start, and tell the activity whether there is work at all."""
        # A peer that lacks a proxy or the network, and nothing else, keeps no peer from ending.
        is_idle = not self._forwarder.unacknowledged and not self.pending and not self.pause_reasons - LETTING_END
        self._activity.settle(is_idle)
        self._capacity.wake_all(self._work)

    def finish_unfetched(self, entry: FrontierEntry, why: str) -> None:
        """Journal an entry that is not with the crawler as DONE without a request, for a reason."""
        self._finisher.finish_unfetched(entry, why)

    def ask_robots_again(self, origin: str, before: float) -> None:
        """Fetch the robots.txt of an origin again, if it was fetched or given up before this wall-clock second."""
        self._context.source.robots.forget(origin, before)

    async def drained(self, links_s: float) -> None:
        """Wait until no request is in flight, then at most `links_s` seconds until all pages are finished.

        Call this after adding a reason to `pause_reasons`. An unfinished page stays PENDING, so its links are found
        again.
        """
        work = self._work
        await work.until(lambda: not work.slots)
        try:
            async with asyncio.timeout(links_s):
                await work.until(lambda: not work.started)
        except TimeoutError:
            log.warning("crawl.unfinished pages=%d", work.started)

    # --- the loop ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Start an attempt at each entry as soon as the entry may be fetched, until cancelled."""
        work = self._work
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    work.changed.clear()
                    due: float | None = None
                    waits = 0
                    while self._has_room():
                        entry = self._frontier.next(self._clock.now())
                        if entry is None:
                            due = self._frontier.next_due()
                            break
                        if self._early_waits.waits(entry):
                            waits += 1
                            if waits % WAITS_PER_TURN_MAX == 0:
                                await asyncio.sleep(0)
                            continue
                        attempt = Attempt(self._context, entry)
                        tasks.create_task(attempt.run(), name=f"crawl {entry.url[:80]}")
                    await self._until_changed(due)
        finally:
            if self._files_timer is not None:
                self._files_timer.cancel()

    def _has_room(self) -> bool:
        return not self.pause_reasons and self.hooks.may_start() and self._capacity.has_room and self._limits.may_begin

    async def _until_changed(self, due: float | None) -> None:
        """Wait until something has changed, at most until this second of the clock."""
        changed = self._work.changed
        if due is None:
            await changed.wait()
            return
        # Each page comes here, and a timeout of asyncio takes three times as long as a timer.
        timer = asyncio.get_running_loop().call_later(max(0.0, due - self._clock.now()), changed.set)
        try:
            await changed.wait()
        finally:
            timer.cancel()

    def _wait_for_files(self, why: str) -> None:
        if self._files_timer is None:
            log.warning("crawl.waiting why=%s seconds=%.0f", why, FILES_WAIT_S)
            self.pause_reasons.add(PauseReason.FILES)
            self._files_timer = asyncio.get_running_loop().call_later(FILES_WAIT_S, self._go_on)

    def _go_on(self) -> None:
        self._files_timer = None
        self.pause_reasons.discard(PauseReason.FILES)
        self.wake()


def _page_processor(parts: CrawlDependencies) -> PageProcessor:
    forwarder, rounds = parts.forwarder, parts.rounds
    finder = LinkFinder(
        parts.extractor,
        parts.scope,
        forwarder.not_recently_sent,
        parts.limits,
        parts.page_rules,
        parts.near_duplicates,
        forwarder.newer_lastmod if rounds is not None and rounds.recrawls else None,
    )
    return PageProcessor(
        finder,
        parts.outputs,
        parts.counters,
        rounds,
        parts.page_rules,
        parts.extraction,
        parts.limits,
        parts.poison_pages,
    )
