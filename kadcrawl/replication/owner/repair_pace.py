"""The pace of repairs: how often an owner compares its cells with their backups, and when a silent owner is doubted.

A job by URL gives a peer thousands of cells with a URL or two in each. To compare all of them in each repair would take
most of a slow peer's time. So a repair compares a limited number of cells, and backups wait for their turn. Decides
only.
"""

from math import ceil

REPAIR_S = 10.0
"""Time between two repairs."""
CELLS_PER_REPAIR = 200
"""Cells that one repair compares. A comparison takes 0.1 ms at each end."""
SILENT_REPAIRS = 1.5
"""Turns of a cell that may pass without a word of its owner."""
RECHECK_TURNS = 6
"""Turns after which the holders of a cell are looked up anew."""
SYNC_TURNS = 60
"""Turns after which a cell is synced even if it has the same holders."""


def repairs_per_turn(cells: float) -> int:
    """Return the repairs in which an owner of so many cells compares each of them once."""
    return max(1, ceil(cells / CELLS_PER_REPAIR))


def turn_of(cell: int, repair: int, repairs: int) -> int | None:
    """Return the number of a cell's turn that comes with a repair, or None if it is not the turn of the cell."""
    turn, early = divmod(repair + cell, repairs)
    return None if early else turn


def silence_max_s(backed: int, copies: int) -> float:
    """Return the silence of an owner about a cell after which its backup asks whether it still owns the cell.

    `backed` is the number of cells backed up here. Peers own about as many as they back up, for each backup of a cell.
    """
    return SILENT_REPAIRS * REPAIR_S * repairs_per_turn(backed / max(1, copies - 1))
