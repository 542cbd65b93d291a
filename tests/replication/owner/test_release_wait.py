"""Test how long a cell stays closed because of the statements of other peers."""

import pytest

from kadcrawl.keys import Cell
from kadcrawl.replication.owner import release_wait
from kadcrawl.replication.owner.release_wait import COMES_BACK_S, WAIT_S, ReleaseWait

ONE, OTHER = Cell(1), Cell(2)


def waits(releases: ReleaseWait, cell: Cell, began: float, until: float) -> float:
    """Wait in steps of one second while the cell stays closed. Return the time of the end."""
    now = began
    while now < until and releases.may_wait(cell, now, now):
        now += 1.0
        releases.waited(cell, 1.0, now)
    return now


def test_each_cell_is_waited_for_for_two_minutes_whoever_says_so() -> None:
    releases = ReleaseWait()
    assert WAIT_S <= waits(releases, ONE, 0.0, 1000.0) < WAIT_S + 10
    assert WAIT_S <= waits(releases, OTHER, 0.0, 1000.0) < WAIT_S + 10


def test_what_is_waited_just_now_counts_as_well() -> None:
    releases = ReleaseWait()
    assert releases.may_wait(ONE, 0.0, WAIT_S - 1)
    assert not releases.may_wait(ONE, 0.0, WAIT_S)
    releases.waited(ONE, WAIT_S / 2, 10.0)
    assert releases.may_wait(ONE, 10.0, 10.0 + WAIT_S / 2)
    assert not releases.may_wait(ONE, 10.0, 15.0 + WAIT_S / 2)


def test_what_was_waited_comes_back_within_an_hour() -> None:
    releases = ReleaseWait()
    end = waits(releases, ONE, 0.0, 1000.0)
    assert not releases.may_wait(ONE, end, end)
    assert WAIT_S <= waits(releases, ONE, end + COMES_BACK_S, 10 * COMES_BACK_S) - end - COMES_BACK_S < WAIT_S + 10


def test_of_an_hour_a_liar_has_a_few_minutes() -> None:
    releases = ReleaseWait()
    waited = 0
    for second in range(int(COMES_BACK_S)):
        if releases.may_wait(ONE, float(second), float(second)):
            releases.waited(ONE, 1.0, second + 1.0)
            waited += 1
    assert waited <= 2 * WAIT_S + 1


def test_short_releases_now_and_then_are_always_waited_for() -> None:
    releases = ReleaseWait()
    for minute in range(1000):
        assert minute * 60 + 2 == waits(releases, ONE, minute * 60.0, minute * 60 + 2.0)


def test_no_number_of_cells_fills_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_wait, "CELLS_MAX", 3)
    releases = ReleaseWait()
    for cell in range(5):
        releases.waited(Cell(cell), 2 * WAIT_S, 0.0)
    assert [True, True, False, False, False] == [releases.may_wait(Cell(cell), 1.0, 1.0) for cell in range(5)]
