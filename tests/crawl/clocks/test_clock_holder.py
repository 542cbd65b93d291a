"""The sites of one peer that wait for their turns on shared clocks."""

import asyncio
from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import Any, cast

from kadcrawl.crawl.clocks.clock_holder import ClockHolder, Waiter
from kadcrawl.crawl.clocks.clock_keeper import ClockKeeper
from kadcrawl.crawl.scope.partitioner import Partitioner
from kadcrawl.link.wire.clock_messages import ClocksLeased, LeaseClocks
from kadcrawl.link.wire.messages import Contact
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_settings import SiteSettings
from sim.loop import world

ME = Contact(bytes(20), "192.0.2.1", 4160)
PAGE = "http://a.test/page"
CLOCK = "host a.test"
DELAY_S = 1.0


class Bench:
    """A holder that owns all clocks itself, and sites that wait for them."""

    def __init__(self) -> None:
        self.keeper = ClockKeeper(Random(1).randrange(1, 1_000), lambda: 60.0)
        self.leases = 0
        self.called: dict[str, float] = {}
        self.idle: set[str] = set()
        owners = SimpleNamespace(me=ME, known_owner=lambda cell: ME, learn_owner=lambda *_: None)
        self.holder = ClockHolder(
            cast(Any, owners),
            cast(Any, None),
            Partitioner("url", 4),
            Limits(),
            SiteSettings(Job(delay_s=DELAY_S, partition="url")),
            addresses=None,
            host=lambda: cast(Any, self),
        )

    async def lease(self, message: LeaseClocks) -> ClocksLeased:
        """Answer as a `ClockHost` does."""
        now = asyncio.get_running_loop().time()
        turns = [self.keeper.answer(ME.id, question, 1, 0.0, now).turn for question in message.questions]
        self.leases += sum(turn.lease > 0 for turn in turns)
        return ClocksLeased(turns)

    def waiter(self, site: str) -> Waiter:
        def call() -> None:
            self.called[site] = asyncio.get_running_loop().time()

        return Waiter(site, lambda: None, call, lambda: site not in self.idle)

    def enter(self, site: str, clock: str = CLOCK) -> bool:
        """Return whether a request to a site has its turn, and make it at once."""
        with self.holder.enter(clock, PAGE, "", DELAY_S, self.waiter(site), is_known=True) as use:
            return use is not None

    async def ask_first(self) -> None:
        """Get the lease of the clock and make a request, after which the clock rests."""
        assert not self.enter("first")
        await asyncio.sleep(0.1)
        assert self.enter("first")

    async def during(self, story: Callable[[], Any]) -> None:
        running = asyncio.create_task(self.holder.run())
        await story()
        running.cancel()
        await asyncio.wait([running])


def test_sites_without_a_request_take_no_turn_from_the_others() -> None:
    bench = Bench()

    async def story() -> None:
        await bench.ask_first()
        for number in range(100):
            assert not bench.enter(f"lent {number}")
        assert not bench.enter("last")
        bench.idle = {f"lent {number}" for number in range(100)}
        await asyncio.sleep(DELAY_S + 0.1)

    with world(0) as loop:
        loop.run_until_complete(bench.during(story))
    turn = bench.called["last"]
    assert DELAY_S <= turn <= DELAY_S + 0.2, "it would wait for a quarter of a second for each of the others"
    assert {f"lent {number}" for number in range(100)} <= bench.called.keys(), "they may go on"


def test_no_lease_is_asked_for_without_a_request() -> None:
    bench = Bench()

    async def story() -> None:
        assert not bench.enter("lent")
        bench.idle = {"lent"}
        await asyncio.sleep(1.0)

    with world(0) as loop:
        loop.run_until_complete(bench.during(story))
    assert (0, ["lent"]) == (bench.leases, list(bench.called))


def test_a_site_that_waited_for_another_clock_since_is_passed_over() -> None:
    bench = Bench()

    async def story() -> None:
        await bench.ask_first()
        # Its cell was closed meanwhile, and its host has another address since.
        assert not bench.enter("moved")
        assert not bench.enter("moved", "host b.test")
        await asyncio.sleep(0.1)
        assert bench.enter("moved", "host b.test")
        assert not bench.enter("last")
        await asyncio.sleep(DELAY_S)

    with world(0) as loop:
        loop.run_until_complete(bench.during(story))
    assert DELAY_S <= bench.called["last"] <= DELAY_S + 0.2


def test_a_request_that_has_given_up_takes_no_turn() -> None:
    bench = Bench()

    async def story() -> None:
        await bench.ask_first()
        async with bench.holder.turn(PAGE, DELAY_S, DELAY_S / 2) as may_send:
            assert may_send is None
        assert not bench.enter("last")
        await asyncio.sleep(DELAY_S)

    with world(0) as loop:
        loop.run_until_complete(bench.during(story))
    assert DELAY_S <= bench.called["last"] <= DELAY_S + 0.2
    assert not bench.holder._waiters
