"""Test that units of the calendar begin when the calendar says, and that all machines number them alike."""

from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest
from hypothesis import given, strategies as st

from kadcrawl.settings.recrawl_checks import CALENDAR_GRAINS_S, CalendarGrain
from kadcrawl.store.bloom.calendar_epochs import CYCLE_DAYS, DAY_S, begin_s, number

UNITS = get_args(CalendarGrain)
AT = datetime(1970, 1, 1, tzinfo=UTC)


def begin_of(unit: CalendarGrain, at: datetime) -> datetime:
    """Return the beginning of the unit that has an instant, by the calendar of Python."""
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    if unit == "hour":
        return at.replace(minute=0, second=0, microsecond=0)
    if unit == "week":
        return day - timedelta(days=at.isocalendar().weekday - 1)
    return day.replace(day=1) if unit == "month" else day


@given(at=st.integers(-70 * 366 * DAY_S, 7_000 * 365 * DAY_S).map(lambda second: AT + timedelta(seconds=second)))
@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_begins_as_the_calendar_of_python_says(unit: CalendarGrain, at: datetime) -> None:
    which = number(unit, (at - AT) / timedelta(seconds=1))
    assert begin_of(unit, at) == AT + timedelta(seconds=begin_s(unit, which))
    following = AT + timedelta(seconds=begin_s(unit, which + 1))
    assert following > at
    assert begin_of(unit, following) == following


@pytest.mark.parametrize(
    ("unit", "last", "first"),
    [
        ("month", "2024-02-29T23:59:59.999", "2024-03-01T00:00"),
        ("month", "2023-02-28T23:59:59.999", "2023-03-01T00:00"),
        ("month", "2100-02-28T23:59:59.999", "2100-03-01T00:00"),
        ("month", "2024-12-31T23:59:59.999", "2025-01-01T00:00"),
        ("week", "2024-12-29T23:59:59.999", "2024-12-30T00:00"),
        ("week", "2026-12-27T23:59:59.999", "2026-12-28T00:00"),
        ("week", "2027-01-03T23:59:59.999", "2027-01-04T00:00"),
        ("day", "2016-12-31T23:59:59.999", "2017-01-01T00:00"),
        ("hour", "2025-03-30T00:59:59.999", "2025-03-30T01:00"),
    ],
)
def test_a_unit_ends_with_its_last_moment(unit: CalendarGrain, last: str, first: str) -> None:
    before, after = (datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp() for at in (last, first))
    assert number(unit, before) + 1 == number(unit, after)
    assert after == begin_s(unit, number(unit, after))


def test_the_week_of_new_year_is_one_week() -> None:
    days = [datetime(2020, 12, 28, tzinfo=UTC) + timedelta(days=day) for day in range(7)]
    assert {(2020, 53)} == {day.isocalendar()[:2] for day in days}
    assert 1 == len({number("week", day.timestamp()) for day in days})


def test_the_unit_of_1970_is_number_zero() -> None:
    assert [0, 0, 0, 0] == [number(unit, 0.0) for unit in UNITS]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("which", [-(10**9), -4_801, -1, 0, 4_800, 10**9])
def test_any_number_has_a_beginning(unit: CalendarGrain, which: int) -> None:
    assert which == number(unit, begin_s(unit, which))
    # A number may come from a damaged journal.
    assert begin_s(unit, 2**63 - 1) > begin_s(unit, which) > begin_s(unit, -(2**63))


def test_a_month_has_its_mean_length() -> None:
    assert CYCLE_DAYS * DAY_S / 4_800 == CALENDAR_GRAINS_S["month"]
