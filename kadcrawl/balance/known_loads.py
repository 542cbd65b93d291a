"""`KnownLoads`: the loads of other peers that one peer has heard of, and how long each of them counts.

A peer hears of a load by a heartbeat, by the answer to its question, by the question of another peer, and by an offer.
A load counts while it is *fresh*. The load of a busy peer is fresh for longer: a peer that has an hour of work ahead is
not light a minute later. An old backlog counts less the seconds that have passed since.
"""

from collections import OrderedDict
from dataclasses import replace

from kadcrawl.balance.drain import Backlog

KNOWN_MAX = 1_000
"""Peers whose loads are remembered."""
BUSY_INTERVALS = 6
"""A busy peer is asked again after so many times `fresh_s`, as it may have lent its work, or have become faster."""

PeerLoad = Backlog | int
"""A backlog, or for a cold peer the number of blocks that it would try."""


class KnownLoads:
    """The loads of other peers, by their IDs."""

    def __init__(self, fresh_s: float, work_area_s: float) -> None:
        """A load is fresh for `fresh_s`. A peer is busy while it needs longer than `work_area_s` to drain."""
        self._fresh_s = fresh_s
        self._work_area_s = work_area_s
        self._known: OrderedDict[bytes, tuple[float, PeerLoad]] = OrderedDict()
        """ID of a peer -> (second, load at that second)."""

    def __len__(self) -> int:
        return len(self._known)

    def note(self, peer: bytes, load: PeerLoad, at: float) -> None:
        """Remember the load that a peer had at the second `at`, unless a later load of it is known."""
        if peer in self._known and self._known[peer][0] > at:
            return
        self._known[peer] = at, load
        self._known.move_to_end(peer)
        if len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)

    def forget(self, peer: bytes) -> None:
        """Forget a load that has turned out to be wrong."""
        self._known.pop(peer, None)

    def load(self, peer: bytes, now: float) -> PeerLoad | None:
        """Return the load of a peer at this second, or None if nothing fresh is known."""
        return self._at(*self._known[peer], now) if peer in self._known else None

    def backlogs(self, now: float, without: bytes = b"") -> list[Backlog]:
        """Return all fresh backlogs, except that of the peer `without`."""
        loads = (self._at(*known, now) for peer, known in self._known.items() if peer != without)
        return [load for load in loads if isinstance(load, Backlog)]

    def _at(self, at: float, load: PeerLoad, now: float) -> PeerLoad | None:
        age_s = max(0.0, now - at)
        if isinstance(load, int):
            return load if age_s < self._fresh_s else None
        if age_s < self._fresh_s:
            return _after(load, age_s)
        still_busy = load.drain_s - age_s > self._work_area_s and age_s < BUSY_INTERVALS * self._fresh_s
        return _after(load, age_s) if still_busy else None


def _after(load: Backlog, age_s: float) -> Backlog:
    """Return the backlog that is left after so many seconds of work."""
    busy_s = max(0.0, load.busy_s - age_s)
    done = int((age_s - (load.busy_s - busy_s)) / load.url_s)
    return replace(load, busy_s=busy_s, pending=max(0, load.pending - done))
