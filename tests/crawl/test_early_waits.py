"""Entries that must wait for their hosts or for backups are put back before an attempt is made at them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kadcrawl.crawl.attempt import ALONE_WAIT_S
from kadcrawl.crawl.clocks.clock_holder import ClockHolder, waiter_of
from kadcrawl.crawl.clocks.clock_keeper import ClockKeeper
from kadcrawl.crawl.clocks.clock_names import host_clock
from kadcrawl.crawl.dependencies import CrawlHooks, CrawlSource
from kadcrawl.crawl.early_waits import EarlyWaits
from kadcrawl.crawl.fetch.poison_pages import PoisonPages
from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.robots.cache import RobotsCache
from kadcrawl.crawl.robots.rules import parse
from kadcrawl.crawl.robots_fetch import delay_by
from kadcrawl.crawl.scope.partitioner import Partitioner
from kadcrawl.crawl.scope.scope import Scope
from kadcrawl.keys import Cell
from kadcrawl.link.wire.clock_messages import ClocksLeased, LeaseClocks
from kadcrawl.link.wire.messages import Contact
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.store.store import Store

ME = Contact(bytes(20), "192.0.2.1", 4160)
ORIGIN = "http://a.test"
LIMITS = Limits()


class UrlBench:
    """The frontier and the clocks of a peer that crawls by URL, and owns all clocks itself."""

    def __init__(self, directory: Path, job: Job, *, clocks: bool = True) -> None:
        self.time, self.wakes = 1_000.0, 0
        self.store = Store(directory, 10.0)
        self.store.begin(16)
        self.scope, self.partitioner = Scope(job), Partitioner("url", 16)
        self.frontier = Frontier(self.store, LIMITS, self.scope.site_settings)
        self.robots = RobotsCache(self.store, LIMITS)
        self.hooks = CrawlHooks(may_start=lambda: True)
        self.keeper = ClockKeeper(1, lambda: 60.0)
        owners = SimpleNamespace(me=ME, known_owner=lambda cell: ME, learn_owner=lambda *_: None)
        self.holder = ClockHolder(
            *(cast(Any, owners), cast(Any, None), self.partitioner, LIMITS, self.scope.site_settings),
            addresses=None,
            host=lambda: cast(Any, self),
        )
        parts: Any = SimpleNamespace(
            clock=SimpleNamespace(now=lambda: self.time),
            site_settings=self.scope.site_settings,
            scope=self.scope,
            poison_pages=PoisonPages(None),
            clocks=self.holder if clocks else None,
        )
        search: Any = SimpleNamespace(
            delay_s=lambda url, rules: delay_by(rules.crawl_delay_s, url, self.scope.site_settings, LIMITS)
        )
        source = CrawlSource(cast(Any, self.store), self.frontier, self.robots, cast(Any, None))
        self.early_waits = EarlyWaits(parts, source, self.hooks, search, self._wake)

    def _wake(self) -> None:
        self.wakes += 1

    async def lease(self, message: LeaseClocks) -> ClocksLeased:
        """Answer as a `ClockHost` does."""
        now = asyncio.get_running_loop().time()
        return ClocksLeased([self.keeper.answer(ME.id, one, 1, 0.0, now).turn for one in message.questions])

    def know(self, rules: str) -> None:
        self.store.sites.set_robots(ORIGIN, parse(rules.encode(), "kadcrawl").to_bytes(), self.time)

    def take(self, path: str) -> None:
        """Accept a URL of the host."""
        place = self.partitioner.locate(ORIGIN + path)
        self.frontier.open(place.cell, self.time, hold=False)
        entry = self.store.accept(place.key, place.site, ORIGIN + path, 1, 0, 0, 0.0)
        assert entry is not None
        self.frontier.add(entry, self.time)

    def waits(self) -> bool:
        """Return whether the next entry of the frontier has to wait."""
        entry = self.frontier.next(self.time)
        assert entry is not None
        waits = self.early_waits.waits(entry)
        assert int(not waits) == self.frontier.in_flight(self.store.cell_of(entry.key))
        return waits


@asynccontextmanager
async def by_url(directory: Path, job: Job | None = None, *, clocks: bool = True) -> AsyncIterator[UrlBench]:
    bench = UrlBench(directory, job or Job(scope="any", delay_s=0.0, partition="url"), clocks=clocks)
    running = asyncio.create_task(bench.holder.run())
    try:
        yield bench
    finally:
        running.cancel()
        await asyncio.wait([running])
        bench.store.journal.close()


async def test_urls_of_a_host_without_a_free_connection_wait_for_their_turns(tmp_path: Path) -> None:
    count = LIMITS.site_connections_max + 2
    async with by_url(tmp_path) as bench:
        bench.know("")
        for number in range(count):
            bench.take(f"/{number}")
        assert [True] * count == [bench.waits() for _ in range(count)], "the host is not leased yet"
        assert bench.frontier.next(bench.time) is None, "the URLs are parked"
        uses: list[Any] = []
        async with asyncio.timeout(5):
            while len(uses) < LIMITS.site_connections_max:
                if (entry := bench.frontier.next(bench.time)) is None:
                    await asyncio.sleep(0.001)
                    continue
                assert not bench.early_waits.waits(entry), "its turn has come"
                clock, waiter = host_clock("a.test"), waiter_of(bench.frontier, entry.site, lambda: None)
                use = bench.holder.enter(clock, entry.url, "", 0.0, waiter, is_known=True)
                assert use.__enter__() is not None
                uses.append(use)
        await asyncio.sleep(0.05)
        assert bench.frontier.next(bench.time) is None, "all connections of the host are in use"
        wakes = bench.wakes
        uses.pop().__exit__(None, None, None)
        async with asyncio.timeout(5):
            while bench.wakes == wakes:
                await asyncio.sleep(0.001)
        assert not bench.waits()


@pytest.mark.parametrize(
    ("rules", "job", "clocks"),
    [
        pytest.param(None, {}, True, id="unread rules"),
        pytest.param("user-agent: *\ndisallow: /", {}, True, id="forbidden"),
        pytest.param("user-agent: *\ncrawl-delay: 2", {}, True, id="delay of robots.txt"),
        pytest.param("", {"delay_s": 1.0}, True, id="delay of the job"),
        pytest.param("", {"exclude": ("/page",)}, True, id="out of scope"),
        pytest.param("", {}, False, id="no shared clocks"),
    ],
)
async def test_an_attempt_decides_about_other_urls(
    rules: str | None, job: dict[str, Any], clocks: bool, tmp_path: Path
) -> None:
    async with by_url(
        tmp_path, Job(**{"scope": "any", "delay_s": 0.0, "partition": "url", **job}), clocks=clocks
    ) as bench:
        if rules is not None:
            bench.know(rules)
        bench.take("/page")
        assert not bench.waits()


async def test_a_request_that_may_not_start_waits_for_no_turn(tmp_path: Path) -> None:
    async with by_url(tmp_path) as bench:
        bench.know("")
        bench.take("/page")
        bench.hooks.may_ask = lambda cell: False
        assert not bench.waits()


async def test_an_entry_whose_backups_are_silent_is_put_off(tmp_path: Path) -> None:
    silent: set[Cell] = set()
    async with by_url(tmp_path) as bench:
        bench.hooks.no_backup_reachable = silent.__contains__
        silent.add(bench.partitioner.locate(f"{ORIGIN}/page").cell)
        bench.take("/page")
        assert bench.waits()
        assert bench.frontier.next(bench.time) is None
        silent.clear()
        bench.time += ALONE_WAIT_S - 0.01
        assert bench.frontier.next(bench.time) is None
        bench.time += 0.02
        assert not bench.waits()
