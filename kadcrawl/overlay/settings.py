"""The overlay's own numbers: how patient it is, how much it keeps, how often it speaks. Units last in each name.

`Overlay` takes one `OverlaySettings`; nothing else in the room holds a number that could be chosen otherwise.

Tests: tests/overlay/test_liveness.py, tests/overlay/test_membership.py
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlaySettings:
    """One peer's settings; peers with different ones still understand each other."""

    k: int = 20
    """Contacts kept per bucket and handed out per FindNode (Kademlia's k)."""
    alpha: int = 3
    """Questions of one lookup in flight, slow ones not counted (Kademlia's alpha)."""
    owner_alpha: int = 1
    """The same of a lookup for one owner: the nearest peer knows its siblings exactly, so asking more in step with it
    costs twice the datagrams and finds nobody else."""
    siblings: int = 16
    """Nearest peers kept exactly (S/Kademlia 4.1); at most k."""
    resend_s: float = 0.25
    """A question unanswered for this long is sent once more, and its lookup asks somebody else beside it."""
    timeout_s: float = 0.6
    """A question unanswered for this long is a miss; above every round trip on earth."""
    heartbeat_s: float = 3.0
    """Silence of a sibling after which it is pinged, +-25 %."""
    check_s: float = 60.0
    """Silence of any other contact after which it is pinged, +-25 %."""
    misses_suspect: int = 2
    """Misses in a row after which a contact is neither handed out nor taken for an owner."""
    misses_evict: int = 3
    """Misses in a row after which it is forgotten."""
    miss_spacing_s: tuple[float, float] = (0.5, 2.0)
    """Wait before the next probe, and before the next miss counts: after the first miss, after any later one."""
    fresh_s: float = 30.0
    """A cached owner silent for longer is asked again before it is named; one that a call could not reach, at once."""
    owners_max: int = 16_384
    """Cells in the cache cell -> owner: a quarter of all cells."""
    owner_ttl_s: float = 60.0
    """A cached owner is looked up anew after this long: a nearer one may have come of whom nobody has told us."""
    non_members_max: int = 2048
    """Peers outside the table whose last answer or miss is remembered."""
    non_member_miss_s: float = 30.0
    """How long a miss of a peer outside the table is held against it."""
    evicted_max: int = 64
    """Evicted contacts still tried now and then, so that two sides of a partition find each other again."""
    unreached_max: int = 16
    """Strangers near us that did not answer, tried likewise."""
    round_s_min: float = 1.0
    """Sibling rounds: first interval after a change among the siblings; it doubles while nothing changes ..."""
    round_s_max: float = 32.0
    """... up to this (Trickle, RFC 6206)."""
    refresh_s: float = 300.0
    """Every bucket beyond the siblings is refreshed by a lookup this often, +-25 %."""
    refresh_count: int = 8
    """Peers that must answer in such a lookup."""
    asks_max: int = 100
    """Questions one lookup may ask, so that made-up contacts cannot keep it running."""
    requests_max: int = 256
    """Own requests in flight, pings not counted; further ones wait."""
    verifying_max: int = 64
    """Strangers being pinged before they may enter the table; further ones are passed over for now."""
    join_tries: int = 4
    """Rounds of pings to the bootstrap addresses before giving up; about one second each."""
    leave_s: float = 3.0
    """Longest time spent on saying goodbye."""

    def __post_init__(self) -> None:
        if not 1 <= self.siblings <= self.k:
            raise ValueError("siblings must be from 1 to k")
        if not self.resend_s < self.timeout_s:
            raise ValueError("resend_s must be below timeout_s")
        if not 1 <= self.misses_suspect <= self.misses_evict:
            raise ValueError("misses_suspect must be from 1 to misses_evict")
