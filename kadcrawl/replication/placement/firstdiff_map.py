"""`CellMap`: the firstdiff map of P1 1.3, the cells of a peer by the distance of their placement keys.

A newcomer takes a placement from this peer if it is nearer to the placement key. With fd = firstdiff(this peer,
newcomer), that holds for every placement in bucket fd and for none in a nearer bucket. In a farther bucket it holds for
the placements that differ from this peer in bit fd. So whole buckets go or stay unread, and the work follows the
placements that move, not those that are stored (P1 1.3.2, Join).

The buckets are split once more, by the next bit in which the key differs from this peer. So of a farther bucket, too,
the part whose next bit is fd goes whole, and the nearer parts stay unread. Without that split every newcomer would cost
a test of the whole bucket, in vain where other peers live on its side of fd.

When this peer leaves, the map of the cells that it owns says which peers follow (P1 1.3.2, Leave). The candidates are
the peers in the nearest k-bucket that has any. From its bit down, the candidates that differ from this peer in a bit
(Right) take the cells that do, and those that agree (Left) take the nearer cells. P1 ends where Left is empty, which
would leave the nearer cells to no peer: here Right takes them as well. Decides only.
"""

from collections import defaultdict
from collections.abc import Sequence
from functools import partial

from kadcrawl.keys import Cell, firstdiff
from kadcrawl.link.wire.messages import Contact
from kadcrawl.replication.placement.look_counts import CountedDict, LookCounts

Placement = tuple[Cell, int]
"""A cell and the role in which it is held."""
Differing = tuple[int, int]
"""The two highest bits of difference between a placement key and our ID, or -1 for none."""


class CellMap:
    """The placements of one peer."""

    def __init__(self, me: int, counts: LookCounts | None = None) -> None:
        """`me`: the peer's ID, a 160-bit number. `counts` may be those of several maps."""
        self._me = me
        self.counts = LookCounts() if counts is None else counts
        """Of the placements read for newcomers and successors so far."""
        self._buckets: defaultdict[Differing, CountedDict[Placement, int]] = defaultdict(
            partial(CountedDict, self.counts)
        )
        self._roles: CountedDict[Cell, tuple[int, Differing]] = CountedDict(self.counts)
        """Cell -> its role here and the bucket of its placement key."""

    def __len__(self) -> int:
        return len(self._roles)

    def cells(self) -> list[Cell]:
        """Return all cells in the map."""
        return list(self._roles)

    def put(self, cell: Cell, role: int, place: int) -> None:
        """Enter a cell held in `role`, whose placement key is `place`. A cell has one role at a time."""
        index = self._differing(place)
        known = self._roles.get(cell)
        if known != (role, index):
            self.drop(cell)
            self._roles[cell] = role, index
        self._buckets[index][cell, role] = place

    def drop(self, cell: Cell) -> None:
        """Remove a cell, if it is in the map."""
        known = self._roles.pop(cell, None)
        if known is not None:
            role, index = known
            del self._buckets[index][cell, role]
            if not self._buckets[index]:
                del self._buckets[index]

    def displaced_by(self, newcomer: int) -> list[Placement]:
        """Return the placements to which `newcomer`, a 160-bit ID, is nearer than we are."""
        index = firstdiff(self._me, newcomer)
        displaced: list[Placement] = []
        if index < 0:
            return displaced  # It is us.
        for (first, second), placements in self._buckets.items():
            if first == index or second == index:
                displaced += placements
            elif second > index:
                displaced += [placement for placement, place in placements.items() if (self._me ^ place) >> index & 1]
        self.counts.found(len(displaced))
        return displaced

    def successors(self, contacts: Sequence[Contact]) -> dict[Contact, list[Cell]]:
        """Return the peers that follow this peer, with the cells of each. `contacts` are the other peers."""
        indices = [firstdiff(self._me, contact.number) for contact in contacts]
        nearest = min((index for index in indices if index >= 0), default=-1)
        if nearest < 0:
            return {}
        left = [contact for contact, index in zip(contacts, indices, strict=True) if index == nearest]
        shares: defaultdict[Contact, list[Cell]] = defaultdict(list)
        bit = nearest
        for first, second in sorted(self._buckets, reverse=True):
            if first >= nearest:  # A nearer peer has not taken the cells yet, or is gone.
                self._match(contacts, (first, second), shares)
                continue
            while bit > first + 1:
                bit -= 1
                left = self._agreeing(left, bit) or left
            agreeing = self._agreeing(left, first) if first >= 0 else left
            right = [contact for contact in left if contact not in agreeing]
            self._match(right or left, (first, second), shares)
        self.counts.found(sum(map(len, shares.values())))
        return shares

    def _agreeing(self, contacts: Sequence[Contact], bit: int) -> list[Contact]:
        """Return those of these peers that agree with this peer in a bit."""
        return [contact for contact in contacts if not (contact.number ^ self._me) >> bit & 1]

    def _match(self, takers: Sequence[Contact], bucket: Differing, shares: defaultdict[Contact, list[Cell]]) -> None:
        """Give the cells of a bucket to the nearest takers: all to one if no other can be nearest, or one by one."""
        first, second = bucket
        if first >= 0:
            # The bits of a key from the second difference up are known, without a look at the key.
            known = self._me ^ 1 << first ^ (1 << second if second >= 0 else 0)
            lowest = max(second, 0)
            distances = [(contact.number ^ known) >> lowest for contact in takers]
            least = min(distances)
            takers = [contact for contact, distance in zip(takers, distances, strict=True) if distance == least]
        if len(takers) == 1:
            shares[takers[0]] += [cell for cell, _ in self._buckets[bucket]]
            return
        for (cell, _), place in self._buckets[bucket].items():
            shares[min(takers, key=lambda contact: contact.number ^ place)].append(cell)

    def _differing(self, place: int) -> Differing:
        first = firstdiff(self._me, place)
        return first, firstdiff(self._me, place ^ 1 << first) if first >= 0 else -1
