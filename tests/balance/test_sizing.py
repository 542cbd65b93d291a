"""The work area and its updates: it follows the measured rates, and all peers update together."""

import pytest
from hypothesis import assume, given, strategies as st

from kadcrawl.balance.sizing import Rates, UpdateSchedule, WorkCounts, work_area_blocks

H = 20


@pytest.mark.parametrize(
    ("arrivals", "crawls", "interval_s", "intervals", "blocks"),
    [
        pytest.param(0.09, 0.2, 1100.0, 1, 6, id="Table 2, peer 5: 6 < 6.05"),
        pytest.param(0.09, 0.2, 1080.0, 1, 5, id="5 < 5.94"),
        pytest.param(0.083, 0.1, 4720.0, 1, 4, id="Table 2, peer 6: 4 < 4.01"),
        pytest.param(0.136, 0.05, 470.0, 1, 1, id="Table 2, peer 8: 1 < 1.02"),
        pytest.param(0.34, 0.1, 499.0, 1, 4, id="heavy: 4 < 4.99, fill n and one block more"),
        pytest.param(0.0, 1.0, 100.0, 1, 4, id="the bound itself is excluded: n < 5"),
        pytest.param(1.0, 0.0, 100.0, 1, 3, id="the bound itself is excluded: n < 4"),
        pytest.param(0.1, 0.1, 1e9, 1, 1, id="equal rates admit none, so 1"),
        pytest.param(0.136, 0.05, 60.0, 1, 1, id="too short an interval admits none, so 1"),
        pytest.param(0.083, 0.2, 200.0, 1, 1, id="one interval"),
        pytest.param(0.083, 0.2, 200.0, 6, 7, id="six intervals: 7 < 7.02"),
        pytest.param(None, 0.2, 1000.0, 1, 1, id="arrivals not yet known"),
        pytest.param(0.2, None, 1000.0, 1, 1, id="crawl rate not yet known"),
    ],
)
def test_work_area_is_the_largest_the_bounds_admit(
    arrivals: float | None, crawls: float | None, interval_s: float, intervals: int, blocks: int
) -> None:
    assert blocks == work_area_blocks(arrivals, crawls, interval_s, H, intervals)


@given(
    arrivals=st.integers(0, 1000),
    crawls=st.integers(0, 1000),
    interval_s=st.integers(1, 1000),
    block=st.integers(1, 99),
)
def test_one_block_more_would_break_the_bound(arrivals: int, crawls: int, interval_s: int, block: int) -> None:
    blocks = work_area_blocks(arrivals, crawls, interval_s, block)
    assert blocks >= 1
    if arrivals < crawls:
        reached = (crawls - arrivals) * interval_s <= (blocks + 1) * block
        kept = blocks * block < (crawls - arrivals) * interval_s
    else:
        reached = (arrivals - crawls) * interval_s <= (blocks + 2) * block
        kept = (blocks + 1) * block < (arrivals - crawls) * interval_s
    assert reached
    assert kept or blocks == 1


def test_an_idle_peer_does_not_take_its_arrivals_for_its_power() -> None:
    rates = Rates(intervals=4)
    rates.add(WorkCounts(at=0.0, arrived=0, crawled=0, busy_s=0.0))
    rates.add(WorkCounts(at=100.0, arrived=10, crawled=10, busy_s=50.0))
    assert (0.1, 0.2) == (rates.arrivals, rates.crawls)


def test_rates_are_unknown_before_there_was_anything_to_count() -> None:
    rates = Rates(intervals=4)
    assert (None, None) == (rates.arrivals, rates.crawls)
    rates.add(WorkCounts(at=5.0, arrived=3, crawled=1, busy_s=1.0))
    assert (None, None) == (rates.arrivals, rates.crawls)
    rates.add(WorkCounts(at=10.0, arrived=3, crawled=1, busy_s=1.0))
    assert (0.0, None) == (rates.arrivals, rates.crawls)


def test_rates_forget_what_is_older_than_the_last_intervals() -> None:
    rates = Rates(intervals=2)
    for at, arrived, crawled in [(0, 0, 0), (10, 100, 100), (20, 110, 105), (30, 120, 110)]:
        rates.add(WorkCounts(float(at), arrived, crawled, float(at)))
    assert (1.0, 0.5) == (rates.arrivals, rates.crawls)


@pytest.mark.parametrize(
    "later",
    [
        pytest.param(WorkCounts(10.0, 5, 5, 5.0), id="at the same instant"),
        pytest.param(WorkCounts(11.0, 4, 5, 5.0), id="fewer arrivals"),
        pytest.param(WorkCounts(11.0, 5, 4, 5.0), id="fewer crawled"),
        pytest.param(WorkCounts(11.0, 5, 5, 4.0), id="less busy"),
    ],
)
def test_a_tally_that_goes_back_is_refused(later: WorkCounts) -> None:
    rates = Rates(intervals=2)
    rates.add(WorkCounts(10.0, 5, 5, 5.0))
    with pytest.raises(ValueError):
        rates.add(later)


def test_rates_over_no_interval_are_refused() -> None:
    with pytest.raises(ValueError):
        Rates(intervals=0)


@pytest.mark.parametrize(
    ("now", "following"),
    [(-7.0, 100.0), (99.9, 100.0), (100.0, 110.0), (109.9, 110.0), (110.0, 120.0), (1005.0, 1010.0)],
)
def test_updates_are_every_interval_from_the_first(now: float, following: float) -> None:
    updates = UpdateSchedule(100.0, 10.0)
    assert following == updates.next_after(now)
    assert following - now == updates.wait_s(now)


@given(
    first_at=st.floats(0, 1e6), interval_s=st.floats(0.1, 1e4), joined_at=st.floats(0, 1e6), later_s=st.floats(0, 1e5)
)
def test_a_joiner_updates_when_the_others_do(
    first_at: float, interval_s: float, joined_at: float, later_s: float
) -> None:
    others = UpdateSchedule(first_at, interval_s)
    joiner = UpdateSchedule(joined_at + others.wait_s(joined_at), interval_s)
    now = joined_at + later_s
    theirs, its = others.next_after(now), joiner.next_after(now)
    assert theirs > now
    assert its > now
    assert others.wait_s(now) <= max(interval_s, first_at - now) + 1e-6
    assume(abs(theirs - now) > 1e-6 and abs(its - now) > 1e-6)  # Rounding may put one of them a T later.
    assert theirs == pytest.approx(its, abs=1e-5)


@pytest.mark.parametrize(
    ("first_at", "interval_s"), [(0.0, 0.0), (0.0, -1.0), (0.0, float("inf")), (float("nan"), 1.0)]
)
def test_updates_that_never_come_are_refused(first_at: float, interval_s: float) -> None:
    with pytest.raises(ValueError):
        UpdateSchedule(first_at, interval_s)
