"""The taker's side of load balance: pages of other owners that this peer fetches for them (link/wire/loan_messages.py).

A loan is crawled by a crawler of its own, over a frontier of its own (lending/borrowed_store.py), with the fetcher,
outputs and forwarder of the peer: so what is found goes to its owners as ever, and each site keeps the pace it came
with. Nothing of a loan is begun before its giver has answered a report, nor once it has been silent for too long
(balance/leases.py); that is looked at again right before each request. What is fetched is on this disk before it is
reported.

Tests: tests/lending/test_silent_lender.py, tests/sim/test_loans.py
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from itertools import islice
from math import inf

from kadcrawl.balance.leases import RENEW_S, borrower_stops_at
from kadcrawl.crawl.crawler import Crawler
from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.scope.partitioner import Partitioner
from kadcrawl.errors import RemoteError, StorageError
from kadcrawl.keys import Cell, Key
from kadcrawl.lending.borrowed_store import BorrowedLoan, BorrowedStore
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import (
    BATCH_MAX,
    LOANS_MAX,
    Contact,
    LeaseRenewed,
    Lend,
    LoanReport,
    Recall,
    RenewLease,
    ReturnedUrl,
)
from kadcrawl.replication.cells import FINISHING_S
from kadcrawl.replication.record_codec import UNFINISHED_WAIT_S, WAIT_MAX_S, site_record
from kadcrawl.store.store import Store
from kadcrawl.urls import is_canonical, origin_of

RENEW_LEASE_DEADLINE_S = 5.0
BORROWED_CLOCKS_MAX = 1_000
"""Clocks of sites no longer borrowed that are kept before those that are over, and the oldest, are dropped."""
LOANS_ALL_MAX = 256
"""Loans one peer has from all others together."""

log = logging.getLogger(__name__)


class Borrower:
    """All loans of one taker."""

    def __init__(
        self,
        *,
        me: Callable[[], Contact],
        client: LinkClient,
        store: Store,
        borrowed: BorrowedStore,
        frontier: Frontier,
        crawler: Crawler,
        partitioner: Partitioner,
        forget: Callable[[Iterable[Key]], None],
        may_lend: Callable[[Contact, str], bool],
        wants: Callable[[int], bool],
        now: Callable[[], float],
    ) -> None:
        """`frontier` and `crawler` are over `borrowed`.

        `forget` is called with keys whose giver knows that they are done; `may_lend` says whether a peer owns a site,
        as far as we know; `wants` whether so many URLs more may be taken; `now` gives wall-clock seconds.
        """
        self._me = me
        self._client = client
        self._store = store
        self._borrowed = borrowed
        self._frontier = frontier
        self.crawler = crawler
        self._partitioner = partitioner
        self._forget = forget
        self._may_lend = may_lend
        self._wants = wants
        self._now = now
        self._until: dict[bytes, float] = {}
        """Loan -> second of the loop at which it is not crawled any more, unless its giver answers."""
        self._clocks: dict[str, float] = {}
        """Second before which a site that was lent must not be asked: who lends it next may not have heard so."""
        self._reporting: set[Contact] = set()
        """Givers a report is on its way to."""
        self._silent: set[Contact] = set()
        """Givers that did not answer the last one."""
        self._report_now = asyncio.Event()
        self._reported_at: dict[Contact, float] = {}
        """Giver -> second of the loop at which the last report to it was begun."""
        crawler.on_unreached = self._unreached
        self.done = 0
        """URLs fetched for others so far."""

    @property
    def urls(self) -> int:
        """URLs borrowed and not fetched."""
        return self._borrowed.pending

    @property
    def waiting(self) -> int:
        """URLs borrowed that wait for this peer: all of loans that it may not begin yet, and what could be fetched."""
        coming = (loan for loan in self._borrowed.loans.values() if loan.id not in self._until and not loan.closing)
        return sum(len(loan.entries) for loan in coming) + self._frontier.waiting(self._now())

    @property
    def loans(self) -> int:
        """Loans that are not over."""
        return len(self._borrowed.loans)

    def crawlable_loans(self) -> list[BorrowedLoan]:
        """Return the loans of which pages may be begun at this moment."""
        now = asyncio.get_running_loop().time()
        loans = [self._borrowed.loans[loan_id] for loan_id, until in self._until.items() if until > now]
        return [loan for loan in loans if not loan.closing]

    def is_silent(self, cell: Cell) -> bool:
        """Say whether the giver of the loan that counts as this cell did not answer the last report."""
        return any(loan.cell == cell and loan.lender in self._silent for loan in self._borrowed.loans.values())

    def next_due(self) -> float | None:
        """Return the second from which on something borrowed may be fetched; None for nothing."""
        return self._frontier.next_due()

    @property
    def unreported(self) -> int:
        """URLs fetched of which their givers do not know yet."""
        return sum(len(loan.done) for loan in self._borrowed.loans.values())

    # --- what givers say -----------------------------------------------------------------------------------------

    def accept(self, lend: Lend) -> bool:
        """A giver offers a loan; return whether it is taken."""
        if lend.loan in self._borrowed.loans:
            return True
        site, now = lend.clock.site, self._now()
        places = [self._partitioner.locate(one.url) for one in lend.pending if is_canonical(one.url)]
        if (
            len(places) < len(lend.pending)
            or any(place.site != site for place in places)
            or len(self._borrowed.loans) >= LOANS_ALL_MAX
            or sum(loan.lender.id == lend.lender.id for loan in self._borrowed.loans.values()) >= LOANS_MAX
            or self._borrowed.has_site(site)
            or self._frontier.is_active(site)
            or not self._may_lend(lend.lender, site)
            or not self._wants(len(places))
        ):
            return False
        urls = [
            (place.key, one.url, one.depth, one.hops, one.tries, now + one.wait_s if one.wait_s else 0.0)
            for place, one in zip(places, lend.pending, strict=True)
        ]
        self._borrowed.add(lend.loan, lend.lender, site, urls, lend.connections)
        wait_s = max(lend.clock.wait_s, self._clocks.pop(site, 0.0) - now)
        self._frontier.learn_clock(site, wait_s, lend.clock.delay_s, now)
        origins = {origin_of(one.url) for one in lend.pending}
        for robots in (robots for robots in lend.robots if robots.origin in origins):
            self._store.learn_robots(robots.origin, robots.rules, now - robots.age_s)
        self._report_now.set()
        return True

    def report_soon(self) -> None:
        """Something is done: until its giver knows so, it would be fetched again if this peer died."""
        self._report_now.set()

    def recall(self, recall: Recall) -> None:
        """A giver wants these back."""
        for loan_id in recall.loans:
            loan = self._borrowed.loans.get(loan_id)
            if loan is not None and loan.lender.id == recall.lender.id:
                self._close(loan)
        self._report_now.set()

    # --- the lease -----------------------------------------------------------------------------------------------

    def expire(self) -> None:
        """Stop what has had no answer for too long. Called right before each request, as this peer may have slept."""
        now = asyncio.get_running_loop().time()
        for loan_id, until in self._until.items():
            if until <= now and not (loan := self._borrowed.loans[loan_id]).closing:
                log.info("loan.silent from=%s site=%s", loan.lender, loan.site)
                self._close(loan)

    def close_all(self) -> None:
        """Begin nothing more of any loan; what is left is given back."""
        for loan in self._borrowed.loans.values():
            self._close(loan)
        self._report_now.set()

    async def run(self) -> None:
        """Report to all givers, until cancelled."""
        async with asyncio.TaskGroup() as reports:
            while True:
                stirred = self._report_now.is_set()
                self._report_now.clear()
                if self.crawler.pause_reasons - {"paused"}:
                    self.close_all()  # We cannot go on with it, and others can.
                    stirred = True
                    self._report_now.clear()
                self.expire()
                next_s, due = inf, self._due(stirred)
                self._silent &= due.keys()
                self._reported_at = {giver: at for giver, at in self._reported_at.items() if giver in due}
                for giver, left_s in due.items():
                    if left_s <= 0:
                        self._reporting.add(giver)
                        self._reported_at[giver] = asyncio.get_running_loop().time()
                        reports.create_task(self._report(giver), name=f"report to {giver}")
                    next_s = min(next_s, left_s if left_s > 0 else RENEW_S)
                try:
                    async with asyncio.timeout(next_s if next_s < inf else None):
                        await self._report_now.wait()
                except TimeoutError:
                    pass

    # --- inside --------------------------------------------------------------------------------------------------

    def _due(self, stirred: bool) -> dict[Contact, float]:
        """Return in how many seconds each giver is to have a report: now, if there is news for it."""
        now = asyncio.get_running_loop().time()
        due: dict[Contact, float] = {}
        for loan in self._borrowed.loans.values():
            news = loan.done or loan.closing or not loan.entries or loan.id not in self._until
            left_s = 0.0 if stirred and news else self._reported_at.get(loan.lender, -inf) + RENEW_S - now
            due[loan.lender] = min(left_s, due.get(loan.lender, inf))
        return {giver: RENEW_S if giver in self._reporting else left_s for giver, left_s in due.items()}

    def _unreached(self, site: str) -> None:
        """Perhaps only this machine cannot reach it: its owner is to try."""
        for loan in self._borrowed.loans.values():
            if loan.site == site:
                self._close(loan)
        self._report_now.set()

    async def _report(self, lender: Contact) -> None:
        """Say how far all loans of one giver are, and go on with those it lets."""
        try:
            # By contact: whoever claims the ID of another is not told of that one's loans.
            loans = [loan for loan in self._borrowed.loans.values() if loan.lender == lender][:LOANS_MAX]
            reports = [self._loan_status(loan) for loan in loans]
            await self._store.durable()
            sent_at = asyncio.get_running_loop().time()
            try:
                message = RenewLease(self._me(), reports)
                answer = await self._client.ask(lender, message, LeaseRenewed, RENEW_LEASE_DEADLINE_S)
            except RemoteError as error:
                log.info("loan.unreported to=%s why=%s", lender, error.why)
                self._silent.add(lender)
                for loan in loans:
                    if loan.id not in self._until:
                        self._close(loan)  # Nothing of it was begun.
                    if loan.closing and not self._frontier.in_flight(loan.cell):
                        self._drop(loan)
                return
            self._silent.discard(lender)
            standing = {one.loan: one for one in answer.active}
            for loan, report in zip(loans, reports, strict=True):
                told = [Key(key) for key in report.done]
                for key in told:
                    loan.done.pop(key, None)
                self.done += len(told)
                self._forget(told)
                if report.over:
                    self._drop(loan)
                elif loan.id in standing and not loan.closing:
                    clock = standing[loan.id]
                    self._frontier.learn_clock(loan.site, clock.wait_s, clock.delay_s, self._now())
                    self._go_on(loan, borrower_stops_at(sent_at))
                else:
                    self._close(loan)
        except StorageError:
            raise
        except Exception:
            # A fault of ours must not cost more than this report in a crawl of months.
            log.exception("borrowing.bug giver=%s", lender)
            return
        finally:
            self._reporting.discard(lender)
        if any(loan.done for loan in loans):
            self._report_now.set()

    def _loan_status(self, loan: BorrowedLoan) -> LoanReport:
        """Say how far a loan is; one that is to end comes back whole once no request of it is under way."""
        now = self._now()
        over = (loan.closing or not loan.entries) and not self._frontier.in_flight(loan.cell)
        over = over and len(loan.done) <= BATCH_MAX
        if over and any(map(self.crawler.is_taken, loan.entries.values())):
            over = asyncio.get_running_loop().time() > loan.closed_at + FINISHING_S
        returned = []
        if over:
            for key, entry in loan.entries.items():
                unfinished = UNFINISHED_WAIT_S if self.crawler.is_taken(entry) else 0.0
                returned.append(ReturnedUrl(key, entry.tries, min(max(0.0, entry.due - now, unfinished), WAIT_MAX_S)))
        clock = site_record(loan.site, *self._frontier.clock(loan.site, now))
        return LoanReport(loan.id, clock, [*islice(loan.done, BATCH_MAX)], returned, over)

    def _go_on(self, loan: BorrowedLoan, until: float) -> None:
        begins = loan.id not in self._until
        self._until[loan.id] = until
        if begins:
            self._frontier.open(loan.cell, self._now(), hold=False)
            self.crawler.wake()

    def _close(self, loan: BorrowedLoan) -> None:
        if not loan.closing:
            loan.closing, loan.closed_at = True, asyncio.get_running_loop().time()
            self._frontier.close(loan.cell)

    def _drop(self, loan: BorrowedLoan) -> None:
        """The loan is over; what its giver does not know to be done is told to whoever owns it, as any stray record."""
        for key in loan.done:
            self._store.on_changed(self._store.cell_of(key), key)
        self._keep_clock(loan.site)
        self._frontier.close(loan.cell)
        self._until.pop(loan.id, None)
        self._borrowed.drop(loan)

    def _keep_clock(self, site: str) -> None:
        now = self._now()
        wait_s, _ = self._frontier.clock(site, now)
        if wait_s > 0:
            if len(self._clocks) >= BORROWED_CLOCKS_MAX:
                self._clocks = {name: at for name, at in islice(self._clocks.items(), 1, None) if at > now}
            self._clocks[site] = now + wait_s
