"""Ownership of cells: proven for the own cells, cached for others from lookups and redirects.

A peer at firstdiff j from this peer is nearer to a key exactly when this peer and the key differ in bit j: the two
peers agree above bit j, and in bit j the other peer agrees with the key and this peer does not. So this peer owns the
key when no bucket j with bit j set in (me XOR key) holds a live peer, which is one AND with the table's mask. Otherwise
the owner is in the highest such bucket (P1 1.3.2 tests the same bit when a record moves). The answer is as exact as the
sibling list.

The cache may be wrong but is never harmful: a receiver checks ownership again and redirects the sender. A decision.
"""

from collections import OrderedDict
from collections.abc import Callable

from kadcrawl.keys import Cell, anchor
from kadcrawl.link.wire.messages import Contact


def owner_bucket(me: int, target: int, live_mask: int) -> int:
    """Return the bucket of `me` that holds the live peer nearest to `target`, or -1 if `me` is nearest.

    Bit i of `live_mask` tells whether bucket i (firstdiff i from `me`) has a live peer.
    """
    return ((me ^ target) & live_mask).bit_length() - 1


class OwnerCache:
    """A cache from cell to owner, for cells of other peers: at most `size` of them, each for `ttl` seconds."""

    def __init__(self, cell_bits: int, size: int, ttl: float) -> None:
        self._cell_bits = cell_bits
        self._size = size
        self._ttl = ttl
        self._entries: OrderedDict[Cell, tuple[Contact, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, cell: Cell, now: float) -> Contact | None:
        """Return the owner remembered for `cell`, if any."""
        entry = self._entries.get(cell)
        if entry is None:
            return None
        if now >= entry[1]:
            del self._entries[cell]
            return None
        self._entries.move_to_end(cell)
        return entry[0]

    def put(self, cell: Cell, owner: Contact, now: float) -> None:
        """Remember `owner` as the owner of `cell`, in place of any other."""
        self._entries[cell] = (owner, now + self._ttl)
        self._entries.move_to_end(cell)
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)

    def drop(self, cell: Cell) -> None:
        """Forget the owner of one cell."""
        self._entries.pop(cell, None)

    def clear(self) -> None:
        """Forget all owners."""
        self._entries.clear()

    def drop_peer(self, peer: bytes) -> None:
        """Forget every cell of a peer that is suspected, dead or gone."""
        self._drop_where(lambda cell, owner: owner.id == peer)

    def drop_taken_by(self, newcomer: Contact) -> None:
        """Forget the owners of the cells to which `newcomer` is nearer."""
        self._drop_where(lambda cell, owner: self._nearer(newcomer, owner, cell))

    def _drop_where(self, stale: Callable[[Cell, Contact], bool]) -> None:
        for cell in [cell for cell, (owner, _) in self._entries.items() if stale(cell, owner)]:
            del self._entries[cell]

    def _nearer(self, a: Contact, b: Contact, cell: Cell) -> bool:
        target = anchor(cell, self._cell_bits)
        return a.number ^ target < b.number ^ target
