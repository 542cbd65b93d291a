"""The numbers of URLs to which each of the latest orders has applied at one peer. A decision: no I/O.

Commands wait for these numbers, so those of older orders are forgotten.

Tests: tests/peer/swarm/test_order_counts.py
"""

from collections import Counter
from collections.abc import Mapping

ORDERS_COUNTED_MAX = 16
"""Latest orders for which the number of URLs is kept, for the commands that wait for their answers."""


class OrderCounts:
    """The URLs of each order, by a reason."""

    def __init__(self) -> None:
        self._counts: dict[int, Counter[str]] = {}
        """Stamp of an order -> its URLs by reason."""

    def add(self, stamp: int, reason: str, urls: int = 1) -> None:
        """Count URLs of the order with this stamp."""
        self._counts.setdefault(stamp, Counter())[reason] += urls
        for old in sorted(self._counts)[:-ORDERS_COUNTED_MAX]:
            del self._counts[old]

    def of(self, stamp: int) -> Mapping[str, int]:
        """Return the URLs of the order with this stamp, by reason."""
        return self._counts.get(stamp, {})
