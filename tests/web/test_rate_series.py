"""Test the curves: smooth rates, and points that have limits."""

import pytest

from kadcrawl.web.rate_series import OTHERS, RateSeries, SmoothRate


def test_a_rate_comes_near_to_a_steady_pace() -> None:
    rate = SmoothRate()
    assert [0.0] == [rate.note(0, 100.0)]
    for second in range(1, 60):
        rate.note(second * 7, 100.0 + second)
    assert 7 == pytest.approx(rate.per_s, abs=0.01)


def test_a_counter_that_goes_back_and_a_clock_that_stands_are_no_pace() -> None:
    rate = SmoothRate()
    rate.note(50, 100.0)
    assert [0.0, 0.0] == [rate.note(10, 101.0), rate.note(20, 101.0)]


def test_after_a_gap_the_rate_is_that_of_the_gap() -> None:
    rate = SmoothRate()
    rate.note(0, 0.0)
    rate.note(100, 1.0)
    assert 2 == pytest.approx(rate.note(300, 101.0))


def test_the_oldest_points_go() -> None:
    series = RateSeries(points_max=2)
    for at in (1.0, 2.0, 3.0):
        series.note(at, 10, 5, {"a": at})
    drawn = series.as_json(1.0)
    assert ([2.0, 3.0], {"a": [2.0, 3.0]}) == (drawn["t"], drawn["rates"])


def test_peers_beyond_the_limit_are_drawn_together() -> None:
    series = RateSeries(drawn_max=2)
    series.note(1.0, 0, 0, {"a": 1.0, "b": 3.0, "c": 2.0, "d": 0.5})
    assert {"b": [3.0], "c": [2.0], OTHERS: [1.5]} == series.as_json(1.0)["rates"]
    series.note(2.0, 0, 0, {"a": 9.0, "c": 2.0, "d": 0.5})
    assert {"b": [3.0, 0.0], "c": [2.0, 2.0], OTHERS: [1.5, 0.5], "a": [0.0, 9.0]} == series.as_json(1.0)["rates"]
