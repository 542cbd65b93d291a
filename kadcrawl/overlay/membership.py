"""The view that one peer has of the others: table, liveness, siblings and owners, kept consistent with each other.

Four events concern a peer: it is *heard* (it answered a request, so it is alive at that address under that ID), *met*
(it sent a request, which proves nothing), *missed* (no answer) or *gone* (it said goodbye, or another peer answered at
its address). Only a heard peer enters the table. Whenever the set of live contacts changes, the siblings and the owner
cache follow at once and the listeners in `on_joined` or `on_lost` are called, so listeners see exactly what `live`
shows.

A decision: a peer that should be pinged is returned to the caller. Instants are arguments `now`.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from random import Random

from kadcrawl.keys import Cell, NodeId, anchor
from kadcrawl.link.wire.messages import Contact
from kadcrawl.overlay.liveness import Liveness, LivenessVerdict
from kadcrawl.overlay.ownership import OwnerCache, owner_bucket
from kadcrawl.overlay.routing import HeardLoad, LiveRoutingTable, Neighbor, shared
from kadcrawl.overlay.settings import OverlaySettings
from kadcrawl.overlay.siblings import Siblings, TrickleTimer


class Membership:
    """The peers that the peer `me` knows."""

    def __init__(self, me: NodeId, cell_bits: int, settings: OverlaySettings, random: Random) -> None:
        self.me = me
        self.table = LiveRoutingTable(me, settings.k)
        self.liveness = Liveness(settings, random)
        self.siblings = Siblings(me, settings.siblings)
        self.owners = OwnerCache(cell_bits, settings.owners_max, settings.owner_ttl_s)
        self.round_timer = TrickleTimer(settings.round_s_min, settings.round_s_max, random)
        self.evicted: OrderedDict[bytes, Contact] = OrderedDict()
        """Peers evicted for silence, latest last: after a partition they lead back to the other side."""
        self.unreached: OrderedDict[bytes, Contact] = OrderedDict()
        """Non-members near this peer that did not answer, latest last: a peer that came during a cut is named only
        once.
        """
        self.evictions = 0
        self.on_joined: list[Callable[[Contact], None]] = []
        self.on_lost: list[Callable[[Contact], None]] = []
        self.on_left: list[Callable[[Contact], None]] = []
        self._cell_bits = cell_bits
        self._settings = settings

    def use_cell_bits(self, cell_bits: int) -> None:
        """Count the cells anew, and forget their owners."""
        self._cell_bits = cell_bits
        self.owners = OwnerCache(cell_bits, self._settings.owners_max, self._settings.owner_ttl_s)

    def heard(self, contact: Contact, now: float, load: HeardLoad | None = None) -> None:
        """Note an answer from `contact`: it enters the table if there is room, or becomes live again."""
        neighbor = self.table.members.get(contact.id)
        if neighbor is None and contact.number == self.me:
            return
        if neighbor is not None and neighbor.contact.address != contact.address:
            if not self.liveness.in_doubt(contact.id):
                return  # Two peers claim one ID: the known peer stays until it fails (see `met`).
            self.gone(neighbor.contact, now)
            neighbor = None  # The peer has moved: its old address is silent, and the new one answers.
        self.liveness.heard(contact.id, now)
        self.unreached.pop(contact.id, None)
        if self.evicted.pop(contact.id, None) is not None:
            self.owners.clear()  # This peer was probably cut off, also from unknown peers and the cells they own.
        if neighbor is None:
            neighbor = Neighbor(shared(contact))
            if not self.table.add_contact(neighbor, sibling=self.siblings.admits(neighbor.long_id)):
                return
            self.liveness.admit(neighbor.id)
            self._joined(neighbor, now)
            self._relieve(neighbor, now)
        else:
            self.table.add_contact(neighbor)
            if not neighbor.live:
                self.table.set_live(neighbor, True)
                self._joined(neighbor, now)
        if load is not None:
            neighbor.load = load

    def met(self, contact: Contact, load: HeardLoad | None = None) -> Contact | None:
        """Note a request from `contact`, or that another peer named it. Return the contact to ping for that reason, if
        any.
        """
        if contact.number == self.me:
            return None
        neighbor = self.table.members.get(contact.id)
        if neighbor is None:
            wanted = self.siblings.admits(contact.number) or self.table.has_room_for(Neighbor(contact))
            return contact if wanted else None
        if neighbor.contact.address != contact.address:
            # If the peer has moved, its old address will fail, and the new one may enter.
            return contact if self.liveness.in_doubt(contact.id) else neighbor.contact
        if load is not None:
            neighbor.load = load
        return None

    def heard_request(self, contact: Contact, now: float) -> None:
        """Count a request from a live contact as its heartbeat. So only one of two siblings need ping the other."""
        neighbor = self.table.members.get(contact.id)
        if neighbor is not None and neighbor.live and neighbor.contact.address == contact.address:
            self.liveness.heard(contact.id, now)

    def remember(self, contacts: Iterable[Contact]) -> None:
        """Treat these contacts as evicted, except members of the table."""
        for contact in contacts:
            if contact.id not in self.table.members and contact.number != self.me:
                self.evicted[contact.id] = contact

    def missed(self, contact: Contact, now: float) -> list[Contact]:
        """Note that `contact` did not answer. Return the candidates for its place, to be pinged."""
        neighbor = self.table.members.get(contact.id)
        if neighbor is None:
            self.liveness.missed(contact.id, now)
            self._not_reached(contact, now)
            return []
        if neighbor.contact.address != contact.address:
            return []
        verdict = self.liveness.missed(contact.id, now)
        if verdict is LivenessVerdict.DEAD:
            self.evictions += 1
            self.evicted[contact.id] = contact
            if len(self.evicted) > self._settings.evicted_max:
                self.evicted.popitem(last=False)
            return self.gone(contact, now)
        if verdict is LivenessVerdict.SUSPECT and neighbor.live:
            self.table.set_live(neighbor, False)
            self._lost(neighbor, now)
        return []

    @property
    def retry_candidates(self) -> list[Contact]:
        """The absent peers to ping now and then, as they may be alive (again)."""
        return [*self.evicted.values(), *self.unreached.values()]

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Addresses that members may send from: siblings, absent peers, then all other contacts of the table."""
        siblings, others = self.siblings.nearest, self.table.members.values()
        contacts = (
            [neighbor.contact for neighbor in siblings],
            self.retry_candidates,
            [neighbor.contact for neighbor in others],
        )
        return list(dict.fromkeys(contact.address for some in contacts for contact in some))

    def gone(self, contact: Contact, now: float) -> list[Contact]:
        """Forget `contact` at once. Return the candidates for its place, to be pinged."""
        neighbor = self.table.members.get(contact.id)
        if neighbor is None or neighbor.contact.address != contact.address:
            return []
        self.table.remove_contact(neighbor)
        self.liveness.expel(contact.id)
        if neighbor.live:
            self._lost(neighbor, now)
        return [replacement.contact for replacement in self.table.replacements(neighbor)]

    def left(self, contact: Contact, now: float) -> list[Contact]:
        """Forget `contact` as in `gone`, after its goodbye."""
        instead = self.gone(contact, now)
        for listener in self.on_left:
            listener(contact)
        return instead

    def owns(self, cell: Cell) -> bool:
        """Return whether this peer owns `cell` (see `ownership`)."""
        return owner_bucket(self.me, anchor(cell, self._cell_bits), self.table.live_mask) < 0

    def owner(self, cell: Cell, now: float) -> Contact | None:
        """Return the owner of a cell of another peer, if it is known without a question.

        The owner is exact where it must be a sibling. Elsewhere it is the cached owner, if that was heard lately.
        """
        target = anchor(cell, self._cell_bits)
        if self.siblings.complete_at(owner_bucket(self.me, target, self.table.live_mask)):
            return self.nearest(target, 1)[0]
        cached = self.owners.get(cell, now)
        if cached is not None and self.liveness.heard_within(cached.id, now, self._settings.fresh_s):
            return cached
        return None

    def nearest(self, target: int, count: int, exclude: bytes | None = None) -> list[Contact]:
        """Return the live contacts nearest to `target`, nearest first."""
        return [neighbor.contact for neighbor in self.table.nearest(target, count, exclude)]

    def _relieve(self, neighbor: Neighbor, now: float) -> None:
        """Forget one peer of a bucket that ever nearer siblings have filled.

        One host can make up any number of IDs. The peer forgotten is the one unheard for longest that is no sibling any
        more.
        """
        bucket = self.table.buckets[self.table.get_bucket_for(neighbor)]
        if len(bucket) > self._settings.k + self._settings.siblings:
            surplus = next(one for one in bucket.nodes.values() if one.id not in self.siblings.ids)
            self.gone(surplus.contact, now)

    def _not_reached(self, contact: Contact, now: float) -> None:
        """Remember a non-member that would be a sibling, to ping it again: soon at first, then less often
        (`TrickleTimer`).
        """
        known = contact.id in self.evicted or contact.id in self.unreached
        if not known and self.siblings.admits(contact.number):
            self.unreached[contact.id] = contact
            if len(self.unreached) > self._settings.unreached_max:
                self.unreached.popitem(last=False)  # Of so many some are dead, so the interval is not reset.
            else:
                self.round_timer.reset(now)

    def _joined(self, neighbor: Neighbor, now: float) -> None:
        self.owners.drop_taken_by(neighbor.contact)
        if self.siblings.update(self.table.live()):
            self.round_timer.reset(now)
        for listener in self.on_joined:
            listener(neighbor.contact)

    def _lost(self, neighbor: Neighbor, now: float) -> None:
        self.owners.drop_peer(neighbor.id)
        if self.siblings.update(self.table.live()):
            self.round_timer.reset(now)
        for listener in self.on_lost:
            listener(neighbor.contact)
