"""sync(cell): how whoever becomes the owner of a cell catches up, whatever happened before.

A join, a leave, a crash, a restart with an old disk or none, a healed partition and the periodic repair differ only in
why a cell is synced: that is decided here. What is then done is always the same (`catch_up`); the other side of it,
that of whoever holds something of a cell it does not own, is `tell`.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable
from itertools import count
from math import inf
from typing import Any, Protocol

from kadcrawl.errors import KadcrawlError, RemoteError, StorageError
from kadcrawl.keys import Cell, anchor, check_cell
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import (
    MY_CELLS_MAX,
    CellsAccepted,
    CellsHeld,
    Contact,
    FindMyCells,
    MyCells,
)
from kadcrawl.replication.anti_entropy import AntiEntropy
from kadcrawl.replication.crawl_port import Crawl
from kadcrawl.replication.holder_side import HolderSide
from kadcrawl.replication.owner import catch_up
from kadcrawl.replication.owner.catch_up import CatchUp
from kadcrawl.replication.owner.join import JoinHandshake, packed
from kadcrawl.replication.owner.trust import TrustPolicy
from kadcrawl.replication.placement.holdings import Holdings
from kadcrawl.replication.placement.placement import FIRST_BACKUP, nearer
from kadcrawl.replication.replicator import Replicator, no_spawn
from kadcrawl.store.store import Store

SYNC_RETRY_S = 0.5
FIND_MY_CELLS_INTERVAL_S = 1.0
"""Least time between two answers to one peer's Claim, each of which reads all cells held here. Whoever was away was so
for longer."""
WHOLE_POLL_S = 0.1
UNLIKE_S = 5.0
"""Where fingerprints are kept, least time between two syncs of a cell because a copy is unlike: clocks that differ, and
slices that change while they travel, keep it so for a while whatever is done. Exact copies become alike by one sync."""
REPAIR_S = 10.0
"""How often an owner compares digests with its backups."""
SILENCE_MAX_S = 1.5 * REPAIR_S
"""An owner that has not spoken of a cell for this long is asked whether it still is: it may be dead, or back without
a memory of us, and not one of those whose heartbeats we hear."""
LOOKS = 4
"""How often in between to look for that."""
ALONE_S = 60.0
"""How long a peer that was away, and knew others before, waits for one of them before it goes on alone."""
RECHECK_ROUNDS = 6
"""Repairs after which the holders of a cell are worked out anew."""

log = logging.getLogger(__name__)


class TooSoonError(KadcrawlError):
    """Somebody asks again what he has been told a moment ago."""


class SyncOverlay(catch_up.LookupOverlay, Protocol):
    """What sync needs of the overlay."""

    def owns(self, cell: Cell) -> bool: ...
    def contacts(self) -> list[Contact]: ...
    def siblings(self) -> list[Contact]: ...


class CellSync:
    """All cells of one peer."""

    def __init__(
        self,
        overlay: SyncOverlay,
        client: LinkClient,
        store: Store,
        holdings: Holdings,
        replicator: Replicator,
        anti_entropy: AntiEntropy,
        holder_side: HolderSide,
        crawl: Crawl,
        cell_bits: int,
        trust_policy: TrustPolicy,
    ) -> None:
        self._overlay = overlay
        self._store = store
        self._holdings = holdings
        self._replicator = replicator
        self._holder_side = holder_side
        self._crawl = crawl
        self._bits = cell_bits
        self._syncing: dict[Cell, bool] = {}
        """Cell being synced -> whether to sync it once more."""
        self._opened: defaultdict[Cell, list[asyncio.Future[None]]] = defaultdict(list)
        self._round = 0
        self._unlike_at: dict[Cell, float] = {}
        self._asked_for_cells_at: dict[bytes, float] = {}
        """Peer -> when its Claim was answered, of the last second, in that order."""
        self.spawn: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]] = no_spawn
        """Starts a task that ends with the peer."""
        self._join_handshake = JoinHandshake(overlay, client, self.want, lambda work, name: self.spawn(work, name))
        self._catch_up = CatchUp(
            overlay,
            client,
            store,
            holdings,
            replicator,
            anti_entropy,
            crawl,
            cell_bits,
            trust_policy,
            may_own=self._may_own,
            want=self.want,
            open_cell=self._open,
            spawn=lambda work, name: self.spawn(work, name),
        )
        replicator.on_unlike = self._unlike
        replicator.on_dead = self.lost
        holder_side.on_own = self.want
        holder_side.on_taken_over = self._taken_over

    # --- what others ask of it -----------------------------------------------------------------------------------

    def is_syncing(self, cell: Cell) -> bool:
        """Return whether the cell is being synced just now."""
        return cell in self._syncing

    @property
    def syncs(self) -> int:
        """Cells synced so far."""
        return self._catch_up.count

    @property
    def busy(self) -> bool:
        """Whether any cell is being synced."""
        return bool(self._syncing)

    async def opened(self, cells: Iterable[Cell], deadline_s: float) -> set[Cell]:
        """Wait until these cells may be crawled here, `deadline_s` seconds at most; return those that may."""
        cells = set(cells)
        loop = asyncio.get_running_loop()
        waiting = []
        for cell in cells:
            if not self._holdings.is_open(cell) and self._may_own(cell):
                self.want(cell)
                if not self._holdings.is_open(cell):
                    future = loop.create_future()
                    self._opened[cell].append(future)
                    waiting.append((cell, future))
        if waiting:
            await asyncio.wait([future for _, future in waiting], timeout=deadline_s)
        for cell, future in waiting:
            if not future.done():
                self._opened[cell].remove(future)
                if not self._opened[cell]:
                    del self._opened[cell]
        return {cell for cell in cells if self._holdings.is_open(cell)}

    def want(self, cell: Cell, provider: Contact | None = None) -> None:
        """Sync a cell soon; `source` has something of it."""
        check_cell(cell, self._bits)
        if provider is not None and provider.id != self._overlay.me.id:
            self._catch_up.providers.add(cell, provider)
        if cell in self._syncing:
            self._syncing[cell] = True
        elif self._is_alone and cell not in self._catch_up.providers and not self._holder_side.leaving:
            self._open_alone(cell)
        else:
            self.spawn(self._sync(cell), f"sync {cell}")
            self._syncing[cell] = False

    async def whole(self, cells: Iterable[Cell]) -> bool:
        """Return when every change so far of these cells is at all their backups; False if one is not open here."""
        for cell in cells:
            while True:
                owned = self._holdings.owned.get(cell)
                if owned is None or not owned.open:
                    return False
                backups = owned.backups
                if owned.whole:
                    delivered = [await self._replicator.delivered(contact) for contact in backups]
                    if all(delivered) and owned.whole and owned.backups == backups:
                        break
                if cell not in self._syncing and not owned.whole:
                    self.want(cell)
                await asyncio.sleep(WHOLE_POLL_S)
        return True

    def joined(self, newcomer: Contact) -> None:
        """A peer has come: cells that it is to hold in our place are told to their owners (P1 1.3.2)."""
        self._catch_up.newcomers += 1
        ours, our_backups = self._holdings.joined(newcomer.number)
        for cell in ours:
            self._holder_side.displaced(cell)
        for cell in [*our_backups, *self._holdings.short()]:
            self.want(cell)

    def lost(self, peer: Contact) -> None:
        """A peer is dead or gone: find other backups for our cells, and other owners for its cells."""
        self._replicator.lost(peer.id)
        self._catch_up.bereaved = True
        self._catch_up.providers.lost(peer.id)
        self._holder_side.lost()
        unsafe, orphans = self._holdings.lost(peer.id)
        for cell in unsafe:
            self.want(cell)
        for cell in orphans:
            self._holder_side.notify_owner(cell)

    def close_all(self) -> None:
        """This peer was away: others may own its cells by now, so it crawls none before it has synced again."""
        self._catch_up.absences += 1
        for cell in list(self._holdings.owned):
            self._crawl.close(cell)
            self._holdings.let_go(cell)
        for cell in self._store.cells:
            self._holder_side.notify_owner(cell)
        self._join_handshake.begin(ALONE_S if self._overlay.contacts() else 0.0)

    async def run(self) -> None:
        """Sync what this peer came with, and repair now and then; until cancelled."""
        self._holder_side.notify_of_strays()
        self._join_handshake.begin()
        for look in count(1):
            await asyncio.sleep(REPAIR_S / LOOKS)
            if look % LOOKS == 0:
                self._repair()
            self._holder_side.notify_silent_owners(self._now() - SILENCE_MAX_S)

    # --- the owner's side ----------------------------------------------------------------------------------------

    def _open_alone(self, cell: Cell) -> None:
        """There is nobody else: what we have is all there is."""
        owned = self._holdings.own(cell, self._now())
        self._holdings.back_up_at(cell, ())
        owned.whole = True
        self._open(cell, cell in self._store.cells or self._catch_up.bereaved)

    def _open(self, cell: Cell, hold: bool) -> None:
        owned = self._holdings.owned[cell]
        self._holder_side.owner_notified(cell)
        if not owned.open:
            owned.open, owned.closing = True, False
            log.debug("cell.opened cell=%d hold=%s backups=%s", cell, hold, ",".join(map(str, owned.backups)))
            self._crawl.open(cell, hold=hold)
        for future in self._opened.pop(cell, ()):
            if not future.done():
                future.set_result(None)

    async def _sync(self, cell: Cell) -> None:
        """Sync one cell, again as long as somebody asks for it meanwhile."""
        try:
            async with self._catch_up.places:
                while self._may_own(cell):
                    self._syncing[cell] = False
                    try:
                        await self._join_handshake.done.wait()
                        settled = await self._catch_up.once(cell)
                    except RemoteError as error:
                        log.info("sync.again cell=%d why=%s", cell, error)
                        settled = False
                    except StorageError:
                        raise
                    except Exception:
                        # A fault of ours must not cost more than this try in a crawl of months.
                        log.exception("sync.bug cell=%d", cell)
                        settled = False
                    if settled and not self._syncing[cell]:
                        break
                    if not settled:
                        await self._catch_up.pause(SYNC_RETRY_S)
                        self._catch_up.waited(cell, SYNC_RETRY_S)
        finally:
            del self._syncing[cell]
            if not self._holdings.is_open(cell):
                self._catch_up.providers.forget(cell)
        if not self._holdings.is_open(cell) and cell in self._store.cells:
            self._holder_side.notify_owner(cell)

    def _unlike(self, contact: Contact, cell: Cell) -> None:
        if self._holdings.is_open(cell):
            if self._store.expiring_filters is not None:
                if self._now() < self._unlike_at.get(cell, -inf) + UNLIKE_S:
                    return  # The next repair will see.
                self._unlike_at[cell] = self._now()
            self.want(cell, contact)

    def _taken_over(self, cell: Cell, new_owner: Contact) -> None:
        if cell in self._syncing:
            self.want(cell, new_owner)  # We are about to open it ourselves.

    def _want_of(self, cell: Cell, holder: Contact) -> None:
        """Sync a cell of which a peer says that it has something, unless it has said so of too many."""
        claims, now = self._catch_up.work_quota, self._now()
        if not claims.has_quota(holder.id, now):
            return  # It is asked where its place is, and says so again.
        if not self._syncing.get(cell):
            claims.charge(holder.id, 1, now)
        self.want(cell, holder)

    def _repair(self) -> None:
        """Compare every cell owned here with its backups; tell of every cell nobody has spoken of."""
        self._round += 1
        for cell, owned in list(self._holdings.owned.items()):
            if not self._overlay.owns(cell):
                self._holder_side.notify_owner(cell)
            elif not owned.open or not owned.whole or (self._round + cell) % RECHECK_ROUNDS == 0:
                self.want(cell)
            elif cell in self._store.cells:
                for role, contact in enumerate(owned.backups, FIRST_BACKUP):
                    self._replicator.keep(contact, cell, role)
        self._holder_side.notify_of_strays()

    def cells_held(self, message: CellsHeld) -> CellsAccepted:
        """Somebody holds cells that we own, it says."""
        for held in message.cells:
            check_cell(held.cell, self._bits)
        taken: list[int] = []
        for held in message.cells:
            cell = Cell(held.cell)
            if self._may_own(cell):
                self._want_of(cell, message.holder)
                taken.append(cell)
            elif not self._holder_side.leaving:
                # It takes us for the owner, so whom we take for it may be gone, or saying goodbye.
                self._overlay.suspect(self._overlay.nearest_known(anchor(cell, self._bits), 1)[0])
        if not self._overlay.is_live(message.holder.id):
            self._overlay.suspect(message.holder)  # We may not know each other yet.
        return CellsAccepted(taken)

    def find_my_cells(self, message: FindMyCells) -> MyCells:
        """A peer has come and asks which cells crawled here are its. Raises TooSoonError."""
        newcomer = message.newcomer
        self._limit_find_my_cells(newcomer.id)
        if not self._overlay.is_live(newcomer.id):
            self._overlay.suspect(newcomer)
        me = self._overlay.me
        # It may be back without what it had, so soon that nobody has missed it.
        at_newcomer, of_newcomer = self._holdings.shared(newcomer.id)
        for cell in at_newcomer:
            self.want(cell)
        for cell in of_newcomer:
            if cell in self._store.cells:
                self._holder_side.notify_owner(cell)
        cells = [
            cell
            for cell in self._syncing
            if cell not in self._holdings.owned and nearer(newcomer, me, anchor(cell, self._bits))
        ]
        cells += self._holdings.owned_nearer_to(newcomer.number)
        return MyCells(packed(cells[:MY_CELLS_MAX]))

    def _limit_find_my_cells(self, peer: bytes) -> None:
        now = self._now()
        while (
            self._asked_for_cells_at
            and self._asked_for_cells_at[first := next(iter(self._asked_for_cells_at))] + FIND_MY_CELLS_INTERVAL_S
            <= now
        ):
            del self._asked_for_cells_at[first]
        if peer in self._asked_for_cells_at:
            raise TooSoonError("it was told a moment ago which cells are its own; try again in a second")
        self._asked_for_cells_at[peer] = now

    # --- tools ---------------------------------------------------------------------------------------------------

    @property
    def _is_alone(self) -> bool:
        return self._join_handshake.done.is_set() and not self._overlay.contacts()

    def _may_own(self, cell: Cell) -> bool:
        return self._overlay.owns(cell) and not self._holder_side.leaving

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
