"""Test that a bounded number of due pages per cell is pending, and no more while copies wait."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.output.counters import Counters
from kadcrawl.crawl.recrawl.scheduler import CELL_PENDING_MAX, COPYING_MAX, RECOUNT_S, Recrawling
from kadcrawl.keys import SITE_BYTES, Key, cell_of, site_hash
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.store.store import Store
from kadcrawl.store.visit import Visit
from kadcrawl.system.clock import Clock
from sim.loop import SimLoop, world

CELL = cell_of(Key(site_hash("a.test")), 1)
NOW = 1_000_000.0
PAGES = 2 * CELL_PENDING_MAX + 300


class SchedulerBench:
    """Build a store full of due pages, and the scheduler that brings them back."""

    def __init__(self, directory: Path, loop: SimLoop, pages: int = PAGES) -> None:
        self.store = Store(directory, 0.0, lambda fds: None)
        self.store.begin(1)
        for number in range(pages):
            self.accept(number, 0, due=NOW - number)
        self.clock = Clock(loop, NOW)
        self.frontier = Frontier(self.store, Limits(), SiteSettings(Job(delay_s=0.0)))
        self.copying = 0
        self.over = False
        self.counters = Counters()
        self.recrawling = Recrawling(
            self.store,
            self.frontier,
            Activity(),
            self.clock,
            self.counters,
            copying=lambda: self.copying,
            is_over=lambda: self.over,
            wake=lambda: None,
        )
        self.frontier.open(CELL, NOW, hold=False)
        self.task: asyncio.Task[Any] = loop.create_task(self.recrawling.run())

    def accept(self, number: int, depth: int, *, due: float | None = None, site: str = "a.test") -> None:
        """Make a page pending, or with `due` done and due at that second."""
        key = Key(site_hash(site) + number.to_bytes(8, "big"))
        entry = self.store.accept(key, site, f"http://{site}/{number}", depth, 0)
        assert entry is not None
        if due is not None:
            self.store.finish(entry, b"{}\n", visit=self.visit(key, due, site))

    def visit(self, key: Key, due: float | None, site: str = "a.test") -> Visit:
        number = int.from_bytes(key[SITE_BYTES:], "big")
        return Visit(key, site, f"http://{site}/{number}", 0, due, 9.0, "", "", "", "", 0)

    def pending(self) -> list[int]:
        """Return the numbers of the pending pages."""
        sites = [site for _, site in self.store.frontier.sites(bytes(12), b"\xff" * 12, 10)]
        keys = [entry.key for site in sites for entry in self.store.window(site, PAGES)]
        return sorted(int.from_bytes(key[SITE_BYTES:], "big") for key in keys)

    def close(self, loop: SimLoop) -> None:
        self.task.cancel()
        loop.run_until_complete(asyncio.gather(self.task, return_exceptions=True))
        self.store.close()

    def fetch(self, count: int) -> list[Key]:
        """Finish a number of pages for good. Return their keys."""
        keys = []
        for entry in self.store.window("a.test", count):
            self.store.finish(entry, b"{}\n", visit=self.visit(entry.key, None))
            self.recrawling.visited(entry.key)
            keys.append(entry.key)
        return keys


@pytest.fixture
def scheduler_bench(tmp_path: Path) -> Iterator[tuple[SchedulerBench, SimLoop]]:
    with world(1) as loop:
        bench = SchedulerBench(tmp_path, loop)
        yield bench, loop
        bench.close(loop)


def test_of_a_cell_a_bounded_number_is_pending_and_all_come_in_the_end(
    scheduler_bench: tuple[SchedulerBench, SimLoop],
) -> None:
    one, loop = scheduler_bench
    one.recrawling.opened(CELL)
    loop.run_until_complete(asyncio.sleep(1))
    assert CELL_PENDING_MAX == one.store.pending
    first = one.fetch(CELL_PENDING_MAX - 1)
    loop.run_until_complete(asyncio.sleep(1))
    assert 1 == one.store.pending, "not before all of them had their turn"
    first += one.fetch(1)
    loop.run_until_complete(asyncio.sleep(1))
    assert CELL_PENDING_MAX == one.store.pending
    numbers = {int.from_bytes(key[SITE_BYTES:], "big") for key in first}
    assert numbers <= set(range(PAGES - CELL_PENDING_MAX, PAGES)), "longest due"
    fetched = len(first)
    while one.store.pending:
        fetched += len(one.fetch(400))
        loop.run_until_complete(asyncio.sleep(1))
    assert PAGES == fetched
    assert one.recrawling.due_s is None


def test_nothing_is_brought_back_while_the_backups_have_much_to_take(
    scheduler_bench: tuple[SchedulerBench, SimLoop],
) -> None:
    one, loop = scheduler_bench
    one.copying = COPYING_MAX + 1
    one.recrawling.opened(CELL)
    loop.run_until_complete(asyncio.sleep(5))
    assert not one.store.pending
    one.copying = 0
    loop.run_until_complete(asyncio.sleep(1))
    assert CELL_PENDING_MAX == one.store.pending


def test_a_page_that_is_brought_back_is_taken_out_of_the_counters(
    scheduler_bench: tuple[SchedulerBench, SimLoop],
) -> None:
    one, loop = scheduler_bench
    one.recrawling.opened(CELL)
    loop.run_until_complete(asyncio.sleep(1))
    assert {"": CELL_PENDING_MAX} == one.counters.retried


def test_nothing_is_brought_back_once_a_limit_has_ended_the_crawl(
    scheduler_bench: tuple[SchedulerBench, SimLoop],
) -> None:
    one, loop = scheduler_bench
    one.over = True
    one.recrawling.opened(CELL)
    loop.run_until_complete(asyncio.sleep(5))
    assert not one.store.pending
    one.over = False
    loop.run_until_complete(asyncio.sleep(2))
    assert CELL_PENDING_MAX == one.store.pending


def test_a_cell_closed_meanwhile_is_left_alone(scheduler_bench: tuple[SchedulerBench, SimLoop]) -> None:
    one, loop = scheduler_bench
    one.recrawling.opened(CELL)
    one.frontier.close(CELL)
    one.recrawling.closed(CELL)
    loop.run_until_complete(asyncio.sleep(1))
    assert not one.store.pending
    one.recrawling.visited(Key(bytes(20)))
    loop.run_until_complete(asyncio.sleep(1))
    assert not one.store.pending
    assert one.recrawling.due_s is None, "its next owner says when they are due"


def test_pages_far_from_the_seeds_have_their_turn_on_a_site_with_too_many_pages(tmp_path: Path) -> None:
    """The pages near the seeds are due again by then, and the frontier takes them first: the others never came."""
    with world(1) as loop:
        bench = SchedulerBench(tmp_path, loop, pages=0)
        for depth in range(4):
            for number in range(10):
                bench.accept(100 * depth + number, depth)
        bench.recrawling.opened(CELL)
        depths: Counter[int] = Counter()
        for _ in range(30):
            for entry in bench.store.window("a.test", 8):
                depths[entry.depth] += 1
                visit = bench.visit(entry.key, bench.clock.now() + 1.5)._replace(depth=entry.depth)
                bench.store.finish(entry, b"{}\n", visit=visit)
                bench.recrawling.visited(entry.key)
            loop.run_until_complete(asyncio.sleep(1))
        assert {0, 1, 2, 3} == set(depths)
        assert min(depths.values()) >= max(depths.values()) // 2, depths
        bench.close(loop)


def test_a_site_whose_pages_cannot_be_fetched_holds_up_no_other_site_of_its_cell(tmp_path: Path) -> None:
    with world(1) as loop:
        bench = SchedulerBench(tmp_path, loop, pages=0)
        other = next(f"{n}.test" for n in range(1000) if cell_of(Key(site_hash(f"{n}.test")), 1) == CELL)
        bench.accept(1, 0, due=NOW - 5.0)
        bench.accept(2, 0, due=NOW + 20.0)
        bench.accept(3, 0, due=NOW + 20.0, site=other)
        bench.recrawling.opened(CELL)
        loop.run_until_complete(asyncio.sleep(21.0))
        assert [1, 3] == bench.pending(), "the site is held, as its page was not fetched"
        [entry] = bench.store.window("a.test", 1)
        bench.store.put_off(entry.key, NOW + 10_000.0)
        loop.run_until_complete(asyncio.sleep(RECOUNT_S))
        assert [1, 2, 3] == bench.pending(), "a page that is put off holds up nothing"
        bench.close(loop)


def test_a_site_is_not_held_for_ever_by_pages_that_left_while_the_peer_is_busy(tmp_path: Path) -> None:
    """News came more often than the pause after which pending pages are counted again."""
    with world(1) as loop:
        bench = SchedulerBench(tmp_path, loop, pages=0)
        bench.accept(1, 0, due=NOW - 5.0)
        bench.accept(2, 0, due=NOW + 20.0)
        bench.recrawling.opened(CELL)
        loop.run_until_complete(asyncio.sleep(1.0))
        [entry] = bench.store.window("a.test", 1)
        bench.store.put_off(entry.key, NOW + 10_000.0)
        busy = site_hash("b.test") if cell_of(Key(site_hash("b.test")), 1) == CELL else site_hash("a.test")[:11] + b"x"
        for _ in range(10):
            bench.recrawling.visited(Key(busy + bytes(8)))
            loop.run_until_complete(asyncio.sleep(RECOUNT_S / 5))
        assert [1, 2] == bench.pending()
        bench.close(loop)
