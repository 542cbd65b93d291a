"""Test that recent keys are known and old keys forgotten, with no other errors than the design allows (P4)."""

import math
from datetime import UTC, datetime
from itertools import combinations_with_replacement
from random import Random
from typing import get_args

import pytest

from kadcrawl.errors import ConfigError
from kadcrawl.keys import Key
from kadcrawl.settings.recrawl_checks import CalendarGrain
from kadcrawl.store.bloom import epoch_filter
from kadcrawl.store.bloom.calendar_epochs import begin_s, number as number_of
from kadcrawl.store.bloom.encoding import from_bytes, to_bytes
from kadcrawl.store.bloom.engines import ENGINES, engine
from kadcrawl.store.bloom.epoch_filter import CAPACITY_LEAST, EXACT_MAX, FILTERS_MAX, EpochFilter, ladder, stage_error
from kadcrawl.store.bloom.expiring_filter import EPOCHS_MAX, ExpiringFilter, Period
from kadcrawl.store.bloom.filter import CAPACITY_MAX, HASHES_MAX
from tests.support.stores import site_keys

HOUR, DAY = 3_600.0, 86_400.0
START = 1_577_836_800.0
engines = pytest.mark.parametrize("filters", list(ENGINES))


def fetch_unseen(seen: ExpiringFilter, links: list[Key], now: float) -> set[Key]:
    """Fetch the unseen keys, as the paper's `request_seen` decides. Return these keys."""
    fetched = set()
    for key in links:
        if not seen.contains(key, now):
            seen.add(key, now)
            fetched.add(key)
    return fetched


# --- expiry ----------------------------------------------------------------------------------------------------------


@engines
def test_hour_three_meets_hour_one_again_and_hour_four_both(filters: str) -> None:
    """P4 4: hour grain, two filters; a changing search page of some hundred links, asked each hour."""
    seen = ExpiringFilter(Period(epoch_s=HOUR, epochs=2, filters=filters))
    pool = site_keys("news", 500)
    pages = [pool[:200], pool[100:300], [*pool[:50], *pool[100:250], *pool[300:350]], [*pool[50:260], *pool[350:400]]]
    one, two, three, four = (fetch_unseen(seen, page, START + hour * HOUR) for hour, page in enumerate(pages))
    assert set(pool[:200]) == one
    assert set(pool[200:300]) == two
    assert not one & two
    assert one & three
    assert not two & three
    assert one & four
    assert two & four
    assert not three & four


@pytest.mark.parametrize("unit", get_args(CalendarGrain))
@pytest.mark.parametrize("year", [2020, 2023, 2100])
def test_unit_three_of_the_calendar_meets_unit_one_again_and_not_two(unit: CalendarGrain, year: int) -> None:
    """The same test of P4 by hours, days, weeks and months, over the end of February."""
    seen = ExpiringFilter(Period(epochs=2, calendar=unit))
    pool = site_keys("news", 300)
    pages = [pool[:200], pool[100:300], pool[:300], pool[:300]]
    first = number_of(unit, datetime(year, 2, 28, 23, 59, tzinfo=UTC).timestamp())
    begins = [begin_s(unit, first + one) for one in range(5)]
    one, two, three, four = (
        fetch_unseen(seen, page, at) | fetch_unseen(seen, page, end - 0.001)
        for page, at, end in zip(pages, begins, begins[1:], strict=False)
    )
    assert (set(pool[:200]), set(pool[200:300]), set(pool[:200]), set(pool[200:300])) == (one, two, three, four)


