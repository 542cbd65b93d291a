"""Test that durations are counted in the bucket of their size, and that histograms add up."""

import pytest

from kadcrawl.system.duration_histogram import BOUNDS_S, DurationHistogram, added


def test_a_duration_counts_up_to_each_bound_that_is_not_below_it() -> None:
    histogram = DurationHistogram((1.0, 2.0))
    for seconds in (0.5, 1.0, 1.5, 2.0, 9.0):
        histogram.observe(seconds)
    assert ([2, 4, 5], 5, 14.0) == (histogram.cumulative(), histogram.count, histogram.sum_s)


def test_a_negative_duration_counts_as_zero() -> None:
    histogram = DurationHistogram((1.0,))
    histogram.observe(-5.0)
    assert ([1, 1], 0.0) == (histogram.cumulative(), histogram.sum_s)


def test_a_sum_has_the_durations_of_all_and_changes_none() -> None:
    one, other = DurationHistogram(), DurationHistogram()
    one.observe(0.002)
    other.observe(1000.0)
    total = added([one, other])
    assert (2, 1, 1) == (total.count, one.count, other.count)
    assert [1] * len(BOUNDS_S) + [2] == total.cumulative()
    assert 1000.002 == total.sum_s


def test_histograms_with_other_bounds_do_not_add_up() -> None:
    with pytest.raises(AssertionError, match="do not add up"):
        DurationHistogram((1.0,)).add(DurationHistogram((2.0,)))


def test_a_histogram_without_durations_adds_nothing_and_takes_no_list() -> None:
    one, empty = DurationHistogram(), DurationHistogram()
    assert [0] * (len(BOUNDS_S) + 1) == empty.cumulative()
    assert (0, 0.0, []) == (empty.count, empty.sum_s, empty._counts)
    one.observe(0.002)
    for total in (added([one, empty]), added([empty, one])):
        assert (one.cumulative(), 0.002) == (total.cumulative(), total.sum_s)
    empty.add(DurationHistogram())
    assert not empty._counts
