"""`CellMap`: the firstdiff map of P1 1.3, the cells of a peer by the distance of their placement keys.

A newcomer takes a placement from this peer if it is nearer to the placement key. With fd = firstdiff(this peer,
newcomer), that holds for every placement in bucket fd and for none in a nearer bucket. In a farther bucket it holds for
the placements that differ from this peer in bit fd. So whole buckets go or stay unread, and the work follows the
placements that move, not those that are stored (P1 1.3.2, Join).

The buckets are split once more, by the next bit in which the key differs from this peer. So of a farther bucket, too,
the part whose next bit is fd goes whole, and the nearer parts stay unread. Without that split every newcomer would cost
a test of the whole bucket, in vain where other peers live on its side of fd. Decides only.
"""

from collections import defaultdict

from kadcrawl.keys import Cell, firstdiff

Placement = tuple[Cell, int]
"""A cell and the role in which it is held."""
Differing = tuple[int, int]
"""The two highest bits of difference between a placement key and our ID, or -1 for none."""


class CellMap:
    """The placements of one peer."""

    def __init__(self, me: int) -> None:
        """`me`: the peer's ID, a 160-bit number."""
        self._me = me
        self._buckets: defaultdict[Differing, dict[Placement, int]] = defaultdict(dict)
        self._roles: dict[Cell, tuple[int, Differing]] = {}
        """Cell -> its role here and the bucket of its placement key."""
        self.examined = 0
        """Placements examined for newcomers so far."""
        self.displaced = 0
        """Examined placements to which the newcomer was nearer."""

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
                self.examined += len(placements)
                displaced += placements
            elif second > index:
                self.examined += len(placements)
                displaced += [placement for placement, place in placements.items() if (self._me ^ place) >> index & 1]
        self.displaced += len(displaced)
        return displaced

    def _differing(self, place: int) -> Differing:
        first = firstdiff(self._me, place)
        return first, firstdiff(self._me, place ^ 1 << first) if first >= 0 else -1
