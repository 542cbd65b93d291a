"""`Balancer`: the load balance of one peer.

All peers update at the same instants. At each update a peer counts its work, and lends blocks of it if it has too much.
A `BalancePolicy` decides: by load level (level_policy.py), or by seconds to drain, first predicted and later measured
(drain_policy.py).

Tests: tests/lending/test_balance.py, tests/lending/test_level_policy.py, tests/lending/test_drain_policy.py
"""

import asyncio
from collections.abc import Mapping
from typing import Protocol

from kadcrawl.balance.sizing import UpdateSchedule, WorkCounts
from kadcrawl.crawl.output.counters import Counters
from kadcrawl.lending.blocks import Blocks
from kadcrawl.lending.throughput_learning import ThroughputLearning
from kadcrawl.link.handler import Handler
from kadcrawl.link.wire.messages import BacklogRecord, GetLoad, Lend, Lent, Load, Message, Recall, Recalled, RenewLease

LOAD_POLL_S = 0.5
"""Seconds between two samples of the waiting work."""


class BalancePolicy(Protocol):
    """A policy of load balance: it answers how loaded the peer is, accepts offered URLs, and lends blocks."""

    @property
    def level(self) -> float:
        """The load in heavy blocks, above 0 for heavy, for the status and the heartbeats."""

    def sample(self, counts: WorkCounts) -> None:
        """Take in the counts between two updates."""

    def update(self, counts: WorkCounts) -> None:
        """Take in the counts at an update, and once at the beginning."""

    def answer(self, question: GetLoad | None = None) -> Load:
        """Return the load that this peer tells others."""

    def accept(self, lender: bytes, urls: int, backlog: BacklogRecord | None) -> bool:
        """Return whether so many URLs of a lender (by ID) with this backlog are welcome, and count them if so."""

    async def shed(self) -> None:
        """Lend the excess, which may take longer than until the next update."""


class Balancer:
    """The load balance of one peer."""

    def __init__(
        self,
        *,
        policy: BalancePolicy,
        blocks: Blocks,
        updates: UpdateSchedule,
        counters: Counters,
        learning: ThroughputLearning | None = None,
    ) -> None:
        """Take the parts of the balance. `updates` are in loop seconds, and `learning` is for a job that predicts."""
        self.policy = policy
        self.updates = updates
        self.loans = blocks.loans
        self._blocks = blocks
        self._counters = counters
        self._learning = learning
        self._busy_s = 0.0

    @property
    def wait_s(self) -> float:
        """Seconds until the next update, for a joiner."""
        return self.updates.wait_s(asyncio.get_running_loop().time())

    def handlers(self) -> Mapping[type[Message], Handler]:
        """Return the handlers of the messages about loads and loans."""
        return {
            GetLoad: self._answer_load,
            Lend: self._answer_lend,
            RenewLease: self.loans.lender.renew_lease,
            Recall: self._answer_recall,
        }

    def answer(self, question: GetLoad) -> Load:
        """Return how loaded this peer is."""
        return self.policy.answer(question)

    def wants(self, lender: bytes, urls: int, backlog: BacklogRecord | None = None) -> bool:
        """Return whether this peer takes so many URLs more of a lender (by ID) with this backlog at this moment."""
        return not self._blocks.is_paused() and self.policy.accept(lender, urls, backlog)

    def accept_loan(self, lend: Lend) -> bool:
        """Take up an offered loan, and return whether this peer has it."""
        if self._blocks.job.lends_by == "off":
            return False
        return self.loans.accept(lend, lambda urls: self.wants(lend.lender.id, urls, lend.backlog))

    async def run(self) -> None:
        """Watch over the loans and update the load, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.loans.run(), name="loans")
            if self._blocks.job.lends_by != "off":
                group.create_task(self._update(), name="update")
            if self._learning is not None:
                group.create_task(self._learning.run(), name="profile")

    # --- inside --------------------------------------------------------------------------------------------------

    async def _answer_load(self, question: GetLoad) -> Load:
        return self.answer(question)

    async def _answer_lend(self, lend: Lend) -> Lent:
        return Lent(self.accept_loan(lend))

    async def _answer_recall(self, recall: Recall) -> Recalled:
        self.loans.borrower.recall(recall)
        return Recalled()

    async def _update(self) -> None:
        loop = asyncio.get_running_loop()
        self.policy.update(self._counts(loop.time()))
        shedding: asyncio.Task[None] | None = None
        async with asyncio.TaskGroup() as group:
            while True:
                at = self.updates.next_after(loop.time())
                while (left := at - (began := loop.time())) > 0:
                    await asyncio.sleep(min(left, LOAD_POLL_S))
                    if self._blocks.waited_for and not self._blocks.is_paused():
                        self._busy_s += loop.time() - began  # The sleep may have taken longer than asked.
                    self.policy.sample(self._counts(loop.time()))
                self.policy.update(self._counts(loop.time()))
                self._blocks.tell_load(self.policy.answer())
                if not self._blocks.is_paused() and (shedding is None or shedding.done()):
                    # In a task of its own, as pages are crawled meanwhile: without samples the peer would seem quicker.
                    shedding = group.create_task(self.policy.shed(), name="shed")

    def _counts(self, at: float) -> WorkCounts:
        return WorkCounts(at, self._counters.urls, self._counters.tried, self._busy_s)
