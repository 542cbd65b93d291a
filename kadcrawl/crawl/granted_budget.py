"""`GrantedBudget` is what the budgets of pages and of bytes share: the grants of all peers, as one peer knows them.

The owner of the budget's cell shares the budget out by grants (page_budget.py). It decides by the rows that it has
asked for, and each such row begins an *epoch* of its peer. A grant names the epoch of the row by which each total was
decided. So a peer takes a grant only if it answers its last row: what it gave back since an older row may have been
granted to another peer. All other peers order the totals of a peer by their epochs, however late they come. A decision.

Tests: tests/crawl/test_granted_budget.py, tests/crawl/test_page_budget.py, tests/crawl/test_byte_budget.py
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from kadcrawl.link.wire.messages import COUNT_MAX, ROWS_MAX, PeerRow

UNORDERED: Final[Mapping[bytes, int]] = MappingProxyType({})
"""The epochs of totals that a peer of an earlier release has told."""


class GrantedBudget:
    """The grants of one budget."""

    def __init__(
        self,
        limit: int | None,
        granted: int,
        known: dict[bytes, int] | None = None,
        epochs: dict[bytes, int] | None = None,
        epoch: int = 0,
    ) -> None:
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
        self.epochs = epochs or {}
        """The epoch of each known total, by ID. A total that a peer of an earlier release has told has none."""
        self.epoch = epoch
        """The epoch of this peer: the number of the last row by which the budget is shared out."""
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

    def tell(self) -> int:
        """Return the epoch of a row, or of another word about what this peer takes. No older grant counts any more."""
        self.epoch = min(self.epoch + 1, COUNT_MAX)
        return self.epoch

    def learn(
        self, totals: Mapping[bytes, int], me: bytes, spent: bool, epochs: Mapping[bytes, int] = UNORDERED
    ) -> None:
        """Take a grant: the totals of this and of other peers. No total counts for more than the largest limit."""
        if self.limit is None:
            return
        totals = {peer: min(total, self._largest) for peer, total in totals.items()}
        if me in totals and me not in epochs:
            self.granted = totals[me]
        elif me in totals and epochs[me] == self.epoch:
            self.granted = max(self.granted, totals[me])
        self.spent = spent
        for peer, total in totals.items():
            epoch = epochs.get(peer, 0)
            if not epoch or (epoch, total) >= (self.epochs.get(peer, 0), self.known.get(peer, 0)):
                self._note(peer, epoch, total)

    def hear(self, totals: Mapping[bytes, int], epochs: Mapping[bytes, int] = UNORDERED) -> None:
        """Take the totals that another peer knows, as far as they are later, or larger, than those known here.

        The rows of present peers replace them (`absent`), so they count only for absent peers.
        """
        if self.limit is None:
            return
        for peer, total in totals.items():
            epoch, before = epochs.get(peer, 0), self.epochs.get(peer, 0)
            is_later = epoch > before > 0
            if is_later or (total > self.known.get(peer, -1) and not 0 < epoch < before):
                self._note(peer, epoch or before, total)

    def absent(self, rows: Sequence[PeerRow], left: Iterable[PeerRow] = ()) -> dict[bytes, int]:
        """Return the totals of the peers that have a grant, or have left, and are not among these rows of a census.

        No total may have been heard since the census began, as of a peer that left: it would be newer than its row.
        `left` are the rows of departed peers. One that left before the swarm had a limit has told no total. A leaf has
        no grant, and may claim the ID of a full peer.
        """
        rows = [row for row in rows if not row.hosted_leaf]
        if self.limit is not None:
            for row in rows:
                self._note(row.contact.id, row.grant_epoch, self.total_of(row))
        present = {row.contact.id for row in rows}
        absent = {peer: total for peer, total in self.known.items() if peer not in present}
        for row in left:
            peer, total = row.contact.id, min(self.total_of(row), self._largest)
            if peer not in present and total > absent.get(peer, 0):
                absent[peer] = total
        return absent

    def epochs_of(self, totals: Mapping[bytes, int], rows: Sequence[PeerRow]) -> dict[bytes, int]:
        """Return the epochs to tell with these totals, which are those of the peers with these rows and of absent
        peers."""
        told = {row.contact.id: row.grant_epoch for row in rows if not row.hosted_leaf}
        epochs = {**self.epochs, **told}
        return {peer: epochs[peer] for peer in totals if epochs.get(peer)}

    def _note(self, peer: bytes, epoch: int, total: int) -> None:
        if peer not in self.known and len(self.known) >= ROWS_MAX:
            return
        self.known[peer] = min(total, self._largest)
        if epoch:
            self.epochs[peer] = epoch
        else:
            self.epochs.pop(peer, None)
