"""The pages this peer fetches for others: what a `Frontier` and a `Crawler` need of a store, in memory, by loan.

Nothing of a loan is journaled before it is fetched, as the URLs stay PENDING at their owner. What is fetched is
journaled here as DONE, with its page line: until its owner has heard so, this peer has a record that the owner does not
know, and should the owner be gone whoever takes its place is told of it like of any stray (replication/holder.py).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

from kadcrawl.keys import SITE_BYTES, Cell, Key, site_hash
from kadcrawl.link.wire.messages import Contact
from kadcrawl.store.cell_digest import CellDigest
from kadcrawl.store.frontier_entry import FrontierEntry

FIRST_CELL = 1 << 32
"""Loans count as cells here, of numbers no cell has, as each is opened and closed by itself."""
NOWHERE = Cell(FIRST_CELL - 1)
"""The cell of all sites of which nothing is borrowed; it is never open."""


@dataclass(slots=True)
class BorrowedLoan:
    """One loan."""

    id: bytes
    lender: Contact
    cell: Cell
    site: str
    entries: dict[Key, FrontierEntry]
    """Not fetched yet."""
    connections: int = 1
    """Requests that may be under way at a time, if the site has no delay."""
    done: dict[Key, None] = field(default_factory=dict)
    """Fetched, and not reported yet."""
    closing: bool = False
    """Nothing more of it is begun, ..."""
    closed_at: float = 0.0
    """... since this second of the loop."""


class PageJournaler(Protocol):
    """Writes the page line of an entry, the lines of its records, and that it is DONE; False if it was known to be."""

    def __call__(self, entry: FrontierEntry, line: bytes, records: bytes, *, reported: bool) -> bool:
        """`reported` says whether the giver will be told by a report; else its owner must be found."""


class BorrowedStore:
    """All loans to this peer; a `crawl.active_sites.ActiveStore` and a `crawl.crawler.CrawlStore`."""

    def __init__(self, journal: PageJournaler) -> None:
        self._journal = journal
        self.loans: dict[bytes, BorrowedLoan] = {}
        """By ID."""
        self.cells: dict[Cell, CellDigest] = {}
        self._by_cell: dict[Cell, BorrowedLoan] = {}
        self._cell_of: dict[bytes, Cell] = {}
        """By the hash of the site."""
        self._clocks: dict[str, tuple[float, float]] = {}
        self._cells = count(FIRST_CELL)
        self._seqs = count(1)

    @property
    def pending(self) -> int:
        """URLs borrowed and not fetched."""
        return sum(len(loan.entries) for loan in self.loans.values())

    def has_site(self, site: str) -> bool:
        """Return whether anything of the site is borrowed."""
        return site_hash(site) in self._cell_of

    def add(
        self,
        loan_id: bytes,
        lender: Contact,
        site: str,
        urls: Iterable[tuple[Key, str, int, int, int, float]],
        connections: int = 1,
    ) -> BorrowedLoan:
        """Take up a loan of a site nothing else is borrowed of; `urls`: (key, url, depth, hops, tries, due) each."""
        cell = Cell(next(self._cells))
        entries = {
            key: FrontierEntry(depth, next(self._seqs), key, site, url, hops, tries, due)
            for key, url, depth, hops, tries, due in urls
        }
        loan = BorrowedLoan(loan_id, lender, cell, site, entries, connections)
        self.loans[loan_id] = self._by_cell[cell] = loan
        self._cell_of[site_hash(site)] = cell
        self._count(loan)
        return loan

    def skip(self, loan: BorrowedLoan, key: Key) -> None:
        """It is fetched and journaled here already, so it is only to be reported. Call before the loan is opened."""
        del loan.entries[key]
        loan.done[key] = None
        self._count(loan)

    def drop(self, loan: BorrowedLoan) -> None:
        """The loan is over."""
        del self.loans[loan.id], self._by_cell[loan.cell], self._cell_of[site_hash(loan.site)]
        self.cells.pop(loan.cell, None)
        self._clocks.pop(loan.site, None)

    # --- what a crawler asks --------------------------------------------------------------------------------------

    def finish(self, entry: FrontierEntry, line: bytes, records: bytes = b"") -> bool:
        """Journal a page line and its records'; return False if the page was finished before."""
        loan = self._by_cell.get(self.cell_of(entry.key))
        reported = loan is not None and entry.key in loan.entries
        fresh = self._journal(entry, line, records, reported=reported)
        if loan is not None and reported:
            del loan.entries[entry.key]
            loan.done[entry.key] = None
            self._count(loan)
        return fresh

    def latest(self, entry: FrontierEntry) -> FrontierEntry:
        """Return the entry as it stands now; nobody tells of shorter paths to it here."""
        return entry

    # --- what a frontier asks -------------------------------------------------------------------------------------

    def cell_of(self, key: Key) -> Cell:
        return self._cell_of.get(key[:SITE_BYTES], NOWHERE)

    def sites(self, cell: Cell, after: bytes, count: int) -> list[tuple[bytes, str]]:
        loan = self._by_cell.get(cell)
        if loan is None or not loan.entries or after >= site_hash(loan.site):
            return []
        return [(site_hash(loan.site), loan.site)]

    def window(self, site: str, count: int) -> list[FrontierEntry]:
        loan = self._by_cell.get(self._cell_of.get(site_hash(site), NOWHERE))
        return sorted(loan.entries.values())[:count] if loan is not None else []

    def postpone(self, entry: FrontierEntry) -> None:
        loan = self._by_cell.get(self.cell_of(entry.key))
        if loan is not None and entry.key in loan.entries:
            loan.entries[entry.key] = entry

    def site(self, site: str) -> tuple[float, float] | None:
        return self._clocks.get(site)

    def set_site(self, site: str, not_before: float, delay_s: float) -> None:
        if self.has_site(site):
            self._clocks[site] = not_before, delay_s

    def connections(self, site: str) -> int:
        """Return how many requests to a site may be under way here at a time, as it was lent."""
        loan = self._by_cell.get(self._cell_of.get(site_hash(site), NOWHERE))
        return loan.connections if loan is not None else 1

    def _count(self, loan: BorrowedLoan) -> None:
        self.cells[loan.cell] = CellDigest(len(loan.entries), len(loan.entries), 0)
