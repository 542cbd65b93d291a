"""`Providers` remembers, for each cell, the peers beside its backups that hold records of it.

A provider has sent `CellsHeld`, or another asked peer has named it. The next owner of a cell asks this peer for them:
while many peers join at once, the peer that crawls a cell may know none of those that come to own it. So they are
remembered for a while after this peer has given up to sync the cell. Decides only.

Tests: tests/replication/owner/test_work_quota.py
"""

from collections import defaultdict
from collections.abc import Iterable

from kadcrawl.keys import Cell
from kadcrawl.link.wire.messages import Contact

PROVIDERS_MAX = 8
"""Peers remembered for one cell that named themselves."""
NAMED_MAX = 64
"""Peers remembered for one cell in all, including the peers that others named."""
ALL_MAX = 600_000
"""Peers remembered for all cells: eight for each of 65,536 and some more. A peer takes 0.25 kB, so this is 150 MB. The
limit of each cell alone would allow a gigabyte."""
KEPT_S = 30.0
"""Seconds for which the providers of a cell are remembered that this peer syncs no more. A holder sends `CellsHeld` to
the owner that it knows every five seconds."""


class Providers:
    """The providers of all cells, by peer ID."""

    def __init__(self) -> None:
        self._of: defaultdict[Cell, dict[bytes, Contact]] = defaultdict(dict)
        self._count = 0
        self._retired: dict[Cell, float] = {}
        """Cell that is not synced any more -> loop second of the end of its sync, the oldest first."""

    def __contains__(self, cell: Cell) -> bool:
        return cell in self._of

    def of(self, cell: Cell) -> dict[bytes, Contact]:
        """Return the providers of one cell, by ID."""
        return dict(self._of.get(cell, {}))

    def add(self, cell: Cell, provider: Contact) -> None:
        """Remember a peer that claims to hold the cell, unless the cell has too many providers."""
        self._add(cell, provider, PROVIDERS_MAX)

    def add_named(self, cell: Cell, providers: Iterable[Contact]) -> None:
        """Remember peers that an asked peer names as holders of the cell. Their own addresses count more."""
        for provider in providers:
            if provider.id not in self._of.get(cell, {}):
                self._add(cell, provider, NAMED_MAX)

    def named(self, cell: Cell, others: Iterable[Contact], most: int, now: float) -> list[Contact]:
        """Return these holders of a cell, and the providers beside them for which a list of `most` has room."""
        self.expire(now)
        held = {one.id: one for one in others}
        found = {**self._of.get(cell, {}), **held}
        beside = [peer for peer in found if peer not in held]
        for peer in beside[max(0, most - len(held)) :]:
            del found[peer]
        return list(found.values())

    def discard(self, cell: Cell, peer: bytes) -> None:
        """Forget a peer, by ID, that holds nothing of the cell any more."""
        known = self._of.get(cell)
        if known is not None and known.pop(peer, None) is not None:
            self._count -= 1
            if not known:
                del self._of[cell]

    def lost(self, peer: bytes) -> None:
        """Forget a peer, by ID, that is dead or gone."""
        for cell in [cell for cell, known in self._of.items() if peer in known]:
            self.discard(cell, peer)

    def resume(self, cell: Cell) -> None:
        """Keep the providers of a cell that is synced from now on."""
        self._retired.pop(cell, None)

    def retire(self, cell: Cell, now: float) -> None:
        """Keep the providers of a cell that is not synced any more for a while."""
        self._retired.pop(cell, None)
        if cell in self._of:
            self._retired[cell] = now
        self.expire(now)

    def expire(self, now: float) -> None:
        """Forget the providers of cells that were retired long ago."""
        while self._retired and self._retired[oldest := next(iter(self._retired))] + KEPT_S <= now:
            self.forget(oldest)

    def forget(self, cell: Cell) -> None:
        """Forget all providers of a cell."""
        self._retired.pop(cell, None)
        self._count -= len(self._of.pop(cell, ()))

    def _add(self, cell: Cell, provider: Contact, most: int) -> None:
        known = self._of.get(cell, {})
        if provider.id in known:
            known[provider.id] = provider
        elif len(known) < most and self._count < ALL_MAX:
            self._of[cell][provider.id] = provider
            self._count += 1
