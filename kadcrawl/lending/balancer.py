"""When this peer looks at what it has to crawl, and which way of balance then decides what is lent.

At each update, at the same instants everywhere, a peer counts what it has to crawl, and lends blocks of it if it has
too much: by load level (`levelling`), or by seconds to drain, as measured or at first as predicted (`draining`).
"""

import asyncio
from typing import TYPE_CHECKING, Protocol

from kadcrawl.balance.sizing import Tally, Updates
from kadcrawl.crawl.output.counters import Totals
from kadcrawl.lending.blocks import Blocks
from kadcrawl.lending.pace_learning import Learning
from kadcrawl.link.wire.messages import GetLevel, Lend, Loaded

if TYPE_CHECKING:
    pass

LOOK_S = 0.5
"""How often it is seen whether anything waits for this peer."""
LOAD_MOST = 1_000_000
"""In hundredths of a block: what a heartbeat can tell."""


class Mode(Protocol):
    """A way of balance: what is told, who takes, and who gives."""

    @property
    def level(self) -> float:
        """Return the load in heavy blocks, above 0 for heavy, for the status and the heartbeats."""

    def look(self, tally: Tally) -> None:
        """Take in what was counted at a look, ..."""

    def note(self, tally: Tally) -> None:
        """... and at an update, and when it all began."""

    def told(self, question: GetLevel | None = None) -> Loaded:
        """Return what others are told who ask."""

    def wants(self, giver: bytes, urls: int) -> bool:
        """Return whether so many URLs of a peer, by its ID, are welcome; if so they are taken."""

    async def shed(self) -> None:
        """Lend what is too much; it may take longer than until the next update."""


class Balancing:
    """The balance of one peer."""

    def __init__(
        self, *, mode: Mode, blocks: Blocks, updates: Updates, totals: Totals, learning: Learning | None = None
    ) -> None:
        """`updates` in seconds of the loop; `learning` in a job that predicts."""
        self.mode = mode
        self.updates = updates
        self.loans = blocks.loans
        self._blocks = blocks
        self._totals = totals
        self._learning = learning
        self._busy_s = 0.0
        self._giver = b""
        """ID of who offered a loan last."""

    @property
    def wait_s(self) -> float:
        """Seconds until the next update, for a joiner."""
        return self.updates.wait_s(asyncio.get_running_loop().time())

    def told(self, question: GetLevel) -> Loaded:
        """Return what is told to whoever asks how loaded this peer is."""
        return self.mode.told(question)

    def wants(self, urls: int) -> bool:
        """Return whether this peer takes so many URLs more of whoever offers them just now."""
        return not self._blocks.holds() and self.mode.wants(self._giver, urls)

    def take(self, lend: Lend) -> bool:
        """Somebody offers a loan; return whether it is taken."""
        self._giver = lend.giver.id
        return self._blocks.job.lends_by != "off" and self.loans.borrowing.take(lend)

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
        self.mode.note(self._tally(loop.time()))
        shedding: asyncio.Task[None] | None = None
        async with asyncio.TaskGroup() as group:
            while True:
                at = self.updates.next_after(loop.time())
                while (left := at - (began := loop.time())) > 0:
                    await asyncio.sleep(min(left, LOOK_S))
                    if self._blocks.waited_for and not self._blocks.holds():
                        self._busy_s += loop.time() - began  # It may have slept longer than it wanted to.
                    self.mode.look(self._tally(loop.time()))
                self.mode.note(self._tally(loop.time()))
                self._blocks.overlay.load = min(max(0, round(100 * self.mode.level)), LOAD_MOST)
                if not self._blocks.holds() and (shedding is None or shedding.done()):
                    # Beside this, as pages are crawled meanwhile: who did not look would take itself for quicker.
                    shedding = group.create_task(self.mode.shed(), name="shed")

    def _tally(self, at: float) -> Tally:
        return Tally(at, self._totals.urls, self._totals.tried, self._busy_s)
