"""`BorrowedStore`: the pages that this peer fetches for others, as a `Frontier` and a `Crawler` see them.

The loans are in memory. A borrowed page is not journaled before it is fetched, because it stays PENDING at its owner. A
fetched page is journaled here as DONE with its page line. Until the owner has been told, this peer has a record that
the owner lacks. If the owner is gone by then, the peer that takes its place is told, as of any other record without an
owner here (replication/holder_side.py).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import Protocol

from kadcrawl.keys import SITE_BYTES, Cell, Key, site_hash
from kadcrawl.link.wire.messages import COUNT_MAX, Contact
from kadcrawl.store.back_off import NO_REFUSALS, BackOff
from kadcrawl.store.cell_digest import CellDigest
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.frontier_table import SEQ_MAX
from kadcrawl.store.kept_cookies import NO_COOKIES, KeptCookies
from kadcrawl.store.visit import Visit

FIRST_CELL = 1 << 32
"""The number of the first loan's cell: each loan opens and closes by itself, and no real cell has such a number."""
NEVER_DROPPED = COUNT_MAX
"""The stamp that keeps an order to drop from borrowed URLs: only their owner drops them."""
NOWHERE = Cell(FIRST_CELL - 1)
"""The cell of every site that is not borrowed, which is never open."""


@dataclass(slots=True)
class BorrowedLoan:
    """One loan as its borrower sees it."""

    id: bytes
    lender: Contact
    cell: Cell
    site: str
    entries: dict[Key, FrontierEntry]
    """The pages that are not fetched yet."""
    connections: int = 1
    """Requests that may be in flight at a time if the site has no delay."""
    rounds: dict[Key, int] = field(default_factory=dict)
    """Visits before this visit, of the pages beyond their first."""
    visits: dict[Key, Visit] = field(default_factory=dict)
    """The last visits to pages beyond their first visit, as the lender told them."""
    done: dict[Key, str] = field(default_factory=dict)
    """The keys of fetched pages that the lender does not know to be done -> the reason of a failure, or empty."""
    closing: bool = False
    """No further page of the loan is begun."""
    closed_at: float = 0.0
    """The loop second at which `closing` was set."""

    def close(self, loop_s: float) -> None:
        """Begin no further page of the loan."""
        self.closing, self.closed_at = True, loop_s


class PageJournaler(Protocol):
    """A function that writes a fetched page: its page line, its record lines, and that it is DONE."""

    def __call__(
        self, entry: FrontierEntry, line: bytes, records: bytes, visit: Visit | None, rounds: int, *, reported: bool
    ) -> bool:
        """Return False if the page was known to be DONE.

        `reported` says that a report will tell the lender. Otherwise this peer must find and tell the page's owner.
        """


class BorrowedClocks:
    """The clocks and refusals of the borrowed sites, in memory."""

    def __init__(self, has_site: Callable[[str], bool]) -> None:
        self._has_site = has_site
        self._clocks: dict[str, tuple[float, float]] = {}
        self._back_offs: dict[str, BackOff] = {}

    def clock(self, site: str) -> tuple[float, float] | None:
        """Return the (not_before, delay_s) of a site, as `SiteTable.clock` does, or None."""
        return self._clocks.get(site)

    def set_clock(self, site: str, not_before: float, delay_s: float) -> None:
        """Keep the clock of a site while it is borrowed."""
        if self._has_site(site):
            self._clocks[site] = not_before, delay_s

    def back_off(self, site: str) -> BackOff:
        """Return the refusals of a site, as `SiteTable.back_off` does."""
        return self._back_offs.get(site, NO_REFUSALS)

    def set_back_off(self, site: str, cell: Cell, back_off: BackOff) -> None:
        """Keep the refusals of a site while it is borrowed."""
        if self._has_site(site):
            self._back_offs[site] = back_off

    def backed_off(self, cell: Cell, most: int) -> list[str]:
        """Return no site, because no other holder asks for the cells of loans."""
        return []

    def cookies(self, site: str) -> KeptCookies:
        """Return no cookies, as a site that has some is not lent."""
        return NO_COOKIES

    def learn_cookies(self, site: str, cell: Cell, cookies: KeptCookies) -> None:
        """Keep no cookies."""

    def with_cookies(self, cell: Cell, most: int) -> list[str]:
        """Return no site."""
        return []

    def drop(self, site: str) -> None:
        """Forget the clock and the refusals of a site."""
        self._clocks.pop(site, None)
        self._back_offs.pop(site, None)


