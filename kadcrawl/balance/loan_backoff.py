"""Whom, and of which sites, nothing is lent for a while after a loan came to nothing, each time for twice as long.

A taker that never reports keeps a site for a lease, and its owner then leaves the site alone for a delay more, as
nobody knows what was asked last. Lent again before that is over, the site would never be its owner's to crawl. Pure.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field

BACKOFF_FIRST_S = 2.0
"""Long enough for its owner to begin a page."""
BACKOFF_MOST_S = 600.0
BACKOFF_KEPT_MAX = 1_000
"""Those remembered."""


@dataclass(slots=True)
class LoanBackoff:
    """What one giver remembers. All times are seconds of one clock."""

    _bars: dict[Hashable, tuple[float, float]] = field(default_factory=dict)
    """When a bar ends, and how long it was after its beginning."""

    def note_failure(self, key: Hashable, begin: float, now: float) -> None:
        """A loan came to nothing: bar `what` (a site or a taker) from now until some time after `begin`.

        Loans lost while it is barred already were given before, and count as one with the first.
        """
        until, length = self._bars.pop(key, (0.0, 0.0))
        if until <= now:
            length = min(max(BACKOFF_FIRST_S, 2.0 * length), BACKOFF_MOST_S)
        self._bars[key] = max(until, begin + length), length
        if len(self._bars) > BACKOFF_KEPT_MAX:
            del self._bars[next(iter(self._bars))]

    def note_success(self, key: Hashable) -> None:
        """Something came of a loan."""
        self._bars.pop(key, None)

    def is_barred(self, key: Hashable, now: float) -> bool:
        """Say whether nothing is lent of it, or to it, just now."""
        bar = self._bars.get(key)
        return bar is not None and now < bar[0]
