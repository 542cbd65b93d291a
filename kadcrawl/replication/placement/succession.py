"""`Succession`: the peers that take the cells of a leaving peer, and the batches of cells for each (P1 1.3.2, Leave).

The firstdiff map says who gets the cells that the leaving peer owns, and the owners of the other cells are known. So no
cell is looked up by itself, and a successor gets one message for each batch. Only a cell that its successor did not
accept, as it is leaving too, is looked up again. Decides only.
"""

from collections.abc import Sequence

from kadcrawl.keys import Cell
from kadcrawl.link.wire.messages import Contact
from kadcrawl.replication.placement.look_counts import LookCounts

TAKERS_MAX = 8
"""Peers that a leaving peer tries in turn for a cell."""


class Succession:
    """The succession of one leaving peer."""

    def __init__(self, counts: LookCounts) -> None:
        self._counts = counts
        self._cells: dict[Contact, list[Cell]] = {}
        """Successor -> cells of which it is still to be told."""
        self._unwilling: dict[bytes, None] = {}
        """Peers, by ID, that accepted no cell. They may be leaving too."""

    def __bool__(self) -> bool:
        return bool(self._cells)

    def begin(self, successor: Contact, cells: Sequence[Cell]) -> None:
        """Begin to tell a successor of these cells, and of those named before."""
        if cells:
            self._cells.setdefault(successor, []).extend(cells)

    def next_batches(self, most: int) -> list[tuple[Contact, list[Cell]]]:
        """Return up to `most` cells for each successor, as one message each, and forget them."""
        batches = [(successor, cells[:most]) for successor, cells in self._cells.items()]
        self._cells = {successor: cells[most:] for successor, cells in self._cells.items() if len(cells) > most}
        for _ in batches:
            self._counts.sent()
        return batches

    def refused(self, peer: bytes) -> None:
        """Note that a peer, by ID, accepted no cell."""
        self._unwilling[peer] = None

    def willing(self, others: Sequence[Contact]) -> Contact | None:
        """Return the first of these peers, nearest to a cell first, that has not refused."""
        willing = [contact for contact in others if contact.id not in self._unwilling]
        if others and not willing:
            self._unwilling.clear()
        return next(iter(willing or others), None)
