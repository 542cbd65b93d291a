"""The cells that all peers examine at joins and leaves, and a check that the right cells move (P1 1.3.2).

Only decisions: the `Holdings` of every peer, filled with the places of all cells. One peer after the other comes or
goes, all peers decide, and the result is compared with the holders of every single cell, worked out anew. Three peers
*hold* a cell. A *look* is one placement read by a peer that decides about the cell: its holder, or, for a backup, also
the owner, which watches over the backup. The peers' own containers count the looks (`look_counts`), so no search
through all cells goes uncounted.
"""

import time
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from kadcrawl.keys import ID_BITS, Cell, id_bytes
from kadcrawl.link.wire.messages import BATCH_MAX, Contact
from kadcrawl.replication.placement.holdings import Holdings
from kadcrawl.replication.placement.placement import FIRST_BACKUP, HOLDERS, holders, placement_keys
from kadcrawl.replication.placement.succession import Succession

CELL_BITS = 16


@dataclass(slots=True)
class CellMoves:
    """Some joins, or some leaves, of one swarm."""

    event: str
    peers: int
    records: int
    """Different records in the swarm, each stored by three peers."""
    events: int = 0
    cells_stored: int = 0
    """Placements: three to a cell. This and all the following are sums over the events."""
    cells_moved: int = 0
    """Cells whose holders changed."""
    looks_held: int = 0
    """Placements read by those who hold them, ..."""
    moved_held: int = 0
    """... and of these, those that had to move, or to be told."""
    looks_watched: int = 0
    """Placements of backups read by the owners of the cells, ..."""
    moved_watched: int = 0
    wrong: int = 0
    """Cells that moved though their holders did not change, or the other way round, or that went to another peer."""
    messages: int = 0
    """Messages by which a leaving peer tells the peers that follow, ..."""
    messages_least: int = 0
    """... and the full batches of all cells of each of them, which no fewer messages carry."""
    records_stored: int = 0
    records_moved: int = 0
    """Records that somebody holds who did not before."""
    cpu_s: float = 0.0
    """Of deciding, all peers together."""


def nearest(numbers: Sequence[int], target: int, count: int) -> list[int]:
    """Return the `count` of these sorted IDs nearest to a key, by looking at all that share its first bits."""
    shift = ID_BITS - len(numbers).bit_length()
    while True:
        first = target >> shift
        low, high = bisect_left(numbers, first << shift), bisect_left(numbers, first + 1 << shift)
        if high - low >= count or shift == ID_BITS:
            return sorted(numbers[low:high], key=lambda number: number ^ target)[:count]
        shift += 1


def contact(number: int) -> Contact:
    return Contact(id_bytes(number), "127.0.0.1", 1)


