"""`HolderRecheck` looks up the holders of whole cells anew, and syncs only the cells that have others by now.

A sync asks three peers. A lookup among known peers asks nobody, and the notice to keep a copy compares it as well. In a
job by URL a peer owns thousands of cells with a URL or two in each, and an overloaded peer must not sync them for news
that it has.

Tests: tests/replication/owner/test_sync.py
"""

import asyncio
from collections.abc import Callable, Collection

from kadcrawl.keys import Cell
from kadcrawl.link.wire.messages import Contact
from kadcrawl.replication.owner.owner_parts import OwnerParts
from kadcrawl.replication.placement.placement import FIRST_BACKUP, OWNER, holders

RECHECKS_PER_TURN = 100
"""Cells whose holders are looked up before other work gets its turn."""


class HolderRecheck:
    """The lookups of one peer."""

    def __init__(self, parts: OwnerParts, want: Callable[[Cell], None]) -> None:
        """`want` requests the sync of a cell."""
        self._parts = parts
        self._want = want
        self._due: dict[Cell, None] = {}
        """Cells whose holders are being looked up."""

    def knows(self, cell: Cell, holder: Contact) -> bool:
        """Return whether a peer is a backup of a whole and open cell.

        If it says all the same that it holds the cell, it has changes of the cell and not the notice to keep it, which
        travels after them: in an overloaded swarm much later. Or it knows a nearer backup.
        """
        owned = self._parts.holdings.owned.get(cell)
        return owned is not None and owned.open and owned.whole and holder in owned.backups

    def begin(self, cells: Collection[Cell]) -> None:
        """Look up the holders of these cells in the background."""
        cells = [cell for cell in cells if cell not in self._due]
        if cells:
            self._parts.spawn(self._look_up(cells), "recheck")
            self._due |= dict.fromkeys(cells)

    def compare(self, cell: Cell) -> None:
        """Tell the backups of a cell to keep it, and compare their copies."""
        for role, contact in enumerate(self._parts.holdings.owned[cell].backups, FIRST_BACKUP):
            self._parts.replicator.keep(contact, cell, role)

    async def _look_up(self, cells: Collection[Cell]) -> None:
        try:
            for number, cell in enumerate(cells, 1):
                if await self._is_settled(cell):
                    self.compare(cell)
                else:
                    self._want(cell)
                if number % RECHECKS_PER_TURN == 0:
                    await asyncio.sleep(0)
        finally:
            for cell in cells:
                self._due.pop(cell, None)

    async def _is_settled(self, cell: Cell) -> bool:
        """Return whether a cell is whole at the holders that a lookup finds."""
        overlay, holdings = self._parts.overlay, self._parts.holdings
        nearest = [await overlay.nearest(place, holdings.copies) for place in holdings.places(cell)]
        owned, chosen = holdings.owned.get(cell), holders(nearest)
        if owned is None or not owned.open or not owned.whole or chosen[OWNER].id != overlay.me.id:
            return False
        return tuple(chosen[FIRST_BACKUP:]) == owned.backups
