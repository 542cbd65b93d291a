"""The pace of repairs: how often an owner compares its cells with their backups, and when a silent owner is doubted.

A job by URL gives a peer thousands of cells with a URL or two in each. To compare all of them in each repair would take
most of a slow peer's time. So a cell has its turn in one of up to six repairs, and its backups wait for it. Each backup
hears of one cell at least in each repair, so that it misses a dead owner as soon as ever. Decides only.
"""

from math import ceil

REPAIR_S = 10.0
"""Time between two repairs."""
CELLS_PER_REPAIR = 200
"""Cells that one repair compares, if each cell has a turn in a minute then. A comparison takes 0.1 ms at each end."""
SILENT_REPAIRS = 1.5
"""Turns that may pass without a word of the owner."""
OWNER_SILENCE_MAX_S = SILENT_REPAIRS * REPAIR_S
"""Silence of an owner about all its cells after which its backup asks whether it still owns them. The owner may be
dead, or may have lost its memory of us, and need not be a peer whose heartbeats we hear."""
RECHECK_REPAIRS = 6
"""Repairs after which the holders of a cell are looked up anew."""
SYNC_REPAIRS = 60
"""Repairs after which a cell is synced even if it has the same holders."""


def repairs_per_turn(cells: float) -> int:
    """Return the repairs in which an owner of so many cells compares each of them once."""
    return min(max(1, ceil(cells / CELLS_PER_REPAIR)), RECHECK_REPAIRS)


def is_turn(cell: int, repair: int, repairs: int) -> bool:
    """Return whether a cell has its turn in a repair, if it has one in so many repairs."""
    return (repair + cell) % repairs == 0


def silence_max_s(backed: int, copies: int) -> float:
    """Return the silence of an owner about a cell after which its backup asks whether it still owns the cell.

    `backed` is the number of cells backed up here. Peers own about as many as they back up, for each backup of a cell.
    """
    return SILENT_REPAIRS * REPAIR_S * repairs_per_turn(backed / max(1, copies - 1))
