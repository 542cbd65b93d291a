"""The backoff of failed loans: their sites and borrowers have no loan for a while, each time for twice as long.

A borrower that never reports keeps a site for a lease. Then the owner leaves the site alone for one more delay, as
nobody knows when it was asked last. If the site were lent again before that is over, its owner could never crawl it.
Decisions only.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field

BACKOFF_FIRST_S = 2.0
"""The first bar in seconds, long enough for the owner of a site to begin a page."""
BACKOFF_MOST_S = 600.0
"""The longest bar in seconds."""
BACKOFF_KEPT_MAX = 1_000
"""Sites and borrowers that are remembered."""


@dataclass(slots=True)
class LoanBackoff:
    """The failed loans that one lender remembers. All times are seconds of one clock."""

    _bars: dict[Hashable, tuple[float, float]] = field(default_factory=dict)
    """Site or borrower -> (end of its bar, length of the bar)."""

    def note_failure(self, key: Hashable, begin: float, now: float) -> None:
        """Bar `key`, the site or the borrower of a failed loan, from now until some time after `begin`.

        Loans that fail during a bar were given before it, and count as one failure with the first.
        """
        until, length = self._bars.pop(key, (0.0, 0.0))
        if until <= now:
            length = min(max(BACKOFF_FIRST_S, 2.0 * length), BACKOFF_MOST_S)
        self._bars[key] = max(until, begin + length), length
        if len(self._bars) > BACKOFF_KEPT_MAX:
            del self._bars[next(iter(self._bars))]

    def note_success(self, key: Hashable) -> None:
        """End the bar after a loan that made progress."""
        self._bars.pop(key, None)

    def is_barred(self, key: Hashable, now: float) -> bool:
        """Return whether a site or a borrower has no loan at this moment."""
        bar = self._bars.get(key)
        return bar is not None and now < bar[0]
