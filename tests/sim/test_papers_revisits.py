"""History that expires on real peers: pages come again after their period and not before, and filters are counted."""

from collections.abc import Callable
from functools import cache
from itertools import combinations

import pytest

from kadcrawl.settings.job import Job
from sim.papers import revisits as experiment
from sim.papers.daily_web import BlogWeb, SearchWeb
from sim.papers.expiring import DAYS as PERIOD, ERROR
from sim.papers.revisits import DAYS, error, peer_bytes, revisits, swarm_bytes
from sim.papers.revisits_run import DAY_S, HOUR_S, DatedWeb, Day, crawl_days, job_of, left_out, repeated

pytestmark = [pytest.mark.xdist_group("revisits"), pytest.mark.worlds]
"""Keeps these tests in one process, which plays each run once."""

SHORT_DAY_S = 600.0
POSTS = 300
"""More than a filter keeps exactly (`epoch_filter.EXACT_MAX`)."""


@cache
def days() -> tuple[Day, ...]:
    job = job_of(SHORT_DAY_S, PERIOD)
    return tuple(crawl_days(1, BlogWeb(1, POSTS), job, DAYS, SHORT_DAY_S, lambda: None, 20_000))


def met(day: int) -> set[str]:
    return {f"http://blog0.test/post/{of}/{number}" for of in range(1, day + 1) for number in range(POSTS)}


def made(*fetched: str) -> Day:
    return Day(fetched=fetched, live=1, held=1, filter_bytes=1, asked=1, taken_for_known=0, error_by_bits=0.0)


def test_each_post_is_fetched_again_when_three_days_are_over_and_not_before() -> None:
    assert [POSTS] * 3 + [2 * POSTS] * 3 == [len(day.fetched) for day in days()]
    assert [0] * DAYS == repeated(days(), PERIOD)
    assert [0] * DAYS == left_out(days(), [met(day) for day in range(1, DAYS + 1)], PERIOD)
    for number in range(PERIOD, DAYS):
        assert set(days()[number - PERIOD].fetched) <= set(days()[number].fetched)


def test_with_a_longer_period_no_post_comes_again() -> None:
    found = crawl_days(1, BlogWeb(1, 20), job_of(SHORT_DAY_S, DAYS + 1), DAYS, SHORT_DAY_S, lambda: None)
    assert [20] * DAYS == [len(day.fetched) for day in found]


def test_live_filters_hold_three_days_at_three_peers_and_err_as_rarely_as_they_should() -> None:
    # Each day has its list as well, and the lists come again with their posts.
    assert [301, 602, 903, 1_204, 1_505, 1_806] == [day.live for day in days()]
    assert [3 * day.live for day in days()] == [day.held for day in days()]
    assert all(60_000 == day.asked for day in days())
    assert error(days()) <= 2 * ERROR
    # Three filters for each slice of the period, of which each may have a third.
    assert 0 < days()[0].error_by_bits <= ERROR / 3
    assert days()[0].error_by_bits < days()[-1].error_by_bits <= ERROR
    for day in days():
        assert 1 < peer_bytes(day) < 12
        assert swarm_bytes(day) == pytest.approx(3 * peer_bytes(day))


def test_searches_by_the_hour_share_nothing_with_the_hour_before() -> None:
    web = SearchWeb(1, 100)
    assert 0 == web.answer("news.test", "/list/1", 1).body.count(b"href")
    assert [100] * 3 == [web.answer("news.test", f"/list/{hour}", 0).body.count(b"href") for hour in (1, 2, 3)]
    found = crawl_days(1, web, job_of(SHORT_DAY_S, 2), 4, SHORT_DAY_S, lambda: None)
    fetched = [set(hour.fetched) for hour in found]
    for one, other in combinations(range(4), 2):
        assert (other - one > 1) == bool(fetched[one] & fetched[other])


def test_full_days_and_hours_are_those_of_the_calendar() -> None:
    assert ("hour", None, 2) == (job_of(HOUR_S, 2).calendar_grain, job_of(HOUR_S, 2).grain_s, job_of(HOUR_S, 2).grains)
    assert ("day", 3) == (job_of(DAY_S, 3).calendar_grain, job_of(DAY_S, 3).grains)
    assert (None, 600.0, 3) == (job_of(600.0, 3).calendar_grain, job_of(600.0, 3).grain_s, job_of(600.0, 3).grains)


def test_fetches_too_early_and_posts_left_out_are_counted() -> None:
    seen = [made("a", "b"), made("a", "c"), made("c", "c"), made("b")]
    assert [0, 1, 2, 0] == repeated(seen, 3)
    assert [0, 0, 1, 1] == left_out(seen, [{"a"}, {"a", "b"}, {"d"}, {"a", "d"}], 3)


def test_the_result_has_real_peers_beside_the_counting_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def short(
        seed: int, web: DatedWeb, job: Job, count: int, day_s: float, done: Callable[[], None], asked: int
    ) -> list[Day]:
        for _ in range(count):
            done()
        return [*days()[:count]]

    monkeypatch.setattr(experiment, "crawl_days", short)
    told: list[float] = []
    result = revisits(1, told.append, day_s=SHORT_DAY_S, posts=POSTS)
    assert told == sorted(told)
    assert 1.0 == told[-1]
    assert "{" not in result.how
    assert "1 to 144" in result.how
    assert 2 == sum("counting model" in finding.what for finding in result.findings)
    for table in result.tables:
        assert {len(table.heading)} == {len(row) for row in table.rows}
