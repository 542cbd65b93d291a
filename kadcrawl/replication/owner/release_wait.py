"""`ReleaseWait` limits how long unverified claims of other peers keep a cell closed.

A new owner asks every peer that claims to hold the cell, and waits until a peer that still crawls it has stopped. No
request lasts longer than two minutes, and a loan is called back by then. But any peer can claim to hold a cell, for
ever and under new IDs, and then fail, or name others. So each cell has two minutes of such waiting, which come back
within an hour. After that the owner asks only the holders by ID: the backups, the peer next nearest to the cell, and
the former backups. A peer that is passed over repeats its claim and is asked later. Decides only.
"""

from collections import OrderedDict

from kadcrawl.keys import Cell

WAIT_S = 130.0
"""Waiting time of one cell."""
COMES_BACK_S = 3600.0
"""Time in which used waiting time comes back."""
CELLS_MAX = 65_536
"""Cells remembered: those with the latest waits."""


class ReleaseWait:
    """The waiting times of one peer's cells. All times are seconds of one monotonic clock."""

    def __init__(self) -> None:
        self._waited: OrderedDict[Cell, tuple[float, float]] = OrderedDict()
        """Cell -> used waiting time in seconds, and the second at which that was noted."""

    def may_wait(self, cell: Cell, since: float, now: float) -> bool:
        """Return whether the cell has waiting time left, if a wait since the second `since` counts too."""
        return self.remaining_s(cell, since, now) > 0

    def remaining_s(self, cell: Cell, since: float, now: float) -> float:
        """Return the waiting time left in seconds. Negative if the wait since `since` was longer."""
        return self._left_s(cell, now) - (now - since)

    def waited(self, cell: Cell, seconds: float, now: float) -> None:
        """Note a wait of so many seconds until now."""
        self._waited[cell] = WAIT_S - self._left_s(cell, now) + seconds, now
        self._waited.move_to_end(cell)
        if len(self._waited) > CELLS_MAX:
            self._waited.popitem(last=False)

    def _left_s(self, cell: Cell, now: float) -> float:
        waited_s, at = self._waited.get(cell, (0.0, now))
        return WAIT_S - max(0.0, waited_s - (now - at) * WAIT_S / COMES_BACK_S)
