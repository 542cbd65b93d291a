"""Liveness of peers: misses in a row turn a live peer into a suspect, and a suspect into a dead peer.

A *miss* is a request sent twice without an answer. Misses closer together than the spacing count as one miss, so
neither a lost datagram nor ten lookups that fail at the same moment evict a peer. Any answer sets the count to zero.

Members (peers of the routing table) are watched: `due` names the silent members. Of non-members (peers that lookups
met) only the last answer or miss is remembered, for a bounded number of them, and a miss expires. A decision:
`membership` acts on the verdicts, and every instant is an argument `now` (seconds of any one clock).
"""

from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from random import Random

from kadcrawl.overlay.settings import OverlaySettings

NEVER = float("-inf")


class LivenessVerdict(Enum):
    """The state of a peer by its misses in a row."""

    LIVE = "live"
    SUSPECT = "suspect"
    DEAD = "dead"


@dataclass(slots=True)
class LivenessRecord:
    """The answers and misses of one peer. Instants in seconds."""

    heard_at: float = NEVER
    missed_at: float = NEVER
    misses: int = 0
    wake_at: float = NEVER
    """The peer is not checked before this instant."""
    jitter: float = 1.0


class Liveness:
    """The liveness records of all peers that one peer deals with."""

    def __init__(self, settings: OverlaySettings, random: Random) -> None:
        self._settings = settings
        self._random = random
        self._members: dict[bytes, LivenessRecord] = {}
        self._wake_at: dict[bytes, float] = {}
        """Member -> `LivenessRecord.wake_at`, in the same order: `due` looks at all members twice a second."""
        self._non_members: OrderedDict[bytes, LivenessRecord] = OrderedDict()

    def heard(self, peer: bytes, now: float) -> None:
        """Note that `peer` (its ID) answered, or sent a request as a live member."""
        pulse = self._pulse(peer)
        pulse.heard_at = now
        pulse.misses = 0
        # Neighbors must not fall into step with each other.
        pulse.jitter = self._random.uniform(0.75, 1.25)
        self._wake(peer, pulse, now + self._settings.heartbeat_s * pulse.jitter)

    def missed(self, peer: bytes, now: float) -> LivenessVerdict:
        """Note that `peer` did not answer. Return its verdict."""
        pulse = self._pulse(peer)
        if pulse.misses and peer in self._non_members and now - pulse.missed_at >= self._settings.non_member_miss_s:
            pulse.misses = 0
        if now - pulse.missed_at >= self._spacing(pulse):
            pulse.misses += 1
            pulse.missed_at = now
            self._wake(peer, pulse, now + self._spacing(pulse))
        return self._verdict(pulse)

    def suspected(self, peer: bytes, now: float) -> bool:
        """Return whether `peer` has too many misses to be handed out or asked in a lookup."""
        if (pulse := self._members.get(peer)) is not None:
            return pulse.misses > 0 and self._verdict(pulse) is not LivenessVerdict.LIVE
        pulse = self._non_members.get(peer)
        if pulse is None or now - pulse.missed_at >= self._settings.non_member_miss_s:
            return False
        return self._verdict(pulse) is not LivenessVerdict.LIVE

    def in_doubt(self, peer: bytes) -> bool:
        """Return whether the member `peer` has missed since it was last heard."""
        pulse = self._members.get(peer)
        return pulse is not None and pulse.misses > 0

    def heard_within(self, peer: bytes, now: float, seconds: float) -> bool:
        """Return whether `peer` was heard within the last `seconds` and has missed nothing since."""
        pulse = self._members.get(peer) or self._non_members.get(peer)
        return pulse is not None and not pulse.misses and now - pulse.heard_at <= seconds

    def admit(self, peer: bytes) -> None:
        """Watch `peer` from now on, as it has entered the table."""
        if peer not in self._members:
            pulse = self._members[peer] = self._non_members.pop(peer, LivenessRecord())
            self._wake_at[peer] = pulse.wake_at

    def expel(self, peer: bytes) -> None:
        """Stop watching `peer`, but remember it as a non-member."""
        if (pulse := self._members.pop(peer, None)) is not None:
            del self._wake_at[peer]
            self._remember(peer, pulse)

    def due(self, now: float, siblings: Collection[bytes]) -> list[bytes]:
        """Return the members to ping now: silent siblings, other members after a longer silence, and members that
        missed.
        """
        due = []
        for peer in [peer for peer, wake_at in self._wake_at.items() if wake_at <= now]:
            pulse = self._members[peer]
            self._wake(peer, pulse, now + self._settings.heartbeat_s * pulse.jitter)
            silent_s = now - pulse.heard_at
            if pulse.misses or peer in siblings or silent_s >= self._settings.check_s * pulse.jitter:
                due.append(peer)
        return due

    def _wake(self, peer: bytes, pulse: LivenessRecord, at: float) -> None:
        """Check `peer` not before the instant `at`."""
        pulse.wake_at = at
        if peer in self._wake_at:
            self._wake_at[peer] = at

    def _spacing(self, pulse: LivenessRecord) -> float:
        first, later = self._settings.miss_spacing_s
        return first if pulse.misses <= 1 else later

    def _verdict(self, pulse: LivenessRecord) -> LivenessVerdict:
        if pulse.misses >= self._settings.misses_evict:
            return LivenessVerdict.DEAD
        return LivenessVerdict.SUSPECT if pulse.misses >= self._settings.misses_suspect else LivenessVerdict.LIVE

    def _pulse(self, peer: bytes) -> LivenessRecord:
        pulse = self._members.get(peer)
        if pulse is None:
            pulse = self._non_members.get(peer) or LivenessRecord()
            self._remember(peer, pulse)
        return pulse

    def _remember(self, peer: bytes, pulse: LivenessRecord) -> None:
        self._non_members[peer] = pulse
        self._non_members.move_to_end(peer)
        if len(self._non_members) > self._settings.non_members_max:
            self._non_members.popitem(last=False)
