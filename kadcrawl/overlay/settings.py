"""The numbers of the overlay: time-outs, sizes and intervals, with the unit last in each name.

`Overlay` takes one `OverlaySettings`. No other module of the room holds a number that could be chosen otherwise.

Tests: tests/overlay/test_liveness.py, tests/overlay/test_membership.py
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlaySettings:
    """The settings of one peer. Peers with different settings still understand each other."""

    k: int = 20
    """Contacts kept per bucket and handed out per FindNode (Kademlia's k)."""
    alpha: int = 3
    """Questions of one lookup in flight, without slow questions (Kademlia's alpha)."""
    owner_alpha: int = 1
    """Questions in flight of a lookup for one owner. The nearest peer knows its siblings exactly, so parallel questions
    cost twice the datagrams and find no other peer.
    """
    siblings: int = 16
    """Nearest peers kept exactly (S/Kademlia 4.1). At most k."""
    resend_s: float = 0.25
    """Time after which an unanswered request is sent once more, and its lookup asks another peer as well."""
    timeout_s: float = 0.6
    """Time after which an unanswered request is a miss. Above every round trip on earth."""
    heartbeat_s: float = 3.0
    """Silence of a sibling after which it is pinged, +-25 %."""
    check_s: float = 60.0
    """Silence of any other contact after which it is pinged, +-25 %."""
    misses_suspect: int = 2
    """Misses in a row after which a contact is neither handed out nor taken for an owner."""
    misses_evict: int = 3
    """Misses in a row after which a contact is evicted."""
    miss_spacing_s: tuple[float, float] = (0.5, 2.0)
    """Wait before the next ping, and before the next miss counts: after the first miss, after any later one."""
    fresh_s: float = 30.0
    """Silence after which a cached owner is asked again before it is named. An owner that a call could not reach is
    asked at once.
    """
    owners_max: int = 16_384
    """Cells in the owner cache: a quarter of all cells."""
    owner_ttl_s: float = 60.0
    """Time after which a cached owner is looked up again, as a nearer peer may have come without notice."""
    non_members_max: int = 2048
    """Peers outside the table with a remembered last answer or miss."""
    non_member_miss_s: float = 30.0
    """Time after which a miss of a peer outside the table expires."""
    evicted_max: int = 64
    """Evicted contacts pinged now and then, so that two sides of a partition find each other again."""
    unreached_max: int = 16
    """Non-members near this peer that did not answer, pinged now and then as well."""
    round_s_min: float = 1.0
    """Sibling rounds: first interval after a change among the siblings; it doubles while nothing changes ..."""
    round_s_max: float = 32.0
    """... up to this (Trickle, RFC 6206)."""
    refresh_s: float = 300.0
    """Interval between two refreshes of every bucket beyond the siblings by a lookup, +-25 %."""
    refresh_count: int = 8
    """Peers that must answer in such a lookup."""
    asks_max: int = 100
    """Questions of one lookup, so that made-up contacts cannot keep it running."""
    requests_max: int = 256
    """Own requests in flight, pings not counted. Further requests wait."""
    verifying_max: int = 64
    """Non-members pinged at a time before they may enter the table. Further non-members are skipped for now."""
    join_tries: int = 4
    """Rounds of pings to the bootstrap addresses before giving up. About one second each."""
    leave_s: float = 3.0
    """Longest time spent on saying goodbye."""

    def __post_init__(self) -> None:
        if not 1 <= self.siblings <= self.k:
            raise ValueError("siblings must be from 1 to k")
        if not self.resend_s < self.timeout_s:
            raise ValueError("resend_s must be below timeout_s")
        if not 1 <= self.misses_suspect <= self.misses_evict:
            raise ValueError("misses_suspect must be from 1 to misses_evict")
