"""The page budget of the swarm (--max-pages): a peer fetches only the pages it has been granted.

The owner of the budget's cell shares the budget out. It asks every peer for its grant and its need (a census), and
splits the rest of the budget among the peers in need. The portions shrink as the budget does. A peer that has nothing
to fetch for now gives its unused grant back. If its URLs only wait for their sites, the peer is passed over for a
while, so that the last grants do not go to it again and again. The grant of a peer that leaves or dies stays counted:
each grant message also tells the totals of absent peers, so the next owner of the cell knows them. No grant counts that
comes too late (granted_budget.py). `max_pages` is therefore never exceeded. The unused grant of a dead peer is missing
until that peer is started again.

A lender pays for the pages that it lends, and their borrowers pay nothing. A page that its borrower returns brings its
unit back. A silent borrower may have fetched its pages, and a borrower may return a page that it has fetched and not
finished in time (replication/cell_crawl.py). So the units of such pages stay taken: each comes back when its page is
fetched, which then counts once, or when the borrower says that it has not fetched the page. If another holder of the
cell reports the page first, the borrower may have told that holder: the unit is used up, also when the page is visited
again. A decision: `peer/swarm/budget_sharing.py` sends the messages.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Literal

from kadcrawl.crawl.granted_budget import GrantedBudget
from kadcrawl.crawl.grants_journal import write_grant
from kadcrawl.keys import Cell, Key, cell_of
from kadcrawl.link.wire.messages import ROWS_MAX, PeerRow
from kadcrawl.store.meta_table import MetaTable

PORTION_MAX = 100
"""Fetches granted to one peer at a time. The number is small, so that an idle peer hoards little."""
REST_S = 2.0
"""Seconds for which a peer that gave a grant back is passed over."""
SOON_S = 5.0
"""Seconds within which a due fetch keeps its grant. The time is longer than the rest, so no fetch is late for want of a
grant."""


PAGES_BEGUN = "pages_begun"
"""Name of the units taken in the journal."""

LOST_MAX = 10_000
"""URLs of lost loans whose units may still come back."""


class Budget(GrantedBudget):
    """The share of one peer."""

    unit: Literal["pages"] = "pages"

    def __init__(
        self,
        max_pages: int | None,
        granted: int,
        begun: int,
        known: dict[bytes, int] | None = None,
        epochs: dict[bytes, int] | None = None,
        epoch: int = 0,
    ) -> None:
        super().__init__(max_pages, granted, known, epochs, epoch)
        self.begun = begun
        """Units taken: of URLs begun here, and of URLs that were lent."""
        self.held = 0
        """URLs begun here and not finished, borrowed URLs too."""
        self.lent = 0
        """URLs on loan at this moment."""
        self._unfinished = 0
        """Units of own URLs begun and not finished."""
        self._lost: dict[Key, bool] = {}
        """The URLs of lost loans, the oldest first. A unit was taken for each, as its borrower may have fetched it. The
        value is True if another holder of the cell has reported the page."""

    @property
    def told(self) -> int:
        """The grant as other peers hear it, and no less than the units taken: a peer without a limit needs no grant."""
        return max(super().told, self.begun)

    @property
    def allowance(self) -> int:
        """URLs that may still be begun."""
        return max(0, self.granted - self.begun)

    @property
    def may_begin(self) -> bool:
        return self.limit is None or self.begun < self.granted

    def begin(self) -> bool:
        """Take one fetch from the allowance. Return False if there is none."""
        if not self.may_begin:
            return False
        self.begun += 1
        self.held += 1
        self._unfinished += 1
        return True

    def end(self, fetched: bool, key: Key | None = None) -> None:
        """End a fetch of the URL with this key. If the URL is to be tried again, the unit goes back to the
        allowance."""
        self.held -= 1
        self._unfinished -= 1
        self.begun -= not fetched
        if fetched:
            self._settle(key)

    def begin_borrowed(self) -> None:
        """Count a borrowed URL as under way. Its lender has paid for it."""
        self.held += 1

    def end_borrowed(self) -> None:
        """Count a borrowed URL as under way no more."""
        self.held -= 1

    @property
    def kept(self) -> int:
        """The units that are taken even if this peer dies now, to be journaled."""
        return self.begun - self._unfinished

    def lend(self, count: int) -> None:
        """Take the units of so many URLs that are lent."""
        self.begun += count
        self.lent += count

    def finish_lent(self, key: Key) -> None:
        """Note that a borrower has fetched a URL."""
        self.lent -= 1
        self._settle(key)

    def take_back(self, count: int) -> None:
        """Take back the units of so many URLs whose borrower has surely not fetched them."""
        self.begun -= count
        self.lent -= count

    def return_lent(self, key: Key, *, unfinished: bool) -> None:
        """Take back the unit of a URL that its borrower returns, unless the borrower may still finish the URL."""
        if unfinished:
            self.lose([key])
        else:
            self.take_back(1)

    def lose(self, keys: Iterable[Key]) -> None:
        """Note that a borrower had these URLs and may have fetched them. Their units are not used for other URLs."""
        for key in keys:
            self.lent -= 1
            self._settle(key)
            self._lost[key] = False
            if len(self._lost) > LOST_MAX:
                del self._lost[next(iter(self._lost))]

    def finish_late(self, key: Key) -> None:
        """Note that a borrower has fetched a URL of a loan that was over. Its unit is used up, even if taken back."""
        if key in self._lost:
            del self._lost[key]
        else:
            self.begun += 1

    def return_lost(self, key: Key) -> None:
        """Note that a borrower has not fetched a URL of a loan that was over."""
        if self._lost.pop(key, None) is not None:
            self.begun -= 1

    def note_elsewhere(self, key: Key) -> None:
        """Note that another holder of the cell reports a URL as fetched, perhaps by the silent borrower."""
        if key in self._lost:
            self._lost[key] = True

    def _settle(self, key: Key | None) -> None:
        """Take back the unit of a lost loan of a URL, as another unit was taken for that URL. A unit that the borrower
        may have used for an earlier visit stays taken."""
        if key is not None and self._lost.pop(key, None) is False:
            self.begun -= 1

    def give_back(self) -> None:
        """Give the unused grant back, as this peer has nothing to fetch for now."""
        self.granted = self.begun

    def total_of(self, row: PeerRow) -> int:
        """Return the grant of the peer with this row, as its unused part cannot be given to another."""
        return row.granted

    def granted_to(self, row: PeerRow) -> int:
        """Return the grant of the peer with this row."""
        return row.granted

    def shares(self, rows: Sequence[PeerRow], resting: Collection[bytes], absent: int) -> tuple[dict[bytes, int], bool]:
        """Return the new totals of the peers that lack allowance and do not rest, and whether the budget is spent."""
        return share(self.limit or 0, rows, resting, absent)


def write_units(meta: MetaTable, budget: Budget) -> None:
    """Journal the grant and the units taken of it with the next commit, so that no crash has them spent again."""
    write_grant(meta, budget)
    meta.set(PAGES_BEGUN, str(budget.kept).encode())


def budget_cell(cell_bits: int) -> Cell:
    """Return the cell whose owner shares the budget out."""
    return cell_of(Key(blake2b(b"kadcrawl budget", digest_size=20).digest()), cell_bits)


class Resting:
    """Remembers the peers that gave a grant back although they have URLs, which must wait for their sites."""

    def __init__(self, granted: Callable[[PeerRow], int] = lambda row: row.granted) -> None:
        """`granted` returns the grant of the peer with a row."""
        self._granted = granted
        self._totals: dict[bytes, int] = {}
        self._until: dict[bytes, float] = {}

    def look(self, rows: Sequence[PeerRow], now: float) -> Collection[bytes]:
        """Return the IDs of the peers to pass over now. The seconds are of any clock."""
        self._until = {peer: until for peer, until in self._until.items() if until > now}
        for row in rows:
            if row.pending and self._granted(row) < self._totals.get(row.contact.id, 0):
                self._until[row.contact.id] = now + REST_S
        self._totals = {row.contact.id: self._granted(row) for row in rows}
        return self._until.keys()

    def grant(self, totals: dict[bytes, int]) -> None:
        """Note the totals that have been sent out."""
        self._totals |= totals


def share(
    max_pages: int, rows: Sequence[PeerRow], resting: Collection[bytes] = (), absent: int = 0
) -> tuple[dict[bytes, int], bool]:
    """Return the new totals of the peers that lack allowance and do not rest, and whether the budget is spent.

    The sum of all totals never exceeds `max_pages` less `absent`, the grants of peers that are not among the rows.
    """
    left = max_pages - absent - sum(row.granted for row in rows)
    hungry = [
        row
        for row in rows
        if row.pending - row.lent > row.allowance + row.in_flight
        and row.allowance < PORTION_MAX // 2
        and row.contact.id not in resting
    ]
    totals = {}
    for row in hungry:
        if left <= 0:
            break
        portion = min(left, PORTION_MAX, max(1, left // (2 * len(hungry))), row.pending - row.lent - row.allowance)
        totals[row.contact.id] = row.granted + portion
        left -= portion
    unused = sum(row.allowance for row in rows)
    return totals, left <= 0 and unused == 0 and not totals


def listed(totals: Mapping[bytes, int], absent: Mapping[bytes, int]) -> dict[bytes, int]:
    """Return the new totals and, as far as one grant has room, the totals of absent peers. A peer may have made some of
    them up.
    """
    return dict(islice({**totals, **absent}.items(), ROWS_MAX))
