"""For how long a cell is left closed, or unsettled, on the word of peers that its place does not name.

Whoever owns a cell from now on hears everybody who says that he has something of it, and waits until who still crawls
it has stopped: no request lasts longer than two minutes, and a loan is called back by then. But anybody may say so, for
ever and under ever new names, and then fail, or name others. So each cell has two minutes of such waiting, whatever is
said, which come back within an hour. Beyond that only those are heard whose place it is, by their IDs: its backups, the
peer next nearest to it, and who backed it up before. Who is passed over says so again, and is heard later. Decides
only.
"""

from collections import OrderedDict

from kadcrawl.keys import Cell

WAIT_S = 130.0
"""Of all the waiting for a cell."""
COMES_BACK_S = 3600.0
"""In which as much may be waited again."""
CELLS_MAX = 65_536
"""Remembered, those waited for latest."""


class ReleaseWait:
    """The waiting for all cells of one peer. All times are seconds of one monotonic clock."""

    def __init__(self) -> None:
        self._waited: OrderedDict[Cell, tuple[float, float]] = OrderedDict()
        """Seconds waited, less what has come back, and at which second."""

    def may_wait(self, cell: Cell, since: float, now: float) -> bool:
        """Return whether it may be waited for longer, if this cell was waited for since that second anyway."""
        return self.remaining_s(cell, since, now) > 0

    def remaining_s(self, cell: Cell, since: float, now: float) -> float:
        """Return for how many seconds it may be; less than 0 if it was for longer."""
        return self._left_s(cell, now) - (now - since)

    def waited(self, cell: Cell, seconds: float, now: float) -> None:
        """Note that so many seconds, until now, were waited for it."""
        self._waited[cell] = WAIT_S - self._left_s(cell, now) + seconds, now
        self._waited.move_to_end(cell)
        if len(self._waited) > CELLS_MAX:
            self._waited.popitem(last=False)

    def _left_s(self, cell: Cell, now: float) -> float:
        waited_s, at = self._waited.get(cell, (0.0, now))
        return WAIT_S - max(0.0, waited_s - (now - at) * WAIT_S / COMES_BACK_S)
