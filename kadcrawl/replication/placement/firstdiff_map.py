"""The firstdiff map of P1 1.3: the cells a peer holds, by how far their placement keys are from its ID.

A newcomer takes a placement from us when it is nearer to the placement key. With fd = firstdiff(us, newcomer), it is so
for every placement in bucket fd, for none in a nearer one, and in a farther one for those that differ from us in bit
fd. So whole buckets go or stay unread, and the work follows what moves, not what is stored (P1 1.3.2, Join).

Buckets are split once more, by the next bit in which the key differs from us: of a farther bucket, too, the part whose
next bit is fd goes whole and the nearer parts stay unread. Else all of it would be tested for every newcomer, in vain
where others live already on its side of fd. Pure.
"""

from collections import defaultdict

from kadcrawl.keys import Cell, firstdiff

Placement = tuple[Cell, int]
"""A cell and the role in which it is held."""
Differing = tuple[int, int]
"""The two highest bits in which a placement key differs from our ID; -1 for none."""


class CellMap:
    """The placements of one peer."""

    def __init__(self, me: int) -> None:
        """`me`: the peer's ID, a 160-bit number."""
        self._me = me
        self._buckets: defaultdict[Differing, dict[Placement, int]] = defaultdict(dict)
        self._roles: dict[Cell, tuple[int, Differing]] = {}
        """Cell -> its role here and the bucket of its placement key."""
        self.examined = 0
        """Placements looked at for newcomers so far, ..."""
        self.displaced = 0
        """... and of these, those they were nearer to."""

    def __len__(self) -> int:
        return len(self._roles)

    def cells(self) -> list[Cell]:
        """Return all cells in the map."""
        return list(self._roles)

    def put(self, cell: Cell, role: int, place: int) -> None:
        """Enter a cell held in `role`, whose placement key is `place`; a cell has one role at a time."""
        index = self._differing(place)
        known = self._roles.get(cell)
        if known != (role, index):
            self.drop(cell)
            self._roles[cell] = role, index
        self._buckets[index][cell, role] = place

    def drop(self, cell: Cell) -> None:
        """Take a cell out, if it is there."""
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
