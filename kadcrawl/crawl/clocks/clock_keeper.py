"""`ClockKeeper` leases shared clocks, as the owner of their keys, in a fair order.

Invariant: a clock is leased to one peer alone, unless its host is known to have no delay. Then each holder has some of
the host's connections, and never more than these in all. A peer told that the host has several connections once it had
read robots.txt; the least number that any peer told counts. A holder that asks keeps no more connections than it says
to need, and one that is told to do with fewer is counted with those it had, until it asks again.

A lease ends when its holder gives it back, or `REACHES_S` after the last second in which the holder may begin a
request. A clock without a lease rests until the second that its last holder told, or for the delay of that holder if it
told none. A new owner knows no lease of the former one, so a clock that it meets first rests as its caller says, or
longer if the holder of such a lease tells so.

A holder goes on as long as no other peer waits. Peers that wait have their places in the order of their questions, and
lose them if they do not ask again when told. All tables are bounded, and what a peer says is limited, because it may
lie. A decision: times are seconds of the loop.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from kadcrawl.crawl.clocks.clock_names import AHEAD_S, LEASE_S, REACHES_S, is_of_host
from kadcrawl.link.wire.basics import COUNT_MAX
from kadcrawl.link.wire.clock_messages import ALL_CONNECTIONS, ClockQuestion, ClockTurn

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
TOLD_S = 2.0
"""Seconds within which a peer asks that was told that the clock is free. Its question may wait for others."""
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
    given: int
    """Requests that the holder may have under way as it was told last."""
    connections: int
    """Requests that the holder may have under way until it asks again: more than `given` if it had more then."""


@dataclass(slots=True)
class KeptClock:
    """One clock."""

    opening: int
    """The opening of the clock's cell in which this was learned."""
    free_at: float
    """Second before which no request may be made, as far as told."""
    former_until: float
    """Second until which a lease of a former owner may be in use."""
    most: int = 0
    """Connections of the host, or 0 if they are not known, or if the clock is one of an address."""
    leases: dict[bytes, Lease] = field(default_factory=dict)
    """Holder -> its lease."""
    waiting: dict[bytes, float] = field(default_factory=dict)
    """Peer -> second until which it has its place, in the order of their first questions."""
    told: set[bytes] = field(default_factory=set)
    """The waiting peers that were told that the clock is free since they last asked."""

    @property
    def is_shared(self) -> bool:
        """True if several peers may have the clock at a time."""
        return self.most > 1

    def hear(self, question: ClockQuestion) -> None:
        """Take what a holder tells of the host's connections."""
        if question.most and is_of_host(question.clock):
            self.most = min(self.most or question.most, question.most)

    def spare(self, peer: bytes) -> int:
        """Return the connections that this peer may have."""
        others = [lease.connections for holder, lease in self.leases.items() if holder != peer]
        if not others:
            return self.most if self.is_shared else ALL_CONNECTIONS
        return max(0, self.most - sum(others)) if self.is_shared else 0

    def lapse(self, now: float) -> list[bytes]:
        """End the leases whose time is over, and return their holders."""
        over = [holder for holder, lease in self.leases.items() if lease.until <= now]
        for holder in over:
            lease = self.leases.pop(holder)
            self.free_at = max(self.free_at, lease.until + lease.delay_s)
        return over

    def forget_late(self, now: float) -> None:
        """Forget the peers that did not ask again in time."""
        for peer in [peer for peer, until in self.waiting.items() if until <= now]:
            del self.waiting[peer]
            self.told.discard(peer)

    def is_idle(self, now: float) -> bool:
        """Return whether nothing of the clock must be remembered."""
        return not self.leases and self.free_at <= now and not self.waiting


