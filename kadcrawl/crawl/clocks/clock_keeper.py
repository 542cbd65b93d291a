"""`ClockKeeper` leases shared clocks, as the owner of their keys: one lease of a clock at a time, in a fair order.

Invariant: a clock is leased only if no other lease of it may be in use. A lease ends when its holder gives it back, or
`REACHES_S` after the last second in which the holder may begin a request. A clock without a lease rests until the
second that its last holder told, or for the delay of that holder if it told none. A new owner knows no lease of the
former one, so a clock that it meets first rests as its caller says, or longer if the holder of such a lease tells so.

A holder goes on as long as no other peer waits. Peers that wait have their places in the order of their questions, and
lose them if they do not ask again when told. All tables are bounded, and what a peer says is limited, because it may
lie. A decision: times are seconds of the loop.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from kadcrawl.crawl.clocks.clock_names import AHEAD_S, LEASE_S, REACHES_S
from kadcrawl.link.wire.basics import COUNT_MAX
from kadcrawl.link.wire.clock_messages import ClockQuestion, ClockTurn

CLOCKS_KEPT_MAX = 50_000
"""Clocks of which the keeper knows leases or rests."""
LEASES_PER_PEER_MAX = 20_000
"""Clocks leased to one peer at a time: more than the sites that a peer has in memory."""
WAITING_MAX = 1_000
"""Peers that wait for one clock."""
BUSY_MAX_S = 120.0
"""Seconds for which requests under way keep a clock from peers that wait. No request takes longer."""
ASK_AGAIN_LEAST_S, ASK_AGAIN_MOST_S = 0.1, 10.0
"""The shortest and the longest wait before a peer asks again."""
LATE_S = 2.0
"""Seconds for which the place of a waiting peer is kept after the second at which it was to ask again."""
TOLD_S = 1.0
"""Seconds within which a peer asks that was told that the clock is free."""
FULL_WAIT_S = 5.0
"""Seconds before a peer asks again whose question found the tables full."""


@dataclass(slots=True)
class Lease:
    """The lease of one clock."""

    holder: bytes
    number: int
    until: float
    """Second from which no request of the lease is on its way."""
    delay_s: float
    """Seconds for which the clock rests if the lease is not given back."""
    since: float
    """Second from which other peers waited, or of the grant."""


@dataclass(slots=True)
class KeptClock:
    """One clock."""

    opening: int
    """The opening of the clock's cell in which this was learned."""
    free_at: float
    """Second before which no request may be made, as far as told."""
    former_until: float
    """Second until which a lease of a former owner may be in use."""
    lease: Lease | None = None
    waiting: dict[bytes, float] = field(default_factory=dict)
    """Peer -> second until which it has its place, in the order of their first questions."""

    def lapse(self, now: float) -> bool:
        """End a lease whose time is over, and return whether there was one."""
        if self.lease is None or self.lease.until > now:
            return False
        self.free_at = max(self.free_at, self.lease.until + self.lease.delay_s)
        self.lease = None
        return True

    def forget_late(self, now: float) -> None:
        """Forget the peers that did not ask again in time."""
        for peer in [peer for peer, until in self.waiting.items() if until <= now]:
            del self.waiting[peer]

    def is_idle(self, now: float) -> bool:
        """Return whether nothing of the clock must be remembered."""
        return self.lease is None and self.free_at <= now and not self.waiting


class Answer(NamedTuple):
    """The answer to a question about one clock."""

    turn: ClockTurn
    next_peer: bytes | None = None
    """The peer to tell that the clock is free."""


