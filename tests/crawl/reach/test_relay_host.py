"""Requests for other peers: which are made, which are refused, and that bodies come in parts."""

import asyncio
from random import Random
from typing import Any, cast

import pytest

from kadcrawl.crawl.fetch.result import FetchError, FetchResult
from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.crawl.reach import relay_host
from kadcrawl.crawl.reach.network_health import HOSTS_MISSED, NetworkHealth
from kadcrawl.crawl.reach.relay_client import QUESTIONS_MAX, RelayClient, Unanswered
from kadcrawl.crawl.reach.relay_host import REQUESTS_PER_PEER_MAX, WAITING_BODIES_MAX, RelayHost
from kadcrawl.crawl.scope.scope import Scope
from kadcrawl.errors import RemoteError
from kadcrawl.link.wire.messages import Contact
from kadcrawl.link.wire.relay_messages import (
    RELAY_PART_BYTES_MAX,
    FetchedForPeer,
    FetchForPeer,
    GetFetchedPart,
    HeaderField,
)
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from tests.support.sites.given_answers import GivenAnswers
from tests.support.waiting import until

OWNER = Contact(bytes(20), "192.0.2.1", 4160)
OTHER = Contact(bytes([1]) * 20, "192.0.2.2", 4160)
PAGE = "http://a.example/page"
ANY = 1 << 30


class Bench:
    """A relay host with a site, and the parts that decide whether it helps."""

    def __init__(self) -> None:
        self.site = GivenAnswers()
        self.health = NetworkHealth(60.0)
        self.pause_reasons: set[PauseReason] = set()
        self.network: bool | None = True
        self.is_closed = False
        """As of a `NetworkProof`."""
        self.host = RelayHost(
            self.site,
            cast(Any, self),
            self.health,
            Scope(Job(seeds=("http://a.example/",))),
            owns=lambda peer, url: peer == OWNER,
            pause_reasons=self.pause_reasons,
            random=Random(1),
            now=lambda: 0.0,
        )

    async def works(self, since: float) -> bool | None:
        """Answer as a `NetworkProof`."""
        return self.network

    async def connect(self, url: str) -> FetchResult:
        """Connect as a `NetworkProof`."""
        return await self.site.fetch(url, (), lambda: False)

    async def ask(self, url: str = PAGE, page: str = PAGE, owner: Contact = OWNER, **fields: Any) -> FetchedForPeer:
        return await self.host.fetch(FetchForPeer(owner, page, url, **fields))


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_the_owner_of_a_site_gets_the_answer_as_received(bench: Bench) -> None:
    answer = await bench.ask(fields=[HeaderField("If-None-Match", '"e"')])
    assert (200, b"hello", "192.0.2.9", None) == (answer.status, answer.body, answer.address, answer.ticket)
    assert [(b"Content-Type", b"text/html")] == [(one.name, one.value) for one in answer.headers]
    assert [(PAGE, [("If-None-Match", '"e"')])] == bench.site.asked


@pytest.mark.parametrize(
    "refused",
    [
        {"owner": OTHER},
        {"page": "http://b.example/", "url": "http://b.example/"},
        {"url": "http://b.example/robots.txt"},
        {"url": "http://a.example/#x"},
        {"url": "file:///etc/passwd"},
        {"fields": [HeaderField("Host", "b.example")]},
        {"fields": [HeaderField("transfer-ENCODING", "chunked")]},
    ],
)
async def test_what_no_owner_may_ask_is_refused_and_not_fetched(bench: Bench, refused: dict[str, Any]) -> None:
    assert "refused" == (await bench.ask(**refused)).unable
    assert [] == bench.site.asked


async def test_a_robots_txt_may_redirect_within_its_domain(bench: Bench) -> None:
    assert "" == (await bench.ask("https://www.a.example/robots.txt")).unable


async def test_a_peer_that_ends_neither_tries_nor_says_that_it_reached_a_host(bench: Bench) -> None:
    """A request that it does not send any more looks as one that was called off once the connection was there."""
    bench.site.open.clear()
    asked = asyncio.create_task(bench.ask(connect_only=True))
    await asyncio.sleep(0)
    bench.is_closed = True
    bench.site.open.set()
    assert "busy" == (await asked).unable
    assert "busy" == (await bench.ask(connect_only=True)).unable
    assert "busy" == (await bench.ask()).unable
    assert [] == bench.site.asked


