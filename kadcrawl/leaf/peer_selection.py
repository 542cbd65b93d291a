"""Which full peer a leaf draws from next: the one that last gave it something, else any other, one after the other.

A leaf sweeps over all it knows, in random order, without waiting; when none of them has had anything for it, it becomes
patient, and waits a little at each. One that does not answer is left alone, each time for twice as long. Decides only.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from kadcrawl.link.wire.messages import Contact
from kadcrawl.overlay.addresses import ip_version

KNOWN_PEERS_MAX = 64
"""Full peers a leaf knows."""
FAILURES_MAX = 5
"""After so many in a row, about a quarter of a minute, whoever once answered counts no more than one never asked."""
BACK_OFF_FIRST_S = 0.5
BACK_OFF_MOST_S = 30.0

Address = tuple[str, int]


@dataclass(slots=True)
class FullPeer:
    """One of them."""

    address: Address
    """At which it is asked."""
    id: bytes | None = None
    """None as long as only a person has named it."""
    seeds: int | None = None
    """How many the job had when it last told the job; None if it is not known whether it is of this swarm at all."""
    has_answered: bool = False
    failures: int = 0
    """In a row."""
    not_before: float = 0.0
    """Second before which it is left alone."""

    @property
    def is_proven(self) -> bool:
        """Whether it has answered, and not failed too often since."""
        return self.has_answered and self.failures < FAILURES_MAX


class FullPeers:
    """All a leaf knows."""

    def __init__(self, addresses: Iterable[Address], random: Random) -> None:
        self._known = {address: FullPeer(address) for address in addresses}
        self._random = random
        self._lender: FullPeer | None = None
        """Who gave something when last asked."""
        self._asked: dict[Address, None] = {}
        """Who had nothing, since somebody last had something."""
        self.patient = False
        """All had nothing when last asked."""

    def __len__(self) -> int:
        return len(self._known)

    def contacts(self) -> list[Contact]:
        """Return whom the leaf knows by an IP address and did not fail to reach.

        Those that have answered come first, then those last heard of.
        """
        found = sorted(self._known.values(), key=lambda one: one.has_answered)[::-1]
        return [
            Contact(one.id, *one.address)
            for one in found
            if one.id is not None and not one.failures and ip_version(one.address[0]) is not None
        ]

    def learn(self, contacts: Iterable[Contact]) -> None:
        """Take up what a full peer says of others; in place of the one heard of longest ago, if there are too many.

        Who has answered is not given up for one that has not: whoever names others may have made them up.
        """
        known = {one.id: one for one in self._known.values() if one.id is not None}
        for contact in contacts:
            one = known.get(contact.id)
            if (one is not None and not one.failures) or ip_version(contact.host) is None:
                continue  # The address it is asked at will do, whatever it is called elsewhere.
            peer = self._known.get(contact.address) or FullPeer(contact.address)
            peer.id = contact.id
            self._known[contact.address] = known[contact.id] = peer
        while len(self._known) > KNOWN_PEERS_MAX:
            stale = min(self._known.values(), key=lambda one: (one is self._lender, one.is_proven, -one.failures))
            del self._known[stale.address]

    def next(self, now: float) -> FullPeer | None:
        """Return whom to draw from now; None if nobody may be asked before `next_due`."""
        if self._lender is not None:
            return self._lender
        due = [one for one in self._known.values() if one.not_before <= now]
        fresh = [one for one in due if one.address not in self._asked]
        if due and not fresh:
            self.patient = True
            self._asked.clear()
            fresh = due
        return self._random.choice(fresh) if fresh else None

    def next_due(self) -> float:
        """Return the second at which somebody may be asked."""
        return min(one.not_before for one in self._known.values())

    # --- what came of it ------------------------------------------------------------------------------------------

    def note_lent(self, peer: FullPeer) -> None:
        """It had something."""
        self._lender, self.patient = peer, False
        self._asked.clear()

    def note_empty(self, peer: FullPeer) -> None:
        """It had nothing; somebody else may."""
        self._lender = None
        self._asked[peer.address] = None

    def note_answered(self, peer: FullPeer, peer_id: bytes) -> None:
        """It is there, and is called so."""
        peer.id, peer.failures, peer.has_answered = peer_id, 0, True

    def note_failed(self, peer: FullPeer, now: float) -> None:
        """It did not answer, or did not want to; when it does, it may be another."""
        if self._lender is peer:
            self._lender = None
        peer.seeds = None
        peer.not_before = now + min(BACK_OFF_FIRST_S * 2.0**peer.failures, BACK_OFF_MOST_S)
        peer.failures += 1