def test_peers_whose_clocks_differ_by_a_moment_hold_a_month_in_common() -> None:
    period = Period(epochs=2, calendar="month")
    midnight = datetime(2024, 3, 1, tzinfo=UTC).timestamp()
    ahead, behind = ExpiringFilter(period), ExpiringFilter(period)
    early, late = site_keys("midnight", 2)
    ahead.add(early, midnight + 0.4)
    behind.add(late, midnight - 0.4)
    behind.join(from_bytes(to_bytes(ahead, midnight + 0.4), period, midnight - 0.4), midnight - 0.4)
    ahead.join(from_bytes(to_bytes(behind, midnight), period, midnight), midnight + 0.4)
    april = datetime(2024, 4, 1, tzinfo=UTC).timestamp()
    for seen in (ahead, behind):
        assert [True, True] == [seen.contains(key, midnight + 1) for key in (early, late)]
        assert [True, False] == [seen.contains(key, april) for key in (early, late)]


def test_a_clock_put_back_by_months_keeps_what_is_known() -> None:
    seen = ExpiringFilter(Period(epochs=3, calendar="month"))
    keys = site_keys("months", 400)
    now = datetime(2024, 3, 31, tzinfo=UTC).timestamp()
    fetch_unseen(seen, keys, now)
    for back in (now - 31 * DAY, now - 400 * DAY, 0.0):
        assert all(seen.contains(key, back) for key in keys)
    assert not any(seen.contains(key, datetime(2024, 6, 1, tzinfo=UTC).timestamp()) for key in keys)


@engines
@pytest.mark.parametrize("count", [10, EXACT_MAX, EXACT_MAX + 1, 3_000])
def test_three_daily_filters_forget_on_the_fourth_day(filters: str, count: int) -> None:
    seen = ExpiringFilter(Period(epoch_s=DAY, epochs=3, filters=filters))
    posts = site_keys("posts", count)
    fetched = [len(fetch_unseen(seen, posts, START + day * DAY)) for day in range(8)]
    assert [count, 0, 0, count, 0, 0, count, 0] == fetched


def test_a_key_lives_until_its_epoch_has_been_followed_by_all_others() -> None:
    seen = ExpiringFilter(Period(epoch_s=DAY, epochs=7))
    (key,) = site_keys("late", 1)
    seen.add(key, START + DAY - 1)
    assert seen.contains(key, START + 7 * DAY - 0.001)
    assert not seen.contains(key, START + 7 * DAY)


def test_the_clock_may_roll_over_between_two_checks() -> None:
    seen = ExpiringFilter(Period(epoch_s=DAY, epochs=2))
    before, after = site_keys("midnight", 2)
    seen.add(before, START + DAY - 0.1)
    assert seen.contains(before, START + DAY + 0.1)
    seen.add(after, START + DAY + 0.1)
    assert (False, True) == (seen.contains(before, START + 2 * DAY), seen.contains(after, START + 2 * DAY))
    assert 1 == seen.live(START + 2 * DAY)


def test_an_expired_epoch_filter_is_dropped_whole() -> None:
    seen = ExpiringFilter(Period(epoch_s=DAY, epochs=2))
    fetch_unseen(seen, site_keys("big", 2_000), START)
    assert (1, 2_000) == (seen.live(START), seen.count(START))
    assert seen.false_positive_rate(START) > 0
    later = START + 2 * DAY
    assert (0, 0, 0.0) == (seen.live(later), seen.count(later), seen.false_positive_rate(later))


@engines
def test_a_clock_that_jumps_back_neither_raises_nor_drops(filters: str) -> None:
    seen = ExpiringFilter(Period(epoch_s=DAY, epochs=3, filters=filters))
    fresh, while_back = site_keys("fresh", 600), site_keys("back", 600)
    fetch_unseen(seen, fresh, START + 100 * DAY)
    for back in (START + 99 * DAY, START + 50 * DAY, START, 0.0, -DAY):
        assert all(seen.contains(key, back) for key in fresh)
    fetch_unseen(seen, while_back, START + 99 * DAY)
    assert all(seen.contains(key, START + 100 * DAY) for key in [*fresh, *while_back])
    assert not any(seen.contains(key, START + 102 * DAY) for key in while_back)
    assert all(seen.contains(key, START + 102 * DAY) for key in fresh)


