"""`HolderSide` notifies the owners of the cells that this peer holds, and answers them.

A peer that holds records of a cell, and whose owner has not told it to keep them, sends `CellsHeld` to that owner,
again and again until it is told. So no state of the swarm, however it came about, leaves a record unknown to its
cell's owner for long. Asked by the cell's new owner, a peer that was crawling the cell stops, lets its requests end,
and passes its sites' clocks on. It drops a cell only when the owner says so, and only records that the owner has seen.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from math import inf

from kadcrawl.errors import KadcrawlError, RemoteError, StorageError
from kadcrawl.keys import Cell, anchor, check_cell
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import (
    BATCH_MAX,
    CONTACTS_MAX,
    AssignReplica,
    CellsAccepted,
    CellsHeld,
    CellState,
    Contact,
    ReplicaAssigned,
    TakeOver,
    TakeOverAnswer,
)
from kadcrawl.replication.crawl_port import Crawl
from kadcrawl.replication.events import ReplicationEvents
from kadcrawl.replication.overlay_port import HolderOverlay
from kadcrawl.replication.placement.holdings import Holdings
from kadcrawl.replication.placement.placement import OWNER, nearer
from kadcrawl.replication.placement.succession import TAKERS_MAX, Succession
from kadcrawl.replication.providers import Providers
from kadcrawl.replication.replicator import held_of
from kadcrawl.replication.timer_queue import TimerQueue
from kadcrawl.store.store import Store
from kadcrawl.system.event import Event

CELLS_HELD_DEADLINE_S = 5.0
CELLS_HELD_RETRY_S = 0.5
"""Wait after a `CellsHeld` without answer."""
NOTIFY_S = 0.25
"""Wait of a notification for others, so that one message carries many cells."""
NOTIFY_AGAIN_S = 5.0
"""Wait for the owner's decision before it is notified again."""
NOTIFY_MISPLACED_S = 0.5
"""First wait before a backup that is not the nearest tells the owner: the owner may be about to notice."""
MISPLACED_MAX_S = 64.0
"""Longest such wait. The wait doubles, as owner and backup may know different peers for long."""
CLOCKS_PER_ANSWER_MAX = 2_000
"""Sites whose clocks one answer carries. If a cell has more sites, its new owner waits a full delay for each."""
BACKUP_CLOCKS_MAX = 64
"""Most sites of a cell whose clocks a backup tells, as one question may be about many cells."""
FORGET_COUNT = 2_000
"""Records deleted before other work gets its turn."""

log = logging.getLogger(__name__)


class NoOwnerError(KadcrawlError):
    """A message comes from a peer that cannot be the owner it claims to be."""


