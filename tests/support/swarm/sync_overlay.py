"""The overlay of a peer of a `SyncSwarm`, in memory."""

from collections.abc import Callable

from kadcrawl.keys import Cell, anchor
from kadcrawl.link.wire.messages import (
    Contact,
)
from tests.support.swarm.sync_cells import BITS


class SwarmOverlay:
    """The view of one peer on the others, as `SyncSwarm` tells it."""

    def __init__(self, me: Contact) -> None:
        self.me = me
        self.known: dict[bytes, Contact] = {}
        self.on_joined: list[Callable[[Contact], None]] = []
        self.on_lost: list[Callable[[Contact], None]] = []

    def hear(self, contact: Contact) -> None:
        if contact.id not in self.known and contact.id != self.me.id:
            self.known[contact.id] = contact
            for listener in self.on_joined:
                listener(contact)

    def lose(self, contact: Contact) -> None:
        if self.known.pop(contact.id, None) is not None:
            for listener in self.on_lost:
                listener(contact)

    def contacts(self) -> list[Contact]:
        return list(self.known.values())

    def siblings(self) -> list[Contact]:
        return sorted(self.known.values(), key=lambda one: one.number ^ self.me.number)

    def is_live(self, peer: bytes) -> bool:
        return peer in self.known

    def owns(self, cell: Cell) -> bool:
        return self.nearest_known(anchor(cell, BITS), 1)[0] == self.me

    def nearest_known(self, target: int, count: int) -> list[Contact]:
        return sorted([self.me, *self.known.values()], key=lambda one: one.number ^ target)[:count]

    async def nearest(self, target: int, count: int) -> list[Contact]:
        return self.nearest_known(target, count)

    def note_heard(self, contact: Contact) -> None:
        """Do nothing, as the swarm tells in its own time."""

    def suspect(self, contact: Contact) -> None:
        """The swarm tells in its own time."""
