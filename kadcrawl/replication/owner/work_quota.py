"""How much each peer has had done here by saying that it has something of cells.

Anybody may say so of all cells, again and again, and then fail, or crawl them for ever. So each peer may have as much
done in an hour as one needs that comes and goes some times with copies of all. Beyond that it is asked only of the
cells whose place it is by its ID, and of others later, as it says so again. Pure.
"""

from collections import OrderedDict

QUOTA_CELLS_MAX = 400_000
"""Cells synced in an hour on the word of one peer: all of them six times. Each takes a quarter of a millisecond."""
FAILED_COST = 40
"""As how many counts a try that came to nothing by it: after ten thousand, which take some seconds, it has no more."""
COMES_BACK_S = 3600.0
PEERS_MAX = 1_000
"""Remembered, those who claimed latest."""


class WorkQuota:
    """Those of all peers. All times are seconds of one monotonic clock."""

    def __init__(self) -> None:
        self._of: OrderedDict[bytes, tuple[float, float]] = OrderedDict()
        """Peer, by ID -> what it had done, less what has come back, and at which second."""

    def has_quota(self, peer: bytes, now: float) -> bool:
        """Return whether more may be done on the word of a peer, by ID."""
        return self._count(peer, now) < QUOTA_CELLS_MAX

    def charge(self, peer: bytes, count: int, now: float) -> None:
        """So much was done on its word."""
        self._of[peer] = self._count(peer, now) + count, now
        self._of.move_to_end(peer)
        if len(self._of) > PEERS_MAX:
            self._of.popitem(last=False)

    def _count(self, peer: bytes, now: float) -> float:
        count, at = self._of.get(peer, (0.0, now))
        return max(0.0, count - (now - at) * QUOTA_CELLS_MAX / COMES_BACK_S)
