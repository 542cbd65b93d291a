"""`Loans`: lender and borrower of one peer, put together.

The crawler of borrowed pages shares everything with the peer's own crawler but the frontier and the store. Both
crawlers together have no more requests in flight than one crawler may have.

Tests: tests/lending/test_balance.py, tests/lending/test_lending_peers.py, tests/lending/test_drain_policy.py
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from random import Random

from kadcrawl.crawl.build import CrawlComponents
from kadcrawl.crawl.content.page import Page
from kadcrawl.crawl.dependencies import CrawlHooks
from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.keys import Cell, Key
from kadcrawl.lending.borrowed_store import BorrowedStore
from kadcrawl.lending.borrower import Borrower
from kadcrawl.lending.lender import Lender
from kadcrawl.lending.loan_marker import LoanMarker
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import Contact, Lend
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.replication.cells import Cells
from kadcrawl.settings.limits import Limits
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.store import Store
from kadcrawl.store.visit import Visit
from kadcrawl.system.clock import Clock

LOANS_POLL_S = 0.1
COPIES_WAIT_S = 5.0
"""A loan waits this long until the backups have its URLs. All but those found in the last second are there already."""


class AsideActivity(Activity):
    """The activity of a crawler of borrowed pages: its work counts as this peer's activity, its idleness does not."""

    def __init__(self, activity: Activity) -> None:
        super().__init__()
        self._activity = activity

    def move(self) -> None:
        """Count a change as a change of this peer."""
        self._activity.move()

    def settle(self, idle: bool) -> None:
        """Ignore idleness: borrowed pages are pending at their owner, and only the owner knows when they are done."""