async def test_a_peer_whose_own_network_fails_does_not_try(bench: Bench) -> None:
    for number in range(HOSTS_MISSED):
        bench.health.missed(str(number), f"http://{number}.example/", 0.0)
    bench.health.test_failed(0.0)
    assert "network" == (await bench.ask()).unable


@pytest.mark.parametrize(
    ("reason", "unable"),
    [
        (PauseReason.DISK, "busy"),
        (PauseReason.JOINING, "busy"),
        (PauseReason.STOPPING, "busy"),
        (PauseReason.PROXIES, "network"),
        (PauseReason.COMMAND, ""),
    ],
)
async def test_a_peer_that_cannot_fetch_just_now_says_so(bench: Bench, reason: PauseReason, unable: str) -> None:
    bench.pause_reasons.add(reason)
    assert unable == (await bench.ask()).unable


@pytest.mark.parametrize("error", [FetchError.NO_SOCKET, FetchError.NOT_SENT, FetchError.PROXY, FetchError.VERIFYING])
async def test_a_request_that_was_not_made_is_no_failure_of_the_site(bench: Bench, error: FetchError) -> None:
    bench.site.error = error
    answer = await bench.ask()
    assert ("busy", "") == (answer.unable, answer.error)


@pytest.mark.parametrize(
    ("works", "said"), [(True, ("", "dns", True)), (None, ("", "dns", False)), (False, ("network", "", False))]
)
async def test_a_peer_says_whether_its_own_network_works_when_it_cannot_connect(
    bench: Bench, works: bool | None, said: tuple[str, str, bool]
) -> None:
    bench.site.error, bench.network = FetchError.DNS, works
    answer = await bench.ask()
    assert said == (answer.unable, answer.error, answer.proven)


async def test_a_miss_before_the_network_came_back_is_no_opinion(bench: Bench) -> None:
    async def comes_back(since: float) -> bool:
        for number in range(HOSTS_MISSED):
            bench.health.missed(str(number), f"http://{number}.example/", 0.0)
        bench.health.test_failed(0.0)
        bench.health.reached("known.example", "http://known.example/")
        return True

    bench.site.error = FetchError.DNS
    bench.works = comes_back  # type: ignore[method-assign]
    answer = await bench.ask()
    assert ("busy", "") == (answer.unable, answer.error)


async def test_a_request_that_could_not_begin_in_time_is_not_made(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay_host, "BEGIN_S", -1.0)
    assert "busy" == (await bench.ask()).unable
    assert [] == bench.site.asked


async def test_a_test_of_the_connection_sends_no_request(bench: Bench) -> None:
    answer = await bench.ask(connect_only=True)
    assert ("", "", None) == (answer.unable, answer.error, answer.status)
    assert [] == bench.site.asked
    bench.site.error = FetchError.DNS
    assert "dns" == (await bench.ask(connect_only=True)).error


async def test_a_peer_has_no_more_requests_under_way_here_than_the_limit(bench: Bench) -> None:
    bench.site.open.clear()
    under_way = [asyncio.create_task(bench.ask()) for _ in range(REQUESTS_PER_PEER_MAX)]
    await asyncio.sleep(0)
    assert "busy" == (await bench.ask()).unable
    bench.site.open.set()
    assert {""} == {answer.unable for answer in await asyncio.gather(*under_way)}
    assert "" == (await bench.ask()).unable


async def test_a_large_body_comes_in_parts_to_its_owner_alone(bench: Bench) -> None:
    bench.site.body = Random(1).randbytes(2 * RELAY_PART_BYTES_MAX + 5)
    first = await bench.ask()
    assert first.ticket is not None
    assert b"" == (await bench.host.part(GetFetchedPart(OTHER, first.ticket, 0))).body
    parts = [first.body]
    while sum(map(len, parts)) < first.body_bytes:
        parts.append((await bench.host.part(GetFetchedPart(OWNER, first.ticket, sum(map(len, parts))))).body)
    assert bench.site.body == b"".join(parts)
    assert b"" == (await bench.host.part(GetFetchedPart(OWNER, first.ticket, 0))).body


