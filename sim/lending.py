"""The observer's knowledge of loans: lenders, borrowers, lost loans, and pages that two machines may fetch at a
time."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kadcrawl.keys import Key
from kadcrawl.leaf.leaf import Leaf
from kadcrawl.lending.borrower import Borrower
from kadcrawl.peer import Peer
from kadcrawl.replication.cells import STALL_S
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.store import PENDING

OVERDUE_S = 1.0
"""Seconds after the end of its lease within which a borrower that is not frozen closes a loan: two of its looks."""
SLACK_S = 0.5
"""Tolerance for the begin and the end of a loan in seconds: loans are observed from time to time only."""


def owners_at(entry: FrontierEntry, peers: Iterable[tuple[int, Peer]], now: float) -> Iterator[int]:
    """Yield the machines whose own crawler may begin a page at this instant of the loop."""
    for number, peer in peers:
        if peer.cells.away_s(now) >= STALL_S or peer.cells.in_doubt:
            continue  # The peer was away: it asks its siblings before it begins a page.
        cell, frontier = peer.store.cell_of(entry.key), peer.components.frontier
        if not frontier.is_open(cell) or peer.store.state(entry.key) != PENDING or entry.key in frontier.keys_out(cell):
            continue
        wait_s, _ = frontier.clock(entry.site, peer.clock.now())
        if wait_s <= 0:
            yield number


def borrowers(peers: Iterable[tuple[int, Peer]], leaves: Iterable[tuple[int, Leaf]]) -> Iterator[tuple[int, Borrower]]:
    """Yield the borrower of each machine that has borrowed something."""
    for number, peer in peers:
        if (borrower := peer.balancing.loans.borrower).loans:
            yield number, borrower
    yield from ((number, leaf.borrower) for number, leaf in leaves if leaf.borrower.loans)


@dataclass(slots=True)
class SeenLoan:
    """A site lent by one machine to another."""

    lender: int
    from_s: float
    until_s: float

    def away_s(self, at_s: float) -> float:
        """Return the seconds between an instant and the period in which the loan was seen."""
        return max(self.from_s - at_s, at_s - self.until_s, 0.0)


class SeenLoans:
    """All loans that the observer has seen."""

    def __init__(self) -> None:
        self._loans: defaultdict[tuple[str, int], list[SeenLoan]] = defaultdict(list)
        """Loans by site and borrower, as the borrower sees them. Such a loan outlives its lender by a lease."""
        self._numbers: dict[bytes, int] = {}
        """Machines by the ID of their peer."""
        self._over: dict[tuple[int, bytes], float] = {}
        """(machine, loan) of each loan whose lease is over -> the instant of the look that found it so."""
        self._lost: dict[bytes, Counter[str]] = {}
        """For each run of a peer, the number of times each site was lent and lost."""

    def look(
        self, now: float, peers: Iterable[tuple[int, Peer]], leaves: Iterable[tuple[int, Leaf]] = ()
    ) -> Counter[str]:
        """Record the loans of these machines. Return the sites that were lent and lost since the last look, with
        counts."""
        peers = list(peers)
        self._numbers.update((peer.contact.id, number) for number, peer in peers)
        lost: Counter[str] = Counter()
        for _, peer in peers:
            lending = peer.balancing.loans.lender
            if lending.lost:  # Most peers never lose a loan, and sums of counters are slow.
                known = self._lost.get(peer.runtime.incarnation, Counter())
                lost += lending.lost - known
                self._lost[peer.runtime.incarnation] = Counter(lending.lost)
        for number, borrowing in borrowers(peers, leaves):
            for loan in borrowing.crawlable_loans():
                if loan.lender.id in self._numbers:
                    self._see(loan.site, number, self._numbers[loan.lender.id], now)
        return lost

    def shared(
        self, now: float, peers: Iterable[tuple[int, Peer]], leaves: Iterable[tuple[int, Leaf]] = ()
    ) -> Iterator[tuple[str, set[int], set[int]]]:
        """Yield each (URL, borrower and lender, others) of a page that its borrower and another machine may both begin
        now.

        The other machine is the owner, or takes itself for the owner, or has borrowed the page too. In the last case
        `others` contains its lender as well.
        """
        peers = list(peers)
        lent: dict[Key, set[int]] = {}
        for number, borrowing in borrowers(peers, leaves):
            for loan in borrowing.crawlable_loans():
                ends = {number, self._numbers.get(loan.lender.id, number)}
                for key, entry in loan.entries.items():
                    if key in lent:
                        yield entry.url, lent[key], ends
                    lent[key] = ends
                    yield from ((entry.url, ends, {one}) for one in owners_at(entry, peers, now))

    def overdue(
        self, now: float, peers: Iterable[tuple[int, Peer]], leaves: Iterable[tuple[int, Leaf]] = ()
    ) -> Iterator[tuple[str, int, float]]:
        """Yield (site, borrower, seconds) of each loan that its borrower goes on with so long after its lease."""
        peers = list(peers)
        frozen = {number for number, peer in peers if peer.cells.away_s(now) >= STALL_S}
        over: dict[tuple[int, bytes], float] = {}
        for number, borrowing in borrowers(peers, leaves):
            held = {loan.id for loan in borrowing.crawlable_loans()}
            for loan in borrowing.begun_loans():
                if loan.id in held or number in frozen:
                    continue
                since = over[number, loan.id] = self._over.get((number, loan.id), now)
                if now - since > OVERDUE_S:
                    yield loan.site, number, now - since
        self._over = over

    def lender(self, site: str, borrower: int, at_s: float) -> int | None:
        """Return the lender for which a machine fetched from a site at that instant, or None for no loan."""
        loans = self._loans.get((site, borrower), ())
        seen = [loan for loan in reversed(loans) if loan.away_s(at_s) < SLACK_S]
        return min(seen, key=lambda loan: loan.away_s(at_s)).lender if seen else None

    def _see(self, site: str, borrower: int, lender: int, now: float) -> None:
        loans = self._loans[site, borrower]
        if loans and loans[-1].lender == lender and now - loans[-1].until_s <= SLACK_S:
            loans[-1].until_s = now
        else:
            loans.append(SeenLoan(lender, now, now))
