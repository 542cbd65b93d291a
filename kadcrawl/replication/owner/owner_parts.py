"""`OwnerParts` are the parts of the owner's side of replication, in a frozen dataclass.

Tests: tests/replication/owner/test_sync.py
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kadcrawl.keys import Cell
from kadcrawl.link.client import LinkClient
from kadcrawl.replication.anti_entropy import AntiEntropy
from kadcrawl.replication.crawl_port import Crawl
from kadcrawl.replication.events import ReplicationEvents
from kadcrawl.replication.holder_side import HolderSide
from kadcrawl.replication.overlay_port import SyncOverlay
from kadcrawl.replication.owner.trust import TrustPolicy
from kadcrawl.replication.peer_tasks import Spawn
from kadcrawl.replication.placement.holdings import Holdings
from kadcrawl.replication.replicator import Replicator
from kadcrawl.store.store import Store
from kadcrawl.urls import Partition

OPENED_TOGETHER = 32
"""Cells of a crawl by URL that open together, a power of two. A sync asks some four peers, and the cells share its
messages."""
FILLED_BITS = 10
"""Most bits of a cell with which cells open together. With more cells, many would open for nothing."""


def opened_together(partition: Partition, bits: int) -> int:
    """Return the number of cells beside each other that are opened together."""
    return OPENED_TOGETHER if partition == "url" and bits <= FILLED_BITS else 1


@dataclass(frozen=True, slots=True)
class OwnerParts:
    """The parts of one peer."""

    overlay: SyncOverlay
    client: LinkClient
    store: Store
    holdings: Holdings
    replicator: Replicator
    anti_entropy: AntiEntropy
    holder_side: HolderSide
    crawl: Crawl
    trust_policy: TrustPolicy
    cell_bits: int
    opened_together: int
    """Cells beside each other that are opened together, a power of two."""
    spawn: Spawn
    """Starts a task that ends with the peer."""
    events: ReplicationEvents

    def neighbors(self, cell: Cell) -> Sequence[Cell]:
        """Return the cells that are opened together with a cell, and that this peer may own."""
        first = cell & -self.opened_together
        beside = map(Cell, range(first, min(first + self.opened_together, 1 << self.cell_bits)))
        return [one for one in beside if one != cell and self.may_own(one)]

    def may_own(self, cell: Cell) -> bool:
        """Return whether this peer is the cell's nearest live peer and does not leave."""
        return self.overlay.owns(cell) and not self.holder_side.leaving