async def test_no_more_bodies_wait_than_the_limit(bench: Bench) -> None:
    bench.site.body = bytes(RELAY_PART_BYTES_MAX + 1)
    tickets = [(await bench.ask()).ticket for _ in range(WAITING_BODIES_MAX + 1)]
    parts = [await bench.host.part(GetFetchedPart(OWNER, ticket or b"", RELAY_PART_BYTES_MAX)) for ticket in tickets]
    assert [0, *[1] * WAITING_BODIES_MAX] == [len(part.body) for part in parts]


# --- the asking end ------------------------------------------------------------------------------------------------


class Line:
    """A link client that answers by a relay host, or breaks."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.breaks_after = 99
        self.answer: FetchedForPeer | None = None

    async def ask(self, to: Contact, question: Any, expected: Any, deadline_s: float) -> Any:
        self.breaks_after -= 1
        if self.breaks_after < 0:
            raise RemoteError("there", "is silent")
        if isinstance(question, GetFetchedPart):
            return await self.bench.host.part(question)
        return self.answer or await self.bench.host.fetch(question)


def asker(line: Line) -> RelayClient:
    return RelayClient(cast(Any, line), lambda: OWNER, Limits())


async def test_an_answer_arrives_whole_and_names_the_peer_that_asked_the_site(bench: Bench) -> None:
    bench.site.body = Random(1).randbytes(3 * RELAY_PART_BYTES_MAX)
    answer = await asker(Line(bench)).fetch(OTHER, PAGE, PAGE, (), ANY)
    assert (200, bench.site.body, OTHER.id.hex()[:16], None) == (answer.status, answer.body, answer.via, answer.error)


async def test_no_more_of_a_body_is_read_than_the_limit(bench: Bench) -> None:
    bench.site.body = bytes(3 * RELAY_PART_BYTES_MAX)
    assert 10 == len((await asker(Line(bench)).fetch(OTHER, PAGE, PAGE, (), 10)).body)


@pytest.mark.parametrize("breaks_after", [0, 1])
async def test_a_peer_that_goes_silent_may_have_asked_the_site(bench: Bench, breaks_after: int) -> None:
    bench.site.body = bytes(3 * RELAY_PART_BYTES_MAX)
    line = Line(bench)
    line.breaks_after = breaks_after
    with pytest.raises(Unanswered) as found:
        await asker(line).fetch(OTHER, PAGE, PAGE, (), ANY)
    assert found.value.may_have_asked


async def test_a_peer_that_did_not_try_has_not_asked_the_site(bench: Bench) -> None:
    bench.pause_reasons.add(PauseReason.DISK)
    with pytest.raises(Unanswered) as found:
        await asker(Line(bench)).fetch(OTHER, PAGE, PAGE, (), ANY)
    assert not found.value.may_have_asked


@pytest.mark.parametrize("named", ["no_socket", "no_proxy", "not_sent", "made_up"])
async def test_a_member_that_names_a_failure_of_its_machine_pauses_no_other_machine(bench: Bench, named: str) -> None:
    line = Line(bench)
    line.answer = FetchedForPeer("", named)
    assert FetchError.PROTOCOL is (await asker(line).fetch(OTHER, PAGE, PAGE, (), ANY)).error


async def test_a_peer_is_asked_no_more_than_the_limit_at_a_time_and_the_rest_wait(bench: Bench) -> None:
    client = asker(Line(bench))

    async def ask() -> int | None:
        async with client.place(OTHER):
            return (await client.fetch(OTHER, PAGE, PAGE, (), ANY)).status

    bench.site.open.clear()
    under_way = [asyncio.create_task(ask()) for _ in range(QUESTIONS_MAX + 5)]
    await until(lambda: (bench.host.under_way, client.users(OTHER)) == (QUESTIONS_MAX, QUESTIONS_MAX + 5))
    await asyncio.sleep(0.01)
    assert QUESTIONS_MAX == bench.host.under_way
    bench.site.open.set()
    assert [200] * (QUESTIONS_MAX + 5) == await asyncio.gather(*under_way)
    assert 0 == client.users(OTHER)
