"""Who owns a cell, as far as a leaf knows, which has no place in the overlay: what it was told, or else its full peer.

Links of a cell nobody has told it of are offered to the full peer; whoever gets what is not its own answers who is
nearer (crawl/links/forwarder.py), and that is remembered here. A wrong memory costs one more hop, as everywhere.
"""

import asyncio
from collections.abc import Callable

from kadcrawl.keys import Cell
from kadcrawl.link.wire.messages import Contact
from kadcrawl.overlay.addresses import ip_version
from kadcrawl.overlay.ownership import OwnerCache

OWNERS_MAX = 20_000
"""Cells whose owner is remembered."""
OWNERS_S = 300.0


class LeafOwners:
    """The `crawl.forward.Owners` of a leaf."""

    def __init__(self, me: Contact, cell_bits: int, home: Callable[[], Contact]) -> None:
        """`home` gives the full peer that last answered."""
        self.me = me
        self._home = home
        self._known = OwnerCache(cell_bits, OWNERS_MAX, OWNERS_S)

    async def owner(self, cell: Cell) -> Contact:
        """Return whom to offer links of this cell."""
        return self._known.get(cell, self._now()) or self._home()

    def learn_owner(self, cell: Cell, owner: Contact) -> None:
        """Take the hint "not mine, ask `owner`", also if that is farther: who was asked may have another ID by now."""
        if ip_version(owner.host) is not None:
            self._known.put(cell, owner, self._now())

    def suspect(self, contact: Contact) -> None:
        """Ask somebody else: a call to it has failed."""
        self._known.drop_peer(contact.id)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
