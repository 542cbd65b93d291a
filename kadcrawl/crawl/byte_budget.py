"""The byte budget of the swarm (--max-bytes): a peer begins a URL only while it has bytes left of its grant.

The bytes are those of the bodies in page lines, as the summary counts them. They are shared out as pages are
(page_budget.py), by the same conversation. But the size of a body is known only when it is there. So a peer begins a
URL while the bytes that it has received are fewer than its grant, together with those that the URLs under way will
bring if they are as large as its pages so far. Bytes beyond a grant are taken from what is left for others. So the
swarm receives at most `max_bytes`, and the bodies that are under way when the last bytes are used up. A decision.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Literal

from kadcrawl.crawl.granted_budget import GrantedBudget
from kadcrawl.link.wire.messages import PeerRow

BYTES_PORTION_MAX = 64 * 1024 * 1024
"""Bytes granted to one peer at a time. The number is small, so that an idle peer hoards little."""
BYTES_PORTION_MIN = 64 * 1024
"""Bytes granted at least, if so many are left: about a page."""


class ByteBudget(GrantedBudget):
    """The share of one peer."""

    unit: Literal["bytes"] = "bytes"

    def __init__(
        self,
        max_bytes: int | None,
        granted: int,
        received: Callable[[], tuple[int, int]],
        known: dict[bytes, int] | None = None,
        epochs: dict[bytes, int] | None = None,
        epoch: int = 0,
    ) -> None:
        """`received` returns the bytes of all bodies in page lines of this peer, and the number of these pages."""
        super().__init__(max_bytes, granted, known, epochs, epoch)
        self._received = received

    def may_begin(self, held: int) -> bool:
        """Return whether a URL may be begun beside this number of URLs under way."""
        if self.limit is None:
            return True
        received, pages = self._received()
        return received + held * (received // max(1, pages)) < self.granted

    def give_back(self) -> None:
        """Give the unused grant back, as this peer has nothing to fetch for now."""
        self.granted = min(self.granted, self._received()[0])

    @property
    def own_total(self) -> int:
        """What this peer takes from the budget."""
        return max(self.told, self._received()[0])

    def total_of(self, row: PeerRow) -> int:
        """Return the bytes that the peer with this row has received or may still receive by its grant."""
        return used_bytes(row)

    def granted_to(self, row: PeerRow) -> int:
        """Return the grant of the peer with this row."""
        return row.bytes_granted

    def shares(self, rows: Sequence[PeerRow], resting: Collection[bytes], absent: int) -> tuple[dict[bytes, int], bool]:
        """Return the new totals of the peers that lack bytes and do not rest, and whether the budget is spent."""
        return share_bytes(self.limit or 0, rows, resting, absent)


def used_bytes(row: PeerRow) -> int:
    """Return the bytes that a peer has received or may still receive by its grant."""
    return max(row.bytes_granted, row.counters.bytes)


def share_bytes(
    max_bytes: int, rows: Sequence[PeerRow], resting: Collection[bytes] = (), absent: int = 0
) -> tuple[dict[bytes, int], bool]:
    """Return the new totals of the peers that lack bytes and do not rest, and whether the budget is spent.

    The sum of all totals never exceeds `max_bytes` less `absent`, the use of peers that are not among the rows, and
    less what peers have received beyond their grants.
    """
    left = max_bytes - absent - sum(map(used_bytes, rows))
    hungry = [
        row
        for row in rows
        if (row.pending or row.borrowed)
        and row.bytes_granted - row.counters.bytes < BYTES_PORTION_MAX // 2
        and row.contact.id not in resting
    ]
    totals = {}
    for row in hungry:
        if left <= 0:
            break
        portion = min(left, BYTES_PORTION_MAX, max(BYTES_PORTION_MIN, left // (2 * len(hungry))))
        totals[row.contact.id] = used_bytes(row) + portion
        left -= portion
    unused = sum(used_bytes(row) - row.counters.bytes for row in rows)
    return totals, left <= 0 and unused == 0 and not totals
