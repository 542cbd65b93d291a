"""What the observer knows of loans: which machine fetches for which other, and which sites were lent and lost."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from kadcrawl.peer import Peer

SLACK_S = 0.5
"""A loan is seen now and then, so it may have begun and ended by so much earlier and later than it was seen."""


@dataclass(slots=True)
class SeenLoan:
    """A site lent by one machine to another."""

    giver: int
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

    def look(self, now: float, peers: Iterable[tuple[int, Peer]]) -> Counter[str]:
        """See the loans of these machines; return which sites were lent and lost since, and how often."""
        peers = list(peers)
        self._numbers.update((peer.contact.id, number) for number, peer in peers)
        lost: Counter[str] = Counter()
        for number, peer in peers:
            lending = peer.balancing.loans.lending
            known = self._lost.get(peer.incarnation, Counter())
            lost += lending.lost - known
            self._lost[peer.incarnation] = Counter(lending.lost)
            for site, giver in peer.balancing.loans.borrowing.sites():
                if giver in self._numbers:
                    self._see(site, number, self._numbers[giver], now)
        return lost

    def giver(self, site: str, taker: int, at_s: float) -> int | None:
        """Return for which machine one fetched from a site at that second, if it was for another."""
        loans = self._loans.get((site, taker), ())
        seen = [loan for loan in reversed(loans) if loan.away_s(at_s) < SLACK_S]
        return min(seen, key=lambda loan: loan.away_s(at_s)).giver if seen else None

    def _see(self, site: str, taker: int, giver: int, now: float) -> None:
        loans = self._loans[site, taker]
        if loans and loans[-1].giver == giver and now - loans[-1].until_s <= SLACK_S:
            loans[-1].until_s = now
        else:
            loans.append(SeenLoan(giver, now, now))