def test_a_clock_that_jumps_back_again_and_again_fills_no_memory() -> None:
    seen = ExpiringFilter(Period(epoch_s=DAY, epochs=3))
    met = site_keys("jumps", 40)
    for number, key in enumerate(met):
        seen.add(key, START - 10 * number * DAY)
    now = START - 400 * DAY
    assert 4 >= seen.live(now)
    assert all(seen.contains(key, now) for key in met)


# --- errors and growth -----------------------------------------------------------------------------------------------


@engines
def test_of_new_keys_one_in_ten_thousand_is_taken_for_seen_by_all_filters(filters: str) -> None:
    """Full filters: the first week grows them, the second is of the size that was expected."""
    period = Period(epoch_s=DAY, epochs=7, filters=filters)
    seen, asked = ExpiringFilter(period), 60_000
    for day in range(9):
        for key in site_keys(day, 1024):
            seen.add(key, START + day * DAY)
    now = START + 8 * DAY
    assert all(seen.contains(key, now) for day in range(2, 9) for key in site_keys(day, 1024))
    wrong = sum(seen.contains(key, now) for key in site_keys("new", asked))
    assert wrong <= asked * period.error + 3 * (asked * period.error) ** 0.5
    assert seen.false_positive_rate(now) <= period.error


@engines
def test_growth_keeps_the_error_and_raises_nothing(filters: str) -> None:
    period = Period(epochs=1, error=1e-3, filters=filters)
    seen, asked = ExpiringFilter(period), 40_000
    met = site_keys("growing", 20_480)
    for key in met:
        seen.add(key, START)
    assert [1024, 3072, 12288, 49152] == [one.shape.capacity for day in seen.epoch_filters for _, one in day.filters]
    assert all(seen.contains(key, START) for key in met)
    assert pytest.approx(len(met), rel=0.002) == seen.count(START)
    wrong = sum(seen.contains(key, START) for key in site_keys("new", asked))
    assert wrong <= asked * period.error + 3 * (asked * period.error) ** 0.5
    assert seen.false_positive_rate(START) <= period.error


def test_the_shares_of_all_filters_sum_to_no_more_than_the_whole() -> None:
    assert 0.999 < sum(stage_error(1.0, rung) for rung in range(1_000)) <= 1.0
    assert [stage_error(1.0, rung) for rung in range(4)] == sorted(
        (stage_error(1.0, rung) for rung in range(4)), reverse=True
    )


def test_the_next_epoch_has_one_filter_as_large_as_the_fullest_before() -> None:
    seen = ExpiringFilter(Period(epoch_s=DAY, epochs=2))
    for day, count in enumerate([5_000, 3_000, 5_100]):
        fetch_unseen(seen, site_keys(day, count), START + day * DAY)
    capacities = [[one.shape.capacity for _, one in day.filters] for day in seen.epoch_filters]
    assert [[5120], [5120]] == capacities
    fetch_unseen(seen, site_keys("more", 5_400 - 5_100), START + 2 * DAY)
    assert [5120, 1280] == [one.shape.capacity for _, one in seen.epoch_filters[-1].filters]


def test_what_was_expected_is_still_known_after_a_pause() -> None:
    seen = ExpiringFilter(Period(epoch_s=DAY, epochs=1))
    fetch_unseen(seen, site_keys("before", 3_000), START)
    assert not seen.contains(site_keys("before", 1)[0], START + 5 * DAY)
    assert not seen.contains(site_keys("before", 1)[0], START + 9 * DAY)
    fetch_unseen(seen, site_keys("after", 300), START + 9 * DAY)
    assert [3008] == [one.shape.capacity for day in seen.epoch_filters for _, one in day.filters]


@pytest.mark.parametrize("keys_wanted", [1, 1024, 1025, 2048, 100_000, 1_000_000, CAPACITY_MAX])
def test_capacities_come_in_steps_of_a_thirtysecond(keys_wanted: int) -> None:
    capacity = ladder(keys_wanted)
    assert keys_wanted <= capacity <= max(CAPACITY_LEAST, keys_wanted * 33 / 32)
    assert capacity == ladder(capacity)
    assert CAPACITY_MAX == ladder(CAPACITY_MAX + keys_wanted)


