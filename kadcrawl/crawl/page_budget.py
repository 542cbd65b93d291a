"""--max-pages as a budget of the whole swarm: a peer fetches only what it has been granted.

Whoever owns the budget's cell shares it out: it asks every peer what it has been granted and still lacks (a census),
splits what is left among the hungry in portions that shrink as the budget does, and tells them their new totals. A
peer that has nothing to fetch for now gives its unused grant back; if its URLs only wait, as a site asks to be left
alone, it is passed over for a while, lest the last grants go to it again and again. What a peer had been granted stays
counted when it leaves or dies: each grant also tells the totals of those that are absent, so whoever shares next knows.
So `max_pages` is never exceeded; what dies with a grant unused is missing until that peer is started again. Pure;
`Peer` does the talking.
"""

from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b
from itertools import islice

from kadcrawl.keys import Cell, Key, cell_of
from kadcrawl.link.wire.messages import ROWS_MAX, PeerRow

PORTION_MAX = 100
"""Fetches granted to one peer at a time; small enough that an idle peer hoards little."""
REST_S = 2.0
"""How long a peer that gave a grant back is passed over."""
SOON_S = 5.0
"""A fetch due within this keeps its grant; longer than the rest, so that none is late for want of one."""


class Budget:
    """One peer's share."""

    def __init__(self, max_pages: int | None, granted: int, begun: int, known: dict[bytes, int] | None = None) -> None:
        self.max_pages = max_pages
        self.known = known or {}
        """What each peer (by ID) had been granted when last heard of; bounded by what one Grant may list."""
        self.granted = granted
        self.begun = begun
        self.spent = False
        """Nothing is left for anybody: what is pending stays pending, and counts as nothing to do."""
        self.held = 0
        """URLs begun and not finished."""

    @property
    def allowance(self) -> int:
        """URLs that may still be begun."""
        return max(0, self.granted - self.begun)

    @property
    def may_begin(self) -> bool:
        return self.max_pages is None or self.begun < self.granted

    def begin(self) -> bool:
        """Take one fetch from the allowance, if there is one."""
        if not self.may_begin:
            return False
        self.begun += 1
        self.held += 1
        return True

    def end(self, fetched: bool) -> None:
        """What was begun is over; it is given back if it is to be tried again."""
        self.held -= 1
        self.begun -= not fetched

    def learn(self, totals: dict[bytes, int], me: bytes, spent: bool) -> None:
        """Take a grant: our own total, and what others have; nobody is believed to have more than there is."""
        if self.max_pages is None:
            return
        totals = {peer: min(total, self.max_pages) for peer, total in totals.items()}
        self.granted = totals.get(me, self.granted)
        self.spent = spent
        for peer, total in totals.items():
            if peer in self.known or len(self.known) < ROWS_MAX:
                self.known[peer] = total

    def absent(self, rows: Sequence[PeerRow]) -> dict[bytes, int]:
        """Return the totals of those who have been granted something and are not among these rows."""
        self.learn({row.contact.id: row.granted for row in rows}, b"", self.spent)
        present = {row.contact.id for row in rows}
        return {peer: total for peer, total in self.known.items() if peer not in present}

    def give_back(self) -> None:
        """This peer has nothing to fetch for now: leave the rest to others."""
        self.granted = self.begun


def budget_cell(cell_bits: int) -> Cell:
    """Return the cell whose owner shares the budget out."""
    return cell_of(Key(blake2b(b"kadcrawl budget", digest_size=20).digest()), cell_bits)


class Resting:
    """Remembers who gave a grant back although it has URLs: they must wait, and nobody else knows for how long."""

    def __init__(self) -> None:
        self._totals: dict[bytes, int] = {}
        self._until: dict[bytes, float] = {}

    def look(self, rows: Sequence[PeerRow], now: float) -> Collection[bytes]:
        """Return the IDs of the peers to be passed over now, in seconds of any clock."""
        self._until = {peer: until for peer, until in self._until.items() if until > now}
        for row in rows:
            if row.pending and row.granted < self._totals.get(row.contact.id, 0):
                self._until[row.contact.id] = now + REST_S
        self._totals = {row.contact.id: row.granted for row in rows}
        return self._until.keys()

    def grant(self, totals: dict[bytes, int]) -> None:
        """These totals have been sent out."""
        self._totals |= totals


def share(
    max_pages: int, rows: Sequence[PeerRow], resting: Collection[bytes] = (), absent: int = 0
) -> tuple[dict[bytes, int], bool]:
    """Return the new totals of the peers that lack allowance and do not rest, and whether the budget is spent.

    The sum of all totals never exceeds `max_pages`, less the `absent` that peers have which are not among the rows.
    """
    left = max_pages - absent - sum(row.granted for row in rows)
    hungry = [
        row
        for row in rows
        if row.pending > row.allowance + row.in_flight
        and row.allowance < PORTION_MAX // 2
        and row.contact.id not in resting
    ]
    totals = {}
    for row in hungry:
        if left <= 0:
            break
        portion = min(left, PORTION_MAX, max(1, left // (2 * len(hungry))), row.pending - row.allowance)
        totals[row.contact.id] = row.granted + portion
        left -= portion
    unused = sum(row.allowance for row in rows)
    return totals, left <= 0 and unused == 0 and not totals


def listed(totals: Mapping[bytes, int], absent: Mapping[bytes, int]) -> dict[bytes, int]:
    """Return these new totals, and those of the absent as far as one grant has room: some may have been made up."""
    return dict(islice({**totals, **absent}.items(), ROWS_MAX))
