"""A borrower whose lender does not answer, such as a leaf: it begins no pages, and says so after the next report."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from kadcrawl.balance.leases import LEASE_S, RENEW_S, SILENCE_MAX_S
from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.scope.partitioner import Partitioner
from kadcrawl.errors import RemoteError
from kadcrawl.keys import Cell, Key, id_bytes
from kadcrawl.lending.borrowed_store import BorrowedStore
from kadcrawl.lending.borrower import Borrower
from kadcrawl.link.wire.leaf_messages import leaf_contact
from kadcrawl.link.wire.messages import ActiveLoan, Contact, LeaseRenewed, Lend, PendingRecord, RenewLease, SiteRecord
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_settings import SiteSettings
from sim.loop import world

LENDERS = [Contact(id_bytes(number), f"10.0.0.{number}", 4160) for number in (1, 2)]


class SilentLenderBench:
    """Simulate a borrower of one site of each lender. The lenders at the addresses `dead` do not answer."""

    def __init__(self, now: Any) -> None:
        self.dead: set[tuple[str, int]] = set()
        self.asked: list[Contact] = []
        """The lenders of the reports so far."""
        self.bug: Exception | None = None
        """What comes instead of an answer."""
        self.silence_s = RENEW_S
        self.answer_s = 0.0
        self.borrowed = BorrowedStore(lambda entry, line, records, visit, rounds, *, reported: True)
        self.journal = self
        self.frontier = frontier = Frontier(self.borrowed, Limits(), SiteSettings(Job(delay_s=1.0)))
        self.borrower = Borrower(
            me=lambda: leaf_contact(id_bytes(9)),
            client=self,  # type: ignore[arg-type]
            store=self,  # type: ignore[arg-type]
            borrowed=self.borrowed,
            frontier=frontier,
            crawler=SimpleNamespace(pause_reasons=set(), is_taken=lambda entry: False, wake=lambda: None),  # type: ignore[arg-type]
            partitioner=Partitioner("host", 16),
            forget=lambda keys: None,
            announce=lambda key: None,
            may_lend=lambda lender, site: True,
            now=now,
        )
        for lender in LENDERS:
            site = f"{lender.host[-1]}.example"
            pending = [PendingRecord(f"http://{site}/{number}", 0, 0, 0, 0.0) for number in range(3)]
            lend = Lend(lender, Random(site).randbytes(8), SiteRecord(site, 0.0, 1.0), 1, pending, [])
            assert self.borrower.accept(lend, lambda urls: True)

    def last_visit(self, key: Key) -> None:
        """Return no visit."""

    async def durable(self) -> None:
        pass

    async def ask(self, to: Contact, message: RenewLease, expected: object, deadline_s: float) -> LeaseRenewed:
        self.asked.append(to)
        if self.bug is not None:
            raise self.bug
        if to.address in self.dead:
            raise RemoteError("lender", "cannot be reached")
        await asyncio.sleep(self.answer_s)
        return LeaseRenewed([ActiveLoan(one.loan, 0.0, 1.0) for one in message.loans], self.silence_s)

    def silent(self) -> list[bool]:
        """Say of each lender's loan that there is whether nothing of it is to be begun."""
        return [self.borrower.is_silent(loan.cell) for loan in self.borrowed.loans.values()]


@pytest.mark.parametrize("again", [True, False])
def test_nothing_is_begun_for_a_lender_that_does_not_answer(again: bool) -> None:
    async def scenario() -> None:
        bench = SilentLenderBench(loop.time)
        task = asyncio.create_task(bench.borrower.run())
        await asyncio.sleep(0.1)
        assert [False, False] == bench.silent()
        bench.dead.add(LENDERS[0].address)
        await asyncio.sleep(RENEW_S)
        assert [True, False] == bench.silent()
        assert 2 == len(bench.borrower.crawlable_loans()), "the lease goes on all the same"
        assert not bench.borrower.is_silent(Cell(7))
        if again:
            bench.dead.clear()
            await asyncio.sleep(RENEW_S)
            assert [False, False] == bench.silent()
        else:
            await asyncio.sleep(LEASE_S + RENEW_S)
            assert [False] == bench.silent(), "the loan is over"
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    with world(0) as loop:
        loop.run_until_complete(scenario())


def cells(bench: SilentLenderBench) -> list[Cell]:
    """Return the cells of the loans."""
    return [loan.cell for loan in bench.borrowed.loans.values()]


