"""`OwnerParts` are the parts of the owner's side of replication, in a frozen dataclass.

Tests: tests/replication/owner/test_sync.py
"""

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
    spawn: Spawn
    """Starts a task that ends with the peer."""
    events: ReplicationEvents

    def may_own(self, cell: Cell) -> bool:
        """Return whether this peer is the cell's nearest live peer and does not leave."""
        return self.overlay.owns(cell) and not self.holder_side.leaving
