"""Lengths of time are shown so that they read back the same."""

import pytest

from kadcrawl.settings.durations import roughly, shown
from kadcrawl.settings.units import seconds_of


@pytest.mark.parametrize(
    "seconds",
    [1.0, 59.0, 60.0, 90.0, 3600.0, 5400.0, 86_400.0, 604_800.0, 0.5, 0.0, 1e-7, 86_400.25, 1_234_567.5],
)
def test_what_is_shown_reads_back(seconds: float) -> None:
    assert seconds == seconds_of(shown(seconds))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59.4, "59 s"),
        (59.7, "1 min"),
        (60, "1 min"),
        (3_599, "1 h"),
        (7_980, "2 h 13 min"),
        (172_800, "2 d"),
        (273_600, "3 d 4 h"),
    ],
)
def test_who_waits_is_told_roughly(seconds: float, text: str) -> None:
    assert text == roughly(seconds)
