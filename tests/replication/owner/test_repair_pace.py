"""How often cells are compared with their backups, however many they are."""

import pytest

from kadcrawl.replication.owner.repair_pace import (
    CELLS_PER_REPAIR,
    OWNER_SILENCE_MAX_S,
    RECHECK_REPAIRS,
    REPAIR_S as EVERY_S,
    SILENT_REPAIRS,
    is_turn,
    repairs_per_turn,
    silence_max_s,
)


@pytest.mark.parametrize(
    ("cells", "repairs"),
    [(0, 1), (CELLS_PER_REPAIR, 1), (CELLS_PER_REPAIR + 1, 2), (100 * CELLS_PER_REPAIR, RECHECK_REPAIRS)],
)
def test_a_cell_is_compared_more_seldom_if_there_are_many_but_once_in_a_minute(cells: int, repairs: int) -> None:
    assert repairs == repairs_per_turn(cells)
    assert repairs * EVERY_S <= 60.0


@pytest.mark.parametrize("repairs", [1, 2, 5])
def test_each_cell_has_one_turn_in_so_many_repairs(repairs: int) -> None:
    for cell in range(20):
        assert [cell] == [cell for repair in range(7, 7 + repairs) if is_turn(cell, repair, repairs)]


@pytest.mark.parametrize("cells", [0, 100, CELLS_PER_REPAIR, 5 * CELLS_PER_REPAIR])
def test_a_backup_is_patient_for_longer_than_a_turn_takes(cells: int) -> None:
    copies = 3
    backed = cells * (copies - 1)  # As many peers back up as own.
    assert SILENT_REPAIRS * EVERY_S * repairs_per_turn(cells) == silence_max_s(backed, copies)


def test_a_crawl_without_backups_has_a_patience() -> None:
    assert OWNER_SILENCE_MAX_S == silence_max_s(0, 1)
