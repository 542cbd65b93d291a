"""What the observer knows of loans: who fetches for whom, what was lent and lost, and what two may fetch at a time."""

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

SLACK_S = 0.5
"""A loan is seen now and then, so it may have begun and ended by so much earlier and later than it was seen."""


def owners_at(entry: FrontierEntry, peers: Iterable[tuple[int, Peer]], now: float) -> Iterator[int]:
    """Yield the machines whose own crawler may begin a page at this second of the loop."""
    for number, peer in peers:
        if peer.cells.away_s(now) >= STALL_S:
            continue  # Just thawed: before it begins anything it will see that it was away.
        cell, frontier = peer.store.cell_of(entry.key), peer.components.frontier
        if not frontier.is_open(cell) or peer.store.state(entry.key) != PENDING or entry.key in frontier.keys_out(cell):
            continue
        wait_s, _ = frontier.clock(entry.site, peer.clock.now())
        if wait_s <= 0:
            yield number


def borrowers(peers: Iterable[tuple[int, Peer]], leaves: Iterable[tuple[int, Leaf]]) -> Iterator[tuple[int, Borrower]]:
    """Yield what each machine borrows."""
    yield from ((number, peer.balancing.loans.borrower) for number, peer in peers)
    yield from ((number, leaf.borrower) for number, leaf in leaves)


@dataclass(slots=True)
class SeenLoan:
    """A site lent by one machine to another."""

    lender: int
    from_s: float
    until_s: float

    def away_s(self, at_s: float) -> float:
        """Return how far a second is from the time in which the loan was seen."""
        return max(self.from_s - at_s, at_s - self.until_s, 0.0)


class SeenLoans:
    """All loans that were seen."""

    def __init__(self) -> None:
        self._loans: defaultdict[tuple[str, int], list[SeenLoan]] = defaultdict(list)
        """By site and taker, as the taker sees it: it outlives its giver by a lease."""
        self._numbers: dict[bytes, int] = {}
        """Machines by the ID of their peer."""
        self._lost: dict[bytes, Counter[str]] = {}
        """Of each run of a peer: how often each site was lent and lost."""

    def look(
        self, now: float, peers: Iterable[tuple[int, Peer]], leaves: Iterable[tuple[int, Leaf]] = ()
    ) -> Counter[str]:
        """See the loans of these machines; return which sites were lent and lost since, and how often."""
        peers = list(peers)
        self._numbers.update((peer.contact.id, number) for number, peer in peers)
        lost: Counter[str] = Counter()
        for _, peer in peers:
            lending = peer.balancing.loans.lender
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
        """Yield each (URL, taker and giver, others) of a page that a taker may begin now, and another machine as well.

        The other is its owner, or one that takes itself for it, or has it on loan too; then its giver is named with it.
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

    def lender(self, site: str, borrower: int, at_s: float) -> int | None:
        """Return for which machine one fetched from a site at that second, if it was for another."""
        loans = self._loans.get((site, borrower), ())
        seen = [loan for loan in reversed(loans) if loan.away_s(at_s) < SLACK_S]
        return min(seen, key=lambda loan: loan.away_s(at_s)).lender if seen else None

    def _see(self, site: str, borrower: int, lender: int, now: float) -> None:
        loans = self._loans[site, borrower]
        if loans and loans[-1].lender == lender and now - loans[-1].until_s <= SLACK_S:
            loans[-1].until_s = now
        else:
            loans.append(SeenLoan(lender, now, now))
