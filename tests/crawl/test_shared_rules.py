"""The owner of a host's clock reads its robots.txt once for all peers, and leaves to them what it cannot read."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kadcrawl.crawl.fetch.poison_pages import PoisonPages
from kadcrawl.crawl.fetch.result import FetchError
from kadcrawl.crawl.robots.cache import LARGE_BYTES, RobotsCache
from kadcrawl.crawl.robots.rules import Rules
from kadcrawl.crawl.shared_rules import FAILED_S, READING_MAX, SharedRules
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_rules import SiteRule
from kadcrawl.settings.site_settings import SiteSettings

PAGE, ROBOTS = "http://a.test/page", "http://a.test/robots.txt"
FORBIDS = b"user-agent: *\ndisallow: /no\n"
CONNECTIONS = 6


class SharedRulesBench:
    """The rules of a peer that can ask one server, at the turn of its clock."""

    def __init__(self, job: Job) -> None:
        self.time, self.has_turn, self.may_request = 1_000.0, True, True
        self.status: int | None = 200
        self.content, self.location, self.error = FORBIDS, cast(str | None, None), cast(FetchError | None, None)
        self.hold_s = 0.0
        self.asked: list[str] = []
        self.rests: list[float] = []
        self.kept: list[Any] = []
        self.rows: dict[str, tuple[bytes, float]] = {}
        self.why_not: Callable[[str, int], str | None] = lambda url, depth: None
        self.pause_reasons: set[str] = set()
        self.let_go = asyncio.Event()
        self.let_go.set()
        parts = SimpleNamespace(
            clock=SimpleNamespace(now=lambda: self.time),
            limits=Limits(),
            site_settings=(settings := SiteSettings(job)),
            scope=SimpleNamespace(why_not=lambda url, depth: self.why_not(url, depth)),
            crawl_limits=SimpleNamespace(may_request=True),
            pause_reasons=self.pause_reasons,
            poison_pages=PoisonPages(None),
            outputs=SimpleNamespace(keep=self.kept.append),
            clocks=self,
        )
        sites = SimpleNamespace(robots=self.rows.get, set_robots=self._set)
        store: Any = SimpleNamespace(sites=sites)
        self.steering = settings.steering
        self.robots = RobotsCache(store, Limits())
        self.rules = SharedRules(cast(Any, parts), cast(Any, self), cast(Any, sites), self.robots)

    def _set(self, origin: str, rules: bytes, fetched_at: float) -> None:
        self.rows[origin] = rules, fetched_at

    async def fetch(self, url: str, fields: object, may_send: Callable[[], bool], *, memory_slots: object) -> Any:
        """Fetch as a `Fetcher` does."""
        self.asked.append(url)
        await self.let_go.wait()
        error = self.error if may_send() else FetchError.NOT_SENT
        return SimpleNamespace(
            url=url, status=self.status, content=self.content, location=self.location, error=error, hold_s=self.hold_s
        )

    @asynccontextmanager
    async def turn(self, url: str, delay_s: float, wait_s: float) -> AsyncIterator[Callable[[], bool] | None]:
        """Give a turn as a `ClockHolder` does."""
        yield (lambda: True) if self.has_turn else None

    async def find(self, url: str) -> tuple[str, str, None]:
        return "host a.test", "", None

    def rest(self, clock: str, seconds: float) -> None:
        self.rests.append(seconds)

    def connections(self, url: str) -> int:
        return CONNECTIONS


@pytest.fixture
async def bench() -> SharedRulesBench:
    return SharedRulesBench(Job(delay_s=0.0))


async def test_rules_are_read_once_and_known_from_then_on(bench: SharedRulesBench) -> None:
    assert bench.rules.known(PAGE) is None
    assert bench.rules.may_read(PAGE)
    bench.let_go.clear()
    readings = [asyncio.create_task(bench.rules.read(PAGE)) for _ in range(3)]
    while not bench.asked:
        await asyncio.sleep(0)
    bench.let_go.set()
    await asyncio.gather(*readings)
    assert [ROBOTS] == bench.asked
    bench.time += 10
    record = bench.rules.known(PAGE)
    assert record is not None
    assert ("http://a.test", 10.0) == (record.origin, record.age_s)
    assert not Rules.from_bytes(record.rules).allowed("http://a.test/no")
    assert CONNECTIONS == bench.rules.connections(PAGE, record)
    assert 1 == len(bench.kept), "the answer is in the WARC file"


async def test_the_clock_rests_for_the_delay_of_the_file_before_its_next_request(bench: SharedRulesBench) -> None:
    bench.content = b"user-agent: *\ncrawl-delay: 7\n"
    await bench.rules.read(PAGE)
    record = bench.rules.known(PAGE)
    assert [7.0] == bench.rests
    assert record is not None
    assert 1 == bench.rules.connections(PAGE, record), "a host with a delay is asked by one peer at a time"


@pytest.mark.parametrize(
    "answer",
    [
        {"status": 302, "location": "http://b.test/"},
        {"status": 503},
        {"status": None, "error": FetchError.TIMEOUT},
        {"error": FetchError.NO_SOCKET},
        {"has_turn": False},
    ],
)
async def test_a_file_that_cannot_be_read_is_left_to_others_for_a_while(
    bench: SharedRulesBench, answer: dict[str, object]
) -> None:
    for name, value in answer.items():
        setattr(bench, name, value)
    await bench.rules.read(PAGE)
    assert bench.rules.known(PAGE) is None
    assert not bench.rules.may_read(PAGE)
    bench.time += FAILED_S
    assert bench.rules.may_read(PAGE)


async def test_rules_that_are_too_large_for_a_lease_are_read_once_and_left_to_others(bench: SharedRulesBench) -> None:
    bench.content = b"user-agent: *\n" + b"".join(b"disallow: /%d\n" % number for number in range(LARGE_BYTES // 10))
    await bench.rules.read(PAGE)
    assert bench.rules.known(PAGE) is None
    assert not bench.rules.may_read(PAGE)
    bench.time += FAILED_S
    assert not bench.rules.may_read(PAGE), "it would be read again and again for nobody"
    assert [ROBOTS] == bench.asked


async def test_a_server_that_asks_for_patience_is_left_alone_by_all(bench: SharedRulesBench) -> None:
    bench.status, bench.hold_s = 429, 30.0
    await bench.rules.read(PAGE)
    assert [30.0] == bench.rests


async def test_no_peer_has_files_read_that_this_peer_would_not_ask_for(bench: SharedRulesBench) -> None:
    assert not bench.rules.may_read("http://A.test/not/canonical")
    bench.pause_reasons.add("command")
    assert not bench.rules.may_read(PAGE)
    bench.pause_reasons.clear()
    bench.why_not = lambda url, depth: "scope"
    assert not bench.rules.may_read(PAGE)


async def test_the_robots_txt_of_an_own_host_is_not_read_for_others() -> None:
    bench = SharedRulesBench(Job(sites=(SiteRule(match=("a.test",), robots="ignore"),), contact="me@example.org"))
    assert not bench.rules.may_read(PAGE)
    assert bench.rules.may_read("http://b.test/")


async def test_few_files_are_read_at_a_time(bench: SharedRulesBench) -> None:
    bench.let_go.clear()
    urls = [f"http://s{number}.test/" for number in range(READING_MAX)]
    for url in urls:
        bench.rules.begin(url)
    assert not bench.rules.may_read(PAGE), "before their tasks have begun"
    readings = [asyncio.create_task(bench.rules.read(url)) for url in urls]
    while len(bench.asked) < READING_MAX:
        await asyncio.sleep(0)
    assert not bench.rules.may_read(PAGE)
    assert bench.rules.may_read(urls[0]), "it is under way"
    bench.let_go.set()
    await asyncio.gather(*readings)
    assert bench.rules.may_read(PAGE)


async def test_large_or_old_rules_are_not_told(bench: SharedRulesBench) -> None:
    bench.rows["http://a.test"] = bytes(LARGE_BYTES + 1), bench.time
    assert bench.rules.known(PAGE) is None
    await bench.rules.read(PAGE)
    assert bench.rules.known(PAGE) is not None
    bench.time += Limits().robots_ttl_s
    assert bench.rules.known(PAGE) is None
    assert bench.rules.may_read(PAGE)


async def test_rules_that_another_peer_told_are_not_passed_on(bench: SharedRulesBench) -> None:
    bench.rows["http://a.test"] = FORBIDS, bench.time
    assert bench.rules.known(PAGE) is None
    await bench.rules.read(PAGE)
    bench.rows["http://a.test"] = bench.rows["http://a.test"][0], bench.time + 1
    assert bench.rules.known(PAGE) is not None, "the same rules came back"
    bench.rows["http://a.test"] = b"user-agent: *\nallow: /no\n", bench.time + 2
    assert bench.rules.known(PAGE) is None
    assert not bench.rules.may_read(PAGE), "a peer that tells such rules again and again causes no requests"
    bench.time += FAILED_S
    assert bench.rules.may_read(PAGE)


async def test_a_fault_of_kadcrawl_costs_one_file(bench: SharedRulesBench, caplog: pytest.LogCaptureFixture) -> None:
    bench.content = cast(Any, None)
    await bench.rules.read(PAGE)
    assert "crawl.bug" in caplog.text
    assert not bench.rules.may_read(PAGE)


async def test_no_request_leaves_for_a_site_that_was_paused_meanwhile(bench: SharedRulesBench) -> None:
    bench.let_go.clear()
    reading = asyncio.create_task(bench.rules.read(PAGE))
    while not bench.asked:
        await asyncio.sleep(0)
    bench.steering.follow({"a.test": True}, {})
    bench.let_go.set()
    await reading
    assert [] == bench.kept, "the fetcher asks whether it may send right before it does"
