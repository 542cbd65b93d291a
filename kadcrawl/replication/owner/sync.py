"""`CellSync` decides when a cell is due for a sync, and queues the syncs: the owner's side of replication.

A join, a leave, a crash, a restart with an old disk or none, a healed partition and the periodic repair differ only in
what makes a cell due, which is decided here. Every sync then runs the same attempt (catch_up.py). The other side of
replication, that of a peer that holds records of a cell it does not own, is in holder_side.py.
"""

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from itertools import count
from math import inf
from typing import NamedTuple

from kadcrawl.errors import KadcrawlError, RemoteError, StorageError
from kadcrawl.keys import Cell, Key, anchor, check_cell
from kadcrawl.link.wire.messages import (
    MY_CELLS_MAX,
    CellsAccepted,
    CellsHeld,
    CellSummary,
    Contact,
    FindMyCells,
    MyCells,
)
from kadcrawl.replication.owner.catch_up import CatchUp
from kadcrawl.replication.owner.cell_opener import CellOpener
from kadcrawl.replication.owner.join import JoinHandshake, packed
from kadcrawl.replication.owner.owner_parts import OwnerParts
from kadcrawl.replication.owner.recheck import HolderRecheck
from kadcrawl.replication.owner.repair_pace import (
    OWNER_SILENCE_MAX_S,
    RECHECK_REPAIRS,
    REPAIR_S,
    SYNC_REPAIRS,
    is_turn,
    repairs_per_turn,
    silence_max_s,
)
from kadcrawl.replication.owner.sync_progress import SyncProgress, SyncState
from kadcrawl.replication.placement.placement import nearer
from kadcrawl.system.duration_histogram import DurationHistogram

SYNC_RETRY_S = 0.5
"""Wait after a failed attempt."""
FIND_MY_CELLS_INTERVAL_S = 1.0
"""Shortest time between two answers to `FindMyCells` of one peer. Each reads all cells held here, and a peer that was
away was so for longer."""
WHOLE_POLL_S = 0.1
"""Time between two looks at whether the backups of a cell have all of it."""
UNLIKE_S = 5.0
"""The shortest time between two syncs of a cell for a differing copy, with epoch filters. Differing
clocks and filters that change in transit keep a copy different for a while. Exact copies become equal by one sync."""
LOOKS = 4
"""Looks for silent owners between two repairs."""
ALONE_S = 60.0
"""Longest wait of a peer that was away, and knew others before, for one of them. Then it goes on alone."""

log = logging.getLogger(__name__)


class TooSoonError(KadcrawlError):
    """A peer repeats a question that was answered a moment ago."""


class Copies(NamedTuple):
    """The copies of some keys of a cell on their way to its backups."""

    backups: tuple[Contact, ...]
    futures: list[asyncio.Future[bool]]
    """A future for each backup that lacks one, with True when it has all keys."""


