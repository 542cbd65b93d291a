"""Test that epoch filters survive the wire to the byte, and that other bytes are refused before they cost memory."""

import tracemalloc
from math import ceil
from random import Random
from struct import pack

import pytest
from hypothesis import given, settings, strategies as st

from kadcrawl.keys import Key
from kadcrawl.settings.recrawl_checks import CalendarGrain
from kadcrawl.store.bloom.encoding import FILTER_BYTES_MAX, Pieces, from_bytes, to_bytes
from kadcrawl.store.bloom.engines import ENGINES
from kadcrawl.store.bloom.epoch_filter import (
    CAPACITY_LEAST,
    EXACT_MAX,
    FILTERS_MAX,
    GROWTH,
    SURPLUS,
    EpochFilter,
    ladder,
    least_capacity,
)
from kadcrawl.store.bloom.expiring_filter import ERROR_MOST, ExpiringFilter, Period
from kadcrawl.store.bloom.filter import CAPACITY_MAX

DAY = 86_400.0
START = 1_577_836_800.0
TODAY = int(START // DAY)
PERIOD = Period(epoch_s=DAY, epochs=3)
HEAD = pack("<4sBBHdd", b"seen", 1, 1, 3, DAY, 1e-4)
engines = pytest.mark.parametrize("filters", list(ENGINES))


def random_keys(name: object, count: int) -> list[Key]:
    random = Random(str(name))
    return [Key(random.randbytes(20)) for _ in range(count)]


def filter_of_days(*days: tuple[int, int], filters: str = "pybloom") -> ExpiringFilter:
    """A set that met (day, how many)."""
    seen = ExpiringFilter(Period(epoch_s=DAY, epochs=3, filters=filters))
    for day, count in days:
        for key in random_keys(day, count):
            seen.add(key, START + day * DAY)
    return seen


def few(grain: int, *places: int) -> bytes:
    return pack(f"<qHB{len(places)}Q", grain, len(places), 0, *places)


def filters_of(grain: int, count: int, rung: int = 0, capacity: int = CAPACITY_LEAST, bits: bytes = b"") -> bytes:
    return pack("<qHBBI", grain, 0, count, rung, capacity) + bits


SHAPE = filter_of_days((0, 300)).epoch_filters[0].filters[0][1].shape
TOLD = to_bytes(filter_of_days((0, 20), (1, 300), (2, 1_500)), START + 2 * DAY)


# --- round trips -----------------------------------------------------------------------------------------------------


@engines
@pytest.mark.parametrize(
    "days",
    [[], [(0, 1)], [(0, EXACT_MAX)], [(0, EXACT_MAX + 1)], [(0, 20), (1, 1_500), (2, 300)]],
    ids=["empty", "one", "few", "more", "days"],
)
def test_a_set_comes_back_to_the_byte_and_goes_on(filters: str, days: list[tuple[int, int]]) -> None:
    seen, now = filter_of_days(*days, filters=filters), START + 2 * DAY
    told = to_bytes(seen, now)
    back = from_bytes(told, seen.period, now)
    assert told == to_bytes(back, now)
    for day, count in days:
        assert all(back.contains(key, now) for key in random_keys(day, count))
    assert [back.contains(key, now) for key in random_keys("new", 500)] == [
        seen.contains(key, now) for key in random_keys("new", 500)
    ]
    for key in random_keys("later", 1_200):
        back.add(key, now)
    assert all(back.contains(key, now) for key in random_keys("later", 1_200))


@engines
def test_equal_sets_have_equal_bytes_however_they_came_about(filters: str) -> None:
    there, back = (
        filter_of_days((1, 100), (0, 700), filters=filters),
        ExpiringFilter(Period(epoch_s=DAY, epochs=3, filters=filters)),
    )
    for day, count in ((0, 700), (1, 100)):
        for key in reversed(random_keys(day, count)):
            back.add(key, START + day * DAY)
    assert to_bytes(there, START + DAY) == to_bytes(back, START + DAY)


def test_a_set_that_came_over_the_wire_grows_as_if_it_had_stayed() -> None:
    there = filter_of_days((0, 3_000), (1, 2_000))
    back = from_bytes(to_bytes(there, START + DAY), PERIOD, START + DAY)
    for seen in (there, back):
        for key in random_keys("more", 1_500):
            seen.add(key, START + DAY)
        assert [3_008, CAPACITY_LEAST] == [one.shape.capacity for _, one in seen.epoch_filters[-1].filters]


def test_days_of_the_calendar_are_those_of_a_grain_of_a_day() -> None:
    """Filters of earlier releases have such epochs."""
    daily = ExpiringFilter(Period(epochs=3, calendar="day"))
    for day, count in ((0, 20), (1, 300), (2, 1_500)):
        for key in random_keys(day, count):
            daily.add(key, START + day * DAY)
    assert TOLD == to_bytes(daily, START + 2 * DAY)


@pytest.mark.parametrize(("unit", "length_s"), [("week", 7 * DAY), ("month", 2_629_746.0)])
def test_weeks_and_months_are_not_taken_for_epochs_of_their_length(unit: CalendarGrain, length_s: float) -> None:
    seen = ExpiringFilter(Period(epochs=3, calendar=unit))
    (key,) = random_keys("one", 1)
    seen.add(key, START)
    told = to_bytes(seen, START)
    assert from_bytes(told, seen.period, START).contains(key, START)
    with pytest.raises(ValueError, match="epoch filters of another kind"):
        from_bytes(told, Period(epoch_s=length_s, epochs=3), START)


def test_what_expires_on_the_way_is_left_out() -> None:
    told = to_bytes(filter_of_days((0, 300), (1, 10)), START + DAY)
    assert 2 == from_bytes(told, PERIOD, START + 2 * DAY).live(START + 2 * DAY)
    assert 1 == from_bytes(told, PERIOD, START + 3 * DAY).live(START + 3 * DAY)
    assert 0 == from_bytes(told, PERIOD, START + 9 * DAY).live(START + 9 * DAY)


def test_an_expired_epoch_filter_is_not_sent() -> None:
    seen = filter_of_days((0, 300))
    assert HEAD == to_bytes(seen, START + 3 * DAY)


def test_a_clock_may_be_one_epoch_ahead() -> None:
    told = to_bytes(filter_of_days((0, 5)), START)
    assert 1 == from_bytes(told, PERIOD, START - DAY).live(START - DAY)
    with pytest.raises(ValueError, match="lies ahead"):
        from_bytes(told, PERIOD, START - 2 * DAY)


# --- what is refused -------------------------------------------------------------------------------------------------

HOSTILE = {
    "nothing": (b"", "the head needs 24 bytes"),
    "half a head": (HEAD[:10], "the head needs 24 bytes, but only 10"),
    "other bytes": (b"sean" + HEAD[4:], "no epoch filters of version 1"),
    "another version": (HEAD[:4] + b"\2" + HEAD[5:], "no epoch filters of version 1"),
    "another engine": (HEAD[:5] + b"\2" + HEAD[6:], "of another kind"),
    "another period": (pack("<4sBBHdd", b"seen", 1, 1, 4, DAY, 1e-4), "of another kind"),
    "another grain": (pack("<4sBBHdd", b"seen", 1, 1, 3, 3_600.0, 1e-4), "of another kind"),
    "no number": (pack("<4sBBHdd", b"seen", 1, 1, 3, DAY, float("nan")), "of another kind"),
    "half a slice": (HEAD + b"\0" * 5, "an epoch filter needs 11 bytes, but only 5"),
    "an empty slice": (HEAD + few(TODAY), "fingerprints or filters, not 0 and 0"),
    "both": (HEAD + pack("<qHB", TODAY, 1, 1), "fingerprints or filters, not 1 and 1"),
    "a later slice first": (HEAD + few(TODAY, 1) + few(TODAY - 1, 1), "order of time"),
    "one slice twice": (HEAD + few(TODAY, 1) + few(TODAY, 1), "order of time"),
    "a slice of next year": (HEAD + few(TODAY + 365, 1), "lies ahead"),
    "the end of time": (HEAD + few(2**63 - 1, 1), "lies ahead"),
    "too few places": (HEAD + few(TODAY, 1, 2)[:-1], "2 fingerprints needs 16 bytes, but only 15"),
    "too many places": (HEAD + few(TODAY, *range(EXACT_MAX + 1)), f"at most {EXACT_MAX} fingerprints"),
    "places out of order": (HEAD + few(TODAY, 2, 1), "must ascend"),
    "a place twice": (HEAD + few(TODAY, 1, 1), "each must occur once"),
    "too many filters": (HEAD + filters_of(TODAY, FILTERS_MAX + 1), f"at most {FILTERS_MAX} filters"),
    "a filter of nothing": (HEAD + filters_of(TODAY, 1, capacity=0), "no filter of stage 0 for 0 keys"),
    "an odd capacity": (HEAD + filters_of(TODAY, 1, capacity=1_025), "no filter of stage 0 for 1,025 keys"),
    "a capacity beyond all": (HEAD + filters_of(TODAY, 1, capacity=2**32 - 1), "no filter"),
    "a rung beyond all": (HEAD + filters_of(TODAY, 1, rung=FILTERS_MAX), f"no filter of stage {FILTERS_MAX}"),
    "the largest, unsaid": (HEAD + filters_of(TODAY, 1, capacity=CAPACITY_MAX), "but only 0 are left"),
    "a rung without those before it": (
        HEAD + filters_of(TODAY, 1, rung=1),
        "stage 1 follows one of stage -1",
    ),
    "a high rung for a few": (
        HEAD + filters_of(TODAY, 1, rung=2, capacity=6 * CAPACITY_LEAST - 128),
        "no filter of stage 2 for 6,016 keys",
    ),
    "a higher one": (HEAD + filters_of(TODAY, 1, rung=9, capacity=CAPACITY_LEAST), "no filter of stage 9"),
    "too few bits": (
        HEAD + filters_of(TODAY, 1, bits=bytes(SHAPE.size_bytes - 1)),
        f"but only {SHAPE.size_bytes - 1:,} are left",
    ),
    "no bit set": (HEAD + filters_of(TODAY, 1, bits=bytes(SHAPE.size_bytes)), "has none"),
    "all bits set": (
        HEAD + filters_of(TODAY, 1, bits=b"\xff" * SHAPE.size_bytes),
        "the false positive rate is 1.0e[+]00",
    ),
    "too many bits set": (HEAD + filters_of(TODAY, 1, bits=b"\x77" * SHAPE.size_bytes), "the false positive rate is"),
    "many filters as good as empty": (
        HEAD
        + pack("<qHB", TODAY, 0, 8)
        + 8 * (pack("<BI", 0, CAPACITY_LEAST) + b"\xff" * 8 + bytes(SHAPE.size_bytes - 8)),
        "the false positive rate is",
    ),
    "something after all": (HEAD + few(TODAY, 1) + b"\0", "an epoch filter needs 11 bytes, but only 1"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_not_well_formed_is_refused_and_said_why(name: str) -> None:
    told, why = HOSTILE[name]
    with pytest.raises(ValueError, match=why):
        from_bytes(told, PERIOD, START)


def test_rungs_are_told_in_order_and_without_a_gap() -> None:
    seen = filter_of_days((0, 1_500))
    told = to_bytes(seen, START)
    ends = [pack("<BI", rung, filter.shape.capacity) + filter.bits for rung, filter in seen.epoch_filters[0].filters]
    assert HEAD + pack("<qHB", TODAY, 0, 2) + b"".join(ends) == told
    with pytest.raises(ValueError, match="no filter of stage 1 follows one of stage -1"):
        from_bytes(HEAD + pack("<qHB", TODAY, 0, 2) + b"".join(ends[::-1]), PERIOD, START)
    with pytest.raises(ValueError, match="no filter of stage 0 follows one of stage 1"):
        from_bytes(HEAD + pack("<qHB", TODAY, 0, 3) + b"".join([*ends, ends[0]]), PERIOD, START)


@pytest.mark.parametrize("expected", [0, 1_025, 1_500, 10**7])
def test_growth_never_gives_less_than_the_least_of_a_rung(expected: int) -> None:
    capacities: list[int] = []
    while sum(capacities) < FILTER_BYTES_MAX:  # More keys than bytes: no such slice can travel.
        was_expected = len(capacities) == 1 and capacities[0] > CAPACITY_LEAST
        growth = SURPLUS if was_expected else GROWTH
        capacities.append(ladder(ceil(growth * sum(capacities))) if capacities else ladder(expected))
        assert capacities[-1] >= least_capacity(len(capacities) - 1)
    # The last that growth can reach has no room in all the bytes there may be, however lax the error.
    highest = next(rung for rung in range(99) if least_capacity(rung) == CAPACITY_MAX)
    assert len(capacities) - 1 <= highest
    assert EpochFilter(0, PERIOD.make, ERROR_MOST).shape(highest, CAPACITY_MAX).size_bytes > FILTER_BYTES_MAX


def test_some_bytes_are_made_without_the_others() -> None:
    seen = filter_of_days((0, 20), (1, 300), (2, 1_500))
    pieces = Pieces(seen)
    assert len(TOLD) == pieces.size
    for step in (1_000, 2_777, len(TOLD), 2 * len(TOLD)):
        cuts = [pieces.cut(at, step) for at in range(0, pieces.size, step)]
        assert {step} >= {len(cut) for cut in cuts[:-1]}
        assert b"".join(cuts) == TOLD
    assert b"" == pieces.cut(pieces.size, 5)


def test_epoch_filters_may_have_as_many_bytes_as_the_reader_allows() -> None:
    assert from_bytes(TOLD, PERIOD, START + 2 * DAY, bytes_max=len(TOLD)).count(START + 2 * DAY)
    with pytest.raises(ValueError, match="at most"):
        from_bytes(TOLD, PERIOD, START + 2 * DAY, bytes_max=len(TOLD) - 1)
    assert FILTER_BYTES_MAX >= 7 * 10_000_000 * 3


def test_no_memory_is_taken_for_what_is_only_claimed() -> None:
    tracemalloc.start()
    for name in ("the largest, unsaid", "too many filters", "a capacity beyond all", "too few bits"):
        with pytest.raises(ValueError):
            from_bytes(HOSTILE[name][0], PERIOD, START)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200_000


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(TOLD) - 1), st.integers(0, 255)), max_size=4), st.integers(0, 60))
def test_bytes_that_were_tampered_with_are_refused_or_a_set_like_any_other(
    changes: list[tuple[int, int]], cut: int
) -> None:
    told = bytearray(TOLD[: len(TOLD) - cut])
    for place, value in changes:
        if place < len(told):
            told[place] = value
    check_harmless(bytes(told))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200), st.booleans())
def test_random_bytes_are_refused_or_a_set_like_any_other(told: bytes, headed: bool) -> None:
    check_harmless(HEAD + told if headed else told)


def check_harmless(told: bytes) -> None:
    now = START + 2 * DAY
    try:
        seen = from_bytes(told, PERIOD, now)
    except ValueError:
        return
    assert seen.live(now) <= PERIOD.epochs + 1
    assert seen.false_positive_rate(now) <= 1e-3
    again = to_bytes(seen, now)
    seen.join(from_bytes(again, PERIOD, now), now)
    assert again == to_bytes(seen, now)
