"""The overlay's methods that replication uses, as Protocols from narrow to wide.

`kadcrawl.overlay.Overlay` fits all of them. Each part asks for the narrowest Protocol that it needs, so its tests need
no real overlay.

Tests: tests/replication/owner/test_sync.py
"""

from typing import Protocol

from kadcrawl.keys import Cell
from kadcrawl.link.wire.messages import Contact


class LivenessOverlay(Protocol):
    """The overlay for parts that ask known peers."""

    @property
    def me(self) -> Contact:
        """Return the contact of this peer."""

    def is_live(self, peer: bytes) -> bool:
        """Return whether the peer with this ID is a live contact."""

    def suspect(self, contact: Contact) -> None:
        """Check soon whether a peer lives. Add the peer to the contacts if it answers."""


class LookupOverlay(LivenessOverlay, Protocol):
    """The overlay for parts that also look for the peers nearest to a key."""

    def nearest_known(self, target: int, count: int) -> list[Contact]:
        """Return up to `count` known peers, this peer included, nearest to `target` first."""

    async def nearest(self, target: int, count: int) -> list[Contact]:
        """Return the same after a lookup, if the known peers may not suffice."""


class HolderOverlay(LookupOverlay, Protocol):
    """The overlay for the holder's side of replication."""

    def contacts(self) -> list[Contact]:
        """Return all live contacts."""


class SyncOverlay(HolderOverlay, Protocol):
    """The overlay for the owner's side of replication."""

    def owns(self, cell: Cell) -> bool:
        """Return whether this peer is the nearest live peer to the cell's anchor."""

    def note_heard(self, contact: Contact) -> None:
        """Count a message of a live contact as a sign of life."""

    def siblings(self) -> list[Contact]:
        """Return the nearest live contacts."""
