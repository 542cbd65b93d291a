"""`Lender`: the lender's side of load balance, for pages of this peer that other peers fetch (loan_messages.py).

A lent page stays PENDING here, as if the crawler had it: the frontier counts it as `out`. The connections lent to its
site are used for nothing else. A loan ends when all its pages are done or returned. It also ends when the borrower has
been silent for so long that it has surely stopped (balance/leases.py). A cell that closes recalls its loans and is busy
until they have ended, so a range never moves while another peer may still ask its sites.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Sequence
from contextlib import suppress
from random import Random
from typing import Any

from msgspec.structs import replace

from kadcrawl.balance.leases import RENEW_S
from kadcrawl.balance.loan_backoff import LoanBackoff
from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.page_budget import Budget, write_units
from kadcrawl.crawl.recrawl.rounds import Rounds, VisitStart
from kadcrawl.errors import RemoteError
from kadcrawl.keys import Cell, Key
from kadcrawl.lending.loan import CONNECTION_WAIT_S, RETURNED_WAIT_MAX_S, LatePages, Loan, allow_silence, await_reports
from kadcrawl.lending.paid_loans import PaidLoans
from kadcrawl.lending.visit_facts import reported_visits, visit_of
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.leaf_messages import is_leaf
from kadcrawl.link.wire.messages import (
    BATCH_MAX,
    CONNECTIONS_MAX,
    LOANS_MAX,
    ActiveLoan,
    BacklogRecord,
    Contact,
    LeaseRenewed,
    Lend,
    Lent,
    LoanReport,
    Recall,
    Recalled,
    RenewLease,
)
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.replication.peer_tasks import NotRunningError
from kadcrawl.replication.record_codec import WAIT_MAX_S, Records
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.store import Store
from kadcrawl.system.event import Event

LOAN_DEADLINE_S = 5.0
LOAN_BYTES = 8
CONNECTION_POLL_S = 0.05
ASKED_LEAST_S = 0.001
"""Seconds of a site's Retry-After that are left when the borrower's report arrives, at least."""
LOST_SITES_MAX = 1_000
"""Sites of lost loans that are remembered."""

log = logging.getLogger(__name__)


class Lender:
    """All loans of one lender."""

    def __init__(
        self,
        *,
        me: Callable[[], Contact],
        client: LinkClient,
        store: Store,
        frontier: Frontier,
        records: Records,
        rounds: Rounds | None,
        budget: Budget,
        activity: Activity,
        now: Callable[[], float],
        random: Random,
        wake: Callable[[], None],
        is_away: Callable[[], bool],
        sure: Callable[[], Awaitable[None]],
        spawn: Callable[[Coroutine[Any, Any, None], str], object],
        are_copied: Callable[[Cell, Collection[Key]], Awaitable[bool]],
    ) -> None:
        """Take the parts of the peer.

        Args:
            rounds: decides about the next visits to pages, or is None in a job that keeps fingerprints.
            budget: pays for the pages that are lent.
            now: gives wall-clock seconds.
            wake: wakes the crawler after entries have come back or are done.
            is_away: returns whether this peer was away, and does not know yet whether its cells are its own.
            sure: waits while `is_away`.
            spawn: starts a task that ends with the peer. Raises NotRunningError once the peer has ended.
            are_copied: waits until all backups of a cell have these keys, and returns whether they have.
        """
        self._me = me
        self._client = client
        self._store = store
        self._frontier = frontier
        self._records = records
        self._rounds = rounds
        self._budget = budget
        self._activity = activity
        self._now = now
        self._random = random
        self._wake = wake
        self._is_away = is_away
        self._sure = sure
        self._spawn = spawn
        self._are_copied = are_copied
        self._loans: dict[bytes, Loan] = {}
        """Loans by ID."""
        self._has_loans = Event()
        """Set while loans must be watched."""
        self._late = LatePages()
        self.lost: Counter[str] = Counter()
        """Site -> loans taken back because the borrower was silent."""
        self._loan_backoff = LoanBackoff()
        """The sites (by name) and borrowers (by ID) of loans that failed."""
        self.page_reported: list[Callable[[Contact, Key], None]] = []
        """Listeners to each lent page that is done here and on the disk of its borrower."""
        store.events.depth_shortened.append(self._shorten)
        self.done = 0
        """Lent URLs that borrowers have fetched so far."""

    def sites(self) -> list[tuple[str, bytes]]:
        """Return (site, ID of the borrower) of each loan."""
        return [(loan.site, loan.borrower.id) for loan in self._loans.values()]

    def loans(self) -> list[Loan]:
        """Return all loans that are not over."""
        return list(self._loans.values())

    @property
    def urls(self) -> int:
        """URLs on loan at this moment."""
        return sum(len(loan.entries) for loan in self._loans.values())

    def sites_with_spare_connections(
        self, among: Iterable[str] | None = None, *, to_leaf: bool = False
    ) -> list[tuple[str, int]]:
        """Return (site, entries ready in memory) of each site, `among` these, that can be lent to another peer now.

        Sites that wait for their turns on shared clocks are lent to leaves alone, which own no URLs to wait with.
        """
        now, frontier = self._now(), self._frontier
        paid = PaidLoans(self._budget, frontier, self._loans.values(), now)
        sites = frontier.sites_with_spare_connections(now, among, parked=to_leaf) if self._budget.may_begin else []
        return [it for it in sites if not self._loan_backoff.is_barred(it[0], now) and paid.room(it[0])]

    def may_lend_to(self, borrower: Contact) -> bool:
        """Return whether a peer may have a loan: not for a while after its last loan failed."""
        return not self._loan_backoff.is_barred(borrower.id, self._now())

    # --- offers --------------------------------------------------------------------------------------------------

    async def lend(self, borrower: Contact, site: str, count: int, backlog: BacklogRecord | None = None) -> int | None:
        """Offer a peer up to `count` ready URLs of a site with spare connections, and return how many it took.

        The offer tells the `backlog` of this peer, these URLs included. Return None if there was no offer because this
        peer's own requests did not leave the connections in time.
        """
        for message in await self.offers(borrower, [(site, count)]):
            loan, message = self._loans[message.loan], replace(message, backlog=backlog)
            try:
                taken = (await self._client.ask(borrower, message, Lent, LOAN_DEADLINE_S)).accepted
            except RemoteError as error:
                log.info("loan.failed to=%s why=%s", borrower, error.why)
                taken = loan.begun  # Without a report, the borrower hears before it begins that it has no loan.
            if taken:
                log.debug("loan.given to=%s site=%s urls=%d", borrower, site, len(message.pending))
                return len(message.pending)
            if loan.id in self._loans:
                self._end(loan)
            return 0
        return None

    async def offers(self, borrower: Contact, allotment: Iterable[tuple[str, int]]) -> list[Lend]:
        """Begin a loan for each (site, URLs) of `allotment`, and return their messages.

        A site is missing from the result if this peer's own requests do not leave its connections in time. A peer that
        was away offers nothing before it knows that its cells are its own.
        """
        if self._is_away():
            return []
        paid = PaidLoans(self._budget, self._frontier, self._loans.values(), self._now())
        loans = [loan for one in allotment if (loan := self._reserve(borrower, paid, *one)) is not None]
        if self._budget.limit is not None:  # After a crash this peer must not spend the same units again.
            write_units(self._store.meta, self._budget)
            await self._store.journal.durable()
        # The borrower offers no links to these URLs, so all holders must have them before.
        copied = await asyncio.gather(*(self._are_copied(loan.cell, list(loan.entries)) for loan in loans))
        free = await asyncio.gather(*(self._connections_free(loan) for loan in loans))
        messages = []
        for loan, *ready in zip(loans, copied, free, strict=True):
            if self._is_away():
                self._end(loan)
                continue
            if not all(ready):
                # Other sites come first: without a bar a hanging site would be tried again and again.
                now = self._now()
                self._loan_backoff.note_failure(loan.site, now, now)
                self._end(loan)
                continue
            loan.renew(asyncio.get_running_loop().time())
            batch = self._records.lending(list(loan.entries.values()))
            most = min(loan.connections, CONNECTIONS_MAX)
            visits = reported_visits(self._store, loan.entries)
            messages.append(Lend(self._me(), loan.id, batch.sites[0], most, batch.pending, batch.robots, visits=visits))
        return messages

    def _reserve(self, borrower: Contact, paid: PaidLoans, site: str, count: int) -> Loan | None:
        """Take the entries to lend out of the frontier. Return None if the budget of pages has no unit left."""
        now, count = self._now(), int(min(count, BATCH_MAX, paid.room(site)))
        if not count:
            return None
        entries, connections = self._frontier.lend(site, count, now)
        self._budget.lend(len(entries))
        loan_id = self._random.getrandbits(8 * LOAN_BYTES).to_bytes(LOAN_BYTES, "big")
        cell = self._store.cell_of(entries[0].key)
        by_key, order = {entry.key: entry for entry in entries}, self._store.visits.last_order
        self._has_loans.set()
        self._loans[loan_id] = loan = Loan(loan_id, borrower, site, cell, by_key, connections, now, order)
        paid.add(loan)
        return loan

    async def _connections_free(self, loan: Loan) -> bool:
        """Wait until this peer's own requests leave the loan's connections, and return whether the loan may begin."""
        give_up_at = asyncio.get_running_loop().time() + CONNECTION_WAIT_S
        while self._frontier.connections_overcommitted(loan.site) and asyncio.get_running_loop().time() < give_up_at:  # noqa: ASYNC110
            await asyncio.sleep(CONNECTION_POLL_S)
        return not self._frontier.connections_overcommitted(loan.site) and loan.recalled_at is None

    # --- reports -------------------------------------------------------------------------------------------------

    async def renew_lease(self, message: RenewLease) -> LeaseRenewed:
        """Take in the reports of a borrower, and answer which of its loans go on."""
        await self._sure()
        standing: list[Loan] = []
        for report in message.loans:
            loan = self._loans.get(report.loan)
            if loan is None or loan.borrower.id != message.borrower.id:
                self._take_in_late(report, message.borrower)
            elif self._goes_on(loan, report):
                standing.append(loan)
        await self._store.journal.durable()
        standing = [loan for loan in standing if loan.id in self._loans]  # Others were taken back during the commit.
        silence_s = allow_silence(standing, self._now(), asyncio.get_running_loop().time())
        return LeaseRenewed([self._standing(loan) for loan in standing], silence_s)

    def _goes_on(self, loan: Loan, report: LoanReport) -> bool:
        """Take in a report on a loan, and return whether the borrower may go on. A loan that is over ends."""
        loop_s = asyncio.get_running_loop().time()
        loan.note_report(report.clock, self._delay_s(loan), self._now(), loop_s)
        self._take_in(loan, report)
        self._heed_refusal(loan, report)
        over = report.over or not loan.entries
        # The borrower's clock counts here only at the end: told back to it meanwhile, both clocks would creep on.
        wait_s = report.clock.wait_s if over else 0.0
        self._frontier.learn_clock(loan.site, wait_s, report.clock.delay_s, self._now())
        if over:
            failed = loan.recalled_at is None or loan.is_stuck or is_leaf(loan.borrower)
            if failed and not loan.made_progress and not loan.is_refused:
                self._note_failure(loan)
            self._end(loan)
            return False
        if loan.makes_no_progress(self._delay_s(loan), self._now()):
            loan.recall(loop_s, is_stuck=True)
            return False
        return loan.recalled_at is None and self._frontier.is_open(loan.cell) and self._is_first(loan)

    def _heed_refusal(self, loan: Loan, report: LoanReport) -> None:
        """Leave a site alone that refused a request of the borrower, and recall all loans of the site.

        A loan counts as one refusal at most, as a borrower may lie. The next request is this peer's own.
        """
        told = report.clock.back_off
        if told is None or not told.refusals or loan.is_refused:
            return
        now = self._now()
        loan.note_refusal(asyncio.get_running_loop().time())
        is_asked = told.last_s == self._frontier.back_off(loan.site).wait_s  # By Retry-After, else it had grown.
        asked_s = min(max(told.left_s, ASKED_LEAST_S), RETURNED_WAIT_MAX_S) if is_asked else 0.0
        self._frontier.refuse(loan.site, told.status, asked_s, now)
        log.info("loan.refused site=%s by=%s status=%d", loan.site, loan.borrower, told.status)
        self.recall_site(loan.site)

    def _take_in(self, loan: Loan, report: LoanReport) -> None:
        now = self._now()
        for key in map(Key, report.done):
            if (entry := loan.finish(key, now)) is not None:
                self.done += 1
                self._budget.finish_lent(key)
                self._loan_backoff.note_success(loan.site)
                self._loan_backoff.note_success(loan.borrower.id)
                self._finish(entry, report, loan.order)
                for listener in self.page_reported:
                    listener(loan.borrower, entry.key)
                self._frontier.finish(entry, now)
                self._activity.move()
        for returned in report.returned:
            entry = loan.give_back(Key(returned.key), now)
            if entry is not None:
                self._late.note(loan, entry.key)
                self._budget.return_lent(entry.key, unfinished=returned.unfinished)
                due = now + min(returned.wait_s, RETURNED_WAIT_MAX_S) if returned.wait_s else 0.0
                self._put_back(entry, returned.tries, due)

    def _take_in_late(self, report: LoanReport, borrower: Contact) -> None:
        """Take in finished pages of a loan that this peer no longer has.

        The loan is over, or from an earlier run of this peer. This peer remembers no loans of an earlier run. Then it
        trusts full peers as ever, but no leaf.
        """
        for returned in report.returned:
            if self._late.is_from(report.loan, Key(returned.key), borrower.id):
                self._budget.return_lost(Key(returned.key))
        for key in map(Key, report.done):
            entry = self._store.entry(key)
            known = self._late.is_from(report.loan, key, borrower.id)
            if known or (entry is not None and not is_leaf(borrower)):
                if known:
                    self._late.forget(report.loan, key)
                    self._budget.finish_late(key)
                if entry is None:
                    self._store.learn_done(key)
                elif self._finish(entry, report, 0):
                    self._frontier.remove(entry, self._now())
                self._activity.move()
                self._wake()

    def _finish(self, entry: FrontierEntry, report: LoanReport, order: int) -> bool:
        """Journal a page that a borrower has finished, and return False if it was known to be done.

        `order` is the stamp of the latest order to retry known when the page was lent.
        """
        visit = None
        if self._rounds is not None:
            start = VisitStart(self._store.rounds(entry.key), self._store.last_visit(entry.key), order)
            facts = report.visits.get(entry.key)
            told = None if facts is None else visit_of(facts, entry)
            visit = self._rounds.reported(entry, start, told, report.failed.get(entry.key))
        is_first = self._store.finish_elsewhere(entry.key, visit)
        if self._rounds is not None:
            self._rounds.finished(entry)
        return is_first

    def _is_first(self, loan: Loan) -> bool:
        """Return whether a loan may go on beside others of its site: only one may once the site has a delay."""
        return self._delay_s(loan) == 0 or loan is next(
            other for other in self._loans.values() if other.site == loan.site
        )

    def _standing(self, loan: Loan) -> ActiveLoan:
        wait_s, delay_s = self._frontier.clock(loan.site, self._now())
        depths = {bytes(key): depth for key, depth in loan.shorter.items()}
        return ActiveLoan(loan.id, min(wait_s, WAIT_MAX_S), min(delay_s, WAIT_MAX_S), depths)

    def _shorten(self, key: Key, depth: int) -> None:
        """Tell the borrower of a lent page about a shorter path to it, with the next answer."""
        for loan in self._loans.values():
            loan.shorten(key, depth)

    # --- ends ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Take back the loans of silent borrowers, until cancelled."""
        while True:
            if not self._loans:
                self._has_loans.clear()
            await self._has_loans.wait()
            looked_at = asyncio.get_running_loop().time()
            await asyncio.sleep(RENEW_S / 2)
            now = asyncio.get_running_loop().time()
            if self._is_away() or now > looked_at + RENEW_S:
                await_reports(self._loans.values(), now)
            for loan in [loan for loan in self._loans.values() if loan.until <= now]:
                log.info("loan.lost to=%s site=%s urls=%d", loan.borrower, loan.site, len(loan.entries))
                # Nobody says when the borrower's last request went out.
                self._frontier.hold(loan.site, max(loan.hold_until, self._now() + self._delay_s(loan)), self._now())
                self.lost[loan.site] += 1
                if len(self.lost) > LOST_SITES_MAX:
                    del self.lost[next(iter(self.lost))]
                self._note_failure(loan)
                self._end(loan, is_lost=loan.begun)

    def recall(self, cell: Cell) -> None:
        """Recall the loans of a cell that this peer no longer crawls."""
        self._recall_loans([loan for loan in self._loans.values() if loan.cell == cell])

    def recall_site(self, site: str) -> None:
        """Recall the loans of a site that refuses requests, so that this peer alone finds out when it is ready."""
        self._recall_loans([loan for loan in self._loans.values() if loan.site == site and loan.recalled_at is None])

    def recall_all(self) -> None:
        """Recall all loans, as this peer no longer crawls."""
        self._recall_loans(list(self._loans.values()))

    def _recall_loans(self, loans: Sequence[Loan]) -> None:
        by_borrower: dict[Contact, list[bytes]] = {}
        now = asyncio.get_running_loop().time()
        for loan in loans:
            loan.recall(now)
            if not is_leaf(loan.borrower):  # A leaf hears of the recall when it next reports.
                by_borrower.setdefault(loan.borrower, []).append(loan.id)
        for borrower, ids in by_borrower.items():
            with suppress(NotRunningError):
                self._spawn(self._send_recall(borrower, ids), f"recall from {borrower}")

    async def _send_recall(self, borrower: Contact, loans: Sequence[bytes]) -> None:
        for start in range(0, len(loans), LOANS_MAX):
            try:
                message = Recall(self._me(), list(loans[start : start + LOANS_MAX]))
                await self._client.ask(borrower, message, Recalled, LOAN_DEADLINE_S)
            except RemoteError as error:
                log.info("loan.not_recalled from=%s why=%s", borrower, error.why)  # The lease ends the loan.

    def _note_failure(self, loan: Loan) -> None:
        """Bar the site until its owner has had a turn at it, and bar the borrower for a while."""
        now = self._now()
        self._loan_backoff.note_failure(loan.site, now + self._frontier.wait_s(loan.site, now), now)
        self._loan_backoff.note_failure(loan.borrower.id, now, now)

    def _end(self, loan: Loan, *, is_lost: bool = False) -> None:
        """Take back the loan's other pages and its connections. If it `is_lost`, some of them may be fetched."""
        del self._loans[loan.id]
        if is_lost:
            self._budget.lose(loan.entries)
        else:
            self._budget.take_back(len(loan.entries))
        for entry in loan.entries.values():
            self._late.note(loan, entry.key)
            self._frontier.put_back(entry, self._now())
        self._frontier.end_loan(loan.site, loan.connections, self._now())
        self._activity.move()
        self._wake()

    def _put_back(self, entry: FrontierEntry, tries: int, due: float) -> None:
        now = self._now()
        if tries > entry.tries or due > now:
            # `postpone` counts one more try.
            self._frontier.postpone(entry._replace(tries=max(tries, entry.tries) - 1), due, now)
        else:
            self._frontier.put_back(entry, now)

    def _delay_s(self, loan: Loan) -> float:
        return self._frontier.clock(loan.site, self._now())[1]
