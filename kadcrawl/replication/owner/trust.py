"""Whose word counts for what is done in a cell.

DONE is only ever raised, so one false word of it leaves a page out for ever, and what the copy of a former holder says
cannot be told from a lie. But a peer's ID says of which cells it may have a copy. An owner believes its backups and
those next nearest to the cell; a peer that keeps a copy, the owner it keeps it for, and whoever is nearer to the cell
than that. Of others they take what is pending, which costs a request each if it is made up, but not that it is done.

If many have come at once, whoever held a cell before them may be far from it now, and have all of it. So who has just
become the owner of a cell believes everybody for a while. What is not believed may be fetched again: a copy that comes
late and from far is worth no more. Decides only.
"""

from kadcrawl.keys import Cell, anchor
from kadcrawl.link.wire.messages import Contact
from kadcrawl.replication.overlay_port import LookupOverlay
from kadcrawl.replication.placement.holdings import Holdings
from kadcrawl.replication.placement.placement import HOLDERS, nearer

SETTLING_S = 150.0
"""In which a new owner believes everybody: no request that was under way somewhere else lasts longer. In the simulator
twenty would do, and with none three pages in a hundred are fetched again."""


class TrustPolicy:
    """One peer's. All times are seconds of the loop."""

    def __init__(self, overlay: LookupOverlay, holdings: Holdings, cell_bits: int) -> None:
        self._overlay = overlay
        self._holdings = holdings
        self._bits = cell_bits

    def is_settling(self, cell: Cell, now: float) -> bool:
        """Return whether everybody is believed of a cell that has come to this peer a moment ago."""
        owned = self._holdings.owned.get(cell)
        return owned is not None and now < owned.since + SETTLING_S

    def owns(self, cell: Cell) -> bool:
        """Return whether this peer owns the cell."""
        return cell in self._holdings.owned

    def is_nearest(self, sender: Contact, cell: Cell) -> bool:
        """Return whether no known peer is nearer to the cell than the sender."""
        return self._overlay.nearest_known(anchor(cell, self._bits), 1)[0] == sender

    def trusts(self, sender: Contact, cell: Cell, now: float) -> bool:
        """Return whether it is believed what a peer sends unasked of a cell, as its owner does."""
        if self.is_settling(cell, now):
            return True
        better = self._holdings.owner_nearer_than(cell, sender)
        if better is not None and self._overlay.is_live(better.id):
            return False
        target = anchor(cell, self._bits)
        # We may not know the sender: of those far from us we know a few.
        known = self._overlay.nearest_known(target, HOLDERS)
        return len(known) < HOLDERS or not nearer(known[-1], sender, target)