class Answer(NamedTuple):
    """The answer to a question about one clock."""

    turn: ClockTurn
    next_peers: tuple[bytes, ...] = ()
    """The peers to tell that the clock is free."""


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

    def holders(self, clock: str, now: float) -> list[bytes]:
        """Return the peers that have a lease of a clock."""
        kept = self._clocks.get(clock)
        return [] if kept is None else [holder for holder, lease in kept.leases.items() if lease.until > now]

    def answer(self, peer: bytes, question: ClockQuestion, opening: int, rest_s: float, now: float) -> Answer:
        """Answer a question of a peer.

        `opening` is the number of the present opening of the clock's cell. A clock that is not known from this opening
        rests for `rest_s` seconds.
        """
        kept = self._kept(question.clock, opening, rest_s, now)
        if kept is None:
            return Answer(ClockTurn(0, FULL_WAIT_S))
        self._lapse(kept, now)
        kept.told.discard(peer)
        kept.forget_late(now)
        kept.hear(question)
        lease = kept.leases.get(peer)
        is_theirs = lease is not None and lease.number == question.lease
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
            turn = self._renewed(kept, lease, question, now)
            return Answer(turn, self._next(kept, now))
        if lease is None and self._has_room(peer):
            spare = kept.spare(peer)
            if question.lease and 0 < question.in_flight <= spare and now < kept.former_until:
                # Requests of a lease by a former owner are under way, perhaps for longer than a lease.
                connections = question.in_flight if kept.is_shared else ALL_CONNECTIONS
                return Answer(self._grant(kept, peer, question, connections, 0.0, now))
            waiting = list(kept.waiting)
            before = waiting.index(peer) if peer in kept.waiting else len(waiting)
            if spare > before and kept.free_at <= now + AHEAD_S and (before == 0 or kept.is_shared):
                connections = min(max(1, question.needs), max(1, spare // 2)) if kept.is_shared else ALL_CONNECTIONS
                return Answer(self._grant(kept, peer, question, connections, max(0.0, kept.free_at - now), now))
        first = next(iter(kept.waiting), peer)
        return Answer(self._put_off(kept, peer, now), () if first == peer else self._next(kept, now))

    # --- inside ----------------------------------------------------------------------------------------------------

    def _kept(self, clock: str, opening: int, rest_s: float, now: float) -> KeptClock | None:
        kept = self._clocks.get(clock)
        if kept is not None and kept.opening == opening:
            return kept
        if kept is not None:
            for lease in list(kept.leases.values()):
                self._end(kept, lease)
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
        for holder in kept.lapse(now):
            self._count_end(holder)

    def _end(self, kept: KeptClock, lease: Lease) -> None:
        del kept.leases[lease.holder]
        self._count_end(lease.holder)

    def _count_end(self, holder: bytes) -> None:
        self._leases[holder] -= 1
        if not self._leases[holder]:
            del self._leases[holder]

    def _has_room(self, peer: bytes) -> bool:
        return self._leases[peer] < LEASES_PER_PEER_MAX if peer in self._leases else True

    def _grant(
        self, kept: KeptClock, peer: bytes, question: ClockQuestion, connections: int, wait_s: float, now: float
    ) -> ClockTurn:
        kept.waiting.pop(peer, None)
        self._leases[peer] += 1
        delay_s = min(question.delay_s, self._wait_max_s())
        lease = Lease(peer, self._number(), now + LEASE_S + REACHES_S, delay_s, now, connections, connections)
        kept.leases[peer] = lease
        return ClockTurn(lease.number, wait_s, connections)

    def _renewed(self, kept: KeptClock, lease: Lease, question: ClockQuestion, now: float) -> ClockTurn:
        """Let a holder go on if no other peer waits, or if requests under way are not over.

        A holder of a shared clock gets more connections if there are some to spare, and keeps fewer if others wait.
        """
        was_shared = not kept.is_shared and (len(kept.leases) > 1 or lease.given != ALL_CONNECTIONS)
        is_wanted = bool(kept.waiting) or was_shared
        if not is_wanted:
            lease.since = now
        has = max(question.in_flight, min(lease.given, question.needs))
        if kept.is_shared:
            connections = self._share(kept, lease, question, has, now)
        else:
            connections = 0 if was_shared else ALL_CONNECTIONS
        is_busy = question.in_flight > 0 and now < lease.since + BUSY_MAX_S
        if is_wanted and not is_busy and (connections == 0 or not kept.is_shared):
            return ClockTurn(0, ASK_AGAIN_LEAST_S)
        lease.given, lease.connections = connections, max(has, connections)
        lease.number, lease.until = self._number(), now + LEASE_S + REACHES_S
        lease.delay_s = min(max(lease.delay_s, question.delay_s), self._wait_max_s())
        return ClockTurn(lease.number, 0.0, connections)

    def _share(self, kept: KeptClock, lease: Lease, question: ClockQuestion, has: int, now: float) -> int:
        """Return the connections with which a holder of a shared clock goes on: `has`, more, or fewer."""
        spare = kept.spare(lease.holder) - has
        if not kept.waiting:
            return has if spare < 1 else min(max(1, question.needs), has + max(1, spare // 2))
        fair = max(1, kept.most // (len(kept.leases) + len(kept.waiting)))
        if has > fair:
            return fair
        return has if spare > 0 or now < lease.since + LEASE_S else 0

    def _put_off(self, kept: KeptClock, peer: bytes, now: float) -> ClockTurn:
        """Give a peer a place in the order, and tell it when to ask again."""
        if peer not in kept.waiting and len(kept.waiting) >= WAITING_MAX:
            return ClockTurn(0, FULL_WAIT_S)
        kept.waiting.setdefault(peer, now)
        place = list(kept.waiting).index(peer)
        wait_s = kept.free_at - now
        if kept.leases:
            wait_s = max(wait_s, min(lease.until + lease.delay_s for lease in kept.leases.values()) - now)
        wait_s = min(max(wait_s + place * LEASE_S, ASK_AGAIN_LEAST_S), ASK_AGAIN_MOST_S)
        kept.waiting[peer] = now + wait_s + LATE_S
        return ClockTurn(0, wait_s)

    def _next(self, kept: KeptClock, now: float) -> tuple[bytes, ...]:
        """Return the next peers in turn that may have the clock, and expect their questions soon.

        The time of a peer does not begin again when it is told again. It may be dead, and others would wait forever. It
        is told again of a clock with a delay, as the first message may be lost and nobody else may have the clock.
        """
        first = next(iter(kept.waiting), None)
        if first is None:
            return ()
        spare = min(kept.spare(first), len(kept.waiting)) if kept.is_shared else min(kept.spare(first), 1)
        peers = tuple(peer for peer in islice(kept.waiting, spare) if peer not in kept.told or not kept.is_shared)
        for peer in peers:
            if peer not in kept.told:
                kept.waiting[peer] = max(now, kept.free_at) + TOLD_S
        kept.told.update(peers)
        return peers

    def _number(self) -> int:
        self._last_number = self._last_number % (COUNT_MAX - 1) + 1
        return self._last_number
