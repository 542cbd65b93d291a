"""How often cells are compared with their backups, however many they are."""

import pytest

from kadcrawl.replication.owner.repair_pace import (
    CELLS_PER_REPAIR,
    REPAIR_S,
    SILENT_REPAIRS,
    repairs_per_turn,
    silence_max_s,
    turn_of,
)


@pytest.mark.parametrize(
    ("cells", "repairs"),
    [(0, 1), (CELLS_PER_REPAIR, 1), (CELLS_PER_REPAIR + 1, 2), (10 * CELLS_PER_REPAIR, 10)],
)
def test_a_repair_compares_a_bounded_number_of_cells(cells: int, repairs: int) -> None:
    assert repairs == repairs_per_turn(cells)
    compared = [cell for cell in range(cells) if turn_of(cell, 7, repairs) is not None]
    assert len(compared) <= CELLS_PER_REPAIR


@pytest.mark.parametrize("repairs", [1, 2, 7])
def test_each_cell_has_a_turn_after_so_many_repairs_and_turns_are_numbered(repairs: int) -> None:
    for cell in range(20):
        turns = [turn for repair in range(3 * repairs) if (turn := turn_of(cell, repair, repairs)) is not None]
        assert [turns[0], turns[0] + 1, turns[0] + 2] == turns


@pytest.mark.parametrize("cells", [0, 100, CELLS_PER_REPAIR, 5 * CELLS_PER_REPAIR])
def test_a_backup_is_patient_for_longer_than_a_turn_takes(cells: int) -> None:
    copies = 3
    backed = cells * (copies - 1)  # As many peers back up as own.
    assert SILENT_REPAIRS * REPAIR_S * repairs_per_turn(cells) == silence_max_s(backed, copies)


def test_a_crawl_without_backups_has_a_patience() -> None:
    assert SILENT_REPAIRS * REPAIR_S == silence_max_s(0, 1)
