"""What a peer cannot connect to: when other peers try, how many of them, and when a failure is final."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any, cast

import pytest

from kadcrawl.crawl.fetch.fetcher import always
from kadcrawl.crawl.fetch.memory_slots import MemorySlots
from kadcrawl.crawl.fetch.result import BY_PEER, FetchError, FetchResult, RelayedAnswer
from kadcrawl.crawl.reach.network_health import HOSTS_MISSED, NetworkHealth, NetworkState
from kadcrawl.crawl.reach.opinions import BOTH_MISSED_S, HELPER_REST_S, UNHEARD_MAX_S, Opinions
from kadcrawl.crawl.reach.relay_client import Unanswered
from kadcrawl.crawl.reach.relayed_fetcher import Helpers, RelayedFetcher, WatchedFetcher
from kadcrawl.link.wire.messages import Contact
from kadcrawl.settings.limits import Limits
from tests.support.sites.given_answers import given

URL = "http://a.example/page"


class Bench:
    """A relayed fetcher over a network and peers whose answers are given. It is its own fetcher and clock."""

    def __init__(self, peers: int = 3, wait_s: float = 60.0) -> None:
        self.now = 1000.0
        self.here: FetchError | None = FetchError.CONNECT
        """The failure of this peer's own requests."""
        self.peers = [Contact(bytes([number]) * 20, "192.0.2.1", 4160) for number in range(1, peers + 1)]
        self.there: dict[bytes, FetchError | Unanswered | None] = {}
        """ID of a peer -> what comes of its requests. By default it answers."""
        self.tried: list[int] = []
        """The peers that tried, in order: 0 for this peer, and the first byte of its ID for another."""
        self.knows_others = peers > 0
        self.works: bool | None = None
        """What a test of this peer's network says."""
        self.silent_s = 0.0
        """Seconds for which another peer is silent before its outcome."""
        self.proven = False
        """The other peers prove their networks."""
        self.health = NetworkHealth(wait_s)
        self.opinions = Opinions()
        self.fetcher = RelayedFetcher(
            WatchedFetcher(self, self.health, lambda: self.now),
            cast(Any, self),
            cast(Any, Relay(self)),
            self.health,
            self.opinions,
            helpers=Helpers(live=lambda: list(self.peers), has_any=lambda: self.knows_others),
            works=self._network,
            random=Random(1),
            limits=Limits(),
            now=lambda: self.now,
        )

    async def _network(self, since: float) -> bool | None:
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
        self.tried.append(0)
        return given(url, self.here)

    async def received(self, url: str, extra_headers: Any, answer: RelayedAnswer, *_: object) -> FetchResult:
        return given(url, answer.error)

    async def get(self, url: str = URL, may_send: Callable[[], bool] = always) -> tuple[str | None, int, list[int]]:
        """Fetch, and return the error, the number of peers that tried, and the peers that were asked."""
        self.tried.clear()
        found = await self.fetcher.fetch(url, (), may_send)
        return found.error, found.tried_by, list(self.tried)

    def all_others(self, outcome: FetchError | Unanswered) -> None:
        self.there = {peer.id: outcome for peer in self.peers}

    def prove(self) -> None:
        """Let this peer's network work."""
        self.works = True


def failing_network(health: NetworkHealth, now: float) -> None:
    """Let a network fail."""
    for number in range(HOSTS_MISSED):
        health.missed(str(number), f"http://{number}.example/", now)
    health.test_failed(now)
    assert health.is_failing


