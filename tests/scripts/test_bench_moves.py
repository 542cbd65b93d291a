"""The benchmark of moves counts moves correctly, and its claims about counts hold on a small scale."""

from random import Random

import pytest

from kadcrawl.keys import Cell
from scripts.bench_moves import cells_of, claims
from scripts.moving_cells import CellMoves, CellSwarm, cell_moves, nearest
from scripts.moving_records import RecordMoves, record_moves

pytestmark = pytest.mark.xdist_group("moves")
"""Keeps these tests in one process, which prepares their fixtures once."""

PEERS, RECORDS, EVENTS = 12, 2_000, 6


@pytest.fixture(scope="module")
def cells() -> list[CellMoves]:
    return cell_moves(PEERS, cells_of(RECORDS, Random(1)), EVENTS, Random(1))


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[RecordMoves]:
    return record_moves(tmp_path_factory.mktemp("stores"), RECORDS, RECORDS // 4, Random(1))


def test_the_nearest_are_those_a_look_at_all_finds() -> None:
    random = Random(1)
    for peers in (3, 4, 50):
        numbers = sorted(random.getrandbits(160) for _ in range(peers))
        for _ in range(50):
            target = random.getrandbits(160)
            assert sorted(numbers, key=lambda number: number ^ target)[:3] == nearest(numbers, target, 3)


def test_exactly_the_cells_whose_holders_changed_move(cells: list[CellMoves]) -> None:
    assert [("join", EVENTS, 0), ("leave", EVENTS, 0)] == [(one.event, one.events, one.wrong) for one in cells]
    assert all(0 < one.cells_moved < one.cells_stored for one in cells)
    assert all(0 < one.records_moved < one.records_stored for one in cells)


def test_who_leaves_or_shared_with_it_looks_at_nothing_that_stays(cells: list[CellMoves]) -> None:
    leaves = cells[1]
    assert (leaves.moved_held, leaves.moved_watched) == (leaves.looks_held, leaves.looks_watched)


def test_just_the_records_that_move_are_read(records: list[RecordMoves]) -> None:
    assert ["join, owner", "join, backup", "leave"] == [one.event for one in records]
    for one in records:
        assert (one.moved, 0) == (one.examined, one.wrong)
        assert RECORDS // 4 <= one.moved < RECORDS // 2


def test_all_claims_about_counts_hold(cells: list[CellMoves], records: list[RecordMoves]) -> None:
    assert [] == [text for text, holds in claims(cells, records) if not holds]


def test_a_cell_that_nobody_moved_is_counted_as_wrong() -> None:
    swarm = CellSwarm(4, {Cell(number): 1 for number in range(64)}, Random(1), cell_bits=6)
    joins = CellMoves("join", 4, 64)
    for holdings in swarm.holdings.values():
        holdings.joined = lambda newcomer: ([], [])  # type: ignore[method-assign]
    swarm.join(joins)
    assert joins.wrong == joins.cells_moved > 0
