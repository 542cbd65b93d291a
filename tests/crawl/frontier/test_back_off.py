"""Test the back-off of sites that refuse requests: its length, its end, and what travels with the site's cell."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kadcrawl.crawl.frontier.back_off import answered, newer, refused
from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.keys import Cell, site_hash, url_key
from kadcrawl.replication.cell_crawl import CellCrawl
from kadcrawl.replication.events import ReplicationEvents
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.store.back_off import NO_REFUSALS, BackOff
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.store import Store

LIMITS = Limits()
START = 1_000_000.0
SITE = "a.example"
DAY_S = 86_400.0


def refusals(count: int, start: float = START) -> tuple[BackOff, list[float]]:
    """Return the state after refusals in a row, each as soon as the wait is over, and the waits."""
    state, now, waits = NO_REFUSALS, start, []
    for _ in range(count):
        state = refused(state, 429, 0.0, now, LIMITS)
        waits.append(state.until - now)
        now = state.until
    return state, waits


def test_the_wait_is_a_minute_and_doubles_up_to_a_day() -> None:
    state, waits = refusals(13)
    assert [60.0 * 2**number for number in range(11)] + [DAY_S, DAY_S] == waits
    assert 13 == state.refusals


def test_a_wait_that_the_site_asks_for_counts_in_place_of_ours_and_does_not_double_it() -> None:
    first = refused(NO_REFUSALS, 429, 5.0, START, LIMITS)
    assert (1, 5.0, 0.0) == (first.refusals, first.until - START, first.wait_s)
    second = refused(first, 503, 0.0, first.until, LIMITS)
    assert (2, 60.0, 503) == (second.refusals, second.until - first.until, second.status)


def test_answers_in_flight_as_the_wait_began_neither_double_nor_ease_it() -> None:
    state = refused(NO_REFUSALS, 429, 0.0, START, LIMITS)
    assert state == refused(state, 429, 0.0, START + 59.9, LIMITS)
    assert state == answered(state, START + 59.9, LIMITS)
    longer = refused(state, 429, 600.0, START + 1, LIMITS)
    assert (1, START + 601) == (longer.refusals, longer.until)


def test_each_answer_halves_the_next_wait_and_ends_the_row() -> None:
    state, _ = refusals(4)
    now = state.until
    halved = []
    for _ in range(5):
        state = answered(state, now, LIMITS)
        halved.append((state.refusals, refused(state, 429, 0.0, now, LIMITS).until - now))
    assert [(0, 480.0), (0, 240.0), (0, 120.0), (0, 60.0), (0, 60.0)] == halved
    assert state == answered(state, now + 1, LIMITS), "nothing is left to ease"


def test_of_two_copies_the_one_with_more_changes_counts_however_late_it_comes() -> None:
    old, _ = refusals(3)
    new = answered(old, old.until, LIMITS)
    assert new == newer(old, new, old.until + 1, LIMITS) == newer(new, old, old.until + 1, LIMITS)


def test_refusals_told_by_another_holder_cost_at_most_the_longest_wait() -> None:
    told = BackOff(5, 1e9, 429, START + 1e9, 1)
    believed = newer(NO_REFUSALS, told, START, LIMITS)
    assert (DAY_S, START + DAY_S) == (believed.wait_s, believed.until)


class Bench:
    """A frontier over a store, with some pages of one site."""

    def __init__(self, directory: Path, *, delay_s: float = 0.0, refusals_max: int = 0, pages: int = 3) -> None:
        directory.mkdir(exist_ok=True)
        self.store = Store(directory, 0.0)
        self.store.begin(4)
        self.site_settings = SiteSettings(Job(delay_s=delay_s, refusals_max=refusals_max))
        self.frontier = Frontier(self.store, LIMITS, self.site_settings)
        for number in range(16):
            self.frontier.open(Cell(number), START, hold=False)
        for number in range(pages):
            url = f"http://{SITE}/{number}"
            entry = self.store.accept(url_key(site_hash(SITE), url), SITE, url, 0, 0)
            if entry is not None:
                self.frontier.add(entry, START)

    @property
    def cell(self) -> Cell:
        return self.store.cell_of(url_key(site_hash(SITE), ""))

    def take(self, now: float) -> FrontierEntry:
        entry = self.frontier.next(now)
        assert entry is not None
        return entry

    def refuse(self, now: float, asked_s: float = 0.0) -> None:
        """Request the next page, which the site refuses."""
        entry = self.take(now)
        self.frontier.refuse(SITE, 429, asked_s, now)
        self.frontier.release(entry, now, now, asked_s, answered=True)
        self.frontier.postpone(entry, now + 1, now)


def test_no_page_of_a_site_that_refuses_is_asked_for_within_the_wait_and_then_one_alone(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.refuse(START)
    assert bench.frontier.next(START + 59.9) is None
    entry = bench.take(START + 60)
    assert bench.frontier.next(START + 60) is None, "the first request shows whether the site is ready"
    bench.frontier.accept(SITE, START + 60)
    bench.frontier.release(entry, START + 60, START + 60, answered=True)
    assert 2 == len([bench.take(START + 60) for _ in range(2)])
    bench.store.close()


def test_a_site_that_refuses_is_not_lent(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    assert bench.frontier.sites_with_spare_connections(START)
    bench.refuse(START)
    assert [] == bench.frontier.sites_with_spare_connections(START + 61)
    bench.frontier.accept(SITE, START + 61)
    assert bench.frontier.sites_with_spare_connections(START + 61)
    bench.store.close()


def test_after_too_many_refusals_in_a_row_pages_are_given_out_for_the_wait_and_one_asks_again_after_it(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, delay_s=1.0, refusals_max=2)
    bench.refuse(START)
    assert not bench.frontier.gives_up(SITE, START)
    assert bench.frontier.next(START + 59) is None
    bench.refuse(START + 60)
    for _ in range(2):
        entry = bench.take(START + 61)
        assert bench.frontier.gives_up(SITE, START + 61)
        bench.frontier.give_up_slot(entry)
        bench.frontier.finish(entry, START + 61)
    bench.take(START + 180)
    assert not bench.frontier.gives_up(SITE, START + 180)
    bench.store.close()


def test_a_site_that_refused_too_often_and_was_put_off_gives_out_no_page(tmp_path: Path) -> None:
    """Its pages end without a request, so they wait for no clock, but nobody else would learn of their ends yet."""
    bench = Bench(tmp_path, delay_s=1.0, refusals_max=1)
    bench.refuse(START)
    entry = bench.take(START + 1)
    bench.frontier.put_off(entry, START + 6, START + 1)
    bench.frontier.give_up_slot(entry)
    bench.frontier.put_back(entry, START + 1)
    assert START + 6 == bench.frontier.next_due()
    assert bench.frontier.next(START + 5.9) is None
    assert entry == bench.take(START + 6)
    assert bench.frontier.gives_up(SITE, START + 6), "the wait of the site is not over"
    bench.store.close()


def test_a_changed_limit_of_refusals_counts_for_a_site_that_refuses_already(tmp_path: Path) -> None:
    bench = Bench(tmp_path, delay_s=1.0, refusals_max=10)
    bench.refuse(START)
    bench.refuse(START + 60)
    assert bench.frontier.next(START + 61) is None
    for refusals_max, gives_up in ((2, True), (3, False), (1, True), (0, False)):
        bench.site_settings.change(Job(delay_s=1.0, refusals_max=refusals_max))
        bench.frontier.steer(START + 61)
        assert gives_up == bench.frontier.gives_up(SITE, START + 61)
        entry = bench.frontier.next(START + 61)
        assert gives_up == (entry is not None), "a page is given out, or waits"
        if entry is not None:
            bench.frontier.give_up_slot(entry)
            bench.frontier.finish(entry, START + 61)
    bench.store.close()


def test_without_a_limit_pages_of_a_site_that_refuses_stay_pending(tmp_path: Path) -> None:
    bench, now = Bench(tmp_path), START
    for _ in range(20):
        bench.refuse(now)
        assert bench.frontier.next(now + 1) is None
        now = bench.frontier.back_off(SITE).until
    assert 3 == bench.frontier.pending
    bench.store.close()


@pytest.mark.parametrize("rests", [False, True], ids=["with work", "without work"])
def test_refusals_are_there_after_a_restart_and_move_with_the_cell(tmp_path: Path, rests: bool) -> None:
    first = Bench(tmp_path / "one", pages=1)
    first.refuse(START)
    first.refuse(START + 60)
    if rests:
        entry = first.take(START + 180)
        first.frontier.give_up_slot(entry)
        first.store.finish(entry, b"{}\n")
        first.frontier.finish(entry, START + 180)
    asyncio.run(first.store.journal.commit())
    first.store.close()
    again = Bench(tmp_path / "one", pages=0)
    assert 2 == again.frontier.back_off(SITE).refusals
    assert (80.0, 0.0) == again.frontier.clock(SITE, START + 100)
    clocks = again.frontier.clocks(again.cell, START + 100, 99)
    assert clocks is not None
    other = Bench(tmp_path / "two", pages=1)
    for site, wait_s, delay_s, back_off, _ in clocks:
        other.frontier.learn_clock(site, wait_s, delay_s, START + 100, back_off)
    assert other.frontier.next(START + 179.9) is None
    other.refuse(START + 180)
    assert 240.0 == other.frontier.back_off(SITE).until - (START + 180), "the next wait is twice the last"
    again.store.close()
    other.store.close()


def test_holders_hear_of_each_refusal_and_of_the_end_of_the_row(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    told: list[int] = []
    bench.store.events.site_changed.append(lambda site: told.append(bench.frontier.back_off(site).refusals))
    bench.refuse(START)
    bench.frontier.accept(SITE, START + 60)
    bench.frontier.accept(SITE, START + 61)
    assert [1, 1, 0] == told, "of the refusals, of the long wait, and of the first answer"
    bench.store.close()


def test_the_sites_that_refuse_are_known_with_their_reason_and_wait(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.refuse(START)
    (told,) = bench.frontier.refusing(START + 20)
    assert (SITE, 429, 1, 40.0) == (told[0], told[1].status, told[1].refusals, told[2])
    (figures,) = bench.frontier.figures(START + 20)
    assert (1, 429, 40.0) == (figures.refusals, figures.status, figures.wait_s)
    bench.frontier.accept(SITE, START + 60)
    assert [] == bench.frontier.refusing(START + 60)
    bench.store.close()


def test_a_holder_with_more_clocks_than_it_may_tell_tells_of_the_sites_that_refuse(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.refuse(START)
    components = SimpleNamespace(frontier=bench.frontier, partitioner=None, crawler=None)
    clock = SimpleNamespace(now=lambda: START + 10)
    crawl = CellCrawl(cast(Any, components), bench.store, cast(Any, clock), ReplicationEvents())
    assert [(SITE, 50.0)] == [(one.site, one.wait_s) for one in crawl.told_clocks(bench.cell, 9)]
    bench.frontier.clocks = lambda cell, now, most: None  # type: ignore[method-assign]
    assert crawl.known_clocks(bench.cell, 9) is None
    assert [(SITE, 50.0)] == [(one.site, one.wait_s) for one in crawl.told_clocks(bench.cell, 9)]
    bench.store.close()


def test_a_clock_that_was_put_back_keeps_the_rest_of_a_wait(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.refuse(START)
    bench.store.saved_time.save(START)
    bench.store.saved_time.restore(START - 1000)
    assert START - 940 == bench.store.sites.back_off(SITE).until
    bench.store.close()