class CellSync:
    """The syncs of all cells of one peer."""

    def __init__(self, parts: OwnerParts) -> None:
        self._parts = parts
        self._overlay = parts.overlay
        self._store = parts.store
        self._holdings = parts.holdings
        self._replicator = parts.replicator
        self._holder_side = parts.holder_side
        self._bits = parts.cell_bits
        self._syncing: dict[Cell, SyncProgress] = {}
        self._round = 0
        """Repairs so far."""
        self._unlike_at: dict[Cell, float] = {}
        """Cell -> second of its last sync because a copy differed."""
        self._asked_for_cells_at: dict[bytes, float] = {}
        """Peer -> second of the last answer to its `FindMyCells`, of the last interval, oldest first."""
        self.times = DurationHistogram()
        """The times of completed syncs, from the first request of each."""
        self.opener = CellOpener(parts)
        self._catch_up = CatchUp(parts, self.opener)
        self._recheck = HolderRecheck(parts, self.want)
        self._join_handshake = JoinHandshake(parts.overlay, parts.client, self.want, parts.spawn)
        parts.events.copy_differs.append(self._copy_differs)
        parts.events.peer_unreachable.append(self.lost)
        parts.events.cell_due.append(self.want)
        parts.events.cell_taken_over.append(self._taken_over)

    # --- requests of other parts -------------------------------------------------------------------------------------

    def is_syncing(self, cell: Cell) -> bool:
        """Return whether the cell is being synced just now."""
        return cell in self._syncing

    @property
    def syncs(self) -> int:
        """Syncs completed so far."""
        return self._catch_up.count

    @property
    def in_progress(self) -> int:
        """Cells that are being synced."""
        return len(self._syncing)

    @property
    def busy(self) -> bool:
        """True if any cell is being synced."""
        return bool(self._syncing)

    async def opened(self, cells: Iterable[Cell], deadline_s: float) -> set[Cell]:
        """Wait up to `deadline_s` seconds until these cells may be crawled here. Return those that may."""
        return await self.opener.opened(cells, self._want_with_neighbors, deadline_s)

    def want(self, cell: Cell, provider: Contact | None = None) -> None:
        """Sync a cell soon. `provider` holds records of it. Raises NotRunningError."""
        check_cell(cell, self._bits)
        self._catch_up.providers.expire(self._now())
        if provider is not None and provider.id != self._overlay.me.id:
            self._catch_up.providers.add(cell, provider)
        if cell in self._syncing:
            self._syncing[cell].request_again()
        elif self._is_alone and cell not in self._catch_up.providers and not self._holder_side.leaving:
            self._open_alone(cell)
        else:
            progress = SyncProgress(cell)
            self._catch_up.providers.resume(cell)
            self._parts.spawn(self._sync(progress), f"sync {cell}")
            self._syncing[cell] = progress

    async def whole(
        self, keys: Mapping[Cell, Collection[Key]], deadline_s: float, *, hurries: bool = False
    ) -> set[Cell]:
        """Wait up to `deadline_s` seconds until all backups have these keys of the cells. Return the cells of which
        they have.

        With `hurries` the copies do not wait for company.
        """
        # All copies are urgent at once, or those of each cell would wait until those of the cell before have arrived.
        copies = {cell: self._copies(cell, some, hurries) for cell, some in keys.items()}
        whole: set[Cell] = set()
        try:
            async with asyncio.timeout(deadline_s):
                for cell, some in keys.items():
                    if await self._until_whole(cell, some, copies[cell], hurries):
                        whole.add(cell)
        except TimeoutError:
            whole |= {cell for cell in keys.keys() - whole if self._has_arrived(cell, copies[cell])}
        return whole

    async def _until_whole(self, cell: Cell, keys: Collection[Key], copies: Copies, hurries: bool) -> bool:
        """Return True when all backups have these keys of a cell, or False if the cell is not open here."""
        while self._holdings.is_open(cell):
            for future in copies.futures:
                await future
            if self._has_arrived(cell, copies):
                return True
            owned = self._holdings.owned.get(cell)
            if owned is not None and not owned.whole and cell not in self._syncing:
                self.want(cell)
            await asyncio.sleep(WHOLE_POLL_S)
            copies = self._copies(cell, keys, hurries)
        return False

    def _copies(self, cell: Cell, keys: Collection[Key], hurries: bool) -> Copies:
        """Return the copies of these keys of a cell that are on their way, and hurry them."""
        owned = self._holdings.owned.get(cell)
        backups = () if owned is None else tuple(owned.backups)
        deliveries = [self._replicator.delivery(one, keys, hurries=hurries) for one in backups]
        return Copies(backups, [future for future in deliveries if future is not None])

    def _has_arrived(self, cell: Cell, copies: Copies) -> bool:
        """Return whether the copies of an open cell have arrived at all its backups."""
        owned = self._holdings.owned.get(cell)
        if owned is None or not owned.open or not owned.whole or tuple(owned.backups) != copies.backups:
            return False
        return all(future.done() and not future.cancelled() and future.result() for future in copies.futures)

    def joined(self, newcomer: Contact) -> None:
        """Tell the owners of the cells that a newcomer is to hold in our place (P1 1.3.2)."""
        self._catch_up.peer_joined()
        ours, our_backups = self._holdings.joined(newcomer.number)
        for cell in ours:
            self._holder_side.displaced(cell)
        for cell in [*our_backups, *self._holdings.short()]:
            self.want(cell)

    def lost(self, peer: Contact) -> None:
        """Find new backups for our cells and new owners for the cells of a peer that is dead or gone."""
        self._replicator.lost(peer.id)
        self._catch_up.peer_lost(peer.id)
        self._holder_side.lost()
        unsafe, orphans = self._holdings.lost(peer.id)
        for cell in unsafe:
            self.want(cell)
        for cell in orphans:
            self._holder_side.notify_owner(cell)

    def close_all(self) -> None:
        """Close all cells until they are synced again: this peer was away, and other peers may own them by now."""
        self._catch_up.was_away()
        for cell in list(self._holdings.owned):
            self._parts.crawl.close(cell)
            self._holdings.let_go(cell)
        for cell in self._store.cells:
            self._holder_side.notify_owner(cell)
        self._join_handshake.begin(ALONE_S if self._overlay.contacts() else 0.0)

    async def run(self) -> None:
        """Sync the cells of the disk, and repair periodically. Return never."""
        self._holder_side.notify_of_strays()
        self._join_handshake.begin()
        for look in count(1):
            await asyncio.sleep(REPAIR_S / LOOKS)
            if look % LOOKS == 0:
                self._repair()
            silence_s = silence_max_s(len(self._holdings.backed), self._holdings.copies)
            now = self._now()
            self._holder_side.notify_silent_owners(now - silence_s, now - OWNER_SILENCE_MAX_S)

    # --- answers -----------------------------------------------------------------------------------------------------

    def cells_held(self, message: CellsHeld) -> CellsAccepted:
        """Sync the cells that a peer claims to hold. Return those that this peer owns."""
        for held in message.cells:
            check_cell(held.cell, self._bits)
        accepted: list[int] = []
        for held in message.cells:
            cell = Cell(held.cell)
            if self._parts.may_own(cell):
                self._want_of(held, message.holder)
                accepted.append(cell)
            elif not self._holder_side.leaving:
                # The holder takes us for the owner, so the peer we take for the owner may be dead or leaving.
                self._overlay.suspect(self._overlay.nearest_known(anchor(cell, self._bits), 1)[0])
        if not self._overlay.is_live(message.holder.id):
            self._overlay.suspect(message.holder)  # The two peers may not know each other yet.
        return CellsAccepted(accepted)

    def find_my_cells(self, message: FindMyCells) -> MyCells:
        """Tell a newcomer which cells crawled here it owns by now. Raises TooSoonError."""
        newcomer = message.newcomer
        self._limit_find_my_cells(newcomer.id)
        if not self._overlay.is_live(newcomer.id):
            self._overlay.suspect(newcomer)
        me = self._overlay.me
        # The newcomer may be back without its records, so soon that no peer has missed it.
        at_newcomer, of_newcomer = self._holdings.shared(newcomer.id)
        self._recheck.begin([cell for cell in at_newcomer if self._recheck.knows(cell, newcomer)])
        for cell in at_newcomer:
            if not self._recheck.knows(cell, newcomer):
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
            raise TooSoonError("this peer told you a moment ago which cells you own; try again in a second")
        self._asked_for_cells_at[peer] = now

    # --- the queue ---------------------------------------------------------------------------------------------------

    def _want_with_neighbors(self, cell: Cell) -> None:
        """Sync a cell soon, unless that is under way, and the closed cells beside it whose URLs come soon."""
        if cell not in self._syncing:
            self.want(cell)
            for neighbor in self._parts.neighbors(cell):
                if neighbor not in self._syncing and not self._holdings.is_open(neighbor):
                    self.want(neighbor)

    def _open_alone(self, cell: Cell) -> None:
        """Open a cell at once, as no other peer is there that could hold records of it."""
        owned = self._holdings.own(cell, self._now())
        self._holdings.back_up_at(cell, ())
        owned.set_whole(True)
        hold = cell in self._store.cells or self._catch_up.must_hold_empty_cells
        self.opener.open(cell, hold=hold, unsure_since=self._catch_up.unsure_since)

    async def _sync(self, progress: SyncProgress) -> None:
        """Sync one cell, and repeat as long as another sync of it is requested meanwhile."""
        cell, began = progress.cell, self._now()
        try:
            async with self._catch_up.slots:
                while self._parts.may_own(cell):
                    completed = await self._attempt(progress)
                    if completed:
                        self.times.observe(self._now() - began)
                        began = self._now()
                    if completed and not progress.requested_again:
                        break
                    if progress.state is not SyncState.QUEUED:
                        progress.move(SyncState.QUEUED)
                    if not completed:
                        await self._catch_up.pause(SYNC_RETRY_S)
                        self._catch_up.waited(cell, SYNC_RETRY_S)
        finally:
            progress.move(SyncState.ENDED)
            del self._syncing[cell]
            self._catch_up.providers.retire(cell, self._now())
        if not self._holdings.is_open(cell) and cell in self._store.cells:
            self._holder_side.notify_owner(cell)

    async def _attempt(self, progress: SyncProgress) -> bool:
        """Run one attempt once the join handshake is done. Return whether it completed. Raises StorageError."""
        try:
            await self._join_handshake.done.wait()
            progress.take_request()  # The handshake itself requests the cells that the siblings crawl.
            return await self._catch_up.once(progress)
        except RemoteError as error:
            log.info("sync.again cell=%d why=%s", progress.cell, error)
        except StorageError:
            raise
        except Exception:
            # A bug must not cost more than this attempt in a crawl of months.
            log.exception("sync.bug cell=%d", progress.cell)
        return False

    def _copy_differs(self, contact: Contact, cell: Cell) -> None:
        if self._holdings.is_open(cell):
            if self._store.expiring_filters is not None:
                if self._now() < self._unlike_at.get(cell, -inf) + UNLIKE_S:
                    return  # The next repair compares again.
                self._unlike_at[cell] = self._now()
            self.want(cell, contact)

    def _taken_over(self, cell: Cell, new_owner: Contact) -> None:
        if cell in self._syncing:
            self.want(cell, new_owner)  # This peer is about to open the cell itself.

    def _want_of(self, held: CellSummary, holder: Contact) -> None:
        """Sync a cell that a peer claims to hold, unless the peer's quota is used up."""
        cell, quota, now = Cell(held.cell), self._catch_up.work_quota, self._now()
        if not quota.has_quota(holder.id, now):
            return  # It is asked anyway if it is a holder by its ID, and it repeats its claim.
        progress = self._syncing.get(cell)
        if progress is None or progress.claim(holder.id, held):
            quota.charge(holder.id, 1, now)
        if progress is not None:
            if holder.id != self._overlay.me.id:
                self._catch_up.providers.add(cell, holder)
        elif self._recheck.knows(cell, holder):
            self._recheck.begin([cell])
        else:
            self.want(cell, holder)

    def _repair(self) -> None:
        """Compare the cells whose turn it is with their backups, and tell the owners of all strays."""
        self._round += 1
        rechecked: list[Cell] = []
        compared: list[Cell] = []
        repairs = repairs_per_turn(len(self._holdings.owned))
        for cell, owned in list(self._holdings.owned.items()):
            if not self._overlay.owns(cell):
                self._holder_side.notify_owner(cell)
            elif not owned.open or not owned.whole or is_turn(cell, self._round, SYNC_REPAIRS):
                self.want(cell)
            elif is_turn(cell, self._round, RECHECK_REPAIRS):
                rechecked.append(cell)
            elif cell in self._store.cells and is_turn(cell, self._round, repairs):
                compared.append(cell)
        for cell in [*compared, *self._holdings.words_for_others([*compared, *rechecked])]:
            self._recheck.compare(cell)
        self._recheck.begin(rechecked)
        self._holder_side.notify_of_strays()

    # --- tools -------------------------------------------------------------------------------------------------------

    @property
    def _is_alone(self) -> bool:
        return self._join_handshake.done.is_set() and not self._overlay.contacts()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
