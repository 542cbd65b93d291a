"""Test the adaptive delay: it follows the time of answers within its bounds, and moves with the site's cell."""

from pathlib import Path

import pytest

from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.keys import Cell, site_hash, url_key
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.store import Store

START = 1_000_000.0
SITE = "a.example"
ADAPTIVE = Job(delay_s=1.0, delay_factor=5.0, delay_most_s=20.0)


class AdaptiveBench:
    """A frontier over a store, with some pages of one site."""

    def __init__(self, directory: Path, job: Job = ADAPTIVE, pages: int = 9) -> None:
        directory.mkdir(exist_ok=True)
        self.store = Store(directory, 0.0)
        self.store.begin(4)
        self.frontier = Frontier(self.store, Limits(), SiteSettings(job))
        self.job = job
        for number in range(16):
            self.frontier.open(Cell(number), START, hold=False)
        for number in range(pages):
            url = f"http://{SITE}/{number}"
            entry = self.store.accept(url_key(site_hash(SITE), url), SITE, url, 0, 0)
            assert entry is not None
            self.frontier.add(entry, START)

    def take(self, now: float) -> FrontierEntry:
        entry = self.frontier.next(now)
        assert entry is not None
        self.frontier.set_delay(SITE, self.job.delay_s, now)
        return entry

    def ask(self, now: float, seconds: float, *, succeeds: bool = True) -> float:
        """Request the next page, whose answer takes so long, and return the seconds from its end to the next."""
        entry, end = self.take(now), now + seconds
        self.frontier.time_request(SITE, seconds, succeeds, end)
        self.frontier.release(entry, now, end, answered=True)
        self.frontier.finish(entry, end)
        return self.frontier.wait_s(SITE, end)


@pytest.fixture
def bench(tmp_path: Path) -> AdaptiveBench:
    return AdaptiveBench(tmp_path / "one")


def test_a_site_rests_for_a_multiple_of_its_last_answer_between_the_least_and_the_most(bench: AdaptiveBench) -> None:
    waits, now = [], START
    for seconds in (0.5, 2.0, 9.0, 0.1, 0.001):
        waits.append(bench.ask(now, seconds))
        now += 100.0
    assert pytest.approx([2.5, 10.0, 20.0, 0.9, 0.999]) == waits
    bench.store.close()


def test_a_quick_failure_does_not_hurry_a_site_and_a_slow_one_slows_it(bench: AdaptiveBench) -> None:
    assert pytest.approx(10.0) == bench.ask(START, 2.0)
    assert pytest.approx(10.0) == bench.ask(START + 100, 0.01, succeeds=False)
    assert pytest.approx(15.0) == bench.ask(START + 200, 3.0, succeeds=False)
    assert pytest.approx(5.0) == bench.ask(START + 300, 1.0)
    bench.store.close()


def test_the_delay_that_robots_txt_asks_for_is_the_least(bench: AdaptiveBench) -> None:
    entry = bench.take(START)
    bench.frontier.set_delay(SITE, 30.0, START)
    bench.frontier.time_request(SITE, 1.0, True, START + 1)
    bench.frontier.release(entry, START, START + 1)
    assert (29.0, 30.0) == bench.frontier.clock(SITE, START + 1)
    bench.store.close()


def test_without_a_delay_an_adaptive_site_has_one_request_in_flight(tmp_path: Path) -> None:
    bench = AdaptiveBench(tmp_path, Job(delay_s=0.0, delay_factor=2.0))
    bench.take(START)
    assert bench.frontier.next(START) is None
    bench.store.close()


def test_the_delay_moves_with_the_cell_and_is_forgotten_by_the_next_answer(tmp_path: Path) -> None:
    one, other = AdaptiveBench(tmp_path / "one"), AdaptiveBench(tmp_path / "two", pages=3)
    one.ask(START, 2.0)
    clock = one.frontier.clock_of(SITE, START + 2)
    assert (10.0, 10.0) == (clock.wait_s, clock.delay_s)
    other.frontier.learn_clock(SITE, clock.wait_s, clock.delay_s, START + 2, clock.back_off)
    assert other.frontier.next(START + 11.9) is None
    assert pytest.approx(1.5) == other.ask(START + 12, 0.3)
    one.store.close()
    other.store.close()


def test_the_journal_knows_at_least_the_delay_and_not_every_small_change(bench: AdaptiveBench) -> None:
    told: list[str] = []
    bench.store.events.site_changed.append(told.append)
    now = START
    for number in range(8):
        bench.ask(now, 1.0 + number / 100)
        journaled = bench.store.sites.clock(SITE)
        assert journaled is not None
        assert journaled[1] >= bench.frontier.clock(SITE, now)[1] >= 5.0
        now += 100
    assert 1 == len(told)
    bench.store.close()


def test_a_delay_that_may_adapt_is_held_for_its_longest_by_an_owner_that_knows_no_clocks(bench: AdaptiveBench) -> None:
    assert bench.frontier.is_recent(START, START + 59.0)
    long = AdaptiveBench(bench.store.journal.path.parent.parent / "two", Job(delay_factor=1.0, delay_most_s=600.0))
    assert long.frontier.is_recent(START, START + 599.0)
    bench.store.close()
    long.store.close()


def test_figures_say_that_the_delay_adapts(bench: AdaptiveBench) -> None:
    bench.ask(START, 2.0)
    (figures,) = bench.frontier.figures(START + 2)
    assert (10.0, True) == (figures.delay_s, figures.adapts)
    bench.ask(START + 100, 0.1)
    assert not bench.frontier.figures(START + 101)[0].adapts
    bench.store.close()