class Relay:
    """A relay client whose answers are those of a bench."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    @asynccontextmanager
    async def place(self, helper: Contact) -> AsyncIterator[None]:
        yield

    def users(self, helper: Contact) -> int:
        return 0

    async def fetch(self, helper: Contact, page: str, url: str, *_: object) -> RelayedAnswer:
        self.bench.tried.append(helper.id[0])
        if self.bench.silent_s:
            await asyncio.sleep(self.bench.silent_s)
        outcome = self.bench.there.get(helper.id)
        if isinstance(outcome, Unanswered):
            raise outcome
        return RelayedAnswer(
            status=None if outcome else 200, error=outcome, detail="", http_version="1.1", reason="", headers=(),
            body=b"", address="", via=helper.id.hex()[:16], proven=self.bench.proven,
        )  # fmt: skip


async def test_a_peer_that_reaches_the_site_asks_nobody() -> None:
    bench = Bench()
    bench.here = None
    assert (None, 1, [0]) == await bench.get()


@pytest.mark.parametrize("error", sorted(BY_PEER | {FetchError.NO_PROXY}))
async def test_another_peer_tries_when_a_failure_may_lie_with_this_peer(error: FetchError) -> None:
    bench = Bench()
    bench.here = error
    failed, _, tried = await bench.get()
    assert failed is None
    assert (2, 0) == (len(tried), tried[0])


@pytest.mark.parametrize("error", sorted({*FetchError} - BY_PEER - {FetchError.NO_PROXY}))
async def test_no_other_peer_tries_when_the_site_may_have_been_asked(error: FetchError) -> None:
    bench = Bench()
    bench.here = error
    assert (error, 1, [0]) == await bench.get()


async def test_a_host_that_another_peer_reached_is_asked_through_that_peer_only() -> None:
    bench = Bench()
    _, _, first = await bench.get()
    assert (None, 1, [first[1]]) == await bench.get()


async def test_a_failure_is_final_when_a_peer_with_a_proven_network_and_another_peer_failed() -> None:
    bench = Bench()
    bench.prove()
    bench.all_others(FetchError.CONNECT)
    error, tried_by, tried = await bench.get()
    assert (FetchError.CONNECT, 2, 2) == (error, tried_by, len(tried))


@pytest.mark.parametrize(
    ("works", "proven", "others"), [(True, False, 1), (None, True, 1), (None, False, 2), (False, True, 2)]
)
async def test_a_failure_needs_two_peers_of_which_one_is_known_to_have_a_network(
    works: bool | None, proven: bool, others: int
) -> None:
    bench = Bench()
    bench.works, bench.proven = works, proven
    bench.all_others(FetchError.CONNECT)
    _, _, tried = await bench.get()
    assert 1 + others == len(tried)


async def test_failures_of_others_do_not_count_when_no_network_is_known_to_work_and_this_one_fails() -> None:
    bench = Bench()
    bench.works = False
    bench.all_others(FetchError.CONNECT)
    error, _, _ = await bench.get()
    assert (FetchError.NO_OPINION, True) == (error, bench.health.in_doubt)


async def test_two_other_peers_try_for_a_peer_that_has_reached_nothing_lately() -> None:
    bench = Bench()
    bench.all_others(FetchError.CONNECT)
    error, tried_by, tried = await bench.get()
    assert (FetchError.CONNECT, 3, 3) == (error, tried_by, len(tried))


async def test_a_dead_host_costs_one_question_in_some_minutes() -> None:
    bench = Bench()
    bench.prove()
    bench.all_others(FetchError.CONNECT)
    await bench.get()
    assert (FetchError.CONNECT, 2, [0]) == await bench.get("http://a.example/other")
    bench.now += BOTH_MISSED_S
    bench.prove()
    _, _, tried = await bench.get()
    assert 2 == len(tried)


async def test_a_peer_that_may_not_ask_the_host_gives_the_reason_of_those_that_did() -> None:
    bench = Bench()
    bench.here = FetchError.ADDRESS_REFUSED
    bench.prove()
    bench.all_others(FetchError.DNS)
    await bench.get()
    assert (FetchError.DNS, 2, [0]) == await bench.get("http://a.example/other")


async def test_the_only_peer_with_a_network_fails_by_itself() -> None:
    bench = Bench(peers=2)
    bench.all_others(Unanswered("network", may_have_asked=False, unable="network"))
    bench.works = True
    error, tried_by, tried = await bench.get()
    assert (FetchError.CONNECT, 1, 3) == (error, tried_by, len(tried))
    assert (FetchError.CONNECT, 1, [0]) == await bench.get(), "they are not asked again so soon"
    bench.works = None
    bench.now += HELPER_REST_S
    assert FetchError.NO_OPINION == (await bench.get())[0], "this network is not known to work either"


async def test_the_only_peer_of_a_swarm_fails_by_itself() -> None:
    assert (FetchError.CONNECT, 1, [0]) == await Bench(peers=0).get()


async def test_a_url_waits_while_no_other_peer_has_time_and_not_for_ever() -> None:
    bench = Bench()
    bench.all_others(Unanswered("busy", may_have_asked=False))
    error, _, tried = await bench.get()
    assert (FetchError.NO_OPINION, 4) == (error, len(tried))
    assert (FetchError.NO_OPINION, 1, [0]) == await bench.get()  # They rest.
    bench.now += HELPER_REST_S
    error, _, tried = await bench.get()
    assert (FetchError.NO_OPINION, 4) == (error, len(tried))
    bench.now += UNHEARD_MAX_S
    error, tried_by, _ = await bench.get()
    assert (FetchError.CONNECT, 1) == (error, tried_by)


async def test_a_peer_that_goes_silent_may_have_asked_so_the_clock_runs_and_another_peer_is_next() -> None:
    bench = Bench()
    bench.all_others(Unanswered("silent", may_have_asked=True))
    error, _, first = await bench.get()
    assert (FetchError.UNSURE, 2) == (error, len(first))
    bench.there.clear()
    error, _, second = await bench.get()
    assert error is None
    assert second[1] != first[1]


async def test_the_time_of_an_answer_that_was_lost_on_the_way_counts_for_an_adaptive_delay() -> None:
    bench = Bench()
    bench.silent_s = 0.02
    bench.all_others(Unanswered("silent", may_have_asked=True))
    result = await bench.fetcher.fetch(URL)
    assert result.error is FetchError.UNSURE
    assert result.seconds >= bench.silent_s


async def test_an_answer_that_another_peer_did_not_get_whole_is_no_proof_of_this_peers_fault() -> None:
    bench = Bench()
    bench.all_others(FetchError.TIMEOUT)
    error, _, tried = await bench.get()
    assert (FetchError.TIMEOUT, 2) == (error, len(tried))
    assert bench.opinions.helper_of("a.example", bench.now) is None


async def test_a_request_that_was_called_off_meanwhile_goes_to_no_other_peer() -> None:
    assert (FetchError.NOT_SENT, 1, [0]) == await Bench().get(may_send=lambda: False)


async def test_a_failing_network_is_not_tried_and_a_failure_takes_two_other_peers() -> None:
    bench = Bench()
    for number in range(HOSTS_MISSED):
        await bench.get(f"http://{number}.example/")
    assert NetworkState.FAILING is bench.health.state
    error, _, tried = await bench.get()
    assert (None, 1) == (error, len(tried))
    bench.all_others(FetchError.CONNECT)
    error, tried_by, tried = await bench.get("http://dead.example/")
    assert (FetchError.CONNECT, 2, 2) == (error, tried_by, len(tried))
    assert 0 not in tried


@pytest.mark.parametrize("then", [None, FetchError.TLS])
async def test_a_miss_before_the_network_came_back_says_nothing_about_the_site(then: FetchError | None) -> None:
    """The proof that the network works comes after the miss, so this peer tries again, and that failure is final."""
    bench = Bench()
    bench.here = FetchError.TLS
    bench.all_others(FetchError.TLS)

    async def comes_back(since: float) -> bool:
        if not bench.health.recoveries:
            failing_network(bench.health, bench.now)
            bench.health.reached("known.example", "http://known.example/")
        bench.here = then
        return True

    bench.fetcher._works = comes_back
    error, _, (first, other, again) = await bench.get()
    assert (then, 0, True, 0) == (error, first, other > 0, again)


async def test_failures_of_a_swarm_that_may_be_without_network_are_tried_again() -> None:
    bench = Bench()
    bench.here = FetchError.ADDRESS_REFUSED
    bench.all_others(FetchError.ADDRESS_REFUSED)
    assert (await bench.fetcher.fetch(URL)).passing
    bench.prove()
    assert not (await bench.fetcher.fetch(URL)).passing


async def test_peers_that_all_say_their_networks_fail_put_this_network_in_doubt() -> None:
    bench = Bench()
    bench.all_others(Unanswered("network", may_have_asked=False, unable="network"))
    await bench.get()
    assert bench.health.in_doubt


async def test_a_peer_that_lost_touch_with_all_others_waits_and_doubts_its_network() -> None:
    bench = Bench()
    bench.peers.clear()
    assert (FetchError.NO_OPINION, 1, [0]) == await bench.get()
    assert bench.health.in_doubt


async def test_a_failing_network_is_unreachable_when_no_other_peer_is_in_touch_any_more() -> None:
    bench = Bench()
    for number in range(HOSTS_MISSED):
        await bench.get(f"http://{number}.example/")
    bench.peers.clear()
    error, _, _ = await bench.get()
    assert (FetchError.NO_OPINION, NetworkState.UNREACHABLE) == (error, bench.health.state)


async def test_a_failing_network_tries_by_itself_when_there_is_only_one_other_peer() -> None:
    bench = Bench(peers=1)
    for number in range(HOSTS_MISSED):
        await bench.get(f"http://{number}.example/")
    bench.all_others(FetchError.CONNECT)
    assert (FetchError.CONNECT, 2, [1, 0]) == await bench.get("http://dead.example/")


async def test_a_network_that_was_given_up_waits_for_no_opinion() -> None:
    bench = Bench(wait_s=0.0)
    bench.all_others(Unanswered("network", may_have_asked=False, unable="network"))
    for number in range(HOSTS_MISSED):
        await bench.get(f"http://{number}.example/")
    bench.health.test_failed(bench.now)
    assert NetworkState.GIVEN_UP is bench.health.state
    error, _, _ = await bench.get()
    assert FetchError.CONNECT is error
