"""The sibling list: the live peers XOR-nearest to this peer, kept exact (S/Kademlia, Baumgart and Mies 2007, 4.1).

From this list a peer knows its own range. Every peer nearer than the farthest sibling is a sibling, so at every
firstdiff below that of the farthest sibling *all* peers are known. While there are fewer siblings than places, all
peers of the swarm are known.

`Siblings` is the list; `TrickleTimer` says when to ask the siblings for their contacts again. Both are decisions.
"""

from collections.abc import Iterable
from random import Random

from kadcrawl.keys import firstdiff
from kadcrawl.overlay.routing import Neighbor, nearest


class Siblings:
    """The up to `count` live neighbors nearest to `me`, nearest first."""

    def __init__(self, me: int, count: int) -> None:
        self._me = me
        self._count = count
        self.nearest: list[Neighbor] = []
        self.ids: frozenset[bytes] = frozenset()

    def update(self, live: Iterable[Neighbor]) -> bool:
        """Select the siblings again among the `live` neighbors. Return whether the list has changed."""
        chosen = nearest(live, self._me, self._count)
        changed = [n.id for n in chosen] != [n.id for n in self.nearest]
        self.nearest = chosen
        if changed:
            self.ids = frozenset(n.id for n in chosen)
        return changed

    def admits(self, peer: int) -> bool:
        """Return whether `peer` is or would become a sibling."""
        return self._open or peer ^ self._me <= self.nearest[-1].long_id ^ self._me

    def complete_at(self, index: int) -> bool:
        """Return whether every live peer at firstdiff `index` from this peer is a sibling."""
        return self._open or index < self.reach

    @property
    def reach(self) -> int:
        """The firstdiff of the farthest sibling, or -1 without any."""
        return firstdiff(self._me, self.nearest[-1].long_id) if self.nearest else -1

    @property
    def _open(self) -> bool:
        return len(self.nearest) < self._count


class TrickleTimer:
    """An interval that doubles from `low` to `high` seconds, +-25 %, while nothing changes (Trickle, RFC 6206)."""

    def __init__(self, low: float, high: float, random: Random) -> None:
        self._low = low
        self._high = high
        self._random = random
        self._interval = low
        self._next_at = 0.0

    def due(self, now: float) -> bool:
        """Return whether the interval has ended. If so, begin the next interval, twice as long."""
        if now < self._next_at:
            return False
        self._next_at = now + self._interval * self._random.uniform(0.75, 1.25)
        self._interval = min(2 * self._interval, self._high)
        return True

    def reset(self, now: float) -> None:
        """Note a change: begin again with the shortest interval."""
        self._interval = self._low
        self._next_at = min(self._next_at, now + self._low * self._random.uniform(0.75, 1.25))
