"""Forgets pages finished longer ago than the period, and offers the seeds again (P4).

For jobs that keep fingerprints and fetch pages again. At the beginning of each epoch every cell drops the epoch filter
that has expired, and this peer forgets the links it sent. Then the peer that crawls a seed's cell accepts the seed once
more. If the seed is still remembered, nothing happens. Otherwise the seed is fetched, the links on it are met again,
and so the whole crawl comes round: each page when it is met after its period.

Tests: tests/sim/test_bloom.py
"""

import asyncio
from collections.abc import Callable, Sequence

from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.links.forwarder import Forwarder
from kadcrawl.crawl.links.intake import Intake
from kadcrawl.crawl.scope.partitioner import Partitioner
from kadcrawl.keys import Cell
from kadcrawl.link.wire.messages import Link
from kadcrawl.store.bloom.expiring_filter import Period
from kadcrawl.store.store import Store
from kadcrawl.system.clock import Clock

CELLS_AT_ONCE = 200
"""Cells handled before other work gets its turn."""
TIMER_SLACK_S = 0.01
"""Seconds added to the beginning of an epoch, as a timer may fire a little early."""


class Expiring:
    """The epochs of one peer."""

    def __init__(
        self,
        store: Store,
        frontier: Frontier,
        intake: Intake,
        forwarder: Forwarder,
        partitioner: Partitioner,
        clock: Clock,
        period: Period,
        seeds: Callable[[], Sequence[str]],
    ) -> None:
        """`seeds` returns the current seeds of the job."""
        self._store = store
        self._frontier = frontier
        self._intake = intake
        self._forwarder = forwarder
        self._partitioner = partitioner
        self._clock = clock
        self._period = period
        self._seeds = seeds
        self._placed: tuple[Sequence[str], frozenset[Cell]] = (), frozenset()
        """The seeds at the last look, and their cells."""

    @property
    def due_s(self) -> float | None:
        """Seconds until a seed is accepted again here, or None if this peer crawls no seed."""
        seeds = self._seeds()
        if seeds != self._placed[0]:
            self._placed = seeds, frozenset(self._partitioner.locate(url).cell for url in seeds)
        return self._wait_s() if any(map(self._frontier.is_open, self._placed[1])) else None

    async def run(self) -> None:
        """Begin each epoch in time, until cancelled."""
        while True:
            await asyncio.sleep(self._wait_s() + TIMER_SLACK_S)
            for number, cell in enumerate(list(self._store.cells)):
                self._store.expire(cell)
                if number % CELLS_AT_ONCE == 0:
                    await asyncio.sleep(0)
            self._forwarder.forget()
            self._take_seeds()

    def _wait_s(self) -> float:
        now = self._clock.now()
        return self._period.begin_s(self._period.epoch(now) + 1) - now

    def _take_seeds(self) -> None:
        now = self._clock.now()
        for url in self._seeds():
            place = self._partitioner.locate(url)
            if self._frontier.is_open(place.cell):
                self._intake.accept(Link(url, 0, 0), place, now)
