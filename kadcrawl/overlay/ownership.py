"""Who owns a cell: ourselves, by proof; others, by a cache of what lookups and "not mine, ask X" have taught us.

A peer at firstdiff j from us is nearer to a key than we are exactly when we and the key differ in bit j: down to bit j
the peer and we are alike, and there it takes the key's side and we do not. So the key is ours when no bucket j with bit
j set in (us XOR key) holds a live peer, one AND with the table's mask; otherwise its owner stands in the highest such
bucket (P1 1.3.2 tests the same bit when a record moves). The answer is as exact as the sibling list.

The cache may be wrong, never harmful: a receiver checks ownership again and refers the sender on. Decides only.
"""

from collections import OrderedDict
from collections.abc import Callable

from kadcrawl.keys import Cell, anchor
from kadcrawl.link.wire.messages import Contact


def owner_bucket(me: int, target: int, live_mask: int) -> int:
    """Return which bucket of `me` holds the live peer nearest to the key `target`; -1 if that peer is `me`.

    Bit i of `live_mask` tells whether bucket i (firstdiff i from `me`) has a live peer.
    """
    return ((me ^ target) & live_mask).bit_length() - 1


class OwnerCache:
    """Cell -> owner, for cells that are not ours: at most `size` of them, each for `ttl` seconds."""

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
        """Remember `owner` in the place of whoever was there."""
        self._entries[cell] = (owner, now + self._ttl)
        self._entries.move_to_end(cell)
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)

    def drop(self, cell: Cell) -> None:
        """Forget one cell's owner."""
        self._entries.pop(cell, None)

    def clear(self) -> None:
        """Forget all."""
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
