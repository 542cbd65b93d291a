"""`Holdings`: the cells that this peer owns or backs up, and the changes that a coming or lost peer makes.

A cell with records in the store is *owned* here, *backed* up here for its owner, or a stray, whose owner must be
notified (holder_side.py). Only an owned cell that is `open` may be crawled. The holdings end with the process: after a
restart every cell is a stray, and its owner, which may be this peer, catches up first. Decides only.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from kadcrawl.errors import KadcrawlError
from kadcrawl.keys import Cell, anchor
from kadcrawl.link.wire.messages import Contact
from kadcrawl.replication.placement.firstdiff_map import CellMap
from kadcrawl.replication.placement.look_counts import CountedDict, LookCounts
from kadcrawl.replication.placement.placement import FIRST_BACKUP, HOLDERS, OWNER, holders, nearer, placement_keys


class NoRoleError(KadcrawlError):
    """A peer is told to hold a cell in a role that the job does not have."""


@dataclass(slots=True)
class Owned:
    """A cell this peer owns."""

    since: float = 0.0
    """Second of the loop at which this peer became the owner."""
    open: bool = False
    """True if the cell may be crawled and accepts links: it has caught up with all former holders."""
    closing: bool = False
    """True if the cell was open until a nearer peer asked for it. Its last requests may be in flight."""
    whole: bool = False
    """True if the backups have all records, except for changes on their way."""
    backups: tuple[Contact, ...] = ()
    """The peers to which every change of the cell is sent."""

    def set_open(self) -> None:
        """Let the cell be crawled."""
        self.open, self.closing = True, False

    def set_closed(self) -> None:
        """Stop the crawling of the cell here, as another peer still crawls it."""
        self.open = False

    def set_closing(self) -> None:
        """Stop the crawling of the cell here for a nearer peer, and let its requests end."""
        self.open, self.closing = False, True

    def set_whole(self, whole: bool) -> None:
        """Note whether the backups have all of the cell."""
        self.whole = whole


@dataclass(slots=True)
class Backed:
    """A cell this peer keeps a copy of."""

    owner: Contact
    heard_at: float
    """Second at which the owner last spoke of the cell."""
    role: int | None = None
    """The role of this peer. None if it has no role as far as it knows, and the owner has not said to keep the cell."""


class Holdings:
    """The cells of one peer."""

    def __init__(self, me: int, cell_bits: int, copies: int = HOLDERS) -> None:
        """`me`: the peer's ID, a 160-bit number. `copies`: the holders of each cell, its owner among them."""
        self.copies = copies
        self._me = me
        self.looks = LookCounts()
        """Of the cells that this peer holds."""
        self.watch_looks = LookCounts()
        """Of the backups of its cells, which other peers hold."""
        self.owned: CountedDict[Cell, Owned] = CountedDict(self.looks)
        self.backed: CountedDict[Cell, Backed] = CountedDict(self.looks)
        self._owned_map = CellMap(me, self.looks)
        self._backed_map = CellMap(me, self.looks)
        self._cell_bits = cell_bits
        self._kept_by: dict[bytes, CellMap] = {}
        """Peer -> cells owned here that it backs up."""
        self._kept_for: defaultdict[bytes, CountedDict[Cell, None]] = defaultdict(partial(CountedDict, self.looks))
        """Peer -> its cells backed up here."""
        self._heard_at: dict[bytes, float] = {}
        """Peer -> second at which it last spoke of a cell that is backed up here for it."""
        self._short: dict[Cell, None] = {}
        """Cells owned here that have too few backups."""

    def places(self, cell: Cell) -> tuple[int, ...]:
        """Return the placement keys of a cell, one for each of its holders, by role."""
        return placement_keys(cell, self._cell_bits, self.copies)

    def check_role(self, role: int) -> None:
        """Raise NoRoleError if no cell of this crawl has a holder in this role."""
        if role >= self.copies:
            raise NoRoleError(f"a cell has {self.copies} holders in this crawl, and none has the role {role}")

    def chosen(self, cell: Cell, owner: Contact, nearest: Callable[[int, int], Sequence[Contact]]) -> list[Contact]:
        """Return the holders of a cell under this owner. `nearest` returns so many peers, the nearest to a key."""
        return holders([[owner], *(nearest(place, self.copies) for place in self.places(cell)[FIRST_BACKUP:])])

    def own_role(self, cell: Cell, owner: Contact, nearest: Callable[[int, int], Sequence[Contact]]) -> int | None:
        """Return the role that this peer has as a backup under this owner, as `chosen`, or None if it has none."""
        backups = self.chosen(cell, owner, nearest)[FIRST_BACKUP:]
        return next((role for role, one in enumerate(backups, FIRST_BACKUP) if one.number == self._me), None)

    def has_role(self, cell: Cell, owner: Contact) -> bool:
        """Return whether this peer knows its role in a cell that it backs up for this owner."""
        backed = self.backed.get(cell)
        return backed is not None and backed.owner == owner and backed.role is not None

    def is_open(self, cell: Cell) -> bool:
        """Return whether the cell may be crawled here."""
        owned = self.owned.get(cell)
        return owned is not None and owned.open

    def own(self, cell: Cell, now: float) -> Owned:
        """Return the cell as owned here. A newly owned cell is closed until it has caught up."""
        if cell not in self.owned:
            self.let_go(cell)
            self.owned[cell] = Owned(now)
            self._short[cell] = None
            self._owned_map.put(cell, OWNER, self.places(cell)[OWNER])
        return self.owned[cell]

    def back_up_at(self, cell: Cell, backups: Sequence[Contact]) -> None:
        """Send every change of a cell owned here to these peers from now on."""
        owned = self.owned[cell]
        self._forget_backups(cell, owned)
        owned.backups = tuple(backups)
        places = self.places(cell)
        for role, contact in enumerate(backups, FIRST_BACKUP):
            kept = self._kept_by.setdefault(contact.id, CellMap(contact.number, self.watch_looks))
            kept.put(cell, role, places[role])
        if len(backups) < self.copies - 1:
            self._short[cell] = None
        else:
            self._short.pop(cell, None)

    def back_up_for(self, cell: Cell, owner: Contact, role: int | None, now: float) -> None:
        """Keep a copy of the cell for `owner`, in this role if it is known."""
        backed = self.backed.get(cell)
        if backed is None or backed.owner != owner:
            if cell in self.owned or backed is not None:
                self.let_go(cell)
            self.backed[cell] = Backed(owner, now)
            self._kept_for[owner.id][cell] = None
        else:
            backed.heard_at = now
        self._heard_at[owner.id] = now
        if role is not None:
            self.backed[cell].role = role
            self._backed_map.put(cell, role, self.places(cell)[role])

    def let_go(self, cell: Cell) -> None:
        """Neither own nor back up the cell any more."""
        self._backed_map.drop(cell)
        owned = self.owned.pop(cell, None)
        if owned is not None:
            self._owned_map.drop(cell)
            self._short.pop(cell, None)
            self._forget_backups(cell, owned)
        backed = self.backed.pop(cell, None)
        if backed is not None:
            kept_for = self._kept_for[backed.owner.id]
            del kept_for[cell]
            if not kept_for:
                del self._kept_for[backed.owner.id]
                self._heard_at.pop(backed.owner.id, None)

    def owner_nearer_than(self, cell: Cell, other: Contact) -> Contact | None:
        """Return the owner for which a copy is kept, if it is nearer to the cell than another peer."""
        backed = self.backed.get(cell)
        return (
            backed.owner if backed is not None and nearer(backed.owner, other, anchor(cell, self._cell_bits)) else None
        )

    def others(self, cell: Cell) -> list[Contact]:
        """Return the other known holders of the cell."""
        owned, backed = self.owned.get(cell), self.backed.get(cell)
        return [*(owned.backups if owned is not None else ()), *([backed.owner] if backed is not None else ())]

    def joined(self, newcomer: int) -> tuple[list[Cell], list[Cell]]:
        """Return the cells that a newcomer takes over from this peer, and from backups of this peer's cells."""
        backups = [one.displaced_by(newcomer) for one in self._kept_by.values()]
        return (
            [cell for one in (self._owned_map, self._backed_map) for cell, _ in one.displaced_by(newcomer)],
            [cell for displaced in backups for cell, _ in displaced],
        )

    def owned_nearer_to(self, newcomer: int) -> list[Cell]:
        """Return the cells owned here to which the newcomer with this ID is nearer."""
        return [cell for cell, _ in self._owned_map.displaced_by(newcomer)]

    def departing(self, contacts: Sequence[Contact]) -> list[tuple[Contact, list[Cell]]]:
        """Return the peers to tell when this peer leaves, with the cells of each: successors, and known owners.

        `contacts` are the other peers.
        """
        shares = list(self._owned_map.successors(contacts).items())
        for kept_for in self._kept_for.values():
            cells = list(kept_for)
            self.looks.found(len(cells))
            shares.append((self.backed[cells[0]].owner, cells))
        return shares

    def short(self) -> list[Cell]:
        """Return the cells owned here that have too few backups, for lack of peers."""
        return list(self._short)

    def copies_missing(self, others: int) -> int:
        """Return how many copies of cells owned here are missing or incomplete, with so many other peers to keep them.

        A cell without enough peers for all its copies lacks none that a peer could keep.
        """
        wanted = min(self.copies - 1, others)
        return sum(max(0, wanted - len(owned.backups)) if owned.whole else wanted for owned in self.owned.values())

    def shared(self, peer: bytes) -> tuple[list[Cell], list[Cell]]:
        """Return the cells owned here that a peer, by ID, backs up, and its cells that are backed up here."""
        kept = self._kept_by.get(peer)
        return kept.cells() if kept is not None else [], list(self._kept_for.get(peer, ()))

    def lost(self, peer: bytes) -> tuple[list[Cell], list[Cell]]:
        """Return the owned cells that lose a backup with a peer, and the orphans, whose owner it was.

        The orphans are let go.
        """
        unsafe, orphans = self.shared(peer)
        self.watch_looks.found(len(unsafe))
        self.looks.found(len(orphans))
        for cell in unsafe:
            owned = self.owned[cell]
            owned.whole = False
            self.back_up_at(cell, [contact for contact in owned.backups if contact.id != peer])
        for cell in orphans:
            self.let_go(cell)
        return unsafe, orphans

    def silent(self, since: float, owner_since: float) -> list[Cell]:
        """Return the cells backed up here whose owner has been silent about them since the first of two seconds.

        The cells of an owner that has been silent about all of them since the second are among them.
        """
        silent = {owner for owner, heard_at in self._heard_at.items() if heard_at < owner_since}
        found = self.backed.items()
        return [cell for cell, backed in found if backed.heard_at < since or backed.owner.id in silent]

    def words_for_others(self, cells: Iterable[Cell]) -> list[Cell]:
        """Return some cells owned here, so that each backup has one among these and the given cells."""
        told = {contact.id for cell in cells if cell in self.owned for contact in self.owned[cell].backups}
        found = []
        for cell, owned in self.owned.items():
            if owned.open and owned.whole and any(contact.id not in told for contact in owned.backups):
                found.append(cell)
                told |= {contact.id for contact in owned.backups}
        return found

    def strays(self, cells: Iterable[Cell]) -> list[Cell]:
        """Return those of these cells that are neither owned nor backed up here."""
        return [cell for cell in cells if cell not in self.owned and cell not in self.backed]

    def _forget_backups(self, cell: Cell, owned: Owned) -> None:
        for contact in owned.backups:
            self._kept_by[contact.id].drop(cell)
            if not self._kept_by[contact.id]:
                del self._kept_by[contact.id]
