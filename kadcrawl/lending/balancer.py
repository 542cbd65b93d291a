"""When this peer looks at what it has to crawl, and which way of balance then decides what is lent.

At each update, at the same instants everywhere, a peer counts what it has to crawl, and lends blocks of it if it has
too much: by load level (`levelling`), or by seconds to drain, as measured or at first as predicted (`draining`).

Tests: tests/lending/test_balance.py
"""

import asyncio
from typing import TYPE_CHECKING, Protocol

from kadcrawl.balance.sizing import UpdateSchedule, WorkCounts
from kadcrawl.crawl.output.counters import Counters
from kadcrawl.lending.blocks import Blocks
from kadcrawl.lending.throughput_learning import ThroughputLearning
from kadcrawl.link.wire.messages import GetLoad, Lend, Load

if TYPE_CHECKING:
    pass

LOAD_POLL_S = 0.5
"""How often it is seen whether anything waits for this peer."""
LOAD_MOST = 1_000_000
"""In hundredths of a block: what a heartbeat can tell."""


class BalancePolicy(Protocol):
    """A way of balance: what is told, who takes, and who gives."""

    @property
    def level(self) -> float:
        """Return the load in heavy blocks, above 0 for heavy, for the status and the heartbeats."""

    def sample(self, tally: WorkCounts) -> None:
        """Take in what was counted at a look, ..."""

    def update(self, tally: WorkCounts) -> None:
        """... and at an update, and when it all began."""

    def answer(self, question: GetLoad | None = None) -> Load:
        """Return what others are told who ask."""

    def accept(self, lender: bytes, urls: int) -> bool:
        """Return whether so many URLs of a peer, by its ID, are welcome; if so they are taken."""

    async def shed(self) -> None:
        """Lend what is too much; it may take longer than until the next update."""


class Balancer:
    """The balance of one peer."""

    def __init__(
        self,
        *,
        policy: BalancePolicy,
        blocks: Blocks,
        updates: UpdateSchedule,
        counters: Counters,
        learning: ThroughputLearning | None = None,
    ) -> None:
        """`updates` in seconds of the loop; `learning` in a job that predicts."""
        self.policy = policy
        self.updates = updates
        self.loans = blocks.loans
        self._blocks = blocks
        self._counters = counters
        self._learning = learning
        self._busy_s = 0.0
        self._lender = b""
        """ID of who offered a loan last."""

    @property
    def wait_s(self) -> float:
        """Seconds until the next update, for a joiner."""
        return self.updates.wait_s(asyncio.get_running_loop().time())

    def answer(self, question: GetLoad) -> Load:
        """Return what is told to whoever asks how loaded this peer is."""
        return self.policy.answer(question)

    def wants(self, urls: int) -> bool:
        """Return whether this peer takes so many URLs more of whoever offers them just now."""
        return not self._blocks.is_paused() and self.policy.accept(self._lender, urls)

    def accept_loan(self, lend: Lend) -> bool:
        """Somebody offers a loan; return whether it is taken."""
        self._lender = lend.lender.id
        return self._blocks.job.lends_by != "off" and self.loans.borrower.accept(lend)

    async def run(self) -> None:
        """Watch over the loans, and look at the load at each update; until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.loans.run(), name="loans")
            if self._blocks.job.lends_by != "off":
                group.create_task(self._update(), name="update")
            if self._learning is not None:
                group.create_task(self._learning.run(), name="powers")

    # --- inside --------------------------------------------------------------------------------------------------

    async def _update(self) -> None:
        loop = asyncio.get_running_loop()
        self.policy.update(self._tally(loop.time()))
        shedding: asyncio.Task[None] | None = None
        async with asyncio.TaskGroup() as group:
            while True:
                at = self.updates.next_after(loop.time())
                while (left := at - (began := loop.time())) > 0:
                    await asyncio.sleep(min(left, LOAD_POLL_S))
                    if self._blocks.waited_for and not self._blocks.is_paused():
                        self._busy_s += loop.time() - began  # It may have slept longer than it wanted to.
                    self.policy.sample(self._tally(loop.time()))
                self.policy.update(self._tally(loop.time()))
                self._blocks.overlay.load = min(max(0, round(100 * self.policy.level)), LOAD_MOST)
                if not self._blocks.is_paused() and (shedding is None or shedding.done()):
                    # Beside this, as pages are crawled meanwhile: who did not look would take itself for quicker.
                    shedding = group.create_task(self.policy.shed(), name="shed")

    def _tally(self, at: float) -> WorkCounts:
        return WorkCounts(at, self._counters.urls, self._counters.tried, self._busy_s)
