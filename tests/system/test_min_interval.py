"""Test that a single event passes at once, and that crowded events pass together at the interval."""

from itertools import pairwise

from hypothesis import given, strategies as st

from kadcrawl.system.min_interval import MinInterval


def test_the_first_and_whatever_comes_late_enough_goes_at_once() -> None:
    spacing = MinInterval(0.5)
    assert [0.0, 0.0, 0.0] == [spacing.wait_s(now) for now in (7.0, 7.5, 100.0)]


def test_what_comes_too_soon_waits_for_the_rest_of_the_spacing() -> None:
    spacing = MinInterval(0.5)
    assert [0.0, 0.25, 0.5] == [spacing.wait_s(now) for now in (7.0, 7.25, 7.5)]


@given(st.floats(0.0, 10.0), st.lists(st.floats(0.0, 3.0), max_size=20))
def test_two_are_never_closer_and_nothing_waits_longer_than_the_spacing(apart_s: float, pauses: list[float]) -> None:
    """Each is wanted after the last has gone, as with a task that waits and then acts."""
    spacing, now, went = MinInterval(apart_s), 0.0, []
    for pause in pauses:
        now += pause
        wait = spacing.wait_s(now)
        assert 0.0 <= wait <= apart_s + 1e-9
        now += wait
        went.append(now)
    assert all(later - earlier >= apart_s - 1e-9 for earlier, later in pairwise(went))
