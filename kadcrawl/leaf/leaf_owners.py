"""`LeafOwners`: the owners of cells, as far as a leaf knows them.

A leaf has no place in the overlay. It offers links of a cell without a known owner to its full peer. A peer that
receives links of another peer's cell answers with a nearer peer (crawl/links/forwarder.py), and the leaf remembers that
hint. A wrong hint costs one more hop.
"""

import asyncio
from collections.abc import Callable

from kadcrawl.keys import Cell
from kadcrawl.link.wire.messages import Contact
from kadcrawl.overlay.addresses import ip_version
from kadcrawl.overlay.ownership import OwnerCache

OWNERS_MAX = 20_000
"""Cells whose owner is remembered, at most."""
OWNERS_S = 300.0
"""Seconds for which an owner is remembered."""


class LeafOwners:
    """The owners of cells, as the `Owners` of a leaf's forwarder (crawl/links/forwarder.py)."""

    def __init__(self, me: Contact, cell_bits: int, home: Callable[[], Contact]) -> None:
        """`home` returns the full peer that last answered."""
        self.me = me
        self._home = home
        self._known = OwnerCache(cell_bits, OWNERS_MAX, OWNERS_S)

    async def owner(self, cell: Cell) -> Contact:
        """Return the peer to offer links of this cell to."""
        return self.known_owner(cell)

    def known_owner(self, cell: Cell) -> Contact:
        """Return the same without a question."""
        return self._known.get(cell, self._now()) or self._home()

    def learn_owner(self, cell: Cell, owner: Contact) -> None:
        """Remember the hint that `owner` owns a cell.

        The hint counts even if `owner` is farther from the cell than the peer that gave it, as that peer may have a
        new ID by now.
        """
        if ip_version(owner.host) is not None:
            self._known.put(cell, owner, self._now())

    def suspect(self, contact: Contact) -> None:
        """Forget a contact that did not answer, so that other peers are asked."""
        self._known.drop_peer(contact.id)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
