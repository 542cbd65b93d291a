"""`GrantedBudget` is what the budgets of pages and of bytes share: the grants of all peers, as one peer knows them.

The owner of the budget's cell shares the budget out by grants (page_budget.py). A decision.

Tests: tests/crawl/test_page_budget.py, tests/crawl/test_byte_budget.py
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kadcrawl.link.wire.messages import ROWS_MAX, PeerRow

GRANT_NAMES: Final = {"pages": "granted", "bytes": "bytes_granted"}
"""Unit of a budget -> the name of its grant in the journal."""


class GrantedBudget:
    """The grants of one budget."""

    def __init__(self, limit: int | None, granted: int, known: dict[bytes, int] | None = None) -> None:
        """`limit` is the whole budget, or None without a budget."""
        self.limit = limit
        self._largest = limit or 0
        """The largest limit so far: a total counts for no more, and what was granted before a lower limit counts."""
        self.granted = granted
        """The grant of this peer, over all time."""
        self._written = granted
        """The grant that the journal has, or will have with its next commit."""
        self._journaled = granted
        """The largest grant that the journal may have, with which this peer would start again."""
        self.known = known or {}
        """The last known total of each peer, by ID. One `Grant` message limits their number."""
        self.spent = False
        """The whole budget is spent: pending URLs stay pending, and count as no work."""

    def set_limit(self, limit: int | None) -> None:
        """Take another budget, as a person has ordered while the crawl runs. What is granted stays granted."""
        if limit != self.limit:
            self.limit, self._largest = limit, max(self._largest, limit or 0)
            self.spent = False  # The peer that shares the budget out says so again, if it is.

    @property
    def told(self) -> int:
        """The grant as other peers hear it: what this peer gave back counts until the journal has the smaller grant.

        After a crash the peer would spend it again, although others have it by then.
        """
        return max(self.granted, self._journaled)

    @property
    def own_total(self) -> int:
        """What this peer takes from the budget."""
        return self.told

    def to_journal(self) -> bytes:
        """Return the grant to write with the next commit of the journal."""
        self._written = self.granted
        self._journaled = max(self._journaled, self._written)
        return str(self._written).encode()

    def note_journaled(self, written: int) -> None:
        """Note that the journal has this grant. A smaller one written since may still be lost."""
        self._journaled = max(written, self._written)

    def total_of(self, row: PeerRow) -> int:
        """Return what the peer with this row takes from the budget."""
        raise NotImplementedError

    def learn(self, totals: dict[bytes, int], me: bytes, spent: bool) -> None:
        """Take a grant: the totals of this and of other peers. No total counts for more than the largest limit."""
        if self.limit is None:
            return
        totals = {peer: min(total, self._largest) for peer, total in totals.items()}
        self.granted = totals.get(me, self.granted)
        self.spent = spent
        for peer, total in totals.items():
            if peer in self.known or len(self.known) < ROWS_MAX:
                self.known[peer] = total

    def hear(self, totals: Mapping[bytes, int]) -> None:
        """Take the totals that another peer knows, as far as they are larger than those known here.

        The rows of present peers replace them (`absent`), so they count only for absent peers.
        """
        if self.limit is None:
            return
        for peer, total in totals.items():
            if peer in self.known or len(self.known) < ROWS_MAX:
                self.known[peer] = max(self.known.get(peer, 0), min(total, self._largest))

    def absent(self, rows: Sequence[PeerRow]) -> dict[bytes, int]:
        """Return the totals of the peers that have a grant and are not among these rows of a census.

        No total may have been heard since the census began, as of a peer that left: it would be newer than its row.
        """
        self.learn({row.contact.id: self.total_of(row) for row in rows}, b"", self.spent)
        present = {row.contact.id for row in rows}
        return {peer: total for peer, total in self.known.items() if peer not in present}
