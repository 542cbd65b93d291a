"""Numbers the hours, days, weeks and months of the calendar in UTC, for epochs that begin with them (P4).

Each unit has one number, the same on all machines, and it follows from the wall-clock second alone. 0 is the unit of
1970-01-01. A week begins on Monday, as in ISO 8601, and months have the lengths of the Gregorian calendar.

Tests: tests/store/bloom/test_calendar_epochs.py
"""

from datetime import date
from functools import lru_cache

from kadcrawl.settings.recrawl_checks import CALENDAR_GRAINS_S, CalendarGrain

DAY_S = 86_400
MONDAY_S = 3 * DAY_S
"""Seconds by which the week of 1970-01-01, a Thursday, began before that day."""
CYCLE_DAYS, CYCLE_MONTHS = 146_097, 4_800
"""Length of 400 years, after which the Gregorian calendar repeats."""
FIRST_DAY = date(1970, 1, 1).toordinal() - 1
FIRST_MONTH = 1969 * 12
"""Days and months from the year 1 to 1970."""


def number(unit: CalendarGrain, now: float) -> int:
    """Return the number of the unit that has this wall-clock second."""
    if unit == "month":
        return _month(int(now // DAY_S))
    if unit == "week":
        now += MONDAY_S
    return int(now // CALENDAR_GRAINS_S[unit])


def begin_s(unit: CalendarGrain, which: int) -> float:
    """Return the wall-clock second at which the unit with a number begins."""
    if unit == "month":
        cycles, month = divmod(which + FIRST_MONTH, CYCLE_MONTHS)
        days = date(month // 12 + 1, month % 12 + 1, 1).toordinal() - 1
        return float((cycles * CYCLE_DAYS + days - FIRST_DAY) * DAY_S)
    begin = which * CALENDAR_GRAINS_S[unit]
    return begin - MONDAY_S if unit == "week" else begin


@lru_cache(maxsize=16)
def _month(day: int) -> int:
    """Return the number of the month of a day, counted from 1970-01-01."""
    cycles, rest = divmod(day + FIRST_DAY, CYCLE_DAYS)
    found = date.fromordinal(rest + 1)
    return cycles * CYCLE_MONTHS + (found.year - 1) * 12 + found.month - 1 - FIRST_MONTH
