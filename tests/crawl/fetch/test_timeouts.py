"""An answer is given up for being late, silent or slow, and for nothing else."""

import pytest

from kadcrawl.crawl.fetch.result import FetchError
from kadcrawl.crawl.fetch.timeouts import ResponseDeadline
from kadcrawl.settings.limits import Limits
from tests.support.cases import cases

LIMITS = Limits(
    fetch_timeout_s=120, idle_timeout_s=20, rate_grace_s=15, rate_min_bytes_s=500, large_rate_min_bytes_s=1_000
)

Event = tuple[float, int]
"""The time when a number of bytes of the body came. -1 stands for the head of the answer."""


def test_what_it_pauses_for_does_not_count() -> None:
    patience = ResponseDeadline(LIMITS, 0)
    patience.head_came(1)
    patience.bytes_came(100_000, 2)
    patience.pause(2)
    assert patience.verdict(1_000) is None
    assert patience.look_again_at(1_000) == 1_020
    patience.resume(1_000)
    assert patience.verdict(1_019.9) is None
    assert patience.verdict(1_020) is FetchError.IDLE
    patience.bytes_came(1, 1_020)
    assert patience.verdict(1_118) is FetchError.IDLE
    for now in range(1_030, 1_118, 10):
        patience.bytes_came(1, now)
    assert patience.verdict(1_117.9) is None
    assert patience.verdict(1_118) is FetchError.TIMEOUT


def test_time_in_which_the_process_stood_still_does_not_count() -> None:
    patience = ResponseDeadline(LIMITS, 0)
    patience.head_came(1)
    patience.bytes_came(100_000, 2)
    patience.stood_still(30)
    assert patience.verdict(51.9) is None
    assert patience.verdict(52) is FetchError.IDLE
    patience.bytes_came(100_000, 52)
    assert patience.look_again_at(52) == 72
    for now in range(60, 150, 10):
        patience.bytes_came(100_000, now)
    assert patience.verdict(149.9) is None
    assert patience.verdict(150) is FetchError.TIMEOUT


@pytest.mark.parametrize(
    ("events", "at", "expected"),
    [
        ([], 119.9, None),
        ([], 120, FetchError.TIMEOUT),
        ([(119, -1)], 119.5, None),
        ([(119, -1)], 120, FetchError.TIMEOUT),
        ([(1, -1)], 15.9, None),
        ([(1, -1)], 16, FetchError.TOO_SLOW),
        ([(1, -1), (2, 100_000)], 21.9, None),
        ([(1, -1), (2, 100_000)], 22, FetchError.IDLE),
        ([(1, -1), (2, 100_000), (21, 1)], 22, None),
        ([(1, -1), (2, 100_000), (21, 1)], 41, FetchError.IDLE),
        ([(1, -1), *((n, 499) for n in range(2, 17))], 15.9, None),
        ([(1, -1), *((n, 499) for n in range(2, 17))], 16, FetchError.TOO_SLOW),
        ([(1, -1), *((n, 501) for n in range(2, 17))], 16, None),
        ([(0, -1), *((n, 10_000) for n in range(1, 120))], 119.9, None),
        ([(0, -1), *((n, 10_000) for n in range(1, 120))], 120, FetchError.TIMEOUT),
    ],
)
def test_verdict(events: list[Event], at: float, expected: FetchError | None) -> None:
    patience = ResponseDeadline(LIMITS, 0.0)
    for now, count in events:
        if count < 0:
            patience.head_came(now)
        else:
            patience.bytes_came(count, now)
    assert patience.verdict(at) is expected


@cases("head_at", [0.0, 3.0, 14.9, 50.0, 119.0])
@cases("every_s", [0.5, 7.0, 19.0, 30.0])
@cases("count", [1, 300, 4_000, 100_000])
def test_looking_only_when_told_misses_no_verdict(head_at: float, every_s: float, count: int) -> None:
    """The reference looks all the time at a server that sends `count` bytes every `every_s` seconds."""
    watched, timed = ResponseDeadline(LIMITS, 0.0), ResponseDeadline(LIMITS, 0.0)
    look_at, seen_at, told_at, now = timed.look_again_at(0.0), None, None, 0.0
    while told_at is None or seen_at is None:
        if now == head_at:
            watched.head_came(now)
            timed.head_came(now)
        elif now > head_at and (now - head_at) % every_s == 0:
            watched.bytes_came(count, now)
            timed.bytes_came(count, now)
        if seen_at is None and watched.verdict(now):
            seen_at = now
        if told_at is None and now >= look_at:
            if timed.verdict(now):
                told_at = now
            look_at = timed.look_again_at(now)
        now = round(now + 0.1, 1)
    assert told_at == seen_at


@pytest.mark.parametrize(
    ("breaks_at", "expected"),
    [(40, True), (49.9, True), (50, False), (90, False)],
    ids=["at once", "soon", "late", "much later"],
)
def test_what_breaks_off_soon_after_a_pause_did_so_by_it(breaks_at: float, expected: bool) -> None:
    patience = ResponseDeadline(LIMITS, 0)
    patience.head_came(0)
    assert not patience.broke_by_pause(0)
    patience.pause(30)
    patience.resume(40)
    assert expected == patience.broke_by_pause(breaks_at)


def test_a_place_that_was_free_is_no_pause() -> None:
    patience = ResponseDeadline(LIMITS, 0)
    patience.head_came(0)
    patience.pause(30)
    patience.resume(30)
    assert not patience.broke_by_pause(30)


@pytest.mark.parametrize(
    ("others_wait", "a_second", "expected"),
    [(True, 1_000, None), (True, 999, 40), (False, 999, None)],
    ids=["fast enough", "too slow", "too slow, but nobody waits"],
)
def test_a_large_body_keeps_its_place_as_long_as_it_comes_or_nobody_waits(
    others_wait: bool, a_second: int, expected: int | None
) -> None:
    patience = ResponseDeadline(LIMITS, 0)
    patience.head_came(0)
    patience.bytes_came(10_000_000, 20)
    patience.has_slot(20, lambda: others_wait)
    given_up = None
    for now in range(20, 100):
        if now >= patience.look_again_at(now - 1) and patience.verdict(now) is FetchError.TOO_SLOW:
            given_up = now
            break
        patience.bytes_came(a_second if now >= 30 else 5_000, now)
    assert expected == given_up
