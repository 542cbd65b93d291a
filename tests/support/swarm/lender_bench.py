"""A lender without a network, and scenarios of loans in virtual time."""

import asyncio
from collections.abc import Callable, Collection, Coroutine
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.page_budget import Budget
from kadcrawl.crawl.recrawl.rounds import Rounds
from kadcrawl.errors import RemoteError
from kadcrawl.keys import Cell, Key, id_bytes, site_hash, url_key
from kadcrawl.lending.lender import Lender
from kadcrawl.link.wire.messages import (
    BackOffRecord,
    Batch,
    Contact,
    Lend,
    Lent,
    LoanReport,
    PendingRecord,
    RenewLease,
    SiteRecord,
)
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.store.store import Store
from sim.loop import SimLoop, world

BITS = 4
CONNECTIONS = 3
SITE = "a.example"
ME, A, B = (Contact(id_bytes(number), "10.0.0.1", 4160 + number) for number in (1, 2, 3))
CELL = Cell(site_hash(SITE)[0] >> 4)


class LenderBench:
    def __init__(self, loop: SimLoop, directory: Path, delay_s: float) -> None:
        self.loop = loop
        self.store = Store(directory, 0.0, lambda fds: None)
        self.store.begin(BITS)
        self.frontier = Frontier(
            self.store, Limits(site_connections_max=CONNECTIONS), SiteSettings(Job(delay_s=delay_s))
        )
        self.frontier.open(CELL, 0.0, hold=False)
        self.lends: list[Lend] = []
        self.budget = Budget(None, 0, 0)
        self.fails = False
        self.sure = asyncio.Event()
        """Unset while the lender, which was away, does not know whether its cells are its own."""
        self.sure.set()
        self.copied = True
        self.lender = Lender(
            me=lambda: ME,
            client=self,  # type: ignore[arg-type]
            store=self.store,
            frontier=self.frontier,
            budget=self.budget,
            rounds=Rounds(None, self.store, loop.time, lambda key: None),
            records=SimpleNamespace(lending=self.batch),  # type: ignore[arg-type]
            activity=Activity(),
            now=loop.time,
            random=Random(1),
            wake=lambda: None,
            is_away=lambda: not self.sure.is_set(),
            sure=self.wait_sure,
            spawn=lambda work, name: work.close(),
            are_copied=self.are_copied,
        )
        for number in range(6):
            url = f"http://{SITE}/{number}"
            entry = self.store.accept(url_key(site_hash(SITE), url), SITE, url, 0, 0)
            assert entry is not None
            self.frontier.add(entry, 0.0)

    async def wait_sure(self) -> None:
        """Return when the lender knows its cells."""
        await self.sure.wait()

    async def are_copied(self, cell: Cell, keys: Collection[Key]) -> bool:
        return self.copied

    def batch(self, entries: list[Any]) -> Batch:
        pending = [PendingRecord(entry.url, 0, 0, 0, 0.0) for entry in entries]
        return Batch([], pending, [SiteRecord(SITE, 0.0, 0.0)], [])

    async def ask(self, to: Contact, message: Any, expected: Any, deadline_s: float) -> Any:
        self.lends.append(message)
        if self.fails:
            raise RemoteError(to, "no answer")
        return Lent(True)

    async def report(
        self,
        borrower: Contact,
        number: int,
        delay_s: float = 0.0,
        wait_s: float = 0.0,
        back_off: BackOffRecord | None = None,
    ) -> list[bytes]:
        """Report the `number`th loan. Return the loans that go on."""
        one = LoanReport(self.lends[number].loan, SiteRecord(SITE, wait_s, delay_s, back_off), [], [], False)
        return [standing.loan for standing in (await self.lender.renew_lease(RenewLease(borrower, [one]))).active]


Play = Callable[[float, Callable[[LenderBench], Coroutine[Any, Any, None]]], None]


@pytest.fixture
def play_loans(tmp_path: Path) -> Play:
    def play_loans(delay_s: float, scenario: Callable[[LenderBench], Coroutine[Any, Any, None]]) -> None:
        async def whole(bench: LenderBench) -> None:
            tasks = [asyncio.create_task(bench.store.journal.run()), asyncio.create_task(bench.lender.run())]
            await scenario(bench)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            bench.store.close()

        with world(0) as loop:
            loop.run_until_complete(whole(LenderBench(loop, tmp_path, delay_s)))

    return play_loans
