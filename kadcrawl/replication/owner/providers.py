"""Who is known to have something of a cell, beside its backups: whoever has said `CellsHeld`, or was named by one.
Pure.

Tests: tests/replication/owner/test_work_quota.py
"""

from collections import defaultdict
from collections.abc import Iterable

from kadcrawl.keys import Cell
from kadcrawl.link.wire.messages import Contact

PROVIDERS_MAX = 8
"""Peers remembered for one cell on their own word."""
NAMED_MAX = 64
"""Peers remembered for one cell, with those named by others."""
ALL_MAX = 600_000
"""Peers remembered for all cells, eight for each of 65,536 and some: of a quarter of a kilobyte each, so 150 MB.
As many as there may be for each cell would be a gigabyte."""


class Providers:
    """The sources of all cells, by peer ID."""

    def __init__(self) -> None:
        self._of: defaultdict[Cell, dict[bytes, Contact]] = defaultdict(dict)
        self._count = 0

    def __contains__(self, cell: Cell) -> bool:
        return cell in self._of

    def of(self, cell: Cell) -> dict[bytes, Contact]:
        """Return the sources of one cell."""
        return dict(self._of.get(cell, {}))

    def add(self, cell: Cell, provider: Contact) -> None:
        """A peer says that it has something of the cell; passed over if too many do already."""
        self._add(cell, provider, PROVIDERS_MAX)

    def add_named(self, cell: Cell, providers: Iterable[Contact]) -> None:
        """A peer that was asked names others that have something of the cell."""
        for source in providers:
            self._add(cell, source, NAMED_MAX)

    def discard(self, cell: Cell, peer: bytes) -> None:
        """This peer, by ID, has nothing of the cell any more, or is gone."""
        known = self._of.get(cell)
        if known is not None and known.pop(peer, None) is not None:
            self._count -= 1
            if not known:
                del self._of[cell]

    def lost(self, peer: bytes) -> None:
        """This peer, by ID, is dead or gone."""
        for cell in [cell for cell, known in self._of.items() if peer in known]:
            self.discard(cell, peer)

    def forget(self, cell: Cell) -> None:
        """Nobody is asked for this cell any more."""
        self._count -= len(self._of.pop(cell, ()))

    def _add(self, cell: Cell, provider: Contact, most: int) -> None:
        known = self._of.get(cell, {})
        if provider.id in known:
            known[provider.id] = provider
        elif len(known) < most and self._count < ALL_MAX:
            self._of[cell][provider.id] = provider
            self._count += 1