class BorrowedStore:
    """All loans of one borrower, as an `ActiveStore` (crawl/frontier) and a `CrawlStore` (crawl/crawler.py)."""

    def __init__(self, journal: PageJournaler) -> None:
        self._journal = journal
        self.loans: dict[bytes, BorrowedLoan] = {}
        """Loans by ID."""
        self.cells: dict[Cell, CellDigest] = {}
        self._by_cell: dict[Cell, BorrowedLoan] = {}
        self._cell_of: dict[bytes, Cell] = {}
        """Hash of the site -> cell of its loan."""
        self.sites = BorrowedClocks(self.has_site)
        self._cells = count(FIRST_CELL)
        self._seqs = count(1)

    @property
    def pending(self) -> int:
        """URLs borrowed and not fetched."""
        return sum(len(loan.entries) for loan in self.loans.values())

    def has_site(self, site: str) -> bool:
        """Return whether there is a loan of the site."""
        return site_hash(site) in self._cell_of

    def add(
        self,
        loan_id: bytes,
        lender: Contact,
        site: str,
        urls: Iterable[tuple[Key, str, int, int, int, float, bytes]],
        connections: int = 1,
        rounds: Mapping[Key, int] | None = None,
    ) -> BorrowedLoan:
        """Add a loan of a site that has no other loan.

        Args:
            urls: (key, url, depth, hops, tries, due, trail) of each page.
            connections: requests that may be in flight at a time if the site has no delay.
            rounds: visits before this visit, of the pages beyond their first.
        """
        cell = Cell(next(self._cells))
        entries = {
            key: FrontierEntry(depth, next(self._seqs), key, site, url, hops, tries, due, trail, NEVER_DROPPED)
            for key, url, depth, hops, tries, due, trail in urls
        }
        loan = BorrowedLoan(loan_id, lender, cell, site, entries, connections, dict(rounds or {}))
        self.loans[loan_id] = self._by_cell[cell] = loan
        self._cell_of[site_hash(site)] = cell
        self._count(loan)
        return loan

    def skip(self, loan: BorrowedLoan, key: Key, failed: str = "") -> None:
        """Only report a page that is fetched and journaled here already. Call before the loan is opened."""
        del loan.entries[key]
        loan.done[key] = failed
        self._count(loan)

    def shorten(self, loan: BorrowedLoan, depths: Mapping[bytes, int]) -> None:
        """Keep the smaller depths that the lender tells, by key."""
        for key, depth in depths.items():
            entry = loan.entries.get(Key(key))
            if entry is not None and depth < entry.depth:
                loan.entries[entry.key] = entry._replace(depth=depth)

    def drop(self, loan: BorrowedLoan) -> None:
        """Forget a loan that is over."""
        del self.loans[loan.id], self._by_cell[loan.cell], self._cell_of[site_hash(loan.site)]
        self.cells.pop(loan.cell, None)
        self.sites.drop(loan.site)

    # --- for the crawler -----------------------------------------------------------------------------------------

    def loan_of(self, cell: Cell) -> BorrowedLoan | None:
        """Return the loan with this cell, or None."""
        return self._by_cell.get(cell)

    def rounds(self, key: Key) -> int:
        """Return the number of visits to a borrowed page before this visit."""
        loan = self._by_cell.get(self.cell_of(key))
        return loan.rounds.get(key, 0) if loan is not None else 0

    def last_visit(self, key: Key) -> Visit | None:
        """Return the last visit to a borrowed page, as its lender told it."""
        loan = self._by_cell.get(self.cell_of(key))
        return loan.visits.get(key) if loan is not None else None

    def finish(
        self, entry: FrontierEntry, line: bytes, records: bytes = b"", visit: Visit | None = None, rounds: int = 0
    ) -> bool:
        """Journal a page line and its record lines, and return False if the page was finished before."""
        loan = self._by_cell.get(self.cell_of(entry.key))
        reported = loan is not None and entry.key in loan.entries
        fresh = self._journal(entry, line, records, visit, rounds, reported=reported)
        if loan is not None and reported:
            del loan.entries[entry.key]
            loan.done[entry.key] = visit.failed if visit is not None else ""
            self._count(loan)
        return fresh

    def latest(self, entry: FrontierEntry) -> FrontierEntry:
        """Return the entry with the smallest depth that its lender has told."""
        loan = self._by_cell.get(self.cell_of(entry.key))
        return entry if loan is None else loan.entries.get(entry.key, entry)

    # --- for the frontier ----------------------------------------------------------------------------------------

    def cell_of(self, key: Key) -> Cell:
        """Return the cell of the loan of the key's site, or `NOWHERE`."""
        return self._cell_of.get(key[:SITE_BYTES], NOWHERE)

    def pending_sites(self, cell: Cell, after: bytes, count: int) -> list[tuple[bytes, str]]:
        """Return (hash, site) of the loan's one site, if it has pages left and its hash comes after `after`."""
        loan = self._by_cell.get(cell)
        if loan is None or not loan.entries or after >= site_hash(loan.site):
            return []
        return [(site_hash(loan.site), loan.site)]

    def window(self, site: str, count: int, last_seq: int = SEQ_MAX, due: float = inf) -> list[FrontierEntry]:
        """Return the first `count` entries of a site by number `last_seq` and due by `due`, breadth first."""
        loan = self._by_cell.get(self._cell_of.get(site_hash(site), NOWHERE))
        entries = loan.entries.values() if loan is not None else ()
        return sorted(entry for entry in entries if entry.seq <= last_seq and entry.due <= due)[:count]

    def postpone(self, entry: FrontierEntry) -> None:
        """Replace an entry by its later version, unless its loan is over or the page is done."""
        loan = self._by_cell.get(self.cell_of(entry.key))
        if loan is not None and (known := loan.entries.get(entry.key)) is not None:
            loan.entries[entry.key] = entry._replace(depth=min(entry.depth, known.depth))

    def connections(self, site: str) -> int:
        """Return how many requests to a site may be in flight here at a time by its loan."""
        loan = self._by_cell.get(self._cell_of.get(site_hash(site), NOWHERE))
        return loan.connections if loan is not None else 1

    def _count(self, loan: BorrowedLoan) -> None:
        self.cells[loan.cell] = CellDigest(len(loan.entries), len(loan.entries), 0)
