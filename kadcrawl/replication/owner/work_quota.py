"""`WorkQuota` limits the syncs that each peer can trigger here by its `CellsHeld` messages.

Any peer can claim to hold all cells, again and again, and then fail, or crawl them for ever. So each peer has an hourly
quota, large enough for a peer that comes and goes some times with copies of all cells. A peer without quota is asked
only about the cells whose holder it is by its ID, and about others later, as it repeats its claim. Decides only.
"""

from collections import OrderedDict

QUOTA_CELLS_MAX = 400_000
"""Cells synced in an hour on the claims of one peer: all cells six times. A cell takes a quarter of a millisecond."""
FAILED_COST = 40
"""The cost of a sync that fails because of the peer. Ten thousand failures, some seconds of work, use up the quota."""
COMES_BACK_S = 3600.0
"""Time in which a used quota is whole again."""
PEERS_MAX = 1_000
"""Peers remembered: those with the latest claims."""


class WorkQuota:
    """The quotas of all peers. All times are seconds of one monotonic clock."""

    def __init__(self) -> None:
        self._of: OrderedDict[bytes, tuple[float, float]] = OrderedDict()
        """Peer, by ID -> its used quota, and the second at which that was noted."""

    def has_quota(self, peer: bytes, now: float) -> bool:
        """Return whether a peer, by ID, has quota left."""
        return self._count(peer, now) < QUOTA_CELLS_MAX

    def charge(self, peer: bytes, count: int, now: float) -> None:
        """Use up so much of a peer's quota."""
        self._of[peer] = self._count(peer, now) + count, now
        self._of.move_to_end(peer)
        if len(self._of) > PEERS_MAX:
            self._of.popitem(last=False)

    def _count(self, peer: bytes, now: float) -> float:
        count, at = self._of.get(peer, (0.0, now))
        return max(0.0, count - (now - at) * QUOTA_CELLS_MAX / COMES_BACK_S)