class ClockKeeper:
    """The clocks of one owner."""

    def __init__(self, first_number: int, wait_max_s: Callable[[], float]) -> None:
        """Number the leases from `first_number`, a random one, as numbers of former owners must not match.

        `wait_max_s` returns the longest delay that a peer may tell.
        """
        self._last_number = first_number
        self._wait_max_s = wait_max_s
        self._clocks: dict[str, KeptClock] = {}
        self._leases: Counter[bytes] = Counter()
        """Peer -> its leases."""

    def __len__(self) -> int:
        return len(self._clocks)

    def knows(self, clock: str, opening: int) -> bool:
        """Return whether the keeper knows a clock from this opening of its cell."""
        kept = self._clocks.get(clock)
        return kept is not None and kept.opening == opening

    def holder(self, clock: str, now: float) -> bytes | None:
        """Return the peer that has the lease of a clock."""
        kept = self._clocks.get(clock)
        return kept.lease.holder if kept is not None and kept.lease is not None and kept.lease.until > now else None

    def answer(self, peer: bytes, question: ClockQuestion, opening: int, rest_s: float, now: float) -> Answer:
        """Answer a question of a peer.

        `opening` is the number of the present opening of the clock's cell. A clock that is not known from this opening
        rests for `rest_s` seconds.
        """
        kept = self._kept(question.clock, opening, rest_s, now)
        if kept is None:
            return Answer(ClockTurn(0, FULL_WAIT_S))
        self._lapse(kept, now)
        kept.forget_late(now)
        lease = kept.lease
        is_theirs = lease is not None and lease.holder == peer and lease.number == question.lease
        if question.ends:  # Also of a lease that a former owner of the cell gave.
            kept.free_at = max(kept.free_at, now + min(question.wait_s, self._wait_max_s()))
        if lease is not None and is_theirs and question.ends:
            self._end(kept, lease)
            kept.waiting.pop(peer, None)
            lease = None
        if not question.wants:
            kept.waiting.pop(peer, None)
            return Answer(ClockTurn(0, 0.0), self._next(kept, now))
        if lease is not None and is_theirs:
            return self._renewed(kept, lease, question, now)
        first = next(iter(kept.waiting), peer)
        if lease is None and question.lease and question.busy and now < kept.former_until and self._has_room(peer):
            # A request of a lease by a former owner is under way, perhaps for longer than a lease.
            return Answer(ClockTurn(self._grant(kept, peer, question, now), 0.0))
        if lease is None and first == peer and kept.free_at <= now + AHEAD_S and self._has_room(peer):
            return Answer(ClockTurn(self._grant(kept, peer, question, now), max(0.0, kept.free_at - now)))
        return Answer(self._put_off(kept, peer, now), None if first == peer else self._next(kept, now))

    # --- inside ----------------------------------------------------------------------------------------------------

    def _kept(self, clock: str, opening: int, rest_s: float, now: float) -> KeptClock | None:
        kept = self._clocks.get(clock)
        if kept is not None and kept.opening == opening:
            return kept
        if kept is not None and kept.lease is not None:
            self._end(kept, kept.lease)
        if kept is None and len(self._clocks) >= CLOCKS_KEPT_MAX:
            self._sweep(now)
            if len(self._clocks) >= CLOCKS_KEPT_MAX:
                return None
        self._clocks[clock] = KeptClock(opening, now + rest_s, now + rest_s)
        return self._clocks[clock]

    def _sweep(self, now: float) -> None:
        for kept in self._clocks.values():
            self._lapse(kept, now)
            kept.forget_late(now)
        self._clocks = {clock: kept for clock, kept in self._clocks.items() if not kept.is_idle(now)}

    def _lapse(self, kept: KeptClock, now: float) -> None:
        lease = kept.lease
        if lease is not None and kept.lapse(now):
            self._count_end(lease.holder)

    def _end(self, kept: KeptClock, lease: Lease) -> None:
        kept.lease = None
        self._count_end(lease.holder)

    def _count_end(self, holder: bytes) -> None:
        self._leases[holder] -= 1
        if not self._leases[holder]:
            del self._leases[holder]

    def _has_room(self, peer: bytes) -> bool:
        return self._leases[peer] < LEASES_PER_PEER_MAX if peer in self._leases else True

    def _grant(self, kept: KeptClock, peer: bytes, question: ClockQuestion, now: float) -> int:
        kept.waiting.pop(peer, None)
        self._leases[peer] += 1
        delay_s = min(question.delay_s, self._wait_max_s())
        kept.lease = Lease(peer, self._number(), now + LEASE_S + REACHES_S, delay_s, now)
        return kept.lease.number

    def _renewed(self, kept: KeptClock, lease: Lease, question: ClockQuestion, now: float) -> Answer:
        """Let a holder go on if no other peer waits, or if requests under way are not over."""
        if kept.waiting and not (question.busy and now < lease.since + BUSY_MAX_S):
            return Answer(ClockTurn(0, ASK_AGAIN_LEAST_S))
        if not kept.waiting:
            lease.since = now
        lease.number, lease.until = self._number(), now + LEASE_S + REACHES_S
        lease.delay_s = min(max(lease.delay_s, question.delay_s), self._wait_max_s())
        return Answer(ClockTurn(lease.number, 0.0))

    def _put_off(self, kept: KeptClock, peer: bytes, now: float) -> ClockTurn:
        """Give a peer a place in the order, and tell it when to ask again."""
        if peer not in kept.waiting and len(kept.waiting) >= WAITING_MAX:
            return ClockTurn(0, FULL_WAIT_S)
        kept.waiting.setdefault(peer, now)
        place = list(kept.waiting).index(peer)
        wait_s = kept.free_at - now
        if kept.lease is not None:
            wait_s = max(wait_s, kept.lease.until + kept.lease.delay_s - now)
        wait_s = min(max(wait_s + place * LEASE_S, ASK_AGAIN_LEAST_S), ASK_AGAIN_MOST_S)
        kept.waiting[peer] = now + wait_s + LATE_S
        return ClockTurn(0, wait_s)

    def _next(self, kept: KeptClock, now: float) -> bytes | None:
        """Return the peer that is next, if the clock is not leased, and expect its question soon."""
        if kept.lease is not None or not kept.waiting:
            return None
        first = next(iter(kept.waiting))
        kept.waiting[first] = max(now, kept.free_at) + TOLD_S
        return first

    def _number(self) -> int:
        self._last_number = self._last_number % (COUNT_MAX - 1) + 1
        return self._last_number
