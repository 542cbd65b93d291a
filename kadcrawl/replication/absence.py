"""`AbsenceLog` says whether a peer that was away for a moment may have been replaced meanwhile.

A cell has another owner only if some peer took its owner for dead, or if a nearer peer has come. So a peer that knows
of neither, for the whole time of an absence, has seen nothing that changes an owner. Decides only.
"""

from collections import OrderedDict
from math import inf

AWAY_MAX_S = 60.0
"""Absences up to this long are looked up. A longer one counts as noticed."""
MARGIN_S = 10.0
"""Time before an absence in which a change counts too: news travel, and the answer may come late."""
LOST_MAX = 1_000
"""Lost peers remembered. An absence counts as noticed if more were lost in its time."""


class AbsenceLog:
    """The peers that one peer has lost and met lately. All times are seconds of the loop."""

    def __init__(self) -> None:
        self._since = inf
        """Second from which on all changes are known."""
        self._lost_at: OrderedDict[bytes, float] = OrderedDict()
        self._joined_at = -inf

    def begin(self, now: float) -> None:
        """Note that this peer sees all changes from now on."""
        self._since = now

    def lost(self, peer: bytes, now: float) -> None:
        """Note that a peer, by ID, is dead, silent or gone."""
        self._lost_at[peer] = now
        self._lost_at.move_to_end(peer)
        if len(self._lost_at) > LOST_MAX:
            _, at = self._lost_at.popitem(last=False)
            self._since = max(self._since, at)

    def joined(self, now: float) -> None:
        """Note that a peer has come, or come back."""
        self._joined_at = now

    def noticed(self, peer: bytes, away_s: float, now: float) -> bool:
        """Return whether the absence of a peer, by ID, may have changed the owner of a cell."""
        since = now - away_s - MARGIN_S
        if away_s > AWAY_MAX_S or since < self._since:
            return True
        return max(self._joined_at, self._lost_at.get(peer, -inf)) >= since