class HolderSide:
    """The holder's side of one peer."""

    def __init__(
        self,
        overlay: HolderOverlay,
        client: LinkClient,
        store: Store,
        holdings: Holdings,
        crawl: Crawl,
        cell_bits: int,
        events: ReplicationEvents,
    ) -> None:
        self._overlay = overlay
        self._client = client
        self._store = store
        self._holdings = holdings
        self._crawl = crawl
        self._bits = cell_bits
        self._events = events
        self.leaving = False
        """True if this peer owns no cell any more, and only hands cells over."""
        self.providers = Providers()
        self._succession = Succession(holdings.looks)
        self._timers = TimerQueue()
        """Cells whose owners are to be notified."""
        self._unnotified_changes: dict[Cell, None] = {}
        """Cells with records here that their owners may not know, even if the owners speak of the cells meanwhile."""
        self._misplaced: dict[Cell, tuple[float, float]] = {}
        """Cells kept for an owner that should have a nearer backup -> last wait, second of the next notice."""
        self._former: dict[Cell, list[Contact]] = {}
        """Cells given away -> the former holders. The new owner may die before it has told them anything."""
        self._closing: dict[Cell, None] = {}
        """Cells that are being released, for a peer that may be gone before the release ends."""
        self._forgetting: dict[Cell, None] = {}
        """Dropped cells whose records are being deleted."""
        self._stirred = Event()
        """Set when a cell may be due for a notification or for deletion."""

    @property
    def unnotified(self) -> int:
        """Cells whose owner is not notified yet, or has not decided about them."""
        return len(self._timers)

    def notify_owner(self, cell: Cell) -> None:
        """Notify the owner of the cell soon, and delete none of its records before."""
        self._schedule(cell, self._now())
        self._unnotified_changes[cell] = None
        self._forgetting.pop(cell, None)

    def displaced(self, cell: Cell) -> None:
        """Notify the owner of a cell that a newcomer is to hold in our place. The owner may hear of it far later."""
        if cell in self._holdings.backed:
            self._misplaced.setdefault(cell, (NOTIFY_MISPLACED_S / 2, self._now()))
        self.notify_owner(cell)

    def lost(self) -> None:
        """Notify the owners of all cells being released, as a lost peer may be followed by another owner."""
        for cell in list(self._closing):
            owned = self._holdings.owned.get(cell)
            if owned is not None and owned.closing:
                self._schedule(cell, self._now())
            else:
                del self._closing[cell]

    def notify_of_strays(self) -> None:
        """Notify the owner of every stray cell, unless that is due anyway."""
        for cell in self._holdings.strays(self._store.cells):
            self._timers.put_if_new(cell, self._now())
        self._stirred.set()

    def notify_silent_owners(self, since: float, owner_since: float) -> None:
        """Notify every owner that was silent about its cell, or about all its cells, since these seconds."""
        for cell in self._holdings.silent(since, owner_since):
            if cell in self._store.cells:
                self._timers.put_if_new(cell, self._now())
                self._stirred.set()

    def owner_notified(self, cell: Cell) -> None:
        """Cancel the notification of a cell's owner."""
        self._former.pop(cell, None)
        self._misplaced.pop(cell, None)
        self._timers.drop(cell)
        self._unnotified_changes.pop(cell, None)

    async def run(self) -> None:
        """Notify owners and delete dropped cells. Return never."""
        while True:
            more = False
            try:
                more = await self._notify_due() == BATCH_MAX
                await self._forget()
            except StorageError:
                raise
            except Exception:  # A bug must not cost more than this try in a crawl of months.
                log.exception("notify.bug")
            await asyncio.sleep(0 if more else NOTIFY_S)
            await self._something()

    def begin_leaving(self) -> None:
        """Own no cell from now on, and hand all cells over."""
        self.leaving = True

    def hand_over(self) -> None:
        """Begin to tell the peers that follow of all cells. Call after the goodbye, while the cells are still held."""
        for successor, cells in self._holdings.departing(self._overlay.contacts()):
            self._succession.begin(successor, [cell for cell in cells if cell in self._store.cells])

    async def handed_over(self) -> None:
        """Return when other peers hold all cells. Call after `hand_over`."""
        while self._store.cells and self._overlay.contacts():  # noqa: ASYNC110 -- what is left changes in many places
            await asyncio.sleep(NOTIFY_S)

    # --- answering -----------------------------------------------------------------------------------------------

    def answer(self, question: TakeOver) -> TakeOverAnswer:
        """Stop crawling cells that another peer claims to own, and return the holdings. Raises NoOwnerError."""
        if not self._overlay.is_live(question.owner.id):
            self._overlay.suspect(question.owner)
        for cell in question.cells:
            check_cell(cell, self._bits)
        if question.owner.id == self._overlay.me.id:
            raise NoOwnerError("a peer does not take cells over from itself")
        if len(set(question.cells)) < len(question.cells):
            raise NoOwnerError("a cell is asked for twice")
        answers: list[CellState] = []
        room = CLOCKS_PER_ANSWER_MAX
        for cell in question.cells:
            answers.append(self._answer(question.owner, Cell(cell), room))
            room -= len(answers[-1].sites)
        return TakeOverAnswer(answers)

    def _answer(self, new_owner: Contact, cell: Cell, room: int) -> CellState:
        """Answer about one cell, with up to `room` clocks."""
        here = anchor(cell, self._bits)
        held = held_of(self._store, cell)
        if (rival := self.rival(new_owner, here)) is not None:
            return CellState(held, rival, [], releasing=False, released=False, sites=[])
        for listener in self._events.cell_taken_over:
            listener(cell, new_owner)
        # Also holders that the overlay does not know yet; a lost peer is not among the holders any more.
        former = list(dict.fromkeys([*self._holdings.others(cell), *self._former.get(cell, ())]))[:CONTACTS_MAX]
        others = self.providers.named(cell, former, CONTACTS_MAX, self._now())
        owned = self._holdings.owned.get(cell)
        if cell in self._forgetting:  # The records must stay until this owner has decided.
            del self._forgetting[cell]
            self._schedule(cell, self._now() + NOTIFY_AGAIN_S)
        if owned is None:
            self._crawl.close(cell)
            if self._crawl.is_busy(cell):  # Given up while this peer was away, with requests under way.
                return CellState(held, None, others, releasing=True, released=False, sites=[])
            # Backups know the clocks too, and a leaving peer knows them best. A former owner tells its own requests,
            # even if it opened the cell on a full delay: the present owner may not have heard of them.
            was_crawled = self._crawl.was_crawled_lately(cell)
            sites = self._crawl.known_clocks(cell, min(room, BATCH_MAX if was_crawled else BACKUP_CLOCKS_MAX))
            return CellState(
                held,
                None,
                others,
                releasing=False,
                released=False,
                sites=self._crawl.told_clocks(cell, min(room, BATCH_MAX)) if sites is None else sites,
                in_progress=self._crawl.in_hand(cell)[:BATCH_MAX],
                clocks_incomplete=was_crawled and sites is None,
            )
        if owned.open:
            owned.set_closing()
            self._closing[cell] = None
            log.debug("cell.closing cell=%d for=%s", cell, new_owner)
            self._crawl.close(cell)
        self._schedule(cell, self._now() + NOTIFY_AGAIN_S)
        if self._crawl.is_busy(cell):
            return CellState(held, None, others, releasing=True, released=False, sites=[])
        clocks = self._crawl.clocks(cell, min(room, BATCH_MAX))
        # The next claimant must hear of this one, where the cell may be open by then.
        self._holdings.back_up_for(cell, new_owner, None, self._now())
        self._former[cell] = former
        released, clocks_incomplete = owned.closing and clocks is not None, owned.closing and clocks is None
        log.debug("cell.released cell=%d to=%s", cell, new_owner)
        return CellState(
            held,
            None,
            others,
            releasing=False,
            released=released,
            sites=self._crawl.told_clocks(cell, min(room, BATCH_MAX)) if clocks is None else clocks,
            in_progress=self._crawl.in_hand(cell)[:BATCH_MAX],
            clocks_incomplete=clocks_incomplete,
        )

    def assign_replica(self, message: AssignReplica) -> ReplicaAssigned:
        """Keep or drop cells as their owner says. Return the cells that differ here. Raises NoOwnerError."""
        for held in message.cells:
            check_cell(held.cell, self._bits)
        if message.owner.id == self._overlay.me.id:
            raise NoOwnerError("a peer does not say to itself what to keep")
        self._holdings.check_role(message.role)
        unlike = []
        for held in message.cells:
            cell = Cell(held.cell)
            target = anchor(cell, self._bits)
            ours = held_of(self._store, cell)
            ours_to_own = nearer(self._overlay.me, message.owner, target) and not self.leaving
            if (cell in self._holdings.owned and ours_to_own) or (
                message.role and self._has_better(cell, message.owner)
            ):
                unlike.append(ours)  # Refused: this peer or a nearer peer owns the cell.
            elif message.role != OWNER:
                self._former.pop(cell, None)
                before = self._holdings.backed.get(cell)
                known = before is not None and (before.owner, before.role) == (message.owner, message.role)
                self._keep(cell, message.owner, message.role)
                # `displaced` notices every peer that comes after this peer knows its role.
                if not known or cell in self._misplaced:
                    self._see_place(cell, message.owner, message.role)
                if ours != held:
                    unlike.append(ours)
            elif self._holdings.is_open(cell) or self.rival(message.owner, target) is not None:
                unlike.append(ours)  # An old message, taken back meanwhile; or a nearer peer decides.
            elif ours.keys == 0 or ours == held:
                self._holdings.let_go(cell)
                self.owner_notified(cell)
                if ours.keys:
                    log.debug("cell.dropped cell=%d for=%s", cell, message.owner)
                    self._forgetting[cell] = None
                    self._stirred.set()
            else:
                unlike.append(ours)
        return ReplicaAssigned(unlike)

    def rival(self, owner: Contact, target: int) -> Contact | None:
        """Return the known peer that is nearer to a key than the peer that claims to own it, if any."""
        passed_over = {owner.id, self._overlay.me.id if self.leaving else b""}
        known = self._overlay.nearest_known(target, 2)
        rival = next((contact for contact in known if contact.id not in passed_over), None)
        if rival is None or not nearer(rival, owner, target):
            return None
        if rival.id != self._overlay.me.id:
            self._overlay.suspect(rival)
        return rival

    def _see_place(self, cell: Cell, owner: Contact, role: int) -> None:
        """Notify the owner, ever more seldom, if this peer knows a nearer backup for the cell."""
        if self._holdings.own_role(cell, owner, self._overlay.nearest_known) == role:
            self._misplaced.pop(cell, None)
            self._known(cell)
            return
        now = self._now()
        wait_s, at = self._misplaced.get(cell, (NOTIFY_MISPLACED_S / 2, now))
        if at <= now:
            wait_s = min(2 * wait_s, MISPLACED_MAX_S)
            at = now + wait_s
            self._misplaced[cell] = wait_s, at
        self._timers.put_if_new(cell, at)
        self._stirred.set()

    def backed(self, cells: Iterable[Cell], owner: Contact) -> None:
        """Keep the copies that `owner` sent, unless a nearer owner is known."""
        for cell in cells:
            if cell in self._holdings.owned:
                continue
            target = anchor(cell, self._bits)
            if self._has_better(cell, owner) or not nearer(owner, self._overlay.me, target):
                self._forgetting.pop(cell, None)
                self._timers.put_if_new(cell, self._now())
                self._stirred.set()
            else:
                # The notice follows the changes, in an overloaded swarm much later. No owner need be asked for it.
                known = self._holdings.has_role(cell, owner)
                role = None if known else self._holdings.own_role(cell, owner, self._overlay.nearest_known)
                self._keep(cell, owner, role)

    def _has_better(self, cell: Cell, owner: Contact) -> bool:
        better = self._holdings.owner_nearer_than(cell, owner)
        return better is not None and self._overlay.is_live(better.id)

    def _keep(self, cell: Cell, owner: Contact, role: int | None) -> None:
        if cell in self._holdings.owned:
            self._crawl.close(cell)
            log.debug("cell.lost cell=%d to=%s", cell, owner)
        self._holdings.back_up_for(cell, owner, role, self._now())
        self._forgetting.pop(cell, None)
        if self._holdings.backed[cell].role is None:
            # The owner may have lost the cell in the middle of a sync: the next owner does not know this copy.
            self._timers.put_if_new(cell, self._now() + NOTIFY_AGAIN_S)
            self._stirred.set()
        else:
            self._known(cell)

    def _known(self, cell: Cell) -> None:
        """Cancel the notification of an owner that has spoken of its cell, unless it lacks news."""
        if not (self.leaving or cell in self._unnotified_changes or cell in self._misplaced):
            self._timers.drop(cell)

    # --- inside --------------------------------------------------------------------------------------------------

    def _schedule(self, cell: Cell, at: float) -> None:
        self._timers.put(cell, at)
        self._stirred.set()

    async def _something(self) -> None:
        """Return when a cell is due for a notification or for deletion."""
        while not self._forgetting and (next_at := self._timers.next_at) > self._now():
            self._stirred.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(next_at if next_at < inf else None):
                    await self._stirred.wait()

    async def _notify_due(self) -> int:
        """Notify the owners of the next due cells, sync those owned here, and return their count."""
        if self._succession:
            batches = self._succession.next_batches(BATCH_MAX)
            await asyncio.gather(*(self._send_cells_held(successor, cells) for successor, cells in batches))
            return BATCH_MAX
        now = self._now()
        due = self._timers.due(now, BATCH_MAX)
        owners = await asyncio.gather(*map(self._owner, due))
        by_owner: defaultdict[Contact, list[Cell]] = defaultdict(list)
        for cell, owner in zip(due, owners, strict=True):
            nothing = cell not in self._store.cells and cell not in self._holdings.owned
            if nothing and not (cell in self._misplaced and cell in self._holdings.backed):
                self.owner_notified(cell)
            elif owner is None:
                self._timers.put(cell, now + NOTIFY_AGAIN_S)  # No peer is there.
            elif owner.id == self._overlay.me.id:
                self._timers.drop(cell)
                for listener in self._events.cell_due:
                    listener(cell)
            else:
                by_owner[owner].append(cell)
        await asyncio.gather(*(self._send_cells_held(owner, cells) for owner, cells in by_owner.items()))
        return len(due)

    async def _owner(self, cell: Cell) -> Contact | None:
        """Return the peer nearest to a cell. For a leaving peer, the nearest other peer that accepts cells."""
        target = anchor(cell, self._bits)
        if not self.leaving:
            return (await self._overlay.nearest(target, 1))[0]
        nearest = await self._overlay.nearest(target, TAKERS_MAX + 1)
        return self._succession.willing([contact for contact in nearest if contact.id != self._overlay.me.id])

    async def _send_cells_held(self, owner: Contact, cells: list[Cell]) -> None:
        held = [held_of(self._store, cell) for cell in cells]
        sent_at = self._now()
        for cell in cells:
            self._timers.put(cell, sent_at)
        try:
            answer = await self._client.ask(
                owner, CellsHeld(self._overlay.me, held), CellsAccepted, CELLS_HELD_DEADLINE_S
            )
            accepted = set(answer.cells)
        except RemoteError as error:
            log.info("sync.owner_not_notified owner=%s why=%s", owner, error.why)
            self._overlay.suspect(owner)
            accepted = set()
        if self.leaving and not accepted:
            self._succession.refused(owner.id)
        for cell in cells:
            if self._timers.get(cell) != sent_at:
                continue  # The cell has changed since, or its owner has spoken.
            if cell in accepted:
                self._unnotified_changes.pop(cell, None)
            if cell in accepted and cell in self._holdings.backed:
                self._timers.drop(cell)  # The owner knows, and will decide.
            else:
                self._timers.put(cell, self._now() + (NOTIFY_AGAIN_S if cell in accepted else CELLS_HELD_RETRY_S))

    async def _forget(self) -> None:
        """Delete the records of dropped cells, a little at a time."""
        for cell in list(self._forgetting):
            if cell not in self._forgetting:
                continue  # Removed during the deletion of another cell.
            if cell in self._holdings.owned or cell in self._holdings.backed:
                del self._forgetting[cell]
            elif not self._store.forget_cell(cell, FORGET_COUNT):
                del self._forgetting[cell]
                self._timers.drop(cell)
                for listener in self._events.records_forgotten:
                    listener()
            await asyncio.sleep(0)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
