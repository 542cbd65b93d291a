"""The side of whoever holds something of a cell: remind its owner, answer its questions, keep or drop as it says.

A peer that holds records of a cell, and has not been told by the cell's owner to keep them, tells that owner so
(`CellsHeld`), again and again until it is told. So no state of the swarm, however it came about, leaves a record
unknown to its cell's owner for long. Asked by whoever owns a cell now, a peer that was crawling it stops, lets its
requests end, and passes its sites' clocks on. It drops a cell only when the owner says so, and only what the owner
has seen.
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
from kadcrawl.replication.placement.placement import HOLDERS, OWNER, holders, nearer, placement_keys
from kadcrawl.replication.replicator import held_of
from kadcrawl.replication.timer_queue import TimerQueue
from kadcrawl.store.store import Store

CELLS_HELD_DEADLINE_S = 5.0
CELLS_HELD_RETRY_S = 0.5
NOTIFY_S = 0.25
"""How long what is to be told waits for more, so that it travels together."""
NOTIFY_AGAIN_S = 5.0
NOTIFY_MISPLACED_S = 0.5
"""After which a backup that is not one of the nearest says so; its owner may be about to notice."""
MISPLACED_MAX_S = 64.0
"""This wait doubles up to that, as owner and backup may know different peers for long."""
TAKERS_MAX = 8
"""Peers tried in turn as takers of what a leaving peer has."""
CLOCKS_PER_ANSWER_MAX = 2_000
"""Sites whose clocks are told in one answer; of a cell with more the new owner waits a full delay for each."""
BACKUP_CLOCKS_MAX = 64
"""Of a cell with more sites only who crawled it tells the clocks: as many cells may be asked for at once."""
FORGET_COUNT = 2_000
"""Records deleted in one go."""

log = logging.getLogger(__name__)


class NoOwnerError(KadcrawlError):
    """Somebody speaks as the owner of a cell and cannot be it."""


class HolderSide:
    """What one peer tells and answers about the cells it holds."""

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
        """This peer owns nothing any more; it only hands over."""
        self._unwilling: dict[bytes, None] = {}
        """Peers, by ID, that did not take what this leaving peer has: perhaps they leave as well."""
        self._timers = TimerQueue()
        """Cells whose owners are to be told."""
        self._unnotified_changes: dict[Cell, None] = {}
        """Cells of which something is here that their owners may not know, whatever they say meanwhile."""
        self._misplaced: dict[Cell, tuple[float, float]] = {}
        """Cells kept for an owner who should have another backup -> the last wait, and when to say so (again)."""
        self._former: dict[Cell, list[Contact]] = {}
        """Cells given away -> who had copies of them; its new owner may die before it has told them anything."""
        self._closing: dict[Cell, None] = {}
        """Cells that are being released, for somebody who may be gone before they are."""
        self._forgetting: dict[Cell, None] = {}
        self._stirred = asyncio.Event()
        """There may be something to be told or forgotten."""

    @property
    def unnotified(self) -> int:
        """Cells whose owner is still to be told, or has not said yet what is to become of them."""
        return len(self._timers)

    def notify_owner(self, cell: Cell) -> None:
        """Tell the owner of the cell soon: it may not know what is here. Nothing is forgotten before."""
        self._schedule(cell, self._now())
        self._unnotified_changes[cell] = None
        self._forgetting.pop(cell, None)

    def displaced(self, cell: Cell) -> None:
        """A peer has come that is to hold the cell in our place: tell its owner, who may hear of it far later."""
        if cell in self._holdings.backed:
            self._misplaced.setdefault(cell, (NOTIFY_MISPLACED_S / 2, self._now()))
        self.notify_owner(cell)

    def lost(self) -> None:
        """A peer is gone: what is being released may be for another one now, who must not open it before."""
        for cell in list(self._closing):
            owned = self._holdings.owned.get(cell)
            if owned is not None and owned.closing:
                self._schedule(cell, self._now())
            else:
                del self._closing[cell]

    def notify_of_strays(self) -> None:
        """Tell of every cell nobody has said anything about, unless it is to be told anyway."""
        for cell in self._holdings.strays(self._store.cells):
            self._timers.put_if_new(cell, self._now())
        self._stirred.set()

    def notify_silent_owners(self, since: float) -> None:
        """Tell of every cell whose owner has said nothing of it since that second, unless it is to be told anyway."""
        for cell in self._holdings.silent(since):
            if cell in self._store.cells:
                self._timers.put_if_new(cell, self._now())
                self._stirred.set()

    def owner_notified(self, cell: Cell) -> None:
        """The cell needs no telling (any more)."""
        self._former.pop(cell, None)
        self._misplaced.pop(cell, None)
        self._timers.drop(cell)
        self._unnotified_changes.pop(cell, None)

    async def run(self) -> None:
        """Tell owners, and forget what was dropped; until cancelled."""
        while True:
            more = False
            try:
                more = await self._notify_due() == BATCH_MAX
                await self._forget()
            except StorageError:
                raise
            except Exception:
                # A fault of ours must not cost more than this try in a crawl of months.
                log.exception("notify.bug")
            await asyncio.sleep(0 if more else NOTIFY_S)
            await self._something()

    def begin_leaving(self) -> None:
        """Own no cell from now on, and hand all cells over."""
        self.leaving = True

    async def handed_over(self) -> None:
        """Return when others have taken all that is here; call after `begin_leaving`."""
        while self._store.cells and self._overlay.contacts():  # noqa: ASYNC110 -- what is left changes in many places
            await asyncio.sleep(NOTIFY_S)

    # --- answering -----------------------------------------------------------------------------------------------

    def answer(self, question: TakeOver) -> TakeOverAnswer:
        """Somebody owns these cells now, it says: stop crawling them, and say what we have."""
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
        """Answer about one cell; `room` is how many clocks may still be told."""
        here = anchor(cell, self._bits)
        held = held_of(self._store, cell)
        if (rival := self.rival(new_owner, here)) is not None:
            return CellState(held, rival, [], releasing=False, released=False, sites=[])
        for listener in self._events.cell_taken_over:
            listener(cell, new_owner)
        # Also those our overlay does not know (yet): who is lost is not among the holders any more.
        others = list(dict.fromkeys([*self._holdings.others(cell), *self._former.get(cell, ())]))[:CONTACTS_MAX]
        owned = self._holdings.owned.get(cell)
        if cell in self._forgetting:  # What we say is here must stay until this owner has decided.
            del self._forgetting[cell]
            self._schedule(cell, self._now() + NOTIFY_AGAIN_S)
        if owned is None:
            self._crawl.close(cell)
            if self._crawl.is_busy(cell):  # Given up while this peer was away, with requests under way.
                return CellState(held, None, others, releasing=True, released=False, sites=[])
            # Backups know the clocks as well, and who leaves knows them best.
            sites = self._crawl.clocks(cell, min(room, BACKUP_CLOCKS_MAX)) or []
            in_hand = self._crawl.in_hand(cell)[:BATCH_MAX]
            return CellState(held, None, others, releasing=False, released=False, sites=sites, in_progress=in_hand)
        if owned.open:
            owned.set_closing()
            self._closing[cell] = None
            log.debug("cell.closing cell=%d for=%s", cell, new_owner)
            self._crawl.close(cell)
        self._schedule(cell, self._now() + NOTIFY_AGAIN_S)
        if self._crawl.is_busy(cell):
            return CellState(held, None, others, releasing=True, released=False, sites=[])
        clocks = self._crawl.clocks(cell, min(room, BATCH_MAX))
        # Whoever claims it next must hear of this claimant, as it may be open there by then.
        self._holdings.back_up_for(cell, new_owner, None, self._now())
        self._former[cell] = others
        released, untold = owned.closing and clocks is not None, owned.closing and clocks is None
        log.debug("cell.released cell=%d to=%s", cell, new_owner)
        in_hand = self._crawl.in_hand(cell)[:BATCH_MAX]
        return CellState(
            held,
            None,
            others,
            releasing=False,
            released=released,
            sites=clocks or [],
            in_progress=in_hand,
            clocks_incomplete=untold,
        )

    def assign_replica(self, message: AssignReplica) -> ReplicaAssigned:
        """The owner of these cells says whether we keep or drop them."""
        for held in message.cells:
            check_cell(held.cell, self._bits)
        if message.owner.id == self._overlay.me.id:
            raise NoOwnerError("a peer does not say to itself what to keep")
        unlike = []
        for held in message.cells:
            cell = Cell(held.cell)
            target = anchor(cell, self._bits)
            ours = held_of(self._store, cell)
            ours_to_own = nearer(self._overlay.me, message.owner, target) and not self.leaving
            if (cell in self._holdings.owned and ours_to_own) or (
                message.role and self._has_better(cell, message.owner)
            ):
                unlike.append(ours)  # Not so: we own it, or one who lives nearer.
            elif message.role != OWNER:
                self._former.pop(cell, None)
                before = self._holdings.backed.get(cell)
                known = before is not None and (before.owner, before.role) == (message.owner, message.role)
                self._keep(cell, message.owner, message.role)
                # Of whoever comes once we know our role `displaced` tells.
                if not known or cell in self._misplaced:
                    self._see_place(cell, message.owner, message.role)
                if ours != held:
                    unlike.append(ours)
            elif self._holdings.is_open(cell) or self.rival(message.owner, target) is not None:
                unlike.append(ours)  # An old word, as it was taken back meanwhile; or who lives nearer is to say so.
            elif ours.keys == 0 or ours == held:
                self._holdings.let_go(cell)
                self.owner_notified(cell)
                if ours.keys:
                    log.debug("cell.dropped cell=%d for=%s", cell, message.owner)
                    self._forget_soon(cell)
            else:
                unlike.append(ours)
        return ReplicaAssigned(unlike)

    def rival(self, owner: Contact, target: int) -> Contact | None:
        """Return who lives nearer to a place, as far as we know, than who speaks as the owner of its cell."""
        passed_over = {owner.id, self._overlay.me.id if self.leaving else b""}
        rival = next((one for one in self._overlay.nearest_known(target, 2) if one.id not in passed_over), None)
        if rival is None or not nearer(rival, owner, target):
            return None
        if rival.id != self._overlay.me.id:
            self._overlay.suspect(rival)
        return rival

    def _see_place(self, cell: Cell, owner: Contact, role: int) -> None:
        """If we know a nearer backup, who came before we were told, say so to the owner; ever more seldom."""
        if self._is_holder(cell, owner, role):
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

    def _is_holder(self, cell: Cell, owner: Contact, role: int) -> bool:
        """Return whether nobody we know is nearer to the place of `role` in the cell than we are."""
        places = placement_keys(cell, self._bits)[OWNER + 1 :]
        chosen = holders([[owner], *(self._overlay.nearest_known(place, HOLDERS) for place in places)])
        return role < len(chosen) and chosen[role].id == self._overlay.me.id

    def backed(self, cells: Iterable[Cell], owner: Contact) -> None:
        """Records of these cells came from `owner`: if nobody nearer is known to own them, we keep its copy."""
        for cell in cells:
            if cell in self._holdings.owned:
                continue
            target = anchor(cell, self._bits)
            if self._has_better(cell, owner) or not nearer(owner, self._overlay.me, target):
                self._forgetting.pop(cell, None)
                self._timers.put_if_new(cell, self._now())
                self._stirred.set()
            else:
                self._keep(cell, owner, None)

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
            # Its owner may have lost the cell in the middle of a sync: another will not know of this copy.
            self._timers.put_if_new(cell, self._now() + NOTIFY_AGAIN_S)
            self._stirred.set()
        else:
            self._known(cell)

    def _known(self, cell: Cell) -> None:
        """The owner of a cell kept for it has spoken, so that it needs no telling but of what it cannot know."""
        if not (self.leaving or cell in self._unnotified_changes or cell in self._misplaced):
            self._timers.drop(cell)

    # --- inside --------------------------------------------------------------------------------------------------

    def _schedule(self, cell: Cell, at: float) -> None:
        self._timers.put(cell, at)
        self._stirred.set()

    def _forget_soon(self, cell: Cell) -> None:
        self._forgetting[cell] = None
        self._stirred.set()

    async def _something(self) -> None:
        """Return when there is something to be told or forgotten."""
        while not self._forgetting and (next_at := self._timers.next_at) > self._now():
            self._stirred.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(next_at if next_at < inf else None):
                    await self._stirred.wait()

    async def _notify_due(self) -> int:
        """Remind the owners of the next cells that are due; those owned here are synced. Return how many they were."""
        now = self._now()
        due = self._timers.due(now, BATCH_MAX)
        owners = await asyncio.gather(*map(self._owner, due))
        told: defaultdict[Contact, list[Cell]] = defaultdict(list)
        for cell, owner in zip(due, owners, strict=True):
            nothing = cell not in self._store.cells and cell not in self._holdings.owned
            if nothing and not (cell in self._misplaced and cell in self._holdings.backed):
                self.owner_notified(cell)
            elif owner is None:
                self._timers.put(cell, now + NOTIFY_AGAIN_S)  # Nobody is there to be told.
            elif owner.id == self._overlay.me.id:
                self._timers.drop(cell)
                for listener in self._events.cell_due:
                    listener(cell)
            else:
                told[owner].append(cell)
        await asyncio.gather(*(self._send_cells_held(owner, cells) for owner, cells in told.items()))
        return len(due)

    async def _owner(self, cell: Cell) -> Contact | None:
        """Return the peer nearest to a cell; the nearest other one when leaving."""
        target = anchor(cell, self._bits)
        if not self.leaving:
            return (await self._overlay.nearest(target, 1))[0]
        nearest = await self._overlay.nearest(target, TAKERS_MAX + 1)
        others = [contact for contact in nearest if contact.id != self._overlay.me.id]
        willing = [contact for contact in others if contact.id not in self._unwilling]
        if others and not willing:
            self._unwilling.clear()
        return next(iter(willing or others), None)

    async def _send_cells_held(self, owner: Contact, cells: list[Cell]) -> None:
        held = [held_of(self._store, cell) for cell in cells]
        said_at = self._now()
        for cell in cells:
            self._timers.put(cell, said_at)
        try:
            answer = await self._client.ask(
                owner, CellsHeld(self._overlay.me, held), CellsAccepted, CELLS_HELD_DEADLINE_S
            )
            taken = set(answer.cells)
        except RemoteError as error:
            log.info("sync.untold owner=%s why=%s", owner, error.why)
            self._overlay.suspect(owner)
            taken = set()
        if self.leaving and not taken:
            self._unwilling[owner.id] = None
        for cell in cells:
            if self._timers.get(cell) != said_at:
                continue  # There is news since, or its owner has spoken.
            if cell in taken:
                self._unnotified_changes.pop(cell, None)
            if cell in taken and cell in self._holdings.backed:
                self._timers.drop(cell)  # Its owner knows, and will say what is to become of it.
            else:
                self._timers.put(cell, self._now() + (NOTIFY_AGAIN_S if cell in taken else CELLS_HELD_RETRY_S))

    async def _forget(self) -> None:
        """Delete what was dropped, a little at a time."""
        for cell in list(self._forgetting):
            if cell not in self._forgetting:
                continue  # Taken out while we did another.
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