class CellSwarm:
    """The holdings of all peers."""

    def __init__(self, peers: int, records: Mapping[Cell, int], random: Random, cell_bits: int = CELL_BITS) -> None:
        """`records`: how many there are by cell; others are empty and nobody holds them."""
        self._records = records
        self._random = random
        self._bits = cell_bits
        self._places = {cell: placement_keys(cell, cell_bits) for cell in records}
        self._numbers = sorted(random.getrandbits(ID_BITS) for _ in range(peers))
        self._contacts = {number: contact(number) for number in self._numbers}
        self.holdings = {number: Holdings(number, cell_bits) for number in self._numbers}
        self.holders = self.worked_out()
        for cell, chosen in self.holders.items():
            self._settle(cell, chosen)

    def worked_out(self) -> dict[Cell, list[Contact]]:
        """Return the holders of every cell, without regard to former holders."""
        return {
            cell: holders([[self._contacts[one] for one in nearest(self._numbers, place, HOLDERS)] for place in places])
            for cell, places in self._places.items()
        }

    def join(self, moves: CellMoves) -> None:
        """Let a peer come with an ID drawn at random."""
        newcomer = self._random.getrandbits(ID_BITS)
        found: set[Cell] = set()
        before = [_looks(holdings) for holdings in self.holdings.values()]
        began = time.process_time()
        for holdings in self.holdings.values():
            held, watched = holdings.joined(newcomer)
            watched += holdings.short()
            holdings.owned_nearer_to(newcomer)  # The newcomer asks, after it has come.
            found.update(held)
            found.update(watched)
            moves.moved_held += len(held)
            moves.moved_watched += len(watched)
        moves.cpu_s += time.process_time() - began
        self._count(before, moves)
        self._contacts[newcomer] = contact(newcomer)
        self.holdings[newcomer] = Holdings(newcomer, self._bits)
        insort(self._numbers, newcomer)
        self._move(found, moves)

    def leave(self, moves: CellMoves) -> None:
        """Let a peer leave, drawn at random. The peer tells of all cells it holds, and the others look for cells
        shared with it."""
        leaver = self._random.choice(self._numbers)
        self._numbers.remove(leaver)
        before = [_looks(holdings) for holdings in self.holdings.values()]
        began = time.process_time()
        leaving, found = self.holdings[leaver], set[Cell]()
        shares = leaving.departing([self._contacts[number] for number in self._numbers])
        succession = Succession(leaving.looks)
        for successor, cells in shares:
            succession.begin(successor, cells)
            found.update(cells)
            moves.moved_held += len(cells)
        while succession:
            succession.next_batches(BATCH_MAX)
        for number in self._numbers:
            unsafe, orphans = self.holdings[number].lost(id_bytes(leaver))
            found.update(unsafe)
            found.update(orphans)
            moves.moved_held += len(orphans)
            moves.moved_watched += len(unsafe)
        moves.cpu_s += time.process_time() - began
        self._count(before, moves)
        moves.messages += leaving.looks.messages
        told: Counter[Contact] = Counter()
        for successor, cells in shares:
            told[successor] += len(cells)
        moves.messages_least += sum(-(-count // BATCH_MAX) for count in told.values())
        del self.holdings[leaver]
        self._move(found, moves, {cell: successor for successor, cells in shares for cell in cells})

    def _count(self, before: Sequence[tuple[int, int]], moves: CellMoves) -> None:
        """Add the looks of all peers since they were `before`."""
        for (held_before, watched_before), (held_after, watched_after) in zip(
            before, map(_looks, self.holdings.values()), strict=True
        ):
            moves.looks_held += held_after - held_before
            moves.looks_watched += watched_after - watched_before

    def _move(self, found: set[Cell], moves: CellMoves, told: Mapping[Cell, Contact] | None = None) -> None:
        """Compare the cells found to move with those whose holders changed, and move these.

        `told` are the peers that a leaving peer takes for the owners of its cells from now on.
        """
        holders_now = self.worked_out()
        changed = [cell for cell, chosen in holders_now.items() if chosen != self.holders[cell]]
        moves.events += 1
        moves.wrong += len(found.symmetric_difference(changed))
        moves.wrong += sum(holders_now[cell][0] != successor for cell, successor in (told or {}).items())
        moves.cells_stored += sum(map(len, self.holders.values()))
        moves.cells_moved += len(changed)
        moves.records_stored += sum(len(chosen) * self._records[cell] for cell, chosen in self.holders.items())
        for cell in changed:
            before, after = self.holders[cell], holders_now[cell]
            moves.records_moved += self._records[cell] * sum(one not in before for one in after)
            for one in before:
                if one.number in self.holdings:
                    self.holdings[one.number].let_go(cell)
            self._settle(cell, after)
        self.holders = holders_now

    def _settle(self, cell: Cell, chosen: Sequence[Contact]) -> None:
        """Let the holders of a cell know it, as its sync does."""
        owner, *backups = chosen
        self.holdings[owner.number].own(cell, 0.0)
        self.holdings[owner.number].back_up_at(cell, backups)
        for role, backup in enumerate(backups, FIRST_BACKUP):
            self.holdings[backup.number].back_up_for(cell, owner, role, 0.0)


def _looks(holdings: Holdings) -> tuple[int, int]:
    """Return how many placements a peer has looked at so far: of cells it holds, of its cells' backups."""
    return holdings.looks.examined, holdings.watch_looks.examined


def cell_moves(
    peers: int, records: Mapping[Cell, int], events: int, random: Random, cell_bits: int = CELL_BITS
) -> list[CellMoves]:
    """Let `events` peers come to a swarm of this size and as many go. Return both sums."""
    swarm = CellSwarm(peers, records, random, cell_bits)
    total = sum(records.values())
    joins, leaves = CellMoves("join", peers, total), CellMoves("leave", peers, total)
    for _ in range(events):
        swarm.join(joins)
        swarm.leave(leaves)
    return [joins, leaves]
