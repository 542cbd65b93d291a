"""The benchmark of moves counts moves correctly, and its claims about counts hold on a small scale."""

from collections.abc import Sequence
from random import Random

import pytest

from kadcrawl.keys import Cell
from kadcrawl.link.wire.messages import Contact
from kadcrawl.replication.placement.firstdiff_map import CellMap, Placement
from kadcrawl.replication.placement.holdings import Holdings
from kadcrawl.replication.placement.succession import Succession
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


def full_scan_for_a_newcomer(self: CellMap, newcomer: int) -> list[Placement]:
    every = [entry for placements in self._buckets.values() for entry in placements.items()]
    return [placement for placement, place in every if newcomer ^ place < self._me ^ place]


def full_scan_for_a_lost_peer(self: Holdings, peer: bytes) -> tuple[list[Cell], list[Cell]]:
    unsafe = [cell for cell, owned in self.owned.items() if any(one.id == peer for one in owned.backups)]
    return unsafe, [cell for cell, backed in self.backed.items() if backed.owner.id == peer]


def a_scan_for_each_successor(self: CellMap, contacts: Sequence[Contact]) -> dict[Contact, list[Cell]]:
    def is_nearest(contact: Contact, place: int) -> bool:
        return all(contact.number ^ place <= one.number ^ place for one in contacts)

    return {
        contact: [
            cell
            for placements in self._buckets.values()
            for (cell, _), place in placements.items()
            if is_nearest(contact, place)
        ]
        for contact in contacts
    }


def full_scan_for_short_cells(self: Holdings) -> list[Cell]:
    return [cell for cell, owned in self.owned.items() if len(owned.backups) < self.copies - 1]


@pytest.mark.parametrize(
    ("owner", "method", "planted", "claim"),
    [
        (CellMap, "displaced_by", full_scan_for_a_newcomer, "join: holders examine at most 2 cells"),
        (Holdings, "shared", full_scan_for_a_lost_peer, "leave: holders examine at most 2 cells"),
        (CellMap, "successors", a_scan_for_each_successor, "leave: holders examine at most 2 cells"),
        (Holdings, "short", full_scan_for_short_cells, "join: holders examine at most 2 cells"),
    ],
)
def test_a_planted_search_through_all_cells_breaks_a_claim(
    monkeypatch: pytest.MonkeyPatch, owner: type, method: str, planted: object, claim: str
) -> None:
    """Each finds the right cells, and reads far more than those."""
    monkeypatch.setattr(owner, method, planted)
    moves = cell_moves(PEERS, cells_of(RECORDS, Random(1)), EVENTS, Random(1))
    assert 0 == sum(one.wrong for one in moves)
    broken = [text for text, holds in claims(moves, []) if not holds]
    assert any(text.startswith(claim) for text in broken), broken


def test_a_message_for_each_cell_breaks_a_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    next_batches = Succession.next_batches
    monkeypatch.setattr(Succession, "next_batches", lambda self, most: next_batches(self, 1))
    moves = cell_moves(PEERS, cells_of(RECORDS, Random(1)), EVENTS, Random(1))
    broken = [text for text, holds in claims(moves, []) if not holds]
    assert ["leave: one message for each successor and batch"] == [text.rpartition(":")[0] for text in broken]


def test_a_cell_that_nobody_moved_is_counted_as_wrong() -> None:
    swarm = CellSwarm(4, {Cell(number): 1 for number in range(64)}, Random(1), cell_bits=6)
    joins = CellMoves("join", 4, 64)
    for holdings in swarm.holdings.values():
        holdings.joined = lambda newcomer: ([], [])  # type: ignore[method-assign]
    swarm.join(joins)
    assert joins.wrong == joins.cells_moved > 0
