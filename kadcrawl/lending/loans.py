"""Load balance of one peer put together: what it lends to others and what it borrows of them.

The crawler of what is borrowed shares everything with the peer's own but its frontier and its store; both together have
no more requests under way than one may.

Tests: tests/lending/test_lending_peers.py
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from random import Random
from typing import Any

from kadcrawl.crawl.build import CrawlComponents
from kadcrawl.crawl.content.page import Page
from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.keys import Key
from kadcrawl.lending.borrowed_store import BorrowedStore
from kadcrawl.lending.borrower import Borrower
from kadcrawl.lending.lender import Lender
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import Contact
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.replication.cells import Cells
from kadcrawl.settings.config import Limits
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.store import Store
from kadcrawl.system.clock import Clock

LOANS_POLL_S = 0.1


class AsideActivity(Activity):
    """What a crawler of borrowed pages does counts as this peer's activity; that it is idle says nothing about it."""

    def __init__(self, activity: Activity) -> None:
        super().__init__()
        self._activity = activity

    def move(self) -> None:
        self._activity.move()

    def settle(self, idle: bool) -> None:
        """The pages are pending at their owner, who knows."""


class Loans:
    """The loans of one peer, in both directions."""

    def __init__(
        self,
        *,
        components: CrawlComponents,
        cells: Cells,
        store: Store,
        client: LinkClient,
        me: Callable[[], Contact],
        activity: Activity,
        clock: Clock,
        random: Random,
        limits: Limits,
        may_lend: Callable[[Contact, str], bool],
        wants: Callable[[int], bool],
        spawn: Callable[[Coroutine[Any, Any, None], str], object],
    ) -> None:
        """`may_lend` says whether a peer owns a site, as far as we know.

        `wants` says whether this peer is light enough to fetch so many URLs more; `spawn` starts a task."""
        self._store = store
        self._cells = cells
        self._own = components.crawler
        self._frontier = components.frontier
        self._clock = clock
        self._active = components.job.lends_by != "off"
        self.lender = Lender(
            me=me,
            client=client,
            store=store,
            frontier=components.frontier,
            records=cells.records,
            activity=activity,
            now=clock.now,
            random=random,
            wake=components.crawler.wake,
            spawn=spawn,
        )
        cells.crawl.on_closed.append(self.lender.recall)
        borrowed = BorrowedStore(self._journal)
        frontier = Frontier(borrowed, limits, components.job.delay_s)
        frontier.connections = borrowed.connections
        crawler = components.crawler_over(borrowed, frontier, AsideActivity(activity), self._may_start, limits)
        crawler.pause_reasons = components.crawler.pause_reasons
        if self._active:
            crawler.companion, components.crawler.companion = components.crawler, crawler
            frontier.companion, components.frontier.companion = components.frontier, frontier
        self.borrower = Borrower(
            me=me,
            client=client,
            store=store,
            borrowed=borrowed,
            frontier=frontier,
            crawler=crawler,
            partitioner=components.partitioner,
            forget=self._forget,
            may_lend=may_lend,
            wants=wants,
            now=clock.now,
        )

    async def run(self) -> None:
        """Watch over the loans in both directions, until cancelled. Only leaves borrow if the job has no balance."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.lender.run(), name="lend")
            if self._active:
                group.create_task(self.borrower.run(), name="borrow")
                group.create_task(self.borrower.crawler.run(), name="crawl borrowed")

    def show_pages(self, on_page: Callable[[Page], Awaitable[None]] | None) -> None:
        """Have `on_page` awaited with each page fetched here, for ourselves or others; nothing any more, for None."""
        self._own.on_page = self.borrower.crawler.on_page = on_page

    def recall_all(self) -> None:
        """Call back what is lent, and begin to give back what is borrowed."""
        self.lender.recall_all()
        self.borrower.close_all()

    async def end(self, links_s: float, seconds: float) -> None:
        """Wait until no borrowed page is under way, and then, `seconds` at most, until all loans are over.

        Call after `call_back`, and when nothing is started any more. What is not back by then is given up by itself.
        `links_s` is how long pages that were fetched may wait for their links.
        """
        await self.borrower.crawler.drained(links_s)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.lender.urls or self.borrower.loans:  # noqa: ASYNC110 -- changes in many places
                    await asyncio.sleep(LOANS_POLL_S)

    def _may_start(self) -> bool:
        self.borrower.expire()
        return True

    def _journal(self, entry: FrontierEntry, line: bytes, records: bytes, *, reported: bool) -> bool:
        """Write a page fetched for another peer; if a report will tell it, nobody else need be told."""
        merging, self._cells.records.merging = self._cells.records.merging, reported
        # The giver may be gone and this peer its heir, who has the page before it as well.
        own = self._store.entry(entry.key)
        try:
            fresh = self._store.finish(entry, line, records)
        finally:
            self._cells.records.merging = merging
        if own is not None:
            self._frontier.remove(own, self._clock.now())
        if reported:
            self.borrower.report_soon()
        return fresh

    def _forget(self, keys: Iterable[Key]) -> None:
        """Their owner knows of these; only if this peer is one of the holders it keeps them."""
        holdings = self._cells.holdings
        for key in keys:
            cell = self._store.cell_of(key)
            if cell not in holdings.owned and cell not in holdings.backed:
                self._store.forget(key)
