"""The tests of a peer's own network: what they connect to, and when the crawl pauses and goes on."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.crawl.reach import self_test
from kadcrawl.crawl.reach.network_health import HOSTS_MISSED, NetworkHealth, NetworkState
from kadcrawl.crawl.reach.network_proof import NetworkProof
from kadcrawl.crawl.reach.opinions import Opinions
from kadcrawl.crawl.reach.relay_client import Unanswered
from kadcrawl.crawl.reach.relayed_fetcher import Helpers
from kadcrawl.crawl.reach.self_test import SelfTest
from kadcrawl.link.wire.messages import Contact
from tests.support.sites.given_answers import Connector
from tests.support.waiting import until

PEER = Contact(bytes([1]) * 20, "192.0.2.1", 4160)


class Bench(Connector):
    """A test of a network whose answers are given. It is its own fetcher, relay and crawler."""

    def __init__(self, wait_s: float = 1000.0, known: Sequence[str] = ()) -> None:
        super().__init__()
        self.now = 0.0
        self.up_there: set[str] | None = set()
        """URLs that the other peer reaches. None: the other peer does not try."""
        self.kept: list[str] = []
        self.pause_reasons: set[PauseReason] = set()
        self.wakes = 0
        self.health = NetworkHealth(wait_s, known)
        self.test = SelfTest(
            NetworkProof(cast(Any, self), self, self.health, lambda: self.now),
            cast(Any, self),
            self.health,
            Opinions(),
            helpers=Helpers(live=lambda: [PEER]),
            now=lambda: self.now,
            keep=self._keep,
        )

    def _keep(self, urls: list[str]) -> None:
        self.kept = urls

    def wake(self) -> None:
        self.wakes += 1

    async def reaches(self, helper: Contact, page: str, url: str) -> bool:
        if self.up_there is None:
            raise Unanswered("network", may_have_asked=False)
        return url in self.up_there

    def miss(self) -> None:
        for number in range(HOSTS_MISSED):
            self.health.missed(str(number), f"http://{number}.example/", self.now)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.test.run(self))
        yield
        assert not task.done()
        task.cancel()

    @property
    def is_paused(self) -> bool:
        return PauseReason.NETWORK in self.pause_reasons


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_test, "LOOK_S", 0.0)


async def test_a_network_that_reaches_what_it_knows_pauses_nothing() -> None:
    bench = Bench(known=["http://known.example/"])
    bench.up = {"http://known.example/"}
    async with bench.running():
        bench.miss()
        await until(lambda: not bench.health.in_doubt)
    assert (["http://known.example/"], False) == (bench.connected, bench.is_paused)


async def test_the_crawl_pauses_while_nobody_reaches_anything_and_goes_on_after_the_wait() -> None:
    bench = Bench(wait_s=1000.0)
    async with bench.running():
        bench.miss()
        await until(lambda: bench.is_paused)
        bench.now = 999.0
        before = len(bench.connected)
        await until(lambda: len(bench.connected) > before)
        assert bench.is_paused
        bench.now = 1000.0
        await until(lambda: not bench.is_paused)
        assert NetworkState.GIVEN_UP is bench.health.state
        assert 2 == bench.wakes


async def test_the_crawl_goes_on_through_another_peer_that_reaches_a_site() -> None:
    bench = Bench()
    bench.up_there = None
    async with bench.running():
        bench.miss()
        await until(lambda: bench.is_paused)
        bench.up_there = {f"http://{number}.example/" for number in range(HOSTS_MISSED)}
        bench.now += 10
        await until(lambda: not bench.is_paused)
        assert NetworkState.FAILING is bench.health.state
        bench.up = bench.up_there
        bench.now += 10_000
        await until(lambda: bench.health.state is NetworkState.FINE)


async def test_a_peer_without_proxies_goes_on_when_another_peer_has_one() -> None:
    bench = Bench()
    bench.pause_reasons.add(PauseReason.PROXIES)
    bench.health.lacked_proxy("http://a.example/")
    bench.now = 1000.0
    async with bench.running():
        bench.up_there = {"http://a.example/"}
        bench.now += self_test.PROXIES_TEST_S
        await until(lambda: PauseReason.PROXIES not in bench.pause_reasons)


async def test_hosts_that_work_are_kept_for_the_next_run() -> None:
    bench = Bench()
    async with bench.running():
        bench.health.reached("a.example", "http://a.example/")
        await until(lambda: bench.kept == ["http://a.example/"])