def play(scenario: Callable[[SilentLenderBench], Awaitable[None]]) -> None:
    """Play a scenario with a borrower that has reported to both lenders once."""

    async def begin() -> None:
        bench = SilentLenderBench(loop.time)
        bench.silence_s = SILENCE_MAX_S
        task = asyncio.create_task(bench.borrower.run())
        await asyncio.sleep(0.1)
        assert LENDERS == bench.asked
        await scenario(bench)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    with world(0) as loop:
        loop.run_until_complete(begin())


def test_a_borrower_that_begins_no_page_is_silent_for_as_long_as_it_may() -> None:
    async def scenario(bench: SilentLenderBench) -> None:
        await asyncio.sleep(4 * SILENCE_MAX_S + LEASE_S)
        assert 2 * (1 + 4) == len(bench.asked)
        assert [] == bench.borrower.crawlable_loans() == bench.borrower.begun_loans(), "no page may begin meanwhile"
        assert 2 == bench.borrower.loans, "and yet the loans last"

    play(scenario)


def test_a_lease_is_renewed_before_a_page_begins() -> None:
    async def scenario(bench: SilentLenderBench) -> None:
        cell, _ = cells(bench)
        assert not await bench.borrower.renew_lease(cell)
        assert 2 == len(bench.asked), "the lease is fresh"
        await asyncio.sleep(LEASE_S)
        assert not bench.borrower.holds_lease(cell)
        bench.answer_s = 0.2
        assert await bench.borrower.renew_lease(cell)
        assert bench.borrower.holds_lease(cell)
        assert [*LENDERS, LENDERS[0]] == bench.asked, "the other lender is not asked"

    play(scenario)


def test_a_page_does_not_wait_for_a_lease_that_lasts_a_while() -> None:
    async def scenario(bench: SilentLenderBench) -> None:
        cell, _ = cells(bench)
        await asyncio.sleep(RENEW_S)
        assert not await bench.borrower.renew_lease(cell)
        await asyncio.sleep(0.1)
        assert [*LENDERS, LENDERS[0]] == bench.asked, "it is renewed in the background"
        await asyncio.sleep(LEASE_S - 0.2)
        assert bench.borrower.holds_lease(cell)

    play(scenario)


@pytest.mark.parametrize("is_sent", [True, False])
def test_the_lease_lasts_while_a_request_waits_for_its_connection(is_sent: bool) -> None:
    async def scenario(bench: SilentLenderBench) -> None:
        now = asyncio.get_running_loop().time()
        entry = bench.frontier.next(now)
        assert entry is not None
        cell = bench.borrowed.cell_of(entry.key)
        loan = bench.borrowed.loan_of(cell)
        assert loan is not None
        await bench.borrower.renew_lease(cell)
        for _ in range(30):
            await asyncio.sleep(0.1)
            assert bench.borrower.holds_lease(cell)
        if is_sent:
            bench.borrower.note_sent(cell)
        else:
            bench.frontier.give_up_slot(entry)
        asked = bench.asked.count(loan.lender)
        await asyncio.sleep(2 * LEASE_S)
        assert not bench.borrower.holds_lease(cell)
        assert asked == bench.asked.count(loan.lender), "then the borrower is silent again"

    play(scenario)


def test_a_bug_in_a_report_ends_the_loans_of_its_lender(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(bench: SilentLenderBench) -> None:
        cell, other = cells(bench)
        await asyncio.sleep(LEASE_S)
        bench.bug = ValueError("no such thing")
        assert await bench.borrower.renew_lease(cell)
        bench.bug = None
        assert not bench.borrower.holds_lease(cell)
        bench.borrower.expire()
        assert closing(bench, cell)
        assert not closing(bench, other)

    play(scenario)
    assert 1 == sum("borrowing.bug" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("answer_s", [None, LEASE_S + 0.1, 60.0])
def test_no_page_begins_if_the_lender_does_not_answer_in_time(answer_s: float | None) -> None:
    async def scenario(bench: SilentLenderBench) -> None:
        cell, other = cells(bench)
        await asyncio.sleep(LEASE_S)
        if answer_s is None:
            bench.dead.add(LENDERS[0].address)
        else:
            bench.answer_s = answer_s
        began = asyncio.get_running_loop().time()
        assert await bench.borrower.renew_lease(cell)
        assert asyncio.get_running_loop().time() <= began + LEASE_S
        assert not bench.borrower.holds_lease(cell)
        bench.borrower.expire()
        assert closing(bench, cell)
        assert not closing(bench, other)

    play(scenario)


def closing(bench: SilentLenderBench, cell: Cell) -> bool:
    """Return whether no further page of a loan begins."""
    loan = bench.borrowed.loan_of(cell)
    return loan is None or loan.closing
