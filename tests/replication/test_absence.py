"""The log of absences: whatever may have changed an owner counts, and nothing else does."""

import pytest

from kadcrawl.replication.absence import AWAY_MAX_S, LOST_MAX, MARGIN_S, AbsenceLog

PEER, OTHER = bytes(20), b"\x01" * 20


@pytest.fixture
def absences() -> AbsenceLog:
    log = AbsenceLog()
    log.begin(0.0)
    return log


def test_an_absence_in_which_nothing_changed_is_unnoticed(absences: AbsenceLog) -> None:
    assert not absences.noticed(PEER, 2.0, 100.0)


@pytest.mark.parametrize(("lost_at", "expected"), [(99.0, True), (98.0 - MARGIN_S, True), (97.0 - MARGIN_S, False)])
def test_a_peer_lost_in_its_absence_or_just_before_is_noticed(
    absences: AbsenceLog, lost_at: float, expected: bool
) -> None:
    absences.lost(PEER, lost_at)
    assert expected == absences.noticed(PEER, 2.0, 100.0)
    assert not absences.noticed(OTHER, 2.0, 100.0)


def test_a_newcomer_in_the_absence_of_a_peer_may_own_its_cells(absences: AbsenceLog) -> None:
    absences.joined(99.0)
    assert absences.noticed(PEER, 2.0, 100.0)
    assert not absences.noticed(PEER, 2.0, 200.0)


def test_a_long_absence_always_counts(absences: AbsenceLog) -> None:
    assert not absences.noticed(PEER, AWAY_MAX_S, 1000.0)
    assert absences.noticed(PEER, AWAY_MAX_S + 1, 1000.0)


def test_a_peer_that_came_only_just_knows_of_no_absence() -> None:
    log = AbsenceLog()
    assert log.noticed(PEER, 2.0, 100.0)
    log.begin(95.0)
    assert log.noticed(PEER, 2.0, 100.0)
    assert not log.noticed(PEER, 2.0, 97.0 + 2.0 + MARGIN_S)


def test_of_more_lost_peers_than_are_remembered_any_may_be_the_one(absences: AbsenceLog) -> None:
    absences.lost(PEER, 99.0)
    for number in range(LOST_MAX):
        absences.lost(number.to_bytes(20, "big")[::-1] + b"x", 99.0)
    assert absences.noticed(PEER, 2.0, 100.0)
    assert absences.noticed(OTHER, 2.0, 100.0)
    assert not absences.noticed(OTHER, 2.0, 200.0)
