"""Test that a bounded number of due pages per cell is pending, and no more while copies wait."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.output.counters import Counters
from kadcrawl.crawl.recrawl.scheduler import (
    CELL_PENDING_MAX,
    COPYING_MAX,
    FULL_SPACING_S,
    SITE_PENDING_MAX,
    Recrawling,
)
from kadcrawl.keys import SITE_BYTES, Cell, Key, cell_of, site_hash
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.store import Store
from kadcrawl.store.visit import Visit
from kadcrawl.system.clock import Clock
from sim.loop import SimLoop, world

CELL = cell_of(Key(site_hash("a.test")), 1)
NOW = 1_000_000.0
PAGES = 2 * CELL_PENDING_MAX + 300


class SchedulerBench:
    """Build a store full of due pages, and the scheduler that brings them back."""

    def __init__(self, directory: Path, loop: SimLoop) -> None:
        self.store = Store(directory, 0.0, lambda fds: None)
        self.store.begin(1)
        for number in range(PAGES):
            key = Key(site_hash("a.test") + number.to_bytes(8, "big"))
            entry = self.store.accept(key, "a.test", f"http://a.test/{number}", 0, 0)
            assert entry is not None
            self.store.finish(entry, b"{}\n", visit=self.visit(key, NOW - number))
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

    def visit(self, key: Key, due: float | None, site: str = "a.test") -> Visit:
        number = int.from_bytes(key[SITE_BYTES:], "big")
        return Visit(key, site, f"http://{site}/{number}", 0, due, 9.0, "", "", "", "", 0)

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
        bench.task.cancel()
        loop.run_until_complete(asyncio.gather(bench.task, return_exceptions=True))
        bench.store.close()


def test_of_a_cell_a_bounded_number_is_pending_and_all_come_in_the_end(
    scheduler_bench: tuple[SchedulerBench, SimLoop],
) -> None:
    one, loop = scheduler_bench
    one.recrawling.opened(CELL)
    loop.run_until_complete(asyncio.sleep(1))
    assert CELL_PENDING_MAX == one.store.pending
    first = one.fetch(CELL_PENDING_MAX // 2 - 1)
    loop.run_until_complete(asyncio.sleep(1))
    assert CELL_PENDING_MAX // 2 + 1 == one.store.pending, "not before half of them are done"
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


OTHER = "small.test"


def accept_pages(one: SchedulerBench, site: str, count: int) -> list[FrontierEntry]:
    """Let a site of the cell have so many pages that were never visited."""
    keys = (Key(site_hash(site) + number.to_bytes(8, "big")) for number in range(PAGES, PAGES + count))
    entries = [
        one.store.accept(key, site, f"http://{site}/{int.from_bytes(key[SITE_BYTES:], 'big')}", 0, 0) for key in keys
    ]
    return [entry for entry in entries if entry is not None]


@pytest.mark.parametrize("waiting", ["due pages", "pages never visited"])
def test_a_site_with_very_many_pending_pages_keeps_those_of_no_other_site_of_its_cell_back(
    scheduler_bench: tuple[SchedulerBench, SimLoop], waiting: str
) -> None:
    """A person may have paused it, or it is not crawled to its end for days."""
    one, loop = scheduler_bench
    assert CELL == cell_of(Key(site_hash(OTHER)), 1)
    if waiting == "pages never visited":
        assert len(accept_pages(one, "a.test", CELL_PENDING_MAX)) == CELL_PENDING_MAX
    for entry in accept_pages(one, OTHER, 250):  # Due after all pages of the other site.
        one.store.finish(entry, b"{}\n", visit=one.visit(entry.key, NOW + 3, OTHER))
    one.recrawling.opened(CELL)
    brought: set[Key] = set()
    for _ in range(20):
        loop.run_until_complete(asyncio.sleep(1))
        for entry in one.store.window(OTHER, PAGES):
            brought.add(entry.key)
            one.store.finish(entry, b"{}\n", visit=one.visit(entry.key, None, OTHER))
            one.recrawling.visited(entry.key)
        assert CELL_PENDING_MAX == one.store.pending, "none of the site that has enough"
    assert 250 == len(brought)


def test_of_a_site_in_a_full_cell_a_bounded_number_is_brought_back(
    scheduler_bench: tuple[SchedulerBench, SimLoop],
) -> None:
    one, loop = scheduler_bench
    for entry in accept_pages(one, OTHER, 3 * SITE_PENDING_MAX):
        one.store.finish(entry, b"{}\n", visit=one.visit(entry.key, NOW, OTHER))
    accept_pages(one, "a.test", CELL_PENDING_MAX)
    one.recrawling.opened(CELL)
    loop.run_until_complete(asyncio.sleep(10))
    assert SITE_PENDING_MAX == len(one.store.window(OTHER, PAGES))
    one.recrawling.closed(CELL)
    assert one.recrawling.due_s is None


def test_however_many_cells_are_full_the_looks_at_them_take_little_time(
    scheduler_bench: tuple[SchedulerBench, SimLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a pause of the crawl, the cells of all large sites are full at once."""
    one, loop = scheduler_bench
    cells, seconds = [Cell(number) for number in range(200)], 60
    looks = Counter[Cell]()

    def due_after(cell: Cell, *_: object) -> list[tuple[float, Key]]:
        looks[cell] += 1
        return []

    monkeypatch.setattr(one.recrawling, "_pending", lambda cell: CELL_PENDING_MAX)
    monkeypatch.setattr(one.store.visits, "due_after", due_after)
    monkeypatch.setattr(one.recrawling._due, "_next_visit", lambda cell: NOW)
    for cell in cells:
        one.recrawling.opened(cell)
    loop.run_until_complete(asyncio.sleep(seconds))
    assert len(cells) == len(looks)
    assert looks.total() <= len(cells) + seconds / FULL_SPACING_S
    assert max(looks.values()) <= min(looks.values()) + 2


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
