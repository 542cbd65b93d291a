"""Sites that only their owner asks: when a failure to connect is final, and when the URL waits for the network."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, cast

import pytest

from kadcrawl.crawl.fetch.fetcher import always
from kadcrawl.crawl.fetch.memory_slots import MemorySlots
from kadcrawl.crawl.fetch.result import BY_PEER, FetchError, FetchResult
from kadcrawl.crawl.reach.lone_fetcher import HOSTS_MAX, OPINIONS_MAX, LoneFetcher
from kadcrawl.crawl.reach.opinions import BOTH_MISSED_S, HELPER_REST_S, Opinions
from kadcrawl.crawl.reach.relay_client import Unanswered
from kadcrawl.crawl.reach.relayed_fetcher import Helpers
from kadcrawl.link.wire.messages import Contact
from tests.support.sites.given_answers import given

URL = "http://a.example/page"
WAIT_S = 60.0


class Bench:
    """A lone fetcher over a network and peers whose answers are given. It is its own fetcher, relay and clock."""

    def __init__(self, peers: int = 5) -> None:
        self.now = 1000.0
        self.here: FetchError | None = FetchError.CONNECT
        self.peers = [Contact(bytes([number]) * 20, "192.0.2.1", 4160) for number in range(1, peers + 1)]
        self.there: bool | Unanswered = False
        """Whether the other peers reach the host."""
        self.works: bool | None = None
        self.asked: list[bytes] = []
        """The peers that were asked."""
        self.forms: list[bytes] = []
        self.opinions = Opinions()
        self.fetcher = LoneFetcher(
            self,
            cast(Any, self),
            self.opinions,
            helpers=Helpers(live=lambda: list(self.peers)),
            works=self._network,
            wait_s=WAIT_S,
            random=Random(1),
            now=lambda: self.now,
        )

    async def _network(self, since: float) -> bool | None:
        assert since == self.now
        return self.works

    async def fetch(
        self,
        url: str,
        extra_headers: Sequence[tuple[str, str]] = (),
        may_send: Callable[[], bool] = always,
        *,
        memory_slots: MemorySlots | None = None,
        form: bytes = b"",
    ) -> FetchResult:
        self.forms.append(form)
        return given(url, self.here)

    async def reaches(self, helper: Contact, page: str, url: str) -> bool:
        self.asked.append(helper.id)
        if isinstance(self.there, Unanswered):
            raise self.there
        return self.there

    async def get(self, url: str = URL) -> FetchError | None:
        self.asked.clear()
        return (await self.fetcher.fetch(url, form=b"a=b")).error


async def test_an_answer_and_a_failure_after_the_connection_are_final() -> None:
    for error in (None, *({*FetchError} - BY_PEER)):
        bench = Bench()
        bench.here = error
        assert (error, []) == (await bench.get(), bench.asked)
        assert [b"a=b"] == bench.forms


@pytest.mark.parametrize("error", sorted(BY_PEER))
async def test_a_url_waits_if_another_peer_reaches_its_host(error: FetchError) -> None:
    bench = Bench()
    bench.here, bench.there, bench.works = error, True, True
    assert FetchError.NO_OPINION == await bench.get()
    assert 1 == len(bench.asked)


async def test_a_url_waits_while_the_network_is_known_to_fail_whatever_others_say() -> None:
    bench = Bench()
    bench.works = False
    assert FetchError.NO_OPINION == await bench.get()


@pytest.mark.parametrize("works", [None, True])
async def test_a_host_that_no_peer_reaches_fails_and_is_not_asked_about_again_for_a_while(works: bool | None) -> None:
    bench = Bench()
    bench.works = works
    assert (FetchError.CONNECT, OPINIONS_MAX) == (await bench.get(), len(bench.asked))
    assert (FetchError.CONNECT, 0) == (await bench.get(), len(bench.asked))
    bench.now += BOTH_MISSED_S
    bench.there = True
    assert FetchError.NO_OPINION == await bench.get()


async def test_a_single_peer_has_nobody_to_ask() -> None:
    bench = Bench(peers=0)
    assert FetchError.CONNECT == await bench.get()
    bench.works = False
    assert FetchError.NO_OPINION == await bench.get()


async def test_peers_that_cannot_say_are_left_alone_for_a_while() -> None:
    bench = Bench(peers=2)
    bench.there = Unanswered("silence", may_have_asked=False)
    assert (FetchError.CONNECT, 2) == (await bench.get(), len(bench.asked))
    assert (FetchError.CONNECT, 0) == (await bench.get(), len(bench.asked))
    bench.now += HELPER_REST_S
    assert (FetchError.CONNECT, 2) == (await bench.get(), len(bench.asked))


async def test_a_peer_whose_network_fails_is_known_to_lack_one() -> None:
    bench = Bench()
    bench.there = Unanswered("no network", may_have_asked=False, unable="network")
    await bench.get()
    assert any(bench.opinions.lacks_network(peer.id, bench.now) for peer in bench.peers)


async def test_a_host_that_is_missed_for_too_long_fails_and_may_wait_again_once_it_has_answered() -> None:
    bench = Bench()
    bench.there = True
    assert FetchError.NO_OPINION == await bench.get()
    bench.now += WAIT_S
    assert FetchError.CONNECT == await bench.get()
    bench.here = None
    assert await bench.get() is None
    bench.here = FetchError.CONNECT
    assert FetchError.NO_OPINION == await bench.get()


async def test_the_oldest_of_many_missed_hosts_is_forgotten() -> None:
    bench = Bench()
    bench.there = True
    for number in range(HOSTS_MAX + 1):
        assert FetchError.NO_OPINION == await bench.get(f"http://a{number}.example/")
    bench.now += WAIT_S
    assert FetchError.CONNECT == await bench.get("http://a1.example/")
    assert FetchError.NO_OPINION == await bench.get("http://a0.example/")
