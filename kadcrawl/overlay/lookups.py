"""The conversations of lookups: the peers nearest to a key, and the owner of a cell.

`lookup.Lookup` decides which peer to ask, `Lookups` sends the questions. The owner of a cell is this peer, a peer known
without asking (`membership.owner`), or the end of a lookup. Calls for the same cell share one lookup.

Tests: tests/overlay/test_overlay.py, tests/overlay/test_repairs.py
"""

import asyncio
from collections.abc import Callable, Sequence

from kademlia.node import Node

from kadcrawl.keys import Cell, anchor, id_bytes
from kadcrawl.link.wire.messages import Contact
from kadcrawl.overlay.addresses import sendable
from kadcrawl.overlay.lookup import Lookup
from kadcrawl.overlay.membership import Membership
from kadcrawl.overlay.protocol import DatagramProtocol
from kadcrawl.overlay.routing import Neighbor
from kadcrawl.overlay.settings import OverlaySettings
from kadcrawl.system.event import Event
from kadcrawl.system.task_set import TaskSet


class Lookups:
    """The lookups of one peer."""

    def __init__(
        self,
        protocol: DatagramProtocol,
        membership: Membership,
        me: Callable[[], Contact],
        cell_bits: int,
        settings: OverlaySettings,
        tasks: TaskSet,
    ) -> None:
        """`me` returns the contact of this peer. `tasks` owns the questions."""
        self._protocol = protocol
        self._membership = membership
        self._me = me
        self._cell_bits = cell_bits
        self._settings = settings
        self._tasks = tasks
        self._resolving: dict[Cell, asyncio.Task[Contact]] = {}

    # --- the peers nearest to a key

    async def lookup(self, target: int, count: int) -> list[Contact]:
        """Return the `count` live peers nearest to the key `target`, this peer included, nearest first."""
        return await self._lookup(target, count, (), self._settings.alpha)

    async def nearest(self, target: int, count: int) -> list[Contact]:
        """Return the `count` live peers nearest to `target`, this peer included, by a lookup if necessary."""
        if len(self._membership.siblings.nearest) < self._settings.siblings:
            return self.nearest_known(target, count)  # All peers are known.
        found = await self.lookup(target, count)
        # A live contact that gave no answer just now stays in the result: its loss will be reported, if it is lost.
        both = {contact.id: contact for contact in [*found, *self.nearest_known(target, count)]}
        return sorted(both.values(), key=lambda contact: contact.number ^ target)[:count]

    def nearest_known(self, target: int, count: int) -> list[Contact]:
        """Return the `count` peers nearest to the key `target` among this peer and its live contacts."""
        known = [self._me(), *self._membership.nearest(target, count)]
        return sorted(known, key=lambda contact: contact.number ^ target)[:count]

    async def _lookup(self, target: int, count: int, hints: Sequence[Contact], alpha: int) -> list[Contact]:
        known = [*hints, *self._membership.nearest(target, self._settings.k)]
        lookup = Lookup(target, count, self._me(), known, alpha=alpha, asks_max=self._settings.asks_max)
        progress = Event()
        while not lookup.finished:
            while (contact := lookup.next()) is not None:
                # Questions may outlive the lookup: a late failure still counts against the peer.
                self._tasks.spawn(self._ask(contact, lookup, progress), "ask")
            await progress.wait()
            progress.clear()
        return lookup.result()

    async def _ask(self, contact: Contact, lookup: Lookup, progress: Event) -> None:
        def slow() -> None:
            lookup.slow(contact)
            progress.set()

        timer = asyncio.get_running_loop().call_later(self._settings.resend_s, slow)
        try:
            answered, reply = await self._protocol.call_find_node(Neighbor(contact), Node(id_bytes(lookup.target)))
            if answered:
                lookup.answered(contact, self._protocol.usable(reply))
            else:
                lookup.failed(contact)
        finally:
            timer.cancel()
            progress.set()

    # --- the owner of a cell

    async def owner(self, cell: Cell) -> Contact:
        """Return the live peer nearest to the cell's anchor."""
        known = self.known_owner(cell)
        if known is not None:
            return known
        if cell not in self._resolving:
            self._resolve(cell)
        return await asyncio.shield(self._resolving[cell])

    def known_owner(self, cell: Cell) -> Contact | None:
        """Return the owner of a cell, or None if a lookup must find it."""
        if cell in self._resolving:
            return None
        return self._me() if self._membership.owns(cell) else self._membership.owner(cell, self._now())

    def learn_owner(self, cell: Cell, owner: Contact) -> None:
        """Look the owner of `cell` up, by the hint `owner`, if that is nearer than the best owner known."""
        target = anchor(cell, self._cell_bits)
        best = self._membership.owners.get(cell, self._now()) or self.nearest_known(target, 1)[0]
        is_nearer = owner.number ^ target < best.number ^ target
        if is_nearer and self.is_sendable(owner) and cell not in self._resolving:
            self._resolve(cell, owner)

    def is_sendable(self, contact: Contact) -> bool:
        """Return whether the socket of this peer reaches the address of `contact`, by its IP version."""
        return sendable(contact, 6 if ":" in self._me().host else 4)

    def _resolve(self, cell: Cell, hint: Contact | None = None) -> None:
        """Begin to look up the owner of `cell`. `owner` awaits the outcome."""
        task = self._tasks.spawn(self._look_up_owner(cell, hint), "owner")
        self._resolving[cell] = task
        task.add_done_callback(lambda _: self._resolving.pop(cell))

    async def _look_up_owner(self, cell: Cell, hint: Contact | None) -> Contact:
        cached = self._membership.owners.get(cell, self._now())
        hints = [contact for contact in (hint, cached) if contact is not None]
        owner = (await self._lookup(anchor(cell, self._cell_bits), 1, hints, self._settings.owner_alpha))[0]
        if owner.id == self._me().id:
            self._membership.owners.drop(cell)
        else:
            self._membership.owners.put(cell, owner, self._now())
        return owner

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
