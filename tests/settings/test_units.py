"""Times, sizes and rates are read as people write them, with their units, and nothing else is."""

import pytest

from kadcrawl.settings.units import bytes_of, rate_of, seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("30 s", 30),
        ("500 ms", 0.5),
        ("2 min", 120),
        ("1.5h", 5400),
        ("0.6000000000000001", 0.6000000000000001),
        (" 15 M ", 900),
        ("1 day", 86_400),
        ("7 days", 604_800),
        ("7d", 604_800),
        ("2w", 1_209_600),
        ("86_400", 86_400),
        ("0", 0),
    ],
)
def test_a_length_of_time_is_read(text: str, seconds: float) -> None:
    assert seconds == seconds_of(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("100000", 100_000),
        ("100,000", 100_000),
        ("5 B", 5),
        ("10 MB", 10_000_000),
        ("10mb", 10_000_000),
        ("1.5 GiB", 1_610_612_736),
        ("64 KiB", 65_536),
        ("500 kB", 500_000),
        ("1 TiB", 2**40),
        ("0", 0),
    ],
)
def test_a_size_is_read(text: str, size: int) -> None:
    assert size == bytes_of(text)


@pytest.mark.parametrize(
    ("text", "rate"), [("512", 512), ("64 KiB/s", 65_536), ("1 MB / s", 1_000_000), ("5 B/sec", 5)]
)
def test_a_rate_is_read(text: str, rate: int) -> None:
    assert rate == rate_of(text)


NEITHER = [
    "",
    "d",
    "-1",
    "1e3",
    "inf",
    "nan",
    "\u0667d",
    "9" * 400,
    "1d2h",
    "1 2",
    "1_00",
    "1,0000",
    ".5",
    "1.",
    "none",
]


@pytest.mark.parametrize("text", [*NEITHER, "1 MB", "5 fortnights", "1 s/s"])
def test_what_is_no_time_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="is no length of time, such as 90s"):
        seconds_of(text)


@pytest.mark.parametrize("text", [*NEITHER, "1 s", "10 M", "1 MB/s"])
def test_what_is_no_size_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="is no size, such as 500 kB"):
        bytes_of(text)


@pytest.mark.parametrize("text", [*NEITHER, "1 s", "1 MB/min"])
def test_what_is_no_rate_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="is no rate, such as 512"):
        rate_of(text)
