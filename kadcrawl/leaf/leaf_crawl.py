"""`LeafCrawl`: the crawl of a leaf, built of the crawl parts of a full peer, over lent pages only.

A leaf owns no cell. So the frontier over its store stays closed, and no URL enters by its intake. One crawler works on
the loans, which are in memory only. The leaf journals the page line of a fetched page, and that the page is DONE, until
the lender knows so. If the lender is gone and another peer lends the page again, the page is reported and not fetched
again.

Tests: tests/leaf/test_leaf.py
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from kadcrawl.crawl.build import PeerCallbacks, PeerResources, build
from kadcrawl.crawl.content.record_extractor import Extraction
from kadcrawl.crawl.crawler import Crawler
from kadcrawl.crawl.dependencies import CrawlHooks
from kadcrawl.crawl.disk_guard import guard
from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.output.warc_indexer import WarcIndexer
from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.crawl.scope.journaled_reach import JournaledReach
from kadcrawl.crawl.scope.partitioner import UrlLocation
from kadcrawl.crawl.time_count import count_time
from kadcrawl.errors import StartError
from kadcrawl.keys import Key
from kadcrawl.leaf.fetched_pages import FetchedPages
from kadcrawl.leaf.late_reports import LateReports
from kadcrawl.leaf.leaf_owners import LeafOwners
from kadcrawl.leaf.leaf_settings import ChangedSettings
from kadcrawl.lending.borrowed_store import BorrowedStore
from kadcrawl.lending.borrower import Borrower
from kadcrawl.link.wire.messages import Contact, Lend, Link
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.peer.resources import Resources
from kadcrawl.peer.shutdown import DRAIN_LINKS_S, LOANS_S
from kadcrawl.peer.swarm.swarm_state import fingerprint_of_seeds, nameable
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_limits import limits_with
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.store import DONE, PENDING
from kadcrawl.store.visit import Visit
from kadcrawl.urls import is_canonical

LEAF_URLS_MAX = 500
"""URLs on loan at most, by default (see `Config.work_area`). The leaf asks for more once half of them are done."""
LEAF_POLL_S = 0.1


class LeafCrawl:
    """The crawl of one leaf."""

    def __init__(
        self,
        *,
        me: Contact,
        job: Job,
        resources: Resources,
        extraction: Extraction | None,
        home: Callable[[], Contact],
    ) -> None:
        """`home` returns the full peer that last answered.

        Raises StartError if the directory holds a full peer's crawl, or cannot take the outputs.
        """
        config, store, client, clock = resources.config, resources.store, resources.client, resources.clock
        self.job = job
        self._config = config
        self._environment = resources.environment
        self._store = store
        self._clock = clock
        self._named_fingerprint = fingerprint_of_seeds(job.seeds)
        try:
            self.components = build(
                job,
                PeerResources(
                    config=config,
                    store=store,
                    owners=LeafOwners(me, job.bits, home),
                    client=client,
                    activity=Activity(),
                    counters=resources.counters,
                    clock=clock,
                    started_at=resources.started_at,
                    random=resources.random,
                    resolver=resources.environment.resolver,
                    extraction=extraction,
                    traces=resources.traces,
                    poison_pages=resources.poison_pages,
                ),
                PeerCallbacks(
                    own_pages=CrawlHooks(may_start=lambda: False),
                    accept_here=_accept_nothing,
                    seeds_fingerprint=self._seeds_fingerprint,
                ),
            )
        except OSError as error:
            raise StartError(f"cannot write the outputs in {config.data}: {error}") from None
        if store.pending:
            self.components.outputs.close()
            raise StartError(
                f"{config.data} holds {store.pending} URLs that a full peer has still to crawl; "
                "join without --leaf, or choose another directory with --data"
            )
        self.reach = JournaledReach(self.components.scope, store.reach)
        self._borrowed = borrowed = BorrowedStore(self._journal)
        limits = limits_with(config.limits, job.shared_limits)
        frontier = Frontier(borrowed, limits, self.components.site_settings, connections=borrowed.connections)
        hooks = CrawlHooks(
            may_start=self._may_start,
            prepare=lambda cell: self.borrower.renew_lease(cell),
            may_ask=lambda cell: self.borrower.holds_lease(cell),
            on_send=lambda cell: self.borrower.note_sent(cell),
            # Pages of a lender that is gone are fetched again: the next owner would not trust a leaf.
            no_backup_reachable=lambda cell: self.borrower.is_silent(cell),
            on_refused=lambda site: self.borrower.give_back(site),
            on_unreached=lambda site: self.borrower.give_back(site),
        )
        self.crawler: Crawler = self.components.crawler_over(borrowed, frontier, resources.activity, hooks)
        self.borrower = Borrower(
            me=lambda: me,
            client=client,
            store=store,
            borrowed=borrowed,
            frontier=frontier,
            crawler=self.crawler,
            partitioner=self.components.partitioner,
            forget=self._forget,
            announce=lambda key: None,  # No owner would trust a leaf: the page is reported if it is lent here again.
            may_lend=lambda lender, site: True,  # Loans come only in answers of peers that the leaf asked.
            now=clock.now,
        )
        self.settings = ChangedSettings(job, self.components, frontier, self.crawler, clock.now)
        self.fetched = FetchedPages()
        """The pages that no lender knows to be done, in a job that keeps fingerprints."""
        self._late = LateReports(me, client, store, self._forget)

    async def run(self) -> None:
        """Fetch lent pages and report them, until cancelled."""
        reserve, free = self._config.limits.disk_reserve_bytes, self._environment.free_bytes
        tasks: list[tuple[Coroutine[Any, Any, None], str]] = [
            (guard(self.crawler, self._config.data, reserve, free), "disk"),
            (WarcIndexer(self.components.outputs).run(), "index"),
            (self.crawler.run(), "crawl"),
            (self.components.forwarder.run(), "forward"),
            (self.borrower.run(), "borrow"),
            (self._late.run(), "late pages"),
        ]
        if self.components.clocks is not None:
            tasks.append((self.components.clocks.run(), "clocks"))
        if self.components.proxy_checks is not None:
            tasks.append((self.components.proxy_checks.run(self.crawler), "proxies"))
        if self.job.max_time_s is not None:
            tasks.append((self._count_time(), "time"))
        await self.components.fetcher.start()
        async with asyncio.TaskGroup() as group:
            for work, name in tasks:
                group.create_task(work, name=name)

    def _seeds_fingerprint(self) -> int:
        reach, scope = self.components.scope.reach.digest, self.settings.scope_fingerprint
        return (self._named_fingerprint ^ reach ^ scope) or 1

    def room(self) -> int:
        """Return how many URLs more the leaf wants: none while a page is due and has to wait for the leaf."""
        due = self.borrower.next_due()
        if self.crawler.pause_reasons or (due is not None and due <= self._clock.now()):
            return 0
        most, urls = self._config.work_area or LEAF_URLS_MAX, self.borrower.urls
        return most - urls if urls <= most // 2 else 0

    def accept(self, lend: Lend) -> bool:
        """Take up a loan, and return whether the leaf has it.

        Pages that the leaf fetched earlier for a lender that is gone are not fetched again.
        """
        if not self.borrower.accept(lend, lambda urls: not self.crawler.pause_reasons):
            return False
        loan = self._borrowed.loans[lend.loan]
        self._late.note_lent(loan.entries, lend)
        for key in [*loan.entries]:
            if not self._store.keeps_keys:
                if (failed := self.fetched.get(key)) is not None:
                    self._borrowed.skip(loan, key, failed)
            elif (self._store.state(key) or 0) >= DONE + 2 * loan.rounds.get(key, 0):
                visit = self._store.visits.get(key)
                self._borrowed.skip(loan, key, visit.failed if visit is not None else "")
        return True

    def add_seeds(self, urls: Iterable[str]) -> bool:
        """Widen the scope and the job by the new canonical URLs among these seeds, and return if there were any."""
        known = {*self.job.seeds}
        fresh = [url for url in dict.fromkeys(urls) if url not in known and is_canonical(url)]
        if not fresh:
            return False
        named = nameable(self.job, fresh)
        self.job = replace(self.job, seeds=(*self.job.seeds, *named))
        self._named_fingerprint = fingerprint_of_seeds(self.job.seeds)
        self.components.scope.add_seeds(named)
        self.reach.add(self.components.scope.segments_of(fresh))
        return True

    def hear_time(self, crawl_ms: int) -> None:
        """Take the time for which the swarm has crawled from a full peer, if it is longer than the time known here."""
        self.components.crawl_limits.time.learn(crawl_ms / 1000, self._clock.now())

    def set_pause_reason(self, reason: PauseReason, is_paused: bool) -> None:
        """Set or clear one reason for which the crawler starts no pages."""
        if is_paused != (reason in self.crawler.pause_reasons):
            (self.crawler.pause_reasons.add if is_paused else self.crawler.pause_reasons.discard)(reason)
            self.crawler.wake()

    async def give_back(self) -> None:
        """Start no more pages, wait until pages in flight are finished, and return the rest of the loans."""
        self.set_pause_reason(PauseReason.STOPPING, True)
        self.components.forwarder.hurry()
        self.borrower.close_all()
        await self.crawler.drained(DRAIN_LINKS_S)
        with suppress(TimeoutError):
            async with asyncio.timeout(LOANS_S):
                while self.borrower.loans:  # noqa: ASYNC110 -- changes in many places
                    await asyncio.sleep(LEAF_POLL_S)

    # --- inside --------------------------------------------------------------------------------------------------

    async def _count_time(self) -> None:
        await count_time(
            self.components.crawl_limits,
            self.crawler,
            self._store.meta,
            self._clock.now,
            is_crawling=lambda: self.borrower.urls > 0,
        )

    def _may_start(self) -> bool:
        self.borrower.expire()
        return True

    def _journal(
        self, entry: FrontierEntry, line: bytes, records: bytes, visit: Visit | None, rounds: int, *, reported: bool
    ) -> bool:
        """Write a page. If its loan is over, a late report tells the lender."""
        if self._store.keeps_keys:
            if (self._store.state(entry.key) or PENDING) < DONE + 2 * rounds:
                self._store.forget(entry.key)  # A lender that is gone never knew of the visit in an earlier round.
            fresh = self._store.finish(entry, line, records, visit, rounds)
        else:
            fresh = self._store.finish_for_owner(entry.key, line, records)
            fresh = self.fetched.note(entry.key, visit.failed if visit is not None else "") and fresh
        if reported:
            self.borrower.report_soon()
        else:
            self._late.note_finished(entry.key, visit.failed if visit is not None else "")
        return fresh

    def _forget(self, keys: Iterable[Key]) -> None:
        """Forget pages that their lender knows to be done."""
        for key in keys:
            self._late.forget(key)
            self.fetched.forget(key)
            if self._store.keeps_keys:
                self._store.forget(key)


async def _accept_nothing(links: Sequence[tuple[Link, UrlLocation]]) -> list[int]:
    """Refuse all links, as a leaf owns no cells."""
    return list(range(len(links)))
