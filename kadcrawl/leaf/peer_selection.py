"""`FullPeers`: the full peers that a leaf knows, and the choice of the next to ask for work.

The next is the peer that lent pages last, or else any other peer that was not asked in this round. A leaf sweeps over
all peers in random order without waiting. When no peer of a sweep had pages for it, the leaf becomes patient and waits
a little at each peer. A peer that does not answer is left alone, each time for twice as long. Decisions only.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from kadcrawl.link.wire.messages import Contact
from kadcrawl.overlay.addresses import ip_version

KNOWN_PEERS_MAX = 64
"""Full peers that a leaf knows, at most."""
FAILURES_MAX = 5
"""Failures in a row after which a peer counts as never asked, about 15 s after its last answer."""
BACK_OFF_FIRST_S = 0.5
BACK_OFF_MOST_S = 30.0
"""Longest wait before a silent peer is asked again, in seconds."""

Address = tuple[str, int]


@dataclass(slots=True)
class FullPeer:
    """One full peer that a leaf knows."""

    address: Address
    """The (host, port) at which the leaf asks the peer."""
    id: bytes | None = None
    """The peer's ID, or None while only a person has named its address."""
    seeds: int | None = None
    """The fingerprint of all seeds when the peer last told them, or None while the peer's swarm is not known."""
    has_answered: bool = False
    failures: int = 0
    """Failures in a row."""
    not_before: float = 0.0
    """The second before which the peer is left alone."""

    @property
    def is_proven(self) -> bool:
        """True if the peer has answered and not failed too often since."""
        return self.has_answered and self.failures < FAILURES_MAX

    def note_name(self, peer_id: bytes) -> None:
        """Note the ID that another peer gives for the address."""
        self.id = peer_id

    def note_answer(self, peer_id: bytes) -> None:
        """Note that the peer with this ID answered."""
        self.id, self.failures, self.has_answered = peer_id, 0, True

    def note_job(self, seeds: int) -> None:
        """Note that the peer told a job of the leaf's swarm with seeds of this fingerprint."""
        self.seeds = seeds

    def note_failure(self, now: float) -> None:
        """Leave the peer alone for a while. A later answer at its address may come from another peer."""
        self.seeds = None
        self.not_before = now + min(BACK_OFF_FIRST_S * 2.0**self.failures, BACK_OFF_MOST_S)
        self.failures += 1


class FullPeers:
    """The full peers that one leaf knows."""

    def __init__(self, addresses: Iterable[Address], random: Random) -> None:
        self._known = {address: FullPeer(address) for address in addresses}
        self._random = random
        self._lender: FullPeer | None = None
        """The peer that lent pages when last asked."""
        self._asked: dict[Address, None] = {}
        """Addresses of the peers without pages for the leaf, since a peer last lent some."""
        self.patient = False
        """No peer had pages for the leaf in the last sweep."""

    def __len__(self) -> int:
        return len(self._known)

    def contacts(self) -> list[Contact]:
        """Return the peers that have an IP address and did not fail when last asked.

        Peers that have answered come first, then the peers the leaf heard of last.
        """
        peers = sorted(self._known.values(), key=lambda peer: peer.has_answered)[::-1]
        return [
            Contact(peer.id, *peer.address)
            for peer in peers
            if peer.id is not None and not peer.failures and ip_version(peer.address[0]) is not None
        ]

    def learn(self, contacts: Iterable[Contact]) -> None:
        """Add the peers that a full peer names. If there are too many, they replace the peers heard of longest ago.

        A peer that has answered is not replaced by one that has not: the named peers may be made up.
        """
        known = {peer.id: peer for peer in self._known.values() if peer.id is not None}
        for contact in contacts:
            same = known.get(contact.id)
            if (same is not None and not same.failures) or ip_version(contact.host) is None:
                continue  # The address at which the peer answers will do, whatever address others name.
            peer = self._known.get(contact.address) or FullPeer(contact.address)
            peer.note_name(contact.id)
            self._known[contact.address] = known[contact.id] = peer
        while len(self._known) > KNOWN_PEERS_MAX:
            stale = min(self._known.values(), key=lambda peer: (peer is self._lender, peer.is_proven, -peer.failures))
            del self._known[stale.address]

    def next(self, now: float) -> FullPeer | None:
        """Return the peer to ask now, or None if no peer may be asked before `next_due`."""
        if self._lender is not None:
            return self._lender
        due = [peer for peer in self._known.values() if peer.not_before <= now]
        fresh = [peer for peer in due if peer.address not in self._asked]
        if due and not fresh:
            self.patient = True
            self._asked.clear()
            fresh = due
        return self._random.choice(fresh) if fresh else None

    def next_due(self) -> float:
        """Return the second at which a peer may be asked."""
        return min(peer.not_before for peer in self._known.values())

    # --- outcomes ------------------------------------------------------------------------------------------------

    def note_lent(self, peer: FullPeer) -> None:
        """Note that the peer lent pages."""
        self._lender, self.patient = peer, False
        self._asked.clear()

    def note_empty(self, peer: FullPeer) -> None:
        """Note that the peer had no pages for the leaf."""
        self._lender = None
        self._asked[peer.address] = None

    def note_answered(self, peer: FullPeer, peer_id: bytes) -> None:
        """Note that the peer answered, and its ID."""
        peer.note_answer(peer_id)

    def note_failed(self, peer: FullPeer, now: float) -> None:
        """Note that the peer did not answer, or refused, and ask another peer next."""
        if self._lender is peer:
            self._lender = None
        peer.note_failure(now)