class Loans:
    """The loans of one peer in both directions."""

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
    ) -> None:
        """`may_lend` returns whether a peer owns a site, as far as this peer knows."""
        self._store = store
        self._cells = cells
        self._page_feed = components.page_feed
        self._frontier = components.frontier
        self._steering = components.site_settings.steering
        self._forwarder = components.forwarder
        self._clock = clock
        self._active = components.job.lends_by != "off"
        self.lender = Lender(
            me=me,
            client=client,
            store=store,
            frontier=components.frontier,
            records=cells.records,
            rounds=components.rounds,
            budget=components.crawl_limits.pages,
            activity=activity,
            now=clock.now,
            random=random,
            wake=components.crawler.wake,
            is_away=cells.is_stalled,
            sure=cells.sure,
            spawn=cells.tasks.spawn,
            are_copied=self._are_copied,
        )
        self.marker = LoanMarker(store, lambda: bool(self.lender.loans()), clock.loop_now)
        """Says in the journal whether pages of this peer are on loan."""
        cells.events.cell_closed.append(self.lender.recall)
        self.lender.page_reported.append(cells.replicator.known_to)
        borrowed = BorrowedStore(self._journal)
        frontier = Frontier(
            borrowed,
            limits,
            components.site_settings,
            connections=borrowed.connections,
            unproven_quota=components.unproven_quota,
        )
        hooks = CrawlHooks(
            may_start=self._may_start,
            prepare=lambda cell: self.borrower.renew_lease(cell),
            may_ask=lambda cell: self.borrower.holds_lease(cell),
            on_send=lambda cell: self.borrower.note_sent(cell),
            on_refused=lambda site: self.borrower.give_back(site),
            on_unreached=lambda site: self.borrower.give_back(site),
        )
        self._borrowed_frontier = frontier
        crawler = components.crawler_over(borrowed, frontier, AsideActivity(activity), hooks)
        self.borrower = Borrower(
            me=me,
            client=client,
            store=store,
            borrowed=borrowed,
            frontier=frontier,
            crawler=crawler,
            partitioner=components.partitioner,
            forget=self._forget,
            announce=self._announce,
            may_lend=may_lend,
            now=clock.now,
        )

    def accept(self, lend: Lend, wants: Callable[[int], bool]) -> bool:
        """Take up an offered loan, and return whether this peer has it. Its URLs are at all holders of their cell."""
        accepted = self.borrower.accept(lend, wants)
        if accepted:
            for record in lend.pending:
                self._forwarder.note_safe(record.url, record.depth)
        return accepted

    async def _are_copied(self, cell: Cell, keys: Collection[Key]) -> bool:
        # The borrower has no work.
        whole = self._cells.sync.whole({cell: keys}, COPIES_WAIT_S, hurries=True)
        copied, _ = await asyncio.gather(whole, self.marker.noted())
        return cell in copied

    async def run(self) -> None:
        """Watch over the loans until cancelled. In a job without balance only leaves borrow, so this peer does not."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.lender.run(), name="lend")
            if self._active:
                group.create_task(self.borrower.run(), name="borrow")
                group.create_task(self.borrower.crawler.run(), name="crawl borrowed")

    def show_pages(self, on_page: Callable[[Page], Awaitable[None]] | None) -> None:
        """Await `on_page` with each page fetched here, own or borrowed, from now on. None ends that."""
        self._page_feed.show(on_page)

    def steer(self) -> None:
        """Follow other orders of a person: borrow and lend no pages of sites that are paused or excluded.

        Lent pages of a site come back if its URLs were dropped, or if its delay may be shorter now.
        """
        self._borrowed_frontier.steer(self._clock.now())
        self.borrower.crawler.wake()
        for loan in self.lender.loans():
            site, stamp = loan.site, self._steering.drop_order(loan.site)
            is_dropped = any(entry.drop_order < stamp for entry in loan.entries.values())
            is_left_out = self._steering.is_paused(site) or self._steering.is_excluded(site) or is_dropped
            if is_left_out or self._frontier.must_learn(site):
                self.lender.recall_site(site)

    def recall_all(self) -> None:
        """Recall all lent pages, and begin to return all borrowed pages."""
        self.lender.recall_all()
        self.borrower.close_all()

    async def end(self, links_s: float, seconds: float) -> None:
        """Wait until no borrowed page is in flight, and then until all loans are over, at most `seconds`.

        Call this after `recall_all`, when the peer starts no more pages. The leases end the loans that remain.
        `links_s` is how long fetched pages may wait for their links.
        """
        await self.borrower.crawler.drained(links_s)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.lender.urls or self.borrower.loans:  # noqa: ASYNC110 -- changes in many places
                    await asyncio.sleep(LOANS_POLL_S)

    def _may_start(self) -> bool:
        self.borrower.expire()
        return True

    def _journal(
        self, entry: FrontierEntry, line: bytes, records: bytes, visit: Visit | None, rounds: int, *, reported: bool
    ) -> bool:
        """Write a page fetched for a lender, as a `PageJournaler`."""
        # This peer may have replaced a crashed lender as the owner, and then has the page in its own frontier as well.
        own = self._store.entry(entry.key)
        fresh = self._cells.journal_borrowed(entry, line, records, visit, rounds, reported=reported)
        if own is not None:
            self._frontier.remove(own, self._clock.now())
        if reported:
            self.borrower.report_soon()
        return fresh

    def _announce(self, key: Key) -> None:
        """Have the owner of a page told that it is done, as its lender is gone."""
        entry = self._store.entry(key)
        if self._store.keeps_keys or not self._store.learn_done(key):
            self._store.announce(key)
        elif entry is not None:
            self._frontier.remove(entry, self._clock.now())

    def _forget(self, keys: Iterable[Key]) -> None:
        """Forget pages that their owner knows to be done, unless this peer holds a copy of their cell."""
        if not self._store.keeps_keys:
            return  # Then this peer has their fingerprints only if it holds their cells.
        holdings = self._cells.holdings
        for key in keys:
            cell = self._store.cell_of(key)
            if cell not in holdings.owned and cell not in holdings.backed:
                self._store.forget(key)
