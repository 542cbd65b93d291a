"""A borrower whose lender does not answer, such as a leaf: it begins no pages, and says so after the next report."""

import asyncio
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from kadcrawl.balance.leases import LEASE_S, RENEW_S
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
        self.borrowed = BorrowedStore(lambda entry, line, records, visit, rounds, *, reported: True)
        self.journal = self
        frontier = Frontier(self.borrowed, Limits(), SiteSettings(Job(delay_s=1.0)))
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
        if to.address in self.dead:
            raise RemoteError("lender", "cannot be reached")
        return LeaseRenewed([ActiveLoan(one.loan, 0.0, 1.0) for one in message.loans])

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
