"""Test that a peer is banned for a while if it misbehaves much, and never for little.

The memory for scores is small.
"""

from itertools import count

import pytest
from hypothesis import given, strategies as st

from kadcrawl.link.peer_score import (
    BAN_REMEMBERED_S,
    BAN_S,
    BAN_S_MAX,
    HALF_LIFE_S,
    LOG_INTERVAL_S,
    MISBEHAVIORS_MAX,
    OTHER_REASON,
    REASONS_MAX,
    SOURCES_MAX,
    WEIGHTS,
    LogLimiter,
    Misbehavior,
    PeerScore,
    left_out_note,
)

MALFORMED = Misbehavior.MALFORMED


def misbehave(conduct: PeerScore, source: bytes | str, now: float) -> float:
    """Note faults until the source is banned. Return the seconds of the ban."""
    for _ in range(int(MISBEHAVIORS_MAX)):
        conduct.note(source, MALFORMED, now)
    until = conduct.banned_until(source, now)
    assert until is not None
    return until - now


def test_few_faults_are_nothing_and_many_at_once_are_too_many() -> None:
    conduct = PeerScore()
    for _ in range(int(MISBEHAVIORS_MAX) - 1):
        assert not conduct.note(b"a", MALFORMED, 5.0)
    assert conduct.banned_until(b"a", 5.0) is None
    assert conduct.note(b"a", MALFORMED, 5.0)
    assert conduct.banned_until(b"a", 5.0) == 5.0 + BAN_S
    assert conduct.banned_until(b"a", 5.0 + BAN_S) is None
    assert conduct.banned_until(b"b", 5.0) is None
    assert (conduct.misbehaviors, conduct.bans, conduct.banned(5.0)) == ({MALFORMED: MISBEHAVIORS_MAX}, 1, 1)
    assert conduct.banned(5.0 + BAN_S) == 0


def test_a_peer_with_a_bug_in_one_kind_of_message_is_not_banned() -> None:
    conduct = PeerScore()
    for second in range(0, 100_000, 2):
        assert not conduct.note(b"a", MALFORMED, float(second))


def test_kinds_add_up() -> None:
    conduct = PeerScore()
    heavy = [fault for fault in Misbehavior if fault not in WEIGHTS]
    shunned = [conduct.note("a", fault, 0.0) for _ in range(int(MISBEHAVIORS_MAX) // len(heavy)) for fault in heavy]
    assert shunned.index(True) == MISBEHAVIORS_MAX - 1
    assert set(conduct.misbehaviors) == set(heavy)


def test_a_repeated_peer_of_another_release_is_not_banned_but_a_flood_is() -> None:
    conduct = PeerScore()
    for second in range(100_000):
        assert not conduct.note("a", Misbehavior.VERSION, float(second))
    assert conduct.misbehaviors[Misbehavior.VERSION] == 100_000
    flood = [
        conduct.note("b", Misbehavior.VERSION, 0.0)
        for _ in range(int(MISBEHAVIORS_MAX / WEIGHTS[Misbehavior.VERSION]) + 1)
    ]
    assert MISBEHAVIORS_MAX < flood.index(True) < len(flood)


def test_faults_are_forgotten_by_half() -> None:
    conduct = PeerScore()
    for _ in range(int(MISBEHAVIORS_MAX) - 1):
        conduct.note("a", MALFORMED, 0.0)
    left = next(number for number in count(1) if conduct.note("a", MALFORMED, HALF_LIFE_S))
    assert left == pytest.approx(MISBEHAVIORS_MAX / 2, abs=1)


def test_each_further_ban_doubles_up_to_an_hour_and_is_forgotten_at_last() -> None:
    conduct, now = PeerScore(), 0.0
    times = []
    for _ in range(30):
        times.append(misbehave(conduct, "a", now))
        now += times[-1]
    assert times[:4] == [BAN_S, 2 * BAN_S, 4 * BAN_S, 8 * BAN_S]
    assert times[-1] == BAN_S_MAX == max(times)
    assert misbehave(conduct, "a", now + BAN_REMEMBERED_S) == BAN_S


def test_what_comes_while_it_is_banned_makes_it_no_longer() -> None:
    conduct = PeerScore()
    misbehave(conduct, "a", 0.0)
    for _ in range(1000):
        assert conduct.note("a", MALFORMED, 1.0)
    assert conduct.banned_until("a", 1.0) == BAN_S
    assert not conduct.note("a", MALFORMED, BAN_S)


def test_however_many_sources_only_the_latest_are_remembered() -> None:
    conduct = PeerScore()
    for number in range(3 * SOURCES_MAX):
        conduct.note(str(number), MALFORMED, 0.0)
        assert len(conduct._scores) <= SOURCES_MAX
    assert next(iter(conduct._scores)) == str(2 * SOURCES_MAX)
    assert conduct.misbehaviors[MALFORMED] == 3 * SOURCES_MAX
    for number in range(SOURCES_MAX + 2):
        misbehave(conduct, number.to_bytes(2, "big"), 0.0)
    assert conduct.banned(0.0) == len(conduct._banned) == SOURCES_MAX


def test_new_sources_do_not_free_one_that_is_banned() -> None:
    conduct = PeerScore()
    misbehave(conduct, "a", 0.0)
    for number in range(3 * SOURCES_MAX):
        conduct.note(str(number), MALFORMED, 0.0)
    assert conduct.banned_until("a", 0.0) == BAN_S


STEPS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from([*Misbehavior]), st.floats(0, 200), st.integers(1, 100)),
    max_size=30,
)