def test_a_few_keys_are_kept_exactly_and_then_come_filters() -> None:
    one = EpochFilter(0, engine("pybloom"), 1e-4)
    assert not any(one.add(place) for place in range(EXACT_MAX))
    assert (EXACT_MAX, (), 0.0) == (one.count, one.filters, one.false_positive_rate)
    assert not one.add(5)
    assert one.add(EXACT_MAX)
    assert (None, EXACT_MAX + 1) == (one.exact_set, one.count)
    assert all(place in one for place in range(EXACT_MAX + 1))


def test_a_key_added_twice_takes_no_room() -> None:
    seen = ExpiringFilter(Period())
    for _ in range(2):
        for key in site_keys("twice", 700):
            seen.add(key, START)
    assert 700 == seen.count(START)


# --- joins -----------------------------------------------------------------------------------------------------------


def filter_of_named_days(filters: str, *days: tuple[int, str, int]) -> ExpiringFilter:
    """A set that met (day, which, how many of them)."""
    seen = ExpiringFilter(Period(epoch_s=DAY, epochs=3, error=1e-3, filters=filters))
    for day, name, count in days:
        for key in site_keys(name, count):
            seen.add(key, START + day * DAY)
    return seen


NOW = START + 3 * DAY
COPIES: dict[str, list[tuple[int, str, int]]] = {
    "nothing": [],
    "few": [(2, "a", 20)],
    "more": [(1, "b", 300)],
    "the same and more": [(1, "b", 900), (3, "c", 40)],
    "others": [(1, "d", 950), (2, "e", 200)],
    "many": [(1, "f", 1_700)],
    "others, many": [(1, "g", 1_300), (3, "h", 500)],
}


@engines
@pytest.mark.parametrize(("one", "other"), [*combinations_with_replacement(COPIES, 2)])
def test_joins_commute_and_change_nothing_twice(filters: str, one: str, other: str) -> None:
    both, turned = filter_of_named_days(filters, *COPIES[one]), filter_of_named_days(filters, *COPIES[other])
    both.join(filter_of_named_days(filters, *COPIES[other]), NOW)
    turned.join(filter_of_named_days(filters, *COPIES[one]), NOW)
    told = to_bytes(both, NOW)
    assert told == to_bytes(turned, NOW)
    for again in (one, other):
        both.join(filter_of_named_days(filters, *COPIES[again]), NOW)
        assert told == to_bytes(both, NOW)
    both.join(turned, NOW)
    assert told == to_bytes(both, NOW)
    for _, name, count in COPIES[one] + COPIES[other]:
        assert all(both.contains(key, NOW) for key in site_keys(name, count))


@engines
def test_joins_associate_in_what_is_seen_and_for_how_long(filters: str) -> None:
    left = filter_of_named_days(filters, *COPIES["more"])
    left.join(filter_of_named_days(filters, *COPIES["others"]), NOW)
    left.join(filter_of_named_days(filters, *COPIES["few"]), NOW)
    rest = filter_of_named_days(filters, *COPIES["others"])
    rest.join(filter_of_named_days(filters, *COPIES["few"]), NOW)
    right = filter_of_named_days(filters, *COPIES["more"])
    right.join(rest, NOW)
    met = [
        (day, key)
        for name in ("more", "others", "few")
        for day, which, n in COPIES[name]
        for key in site_keys(which, n)
    ]
    for seen in (left, right):
        assert all(seen.contains(key, NOW) for _, key in met)
        assert all(seen.contains(key, NOW + DAY) for day, key in met if day == 2)


