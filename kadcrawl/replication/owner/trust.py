"""`TrustPolicy` decides whose DONE records count in a cell.

A record never goes back from DONE, so one false DONE record leaves a page out for ever. A former holder's copy cannot
be told from a lie. But the ID of a peer says of which cells it may hold a copy. So an owner trusts its backups and the
peers next nearest to the cell. A backup trusts the owner it keeps its copy for, and every peer nearer to the cell. Of
other peers they take PENDING records, which cost one request each if invented, but no DONE records.

If many peers join at once, a former holder may be far from the cell by now, and hold all of it. So a new owner trusts
every peer for a while. A page whose DONE record does not count may be fetched again. Decides only.
"""

from kadcrawl.keys import Cell, anchor
from kadcrawl.link.wire.messages import Contact
from kadcrawl.replication.overlay_port import LookupOverlay
from kadcrawl.replication.placement.holdings import Holdings
from kadcrawl.replication.placement.placement import HOLDERS, nearer

SETTLING_S = 150.0
"""Time for which a new owner trusts every peer. No request in flight elsewhere lasts longer. In the simulator twenty
seconds suffice, and without this time three pages in a hundred are fetched again."""


class TrustPolicy:
    """The policy of one peer. All times are seconds of the loop."""

    def __init__(self, overlay: LookupOverlay, holdings: Holdings, cell_bits: int) -> None:
        self._overlay = overlay
        self._holdings = holdings
        self._bits = cell_bits

    def is_settling(self, cell: Cell, now: float) -> bool:
        """Return whether this peer has just become the cell's owner and trusts every peer."""
        owned = self._holdings.owned.get(cell)
        return owned is not None and now < owned.since + SETTLING_S

    def owns(self, cell: Cell) -> bool:
        """Return whether this peer owns the cell."""
        return cell in self._holdings.owned

    def is_nearest(self, sender: Contact, cell: Cell) -> bool:
        """Return whether no known peer is nearer to the cell than the sender."""
        return self._overlay.nearest_known(anchor(cell, self._bits), 1)[0] == sender

    def trusts(self, sender: Contact, cell: Cell, now: float) -> bool:
        """Return whether DONE records count that a peer sends unasked, as an owner does."""
        if self.is_settling(cell, now):
            return True
        better = self._holdings.owner_nearer_than(cell, sender)
        if better is not None and self._overlay.is_live(better.id):
            return False
        target = anchor(cell, self._bits)
        # This peer may not know the sender: it knows only some of the far peers.
        near = max(HOLDERS, self._holdings.copies)
        known = self._overlay.nearest_known(target, near)
        return len(known) < near or not nearer(known[-1], sender, target)
