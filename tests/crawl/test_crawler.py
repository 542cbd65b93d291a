"""Test that the crawler makes no forbidden request, blames no URL for a fault of this machine, and loses none."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from kadcrawl.crawl.attempt import ALONE_WAIT_S, KEPT_WAITING_TRIES
from kadcrawl.crawl.byte_budget import ByteBudget
from kadcrawl.crawl.capacity import Capacity
from kadcrawl.crawl.content.html_links import LinkExtractor
from kadcrawl.crawl.crawl_limits import CrawlLimits
from kadcrawl.crawl.crawl_time import CrawlTime
from kadcrawl.crawl.crawler import WAITS_PER_TURN_MAX, Crawler
from kadcrawl.crawl.dependencies import CrawlDependencies, CrawlHooks, CrawlSource
from kadcrawl.crawl.fetch.fetcher import always
from kadcrawl.crawl.fetch.memory_slots import MemorySlots
from kadcrawl.crawl.fetch.poison_pages import PoisonPages
from kadcrawl.crawl.fetch.result import FetchError, FetchResult, retry_wait_s
from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.links.forwarder import Forwarder
from kadcrawl.crawl.links.intake import Intake, IntakeEvents, IntakeLimits
from kadcrawl.crawl.output.counters import Counters
from kadcrawl.crawl.output.outputs import Outputs
from kadcrawl.crawl.output.page_stream import PageFeed
from kadcrawl.crawl.page_budget import Budget
from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.crawl.robots.cache import RobotsCache
from kadcrawl.crawl.robots.rules import parse
from kadcrawl.crawl.scope.partitioner import Partitioner, UrlLocation
from kadcrawl.crawl.scope.scope import Scope
from kadcrawl.keys import Cell
from kadcrawl.link.wire.messages import Link
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.page_rules import PageRules
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.store import DONE, PENDING, Store
from kadcrawl.system.clock import Clock

LIMITS = Limits(commit_spacing_s=0.001, batch_spacing_s=0.001, retry_base_s=0.001)
PAGE, ROBOTS, OTHER = "http://a.test/", "http://a.test/robots.txt", "http://b.test/"
MaySend = Callable[[], bool]


@dataclass
class CrawlerWorld:
    """A crawler with everything around it but a network: requests are answered by `answer`."""

    store: Store
    frontier: Frontier
    intake: Intake
    partitioner: Partitioner
    activity: Activity
    counters: Counters
    clock: Clock
    budget: Budget
    directory: Path
    time: CrawlTime = field(default_factory=lambda: CrawlTime(60.0))
    page_feed: PageFeed = field(default_factory=PageFeed)
    requests: list[str] = field(default_factory=list)
    connected: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    """Functions to await in turn while a request waits for its connection."""
    failures: list[FetchError] = field(default_factory=list)
    """The failures of the first requests."""
    may: bool = True
    """The peer allows requests."""
    crawler: Crawler = field(init=False)
    called_off: int = 0

    async def fetch(
        self,
        url: str,
        extra_headers: Sequence[Any] = (),
        may_send: MaySend = always,
        *,
        memory_slots: MemorySlots | None = None,
        page: str = "",
    ) -> FetchResult:
        if self.connected:
            await self.connected.pop(0)()
        else:
            await asyncio.sleep(0)
        if not may_send():
            self.called_off += 1
            return self._fetched(url, FetchError.NOT_SENT)
        self.requests.append(url)
        return self._fetched(url, self.failures.pop(0) if self.failures else None)

    def _fetched(self, url: str, failure: FetchError | None) -> FetchResult:
        return FetchResult(
            url=url,
            status=None if failure else 404 if url.endswith("/robots.txt") else 200,
            error=failure,
            detail="",
            request_head=b"GET / HTTP/1.1\r\n\r\n",
            http_version="1.1",
            reason="OK",
            headers=(),
            body=b"",
            content=b"",
            content_type="text/html",
            mime="text/html",
            retry_after_s=None,
            address="192.0.2.1",
            started_at=datetime(2026, 1, 1, tzinfo=UTC),
            seconds=0.0,
            first_byte_at=asyncio.get_running_loop().time(),
        )

    def place(self, url: str) -> UrlLocation:
        return self.partitioner.locate(url)

    def open(self, url: str, *, hold: bool = False) -> None:
        self.frontier.open(self.place(url).cell, self.clock.now(), hold=hold)

    def close(self, url: str) -> None:
        self.frontier.close(self.place(url).cell)

    def take(self, url: str) -> None:
        self.intake.accept(Link(url, 1, 0), self.place(url), self.clock.now())

    def state(self, url: str) -> int | None:
        return self.store.state(self.place(url).key)

    def know_robots(self, url: str, text: str = "") -> None:
        rules = parse(text.encode(), "kadcrawl")
        self.store.sites.set_robots(url.rstrip("/"), rules.to_bytes(), self.clock.now())

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not holds():
                await asyncio.sleep(0.001)

    async def still(self) -> None:
        """Give the crawler every chance to make a forbidden request."""
        for _ in range(20):
            await asyncio.sleep(0)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.directory / "pages.jsonl").read_text().splitlines()]


@asynccontextmanager
async def crawling(tmp_path: Path, delay_s: float = 0.0, *, by_depth: bool = False) -> AsyncIterator[CrawlerWorld]:
    clock, activity, totals, random = Clock(asyncio.get_running_loop()), Activity(), Counters(), Random(1)
    activity.armed = True
    store = Store(tmp_path, LIMITS.commit_spacing_s)
    store.begin(16)
    job = Job(scope="any", delay_s=delay_s, retries=1)
    scope, partitioner = Scope(job), Partitioner("host", 16)
    frontier = Frontier(store, LIMITS, scope.site_settings)
    events = IntakeEvents(changed=lambda: world.crawler.wake())
    intake = Intake(store, frontier, scope, totals, activity, IntakeLimits(), events)
    world = CrawlerWorld(store, frontier, intake, partitioner, activity, totals, clock, Budget(9, 9, 0), tmp_path)
    outputs = Outputs(tmp_path, "test", {}, "00", store, LIMITS, random, lambda: 0.0)
    store.journal.before_commit(outputs.flush)
    forwarder = Forwarder(
        cast(Any, world), cast(Any, world), intake, partitioner, LIMITS, False, clock.now,
        is_open=frontier.is_open, accept_here=cast(Any, None),
    )  # fmt: skip
    parts = CrawlDependencies(
        by_depth=by_depth,
        site_settings=scope.site_settings,
        limits=LIMITS,
        clock=clock,
        random=random,
        crawl_limits=CrawlLimits(world.budget, ByteBudget(None, 0, lambda: (0, 0)), world.time, clock.now),
        fetcher=world,
        direct=cast(Any, world),
        extractor=LinkExtractor(LIMITS),
        scope=scope,
        forwarder=forwarder,
        outputs=outputs,
        counters=totals,
        capacity=Capacity(LIMITS),
        page_feed=world.page_feed,
        page_rules=PageRules(),
        poison_pages=PoisonPages(None),
        pause_reasons=set(),
        rounds=None,
        extraction=None,
        near_duplicates=None,
    )
    source = CrawlSource(store, frontier, RobotsCache(store, LIMITS), activity)
    world.crawler = crawler = Crawler(parts, source, CrawlHooks(may_start=lambda: world.may))
    tasks = [asyncio.create_task(crawler.run()), asyncio.create_task(store.journal.run())]
    try:
        yield world
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await store.journal.commit()
        outputs.close()
        store.close()


async def test_an_entry_whose_cell_closed_in_waiting_returns_without_a_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(tmp_path) as world:
        world.know_robots(PAGE)
        first = Frontier.next

        def next_then_close(frontier: Frontier, now: float) -> Any:
            entry = first(frontier, now)
            world.close(PAGE)
            return entry

        monkeypatch.setattr(Frontier, "next", next_then_close)
        world.open(PAGE)
        world.take(PAGE)
        await world.still()
        assert (world.requests, world.crawler.in_flight, world.state(PAGE)) == ([], 0, PENDING)
        monkeypatch.undo()
        world.open(PAGE)
        world.crawler.wake()
        await world.until(lambda: world.state(PAGE) == DONE)
        assert [PAGE] == world.requests


async def test_an_entry_that_was_journaled_anew_leaves_its_slot_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(tmp_path, by_depth=True) as world:
        world.know_robots(PAGE)
        first = Frontier.next
        taken: list[FrontierEntry] = []

        def next_then_journal_anew(frontier: Frontier, now: float) -> Any:
            entry = first(frontier, now)
            if entry is not None and not taken:
                taken.append(entry)
                world.store.forget(entry.key)
                world.store.accept(entry.key, entry.site, entry.url, entry.depth + 1, entry.hops)
            return entry

        monkeypatch.setattr(Frontier, "next", next_then_journal_anew)
        world.open(PAGE)
        world.take(PAGE)
        await world.until(lambda: world.state(PAGE) == DONE)
        async with asyncio.timeout(60):
            await world.crawler.drained(1.0)
        assert (world.crawler.in_flight, world.crawler.is_taken(taken[0])) == (0, False)


@pytest.mark.parametrize("known", [False, True], ids=["robots.txt", "page"])
async def test_nothing_is_asked_for_while_the_peer_does_not_let_it(known: bool, tmp_path: Path) -> None:
    async with crawling(tmp_path) as world:
        if known:
            world.know_robots(PAGE)
        world.may = False
        world.open(PAGE)
        world.take(PAGE)
        await world.still()
        assert [] == world.requests
        world.may = True
        world.crawler.wake()
        await world.until(lambda: world.state(PAGE) == DONE)


async def test_nothing_is_fetched_of_a_cell_while_nobody_else_would_learn_of_it(tmp_path: Path) -> None:
    async with crawling(tmp_path) as world:
        unheard = {world.place(PAGE).cell}
        assert world.place(OTHER).cell not in unheard
        world.crawler.hooks.no_backup_reachable = unheard.__contains__
        for url in (PAGE, OTHER):
            world.know_robots(url)
            world.open(url)
            world.take(url)
        await world.until(lambda: world.state(OTHER) == DONE)
        await asyncio.sleep(1.5 * ALONE_WAIT_S)
        assert [OTHER] == world.requests
        unheard.clear()
        await world.until(lambda: world.state(PAGE) == DONE)
        assert [OTHER, PAGE] == world.requests


async def test_many_entries_that_wait_leave_other_tasks_their_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(tmp_path) as world:
        turn, waits_of_turns = 0, Counter[int]()

        def waits(entry: FrontierEntry) -> bool:
            if waits_of_turns.total() == 3 * WAITS_PER_TURN_MAX:
                return False
            waits_of_turns[turn] += 1
            world.frontier.give_up_slot(entry)
            world.frontier.put_back(entry, world.clock.now())
            return True

        monkeypatch.setattr(world.crawler._early_waits, "waits", waits)
        world.know_robots(PAGE)
        world.open(PAGE)
        world.take(PAGE)
        async with asyncio.timeout(60):
            while world.state(PAGE) != DONE:
                await asyncio.sleep(0)
                turn += 1
        assert 3 * WAITS_PER_TURN_MAX == waits_of_turns.total()
        assert WAITS_PER_TURN_MAX == max(waits_of_turns.values())


async def test_pages_that_end_without_a_request_wait_too_and_are_not_tried_on_and_on(tmp_path: Path) -> None:
    """No request waits for the clock of an excluded site, but its pages do wait until another peer would learn."""
    async with crawling(tmp_path) as world:
        tries, is_alone = 0, True

        def alone(cell: Cell) -> bool:
            nonlocal tries
            tries += 1
            return is_alone

        world.crawler.hooks.no_backup_reachable = alone
        world.open(PAGE)
        world.take(PAGE)
        world.frontier._sites[world.place(PAGE).site].excluded = True
        began = asyncio.get_running_loop().time()
        await world.until(lambda: tries > 0)
        await asyncio.sleep(1.5 * ALONE_WAIT_S)
        assert tries <= 2 + (asyncio.get_running_loop().time() - began) / ALONE_WAIT_S
        assert world.state(PAGE) != DONE
        is_alone = False
        await world.until(lambda: world.state(PAGE) == DONE)
        assert [] == world.requests


@pytest.mark.parametrize("known", [False, True], ids=["robots.txt", "page"])
@pytest.mark.parametrize("how", ["closed", "closed and opened again", "stalled"])
async def test_a_request_still_waiting_for_its_connection_is_called_off(how: str, known: bool, tmp_path: Path) -> None:
    """The cancelled request does not count as a try of the URL."""
    async with crawling(tmp_path) as world:
        if known:
            world.know_robots(PAGE)

        async def connected() -> None:
            if how == "stalled":
                world.may = False
            else:
                world.close(PAGE)
                if how != "closed":
                    world.open(PAGE, hold=True)

        world.connected = [connected]
        world.open(PAGE)
        world.take(PAGE)
        await world.until(lambda: not world.connected)
        await world.still()
        world.may = True
        world.open(PAGE)
        world.crawler.wake()
        await world.until(lambda: world.state(PAGE) == DONE)
        assert (1, [PAGE] if known else [ROBOTS, PAGE]) == (world.called_off, world.requests)
        assert ({}, 1) == (world.counters.failed, world.budget.begun)


async def test_a_page_whose_cell_closed_during_its_fetch_is_still_finished_here(tmp_path: Path) -> None:
    async with crawling(tmp_path) as world:
        world.know_robots(PAGE)
        release = asyncio.Event()

        async def reader(page: Any) -> None:
            await release.wait()

        world.page_feed.show(reader)
        world.open(PAGE)
        world.take(PAGE)
        await world.until(lambda: bool(world.requests) and not world.crawler.in_flight)
        world.close(PAGE)
        assert (1, PENDING) == (world.frontier.out(world.place(PAGE).cell), world.state(PAGE))
        release.set()
        await world.until(lambda: world.state(PAGE) == DONE)
        await world.store.journal.durable()
        await world.until(lambda: [PAGE] == [line["url"] for line in world.lines()])
        assert 0 == world.frontier.out(world.place(PAGE).cell)


async def test_a_page_that_a_stop_leaves_unfinished_takes_nothing_of_max_pages(tmp_path: Path) -> None:
    async with crawling(tmp_path) as world:
        world.know_robots(PAGE)

        async def reader(page: Any) -> None:
            await asyncio.Event().wait()

        world.page_feed.show(reader)
        world.open(PAGE)
        world.take(PAGE)
        await world.until(lambda: bool(world.requests) and not world.crawler.in_flight)
        await world.crawler.drained(0.0)
        assert (1, 0) == (world.budget.begun, world.budget.kept)
        state = world.state(PAGE)
    assert (PENDING, 0, 0, 9) == (state, world.budget.begun, world.budget.kept, world.budget.allowance)


async def test_a_page_with_a_bug_takes_its_unit_of_max_pages(tmp_path: Path) -> None:
    async with crawling(tmp_path) as world:
        world.know_robots(PAGE)

        async def reader(page: Any) -> None:
            raise ValueError("bug")

        world.page_feed.show(reader)
        world.open(PAGE)
        world.take(PAGE)
        await world.until(lambda: world.state(PAGE) == DONE)
        await world.until(lambda: not world.budget.held)
        assert ({"internal_error": 1}, 1) == (world.counters.failed, world.budget.begun)


@pytest.mark.parametrize("known", [False, True], ids=["robots.txt", "page"])
async def test_no_file_to_open_is_no_fault_of_the_site(
    known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kadcrawl.crawl.crawler.FILES_WAIT_S", 0.2)
    async with crawling(tmp_path) as world:
        if known:
            world.know_robots(PAGE)
        world.failures = [FetchError.NO_SOCKET] * 5
        world.open(PAGE)
        world.take(PAGE)
        held = []
        for left in (4, 3):
            await world.until(lambda left=left: len(world.failures) == left)  # type: ignore[misc]
            await world.still()
            held.append(PauseReason.FILES in world.crawler.pause_reasons)
        assert [True, True] == held
        entry = world.store.entry(world.place(PAGE).key)
        assert entry is not None
        assert (0, 0.0) == (entry.tries, entry.due)
        await world.until(lambda: world.state(PAGE) == DONE)
        assert ({}, set(), 1) == (world.counters.failed, world.crawler.pause_reasons, world.budget.begun)


@pytest.mark.parametrize("more", [0, 1])
async def test_what_a_server_did_not_wait_for_here_has_some_more_tries(more: int, tmp_path: Path) -> None:
    tries = 1 + 1 + KEPT_WAITING_TRIES
    async with crawling(tmp_path) as world:
        world.know_robots(PAGE)
        world.failures = [FetchError.KEPT_WAITING] * (tries - 1 + more)
        world.open(PAGE)
        world.take(PAGE)
        await world.until(lambda: world.state(PAGE) == DONE)
        assert tries == len(world.requests)
        assert ({"kept_waiting": 1} if more else {}) == world.counters.failed


async def test_no_retry_waits_longer_than_a_site_may_ask_for(tmp_path: Path) -> None:
    async with crawling(tmp_path) as world:
        world.know_robots(PAGE)
        world.open(PAGE)
        world.take(PAGE)
        entry = world.store.entry(world.place(PAGE).key)
        assert entry is not None
        fetched = world._fetched(PAGE, FetchError.CONNECT)
        waits = [retry_wait_s(tries, fetched, LIMITS, Random(1)) for tries in (0, 30, 1000)]
        most_s = LIMITS.retry_after_max_s
        assert waits[0] < 1 < 0.75 * most_s <= min(waits[1:])
        assert max(waits) <= 1.25 * most_s


async def test_the_peer_is_idle_only_when_its_backups_for_others_are_done(tmp_path: Path) -> None:
    async with crawling(tmp_path) as world:
        world.know_robots(PAGE)
        world.open(PAGE)
        world.take(PAGE)
        world.intake.merge_pending(Link(OTHER, 1, 0), world.place(OTHER), world.clock.now(), 0, 0.0)
        await world.until(lambda: world.state(PAGE) == DONE)
        await world.still()
        assert (False, 1, [PAGE]) == (world.activity.idle.is_set(), world.crawler.pending, world.requests)
        world.intake.merge_done(world.place(OTHER).key, world.clock.now())
        assert (True, 0) == (world.activity.idle.is_set(), world.crawler.pending)


async def test_a_delay_from_rules_of_a_new_cell_holds_the_first_request(
    tmp_path: Path,
) -> None:
    async with crawling(tmp_path, delay_s=0.001) as world:
        world.know_robots(PAGE, "user-agent: *\ncrawl-delay: 30\n")
        world.open(PAGE, hold=True)
        world.take(PAGE)
        cell = world.place(PAGE).cell
        await world.until(lambda: world.frontier.wait_s("a.test", world.clock.now()) > 20)
        await world.still()
        assert ([], 0) == (world.requests, world.frontier.in_flight(cell))