@engines
def test_copies_of_one_history_stay_one_filter(filters: str) -> None:
    """A backup has heard of the same keys in another order, and not yet of the last keys."""
    met = site_keys("history", 4_000)
    owner, backup = (ExpiringFilter(Period(epochs=1, error=1e-3, filters=filters)) for _ in range(2))
    for seen in (owner, backup):
        for key in site_keys("yesterday", 4_096):
            seen.add(key, START)
    for key in met:
        owner.add(key, START + 7 * DAY)
    for key in Random(1).sample(met[:3_800], 3_800):
        backup.add(key, START + 7 * DAY)
    backup.join(owner, START + 7 * DAY)
    assert [1] == [len(one.filters) for one in backup.epoch_filters]
    assert all(backup.contains(key, START + 7 * DAY) for key in met)
    assert backup.false_positive_rate(START + 7 * DAY) <= 1e-3


@engines
def test_a_union_of_strangers_says_how_much_it_errs(filters: str) -> None:
    both = filter_of_named_days(filters, (3, "one", 1_024))
    both.join(filter_of_named_days(filters, (3, "other", 1_024)), NOW)
    assert [2] == [len(one.filters) for one in both.epoch_filters]
    alone = filter_of_named_days(filters, (3, "one", 1_024)).false_positive_rate(NOW)
    assert pytest.approx(2 * alone, rel=0.3) == both.false_positive_rate(NOW)


@engines
def test_a_joined_set_shares_nothing_with_what_it_was_joined_from(filters: str) -> None:
    source = filter_of_named_days(filters, (3, "few", 5), (2, "many", 500))
    copy = filter_of_named_days(filters)
    copy.join(source, NOW)
    told = to_bytes(copy, NOW)
    fetch_unseen(source, site_keys("later", 400), NOW)
    assert told == to_bytes(copy, NOW)


def test_a_join_takes_up_nothing_that_has_expired() -> None:
    both = filter_of_named_days("pybloom")
    both.join(filter_of_named_days("pybloom", (0, "old", 200), (1, "new", 200)), NOW)
    assert (1, 200) == (both.live(NOW), both.count(NOW))


def test_sets_of_unlike_periods_are_not_joined() -> None:
    both = ExpiringFilter(Period(epochs=3))
    for other in (Period(epochs=4), Period(epochs=3, filters="rbloom"), Period(epochs=3, error=1e-3)):
        with pytest.raises(ValueError, match="cannot be joined"):
            both.join(ExpiringFilter(other), START)


def test_a_join_that_would_take_too_many_filters_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epoch_filter, "FILTERS_MAX", 2)
    both = filter_of_named_days("pybloom", (2, "few", 3), (3, "one", 1_024))
    both.join(filter_of_named_days("pybloom", (3, "two", 1_024)), NOW)
    told = to_bytes(both, NOW)
    with pytest.raises(ValueError, match="at most 2 filters, not 3"):
        both.join(filter_of_named_days("pybloom", (2, "more", 3), (3, "three", 1_024)), NOW)
    assert told == to_bytes(both, NOW)


# --- what can be asked for -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"epoch_s": 0.5}, "at least 1 s"),
        ({"epoch_s": math.nan}, "at least 1 s"),
        ({"epochs": 0}, "1 to 400"),
        ({"epochs": EPOCHS_MAX + 1}, "1 to 400"),
        ({"error": 0.2}, "error is"),
        ({"error": 1e-10}, "error is"),
        ({"filters": "redis"}, "choose one of"),
    ],
)
def test_an_impossible_period_is_refused(wrong: dict[str, float], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Period(**wrong)  # type: ignore[arg-type]


def test_the_strictest_period_needs_no_more_bits_of_a_key_than_there_are() -> None:
    period = Period(epochs=EPOCHS_MAX, error=1e-9)
    one = EpochFilter(0, period.make, period.epoch_error)
    assert HASHES_MAX >= one.shape(FILTERS_MAX - 1, CAPACITY_LEAST).hashes


def test_the_laxest_period_has_filters_too() -> None:
    seen = ExpiringFilter(Period(epochs=1, error=0.1))
    met = site_keys("lax", 2_000)
    for key in met:
        seen.add(key, START)
    assert all(seen.contains(key, START) for key in met)
