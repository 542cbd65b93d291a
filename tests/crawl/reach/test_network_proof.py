"""Whether a peer's network works at this moment: what proves it, and that many misses cost one test."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from kadcrawl.crawl.fetch.result import FetchError, FetchResult
from kadcrawl.crawl.reach.network_health import NetworkHealth
from kadcrawl.crawl.reach.network_proof import FAILED_S, NetworkProof
from tests.support.sites.given_answers import Connector, given

KNOWN = [f"http://{number}.example/" for number in range(5)]


class Bench(Connector):
    """A network whose hosts are up or down. It is its own fetcher and clock."""

    def __init__(self, known: Sequence[str] = KNOWN) -> None:
        super().__init__()
        self.now = 100.0
        self.health = NetworkHealth(60.0, known)
        self.proof = NetworkProof(cast(Any, self), self, self.health, lambda: self.now)

    async def works(self) -> bool | None:
        """Ask whether the network has worked since now."""
        return await self.proof.works(self.now)


async def test_a_host_that_answered_by_a_kept_connection_is_no_proof() -> None:
    bench = Bench()
    bench.health.reached("a.example", "http://a.example/")
    assert await bench.works() is False
    assert "http://a.example/" == bench.connected[0]


async def test_a_test_that_succeeded_counts_for_the_misses_before_it() -> None:
    bench = Bench()
    bench.up = {*KNOWN}
    before = bench.now
    bench.now += 0.1
    assert (True, 1) == (await bench.works(), len(bench.connected))
    assert (True, 1) == (await bench.proof.works(before), len(bench.connected))
    bench.now += 0.1
    assert (True, 2) == (await bench.works(), len(bench.connected))


async def test_hosts_that_worked_are_tried_the_latest_first() -> None:
    bench = Bench()
    bench.up = {KNOWN[3]}
    assert (True, [KNOWN[4], KNOWN[3]]) == (await bench.works(), bench.connected)


async def test_a_network_that_reaches_none_of_three_hosts_does_not_work() -> None:
    bench = Bench()
    bench.up = {KNOWN[0]}
    assert (False, 3) == (await bench.works(), len(bench.connected))


async def test_without_a_host_that_worked_nothing_is_known() -> None:
    assert await Bench(known=()).works() is None


async def test_many_misses_at_once_cost_one_test_and_the_next_comes_later() -> None:
    bench = Bench()
    assert {False} == set(await asyncio.gather(*(bench.works() for _ in range(9))))
    assert 3 == len(bench.connected)
    bench.now += FAILED_S
    bench.up = {KNOWN[4]}
    assert await bench.works()


class ClosedOnTheWay(Bench):
    """A network whose test is under way as the peer ends: then it sends nothing, whatever it had reached."""

    starts = closes = 0

    async def start(self) -> None:
        self.starts += 1

    async def close(self) -> None:
        self.closes += 1

    async def fetch(self, url: str, *_: Any, **__: Any) -> FetchResult:
        await self.proof.close()
        return given(url, FetchError.NOT_SENT)


async def test_a_test_that_a_closing_peer_does_not_finish_proves_nothing() -> None:
    bench = ClosedOnTheWay()
    assert await bench.works() is None
    assert await bench.works() is None
    assert (1, 1) == (bench.starts, bench.closes)


async def test_a_closed_proof_opens_no_connections() -> None:
    bench = ClosedOnTheWay()
    await bench.proof.close()
    assert await bench.works() is None
    assert (0, 0) == (bench.starts, bench.closes)
