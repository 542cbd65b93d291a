"""Whose word counts for what is done in a cell.

DONE is only ever raised, so one false word of it leaves a page out for ever, and what the copy of a former holder says
cannot be told from a lie. But a peer's ID says of which cells it can have a copy: of those to one of whose places it is
among the nearest. Of others it may make up pages, which cost a request each, but is not believed that one is done.

Places are as this peer knows its fellows. If many have come at once, whoever held a cell before them may be far from
its places now, and have all of it. So who has just become the owner of a cell believes everybody for a while. What is
not believed may be fetched again: a copy that comes late and from far is worth no more. Decides only.
"""

from typing import Protocol

from kadcrawl.history.holdings import Holdings
from kadcrawl.history.placement import HOLDERS, placement_keys
from kadcrawl.keys import Cell
from kadcrawl.link.messages import Contact

SETTLING_S = 150.0
"""In which a new owner believes everybody: no request that was under way somewhere else lasts longer. In the simulator
twenty would do, and with none three pages in a hundred are fetched again."""


class Overlay(Protocol):
    """What belief needs of the overlay."""

    def nearest_known(self, target: int, count: int) -> list[Contact]: ...


class Belief:
    """One peer's."""

    def __init__(self, overlay: Overlay, holdings: Holdings, cell_bits: int) -> None:
        self._overlay = overlay
        self._holdings = holdings
        self._bits = cell_bits

    def counts(self, peer: Contact, cell: Cell, now: float) -> bool:
        """Return whether a peer is believed, at this second of the loop, what of a cell is done."""
        owned = self._holdings.owned.get(cell)
        if owned is not None and now < owned.since + SETTLING_S:
            return True
        # One more than hold it, as this peer may be among them.
        return any(
            peer.id == near.id
            for place in placement_keys(cell, self._bits)
            for near in self._overlay.nearest_known(place, HOLDERS + 1)
        )