@given(STEPS)
def test_nobody_is_banned_for_less_than_that_nor_for_more_than_an_hour(
    steps: list[tuple[str, Misbehavior, float, int]],
) -> None:
    conduct, now = PeerScore(), 1000.0
    since: dict[str, int] = {}
    for source, fault, seconds, times in steps:
        now += seconds
        for _ in range(times):
            before = conduct.banned_until(source, now)
            shunned = conduct.note(source, fault, now)
            until = conduct.banned_until(source, now)
            assert shunned == (until is not None)
            if before is not None:
                assert until == before
                continue
            since[source] = since.get(source, 0) + 1
            if until is not None:
                assert since.pop(source) >= MISBEHAVIORS_MAX
                assert BAN_S - 1e-6 <= until - now <= BAN_S_MAX + 1e-6
    assert sum(conduct.misbehaviors.values()) == sum(times for *_, times in steps)


# --- lines of the log


def test_the_first_of_each_reason_is_logged_and_then_one_in_ten_seconds() -> None:
    lines = LogLimiter()
    assert lines.count("a", 0.0) == 0
    assert [lines.count("a", 1.0) for _ in range(12_345)] == [None] * 12_345
    assert lines.count("b", 1.0) == 0
    left_out = lines.count("a", LOG_INTERVAL_S)
    assert left_out == 12_345
    assert left_out_note(left_out) == " (refused 12345 more since the last such line)"
    assert left_out_note(0) == ""
    assert lines.count("a", LOG_INTERVAL_S + 1) is None
    assert lines.count("a", 2 * LOG_INTERVAL_S) == 1


@given(st.lists(st.tuples(st.integers(0, 300), st.floats(0, 5)), max_size=300))
def test_lines_tell_of_all_refusals_and_are_few(steps: list[tuple[int, float]]) -> None:
    lines, now, told = LogLimiter(), 0.0, 0
    last: dict[int, float] = {}
    for reason, seconds in steps:
        now += seconds
        left_out = lines.count(str(reason), now)
        if left_out is not None:
            told += 1 + left_out
            if reason in last and len(last) <= REASONS_MAX:
                assert now >= last[reason] + LOG_INTERVAL_S
            last[reason] = now
    assert told + sum(left_out for _, left_out in lines._reasons.values()) == len(steps)
    assert len(lines._reasons) <= REASONS_MAX + 1


def test_reasons_without_end_are_one() -> None:
    lines = LogLimiter()
    said = [lines.count(str(number), 0.0) for number in range(10 * REASONS_MAX)]
    assert said.count(0) == REASONS_MAX + 1
    assert lines.count(OTHER_REASON, LOG_INTERVAL_S) == 9 * REASONS_MAX - 1
