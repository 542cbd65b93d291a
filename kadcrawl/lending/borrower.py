"""`Borrower`: the borrower's side of load balance, for pages of other owners that this peer fetches (loan_messages.py).

A crawler and a frontier of their own (lending/borrowed_store.py) crawl the loans, with the fetcher, outputs and
forwarder of the peer: links go to their owners as ever, and each site keeps the pace it came with. No page of a loan is
begun but shortly after its lender has answered a report (balance/leases.py). So each attempt at a page awaits
`renew_lease`, and asks `holds_lease` again right before each request. A fetched page is on this peer's disk before it
is reported.

Tests: tests/lending/test_silent_lender.py, tests/lending/test_lending_peers.py, tests/sim/test_loans.py
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice
from math import inf

from kadcrawl.balance.leases import LEASE_S, RENEW_S, borrower_stops_at
from kadcrawl.crawl.crawler import Crawler
from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.crawl.scope.partitioner import Partitioner
from kadcrawl.errors import RemoteError, StorageError
from kadcrawl.keys import Cell, Key
from kadcrawl.lending.borrowed_store import BorrowedLoan, BorrowedStore
from kadcrawl.lending.visit_facts import reported_visits, visit_of
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
from kadcrawl.replication.cell_crawl import FINISHING_S
from kadcrawl.replication.record_codec import UNFINISHED_WAIT_S, WAIT_MAX_S, back_off_of, site_record
from kadcrawl.store.store import Store
from kadcrawl.system.event import Event
from kadcrawl.urls import is_canonical, origin_of

RENEW_LEASE_DEADLINE_S = 5.0
BORROWED_CLOCKS_MAX = 1_000
"""Clocks kept of sites that are no longer borrowed. Beyond that, the oldest and all that are over are dropped."""
LOANS_ALL_MAX = 256
"""Loans that one borrower has from all lenders together."""

log = logging.getLogger(__name__)


class Borrower:
    """All loans of one borrower."""

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
        announce: Callable[[Key], None],
        may_lend: Callable[[Contact, str], bool],
        now: Callable[[], float],
    ) -> None:
        """Take the parts of the peer, and the frontier and crawler over `borrowed`.

        Args:
            forget: is called with the keys of pages that their lender knows to be done.
            announce: is called with the key of each fetched page whose lender is gone before it knew of that.
            may_lend: returns whether a peer owns a site, as far as this peer knows.
            now: gives wall-clock seconds.
        """
        self._me = me
        self._client = client
        self._store = store
        self._borrowed = borrowed
        self._frontier = frontier
        self.crawler = crawler
        self._partitioner = partitioner
        self._forget = forget
        self._announce = announce
        self._may_lend = may_lend
        self._now = now
        self._until: dict[bytes, float] = {}
        """Loan ID -> loop second from which no page of the loan is begun, unless the lender answers."""
        self._clocks: dict[str, float] = {}
        """Site of a former loan -> second before which it must not be asked, as its next lender may not know."""
        self._reporting: set[Contact] = set()
        """Lenders to which a report is on its way."""
        self._silent: set[Contact] = set()
        """Lenders that did not answer the last report."""
        self._needed: dict[Contact, Event] = {}
        """Lenders whose lease a page needs anew -> event of the end of the next report."""
        self._unsent: Counter[Cell] = Counter()
        """Cell of a loan -> attempts that were prepared and whose request is not sent, as far as is known."""
        self._silence_s: dict[Contact, float] = {}
        """Lender -> seconds between two reports to it, by its last answer."""
        self._report_now = Event()
        self._reported_at: dict[Contact, float] = {}
        """Lender -> loop second at which the last report to it was begun."""
        self.taken = 0
        """Loans taken so far."""
        self.done = 0
        """URLs fetched for lenders so far."""

    @property
    def urls(self) -> int:
        """URLs borrowed and not fetched."""
        return self._borrowed.pending

    @property
    def frontier(self) -> Frontier:
        """The frontier of borrowed pages."""
        return self._frontier

    @property
    def waiting(self) -> int:
        """Borrowed URLs that wait for this peer: the URLs of loans it may not begin yet, and those due by now."""
        not_begun = (loan for loan in self._borrowed.loans.values() if loan.id not in self._until and not loan.closing)
        return sum(len(loan.entries) for loan in not_begun) + self._frontier.waiting(self._now())

    @property
    def loans(self) -> int:
        """The number of loans that are not over."""
        return len(self._borrowed.loans)

    def crawlable_loans(self) -> list[BorrowedLoan]:
        """Return the loans with a lease that is not over, so that their pages may be begun at this moment."""
        now = asyncio.get_running_loop().time()
        loans = [self._borrowed.loans[loan_id] for loan_id, until in self._until.items() if until > now]
        return [loan for loan in loans if not loan.closing]

    def begun_loans(self) -> list[BorrowedLoan]:
        """Return the loans whose pages this peer would begin at this moment, whether they have a lease or not."""
        loans = [self._borrowed.loans[loan_id] for loan_id in self._until]
        return [loan for loan in loans if not loan.closing and self.holds_lease(loan.cell)]

    def is_silent(self, cell: Cell) -> bool:
        """Return whether the lender of the loan with this cell did not answer the last report."""
        return any(loan.cell == cell and loan.lender in self._silent for loan in self._borrowed.loans.values())

    def next_due(self) -> float | None:
        """Return the wall-clock second from which a borrowed page may be fetched, or None if there is none."""
        return self._frontier.next_due()

    @property
    def unreported(self) -> int:
        """Fetched URLs that their lenders do not know to be done."""
        return sum(len(loan.done) for loan in self._borrowed.loans.values())

    # --- messages of lenders -------------------------------------------------------------------------------------

    def accept(self, lend: Lend, wants: Callable[[int], bool]) -> bool:
        """Take up an offered loan, and return whether this peer has it.

        `wants` returns whether this peer takes so many URLs. It is called last, for a loan that has no other obstacle.
        """
        if lend.loan in self._borrowed.loans:
            return True
        site, now = lend.clock.site, self._now()
        locations = [self._partitioner.locate(record.url) for record in lend.pending if is_canonical(record.url)]
        if (
            len(locations) < len(lend.pending)
            or any(location.site != site for location in locations)
            or len(self._borrowed.loans) >= LOANS_ALL_MAX
            or sum(loan.lender.id == lend.lender.id for loan in self._borrowed.loans.values()) >= LOANS_MAX
            or self._borrowed.has_site(site)
            or self._frontier.is_active(site)
            or not self._may_lend(lend.lender, site)
            or not wants(len(locations))
        ):
            return False
        urls = [
            (location.key, one.url, one.depth, one.hops, one.tries, now + one.wait_s if one.wait_s else 0.0, one.trail)
            for location, one in zip(locations, lend.pending, strict=True)
        ]
        again = {location.key: one.rounds for location, one in zip(locations, lend.pending, strict=True) if one.rounds}
        self.taken += 1
        loan = self._borrowed.add(lend.loan, lend.lender, site, urls, lend.connections, again)
        for key, facts in lend.visits.items():
            if (entry := loan.entries.get(Key(key))) is not None:
                loan.visits[entry.key] = visit_of(facts, entry)
        wait_s = max(lend.clock.wait_s, self._clocks.pop(site, 0.0) - now)
        self._frontier.learn_clock(site, wait_s, lend.clock.delay_s, now, back_off_of(lend.clock, now))
        origins = {origin_of(record.url) for record in lend.pending}
        for robots in (robots for robots in lend.robots if robots.origin in origins):
            self._store.sites.learn_robots(robots.origin, robots.rules, now - robots.age_s)
        self._report_now.set()
        return True

    def report_soon(self) -> None:
        """Report at once that a page is done: until the lender knows, the page is fetched again if this peer dies."""
        self._report_now.set()

    def recall(self, recall: Recall) -> None:
        """Close the loans that their lender recalls."""
        for loan_id in recall.loans:
            loan = self._borrowed.loans.get(loan_id)
            if loan is not None and loan.lender.id == recall.lender.id:
                self._close(loan)
        self._report_now.set()

    # --- the lease -----------------------------------------------------------------------------------------------

    def holds_lease(self, cell: Cell) -> bool:
        """Return whether a page of the loan with this cell may be begun now.

        The crawler asks right before each request, as this machine may have slept.
        """
        loan = self._borrowed.loan_of(cell)
        return loan is not None and self._until.get(loan.id, -inf) > asyncio.get_running_loop().time()

    async def renew_lease(self, cell: Cell) -> bool:
        """Get a lease for a page that is about to begin, and return whether that took time.

        A lease that is over soon is renewed in the background. The lender may not answer: see `holds_lease`.
        """
        loan, now = self._borrowed.loan_of(cell), asyncio.get_running_loop().time()
        if loan is None or loan.id not in self._until:
            return False
        self._unsent[cell] += 1
        if self._until[loan.id] > now + LEASE_S - RENEW_S:
            return False
        reported = self._needed.setdefault(loan.lender, Event())
        self._report_now.set()
        if self.holds_lease(cell):
            return False
        try:
            async with asyncio.timeout(LEASE_S):
                await reported.wait()
        except TimeoutError:
            self._silent.add(loan.lender)
        return True

    def note_sent(self, cell: Cell) -> None:
        """Note that a request of the loan with this cell has been sent, and needs its lease no more."""
        self._unsent[cell] = max(0, self._unsent[cell] - 1)

    def expire(self) -> None:
        """Close the loans of silent lenders whose lease is over."""
        for loan in [self._borrowed.loans[loan_id] for loan_id in self._until]:
            if loan.lender in self._silent and not loan.closing and not self.holds_lease(loan.cell):
                log.info("loan.silent from=%s site=%s", loan.lender, loan.site)
                self._close(loan)

    def close_all(self) -> None:
        """Begin no further page of any loan, and give back the rest."""
        for loan in self._borrowed.loans.values():
            self._close(loan)
        self._report_now.set()

    async def run(self) -> None:
        """Report to all lenders, until cancelled."""
        async with asyncio.TaskGroup() as reports:
            while True:
                report_now = self._report_now.is_set()
                self._report_now.clear()
                if self.crawler.pause_reasons - {PauseReason.COMMAND}:
                    self.close_all()  # This peer cannot go on with the loans, and other peers can.
                    report_now = True
                    self._report_now.clear()
                self.expire()
                # The reasons to pause and the lenders' silence are looked at twice a second, report or not.
                due = self._due(report_now)
                next_s = RENEW_S if due else inf
                self._silent &= due.keys()
                self._silence_s = {lender: seconds for lender, seconds in self._silence_s.items() if lender in due}
                self._reported_at = {lender: at for lender, at in self._reported_at.items() if lender in due}
                for lender, left_s in due.items():
                    if left_s <= 0:
                        self._reporting.add(lender)
                        self._reported_at[lender] = asyncio.get_running_loop().time()
                        reports.create_task(self._report(lender), name=f"report to {lender}")
                    else:
                        next_s = min(next_s, left_s)
                try:
                    async with asyncio.timeout(next_s if next_s < inf else None):
                        await self._report_now.wait()
                except TimeoutError:
                    pass

    # --- inside --------------------------------------------------------------------------------------------------

    def _due(self, report_now: bool) -> dict[Contact, float]:
        """Return the seconds until each lender is to have a report: 0 if `report_now` and there is news for it."""
        now = asyncio.get_running_loop().time()
        due: dict[Contact, float] = {}
        for loan in self._borrowed.loans.values():
            lender = loan.lender
            news = loan.done or loan.closing or not loan.entries or loan.id not in self._until
            # A request that is still connecting needs a lease that is not over in the moment when it is sent.
            hurries = news or lender in self._silent or self._is_connecting(loan.cell)
            every_s = RENEW_S if hurries else self._silence_s.get(lender, RENEW_S)
            is_now = report_now and (news or lender in self._needed)
            left_s = 0.0 if is_now else self._reported_at.get(lender, -inf) + every_s - now
            due[loan.lender] = min(left_s, due.get(loan.lender, inf))
        return {lender: RENEW_S if lender in self._reporting else left_s for lender, left_s in due.items()}

    def _is_connecting(self, cell: Cell) -> bool:
        if not self._frontier.in_flight(cell):
            self._unsent.pop(cell, None)  # Also what was never sent.
        return self._unsent[cell] > 0

    def give_back(self, site: str) -> None:
        """Close the loan of a site that does not answer or refuses requests.

        Its owner may reach it from another machine, or has to slow down all who ask it.
        """
        for loan in self._borrowed.loans.values():
            if loan.site == site:
                self._close(loan)
        self._report_now.set()

    async def _report(self, lender: Contact) -> None:
        """Report on all loans of one lender, and go on with the loans that it lets stand."""
        try:
            # Compared by contact: a peer that claims the ID of a lender does not hear of that lender's loans.
            loans = [loan for loan in self._borrowed.loans.values() if loan.lender == lender][:LOANS_MAX]
            reports = self._loan_statuses(loans)
            await self._store.journal.durable()
            sent_at = asyncio.get_running_loop().time()
            try:
                message = RenewLease(self._me(), reports)
                answer = await self._client.ask(lender, message, LeaseRenewed, RENEW_LEASE_DEADLINE_S)
            except RemoteError as error:
                log.info("loan.unreported to=%s why=%s", lender, error.why)
                self._silent.add(lender)
                for loan in loans:
                    if loan.id not in self._until:
                        self._close(loan)  # No page of the loan was begun.
                    if loan.closing and not self._frontier.in_flight(loan.cell):
                        self._drop(loan)
                return
            if asyncio.get_running_loop().time() < borrower_stops_at(sent_at):
                self._silent.discard(lender)
            else:
                self._silent.add(lender)  # With answers that take longer than a lease no page would ever begin.
            self._silence_s[lender] = answer.silence_s
            standings = {standing.loan: standing for standing in answer.active}
            for loan, report in zip(loans, reports, strict=True):
                reported = [Key(key) for key in report.done]
                for key in reported:
                    loan.done.pop(key, None)
                self.done += len(reported)
                self._forget(reported)
                if report.over:
                    self._drop(loan)
                elif loan.id in standings and not loan.closing:
                    standing = standings[loan.id]
                    self._frontier.learn_clock(loan.site, standing.wait_s, standing.delay_s, self._now())
                    self._borrowed.shorten(loan, standing.depths)
                    self._go_on(loan, borrower_stops_at(sent_at))
                else:
                    self._close(loan)
        except StorageError:
            raise
        except Exception:
            # In a crawl of months, an error in this code must not cost more than the loans of one lender.
            log.exception("borrowing.bug lender=%s", lender)
            self._silent.add(lender)  # Or each page would ask for a report at once, without an end.
            return
        finally:
            self._reporting.discard(lender)
            if (needed := self._needed.pop(lender, None)) is not None:
                needed.set()
        if any(loan.done for loan in loans):
            self._report_now.set()

    def _loan_statuses(self, loans: Iterable[BorrowedLoan]) -> list[LoanReport]:
        """Return the reports of the loans from one lender, which have room for `BATCH_MAX` finished pages in all."""
        reports, room = [], BATCH_MAX
        for loan in loans:
            reports.append(self._loan_status(loan, room))
            room -= len(reports[-1].done)
        return reports

    def _loan_status(self, loan: BorrowedLoan, room: int) -> LoanReport:
        """Return the report of a loan with up to `room` finished pages: a loan that is to end comes back whole once no
        request of it is in flight."""
        now = self._now()
        over = (loan.closing or not loan.entries) and not self._frontier.in_flight(loan.cell)
        over = over and len(loan.done) <= room
        if over and any(map(self.crawler.is_taken, loan.entries.values())):
            over = asyncio.get_running_loop().time() > loan.closed_at + FINISHING_S
        returned = []
        if over:
            for key, entry in loan.entries.items():
                unfinished = self.crawler.is_taken(entry)
                wait_s = max(0.0, entry.due - now, UNFINISHED_WAIT_S if unfinished else 0.0)
                returned.append(ReturnedUrl(key, entry.tries, min(wait_s, WAIT_MAX_S), unfinished))
        clock = site_record(self._frontier.clock_of(loan.site, now), now)
        done = dict(islice(loan.done.items(), room))
        failed = {bytes(key): why for key, why in done.items() if why}
        return LoanReport(loan.id, clock, [*done], returned, over, failed, reported_visits(self._store, done))

    def _go_on(self, loan: BorrowedLoan, until: float) -> None:
        begins = loan.id not in self._until
        self._until[loan.id] = until
        if begins:
            self._frontier.open(loan.cell, self._now(), hold=False)
            self.crawler.wake()

    def _close(self, loan: BorrowedLoan) -> None:
        if not loan.closing:
            loan.close(asyncio.get_running_loop().time())
            self._frontier.close(loan.cell)

    def _drop(self, loan: BorrowedLoan) -> None:
        """Forget a loan that is over. The owners of pages that the lender does not know to be done are told."""
        for key in loan.done:
            self._announce(key)
        self._keep_clock(loan.site)
        self._frontier.close(loan.cell)
        self._until.pop(loan.id, None)
        self._unsent.pop(loan.cell, None)
        self._borrowed.drop(loan)

    def _keep_clock(self, site: str) -> None:
        now = self._now()
        wait_s, _ = self._frontier.clock(site, now)
        if wait_s > 0:
            if len(self._clocks) >= BORROWED_CLOCKS_MAX:
                self._clocks = {name: at for name, at in islice(self._clocks.items(), 1, None) if at > now}
            self._clocks[site] = now + wait_s
