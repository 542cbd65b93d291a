"""`CatchUp` runs one sync attempt of one cell for its owner, from the lookup of the holders to the notices.

The owner asks every peer that may hold records of the cell: the peer next nearest to the anchor (the owner before, or
the next one), all backups, and the providers, which sent `CellsHeld` or were named by an asked peer. A peer that
crawls the cell stops and passes its sites' clocks on. The owner merges what differs and opens the cell; the backups
are told to keep their copies, all others to drop theirs. Merging is a join in a lattice, so an attempt may be repeated
or cut short at any point. The states of an attempt are in sync_progress.py; sync.py decides when a cell is due.

Tests: tests/replication/owner/test_sync.py
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from kadcrawl.errors import RemoteError
from kadcrawl.keys import Cell
from kadcrawl.link.peer_score import LogLimiter, left_out_note
from kadcrawl.link.wire.messages import BATCH_MAX, CellState, CellSummary, Contact
from kadcrawl.overlay.addresses import ip_version
from kadcrawl.replication.owner.batched_cell_queries import BatchedCellQueries
from kadcrawl.replication.owner.cell_opener import CellOpener
from kadcrawl.replication.owner.owner_parts import OwnerParts
from kadcrawl.replication.owner.release_wait import ReleaseWait
from kadcrawl.replication.owner.sync_progress import SyncAttempt, SyncProgress, SyncState
from kadcrawl.replication.owner.work_quota import FAILED_COST, WorkQuota
from kadcrawl.replication.placement.placement import FIRST_BACKUP, OWNER, holders, nearer
from kadcrawl.replication.replicator import held_of

RELEASE_POLL_S = 0.2
"""Shortest time between two questions to a peer that still releases the cell."""
RELEASE_POLL_MOST_S = 2.0
"""Longest time between two such questions."""
RELEASE_POLL_SHARE = 0.1
"""Wait between two such questions, as a share of the attempt so far: a slow peer may be releasing many cells."""
LARGE_KEYS = 20_000
"""Keys from which a cell is large: to compare it takes tens of milliseconds of both peers' CPU."""
LARGE_MERGES_MAX = 4
"""Large cells that are merged at the same time. All at once, the first of them would open with the last."""
MERGES_MAX = 16
"""Other cells that are merged at the same time, for the same reason. Cells without a difference open before."""
SYNCS_MAX = BATCH_MAX
"""Cells synced at the same time: as many as one message asks about. With twice as many other work waits longer."""

log = logging.getLogger(__name__)


class Round(NamedTuple):
    """The outcome of asking each unasked peer once."""

    is_over: bool
    """The cell cannot be taken over now: a peer is silent, or a nearer owner may live."""
    releasing: list[tuple[Contact, CellState]]
    """The peers that still crawl the cell."""
    has_silent: bool
    """True if a peer that may live did not answer."""


class CatchUp:
    """The sync attempts of one peer."""

    def __init__(self, parts: OwnerParts, opener: CellOpener) -> None:
        self._parts = parts
        self._overlay = parts.overlay
        self._store = parts.store
        self._holdings = parts.holdings
        self._crawl = parts.crawl
        self._opener = opener
        self._cell_queries = BatchedCellQueries(parts.overlay, parts.client, parts.spawn)
        self.slots = asyncio.Semaphore(SYNCS_MAX)
        """Limits the syncs at the same time. A caller of `once` holds a slot."""
        self._large_merges = asyncio.Semaphore(LARGE_MERGES_MAX)
        self._merges = asyncio.Semaphore(MERGES_MAX)
        self._release_wait = ReleaseWait()
        self._log_limiter = LogLimiter()
        self.providers = parts.holder_side.providers
        self.work_quota = WorkQuota()
        self._absences = 0
        self._newcomers = 0
        self._lost_any_peer = False
        self.unsure_since: float | None = None
        """Last loop second at which another peer may have owned cells of this peer, without a word about them."""
        self.count = 0
        """Syncs completed so far."""

    # --- news of the swarm -------------------------------------------------------------------------------------------

    def peer_joined(self) -> None:
        """Note a newcomer: attempts in progress may have chosen other backups."""
        self._newcomers += 1

    def peer_lost(self, peer: bytes) -> None:
        """Note that a peer, by ID, is dead or gone."""
        self._lost_any_peer = True
        self.unsure_since = self._now()
        self.providers.lost(peer)

    def was_away(self) -> None:
        """Note that this peer was away: answers to earlier questions are void."""
        self._absences += 1
        self.unsure_since = self._now()

    @property
    def must_hold_empty_cells(self) -> bool:
        """True if the sites of a cell without records wait a full delay: a lost peer may have crawled them."""
        return self._lost_any_peer

    # --- one attempt -------------------------------------------------------------------------------------------------

    async def once(self, progress: SyncProgress) -> bool:
        """Run one attempt. Return whether it completed.

        Raises RemoteError when a peer that is needed fails in the middle.
        """
        loop = asyncio.get_running_loop()  # At the end of a world there is none any more.
        cell, completed = progress.cell, False
        attempt = SyncAttempt(loop.time(), self._absences, self._newcomers, not self._holdings.is_open(cell))
        try:
            completed = await self._once(progress, attempt)
        finally:
            if attempt.left_closed or not completed:
                self._release_wait.waited(cell, loop.time() - attempt.began, loop.time())
        return completed

    def waited(self, cell: Cell, seconds: float) -> None:
        """Note that a cell was left closed, or not synced, for so many seconds until now."""
        self._release_wait.waited(cell, seconds, self._now())

    async def pause(self, seconds: float) -> None:
        """Wait, and leave the slot to another cell meanwhile."""
        self.slots.release()
        try:
            await asyncio.sleep(seconds)
        finally:
            await self.slots.acquire()

    async def _once(self, progress: SyncProgress, attempt: SyncAttempt) -> bool:
        progress.move(SyncState.LOCATING)
        if not await self._locate(progress.cell, attempt):
            return False
        progress.move(SyncState.ASKING)
        if not await self._ask_all(progress, attempt) or not self._is_current(progress.cell, attempt):
            return False
        progress.move(SyncState.MERGING)
        holds_records = await self._merge(progress.cell, attempt)
        if not self._may_open(progress.cell, attempt):
            return False
        progress.move(SyncState.OPENED)
        self._open(progress, attempt, holds_records=holds_records)
        return True

    def _is_current(self, cell: Cell, attempt: SyncAttempt) -> bool:
        """Return whether the answers of an attempt still count, and this peer may still own the cell."""
        return attempt.absences == self._absences and self._parts.may_own(cell)

    async def _locate(self, cell: Cell, attempt: SyncAttempt) -> bool:
        """Look up the holders and plan the questions. Return False if another peer owns the cell."""
        me = self._overlay.me
        copies = self._holdings.copies
        nearest = [await self._overlay.nearest(key, copies) for key in self._holdings.places(cell)]
        chosen = holders(nearest)
        if chosen[OWNER].id != me.id:
            return False
        attempt.choose(chosen, nearest[OWNER], self._holdings.others(cell), me.id)
        attempt.was_patient = self._is_patient(cell, attempt)
        if attempt.was_patient:
            attempt.ask_too(self._heard_providers(cell), me.id)
        else:
            self._say("impatient", f"cell={cell} sources={len(self.providers.of(cell))}")
        return True

    async def _merge(self, cell: Cell, attempt: SyncAttempt) -> bool:
        """Own the cell, merge the records of other peers, and bring the backups up to date.

        Returns whether any peer held records of the cell before. Raises RemoteError.
        """
        self._holdings.own(cell, self._now())
        for _, answer in attempt.all_answers():
            self._crawl.learn_clocks(cell, answer.sites)
        # From now on changes go to the new backups; older records are compared.
        self._holdings.back_up_at(cell, attempt.backups)
        holds_records = cell in self._store.cells or attempt.others_hold_records()
        answers = attempt.in_merge_order()
        ours = held_of(self._store, cell)
        if any(answer.held != ours for _, answer in answers):
            is_large = max(held.keys for held in [ours, *(answer.held for _, answer in answers)]) >= LARGE_KEYS
            async with self._large_merges if is_large else self._merges:
                await self._merge_answers(cell, attempt, answers)
        if any(answer.held.keys for contact, answer in answers if not attempt.is_backup(contact)):
            await self._store.journal.durable()  # Before any peer is told to drop it.
        return holds_records

    async def _merge_answers(
        self, cell: Cell, attempt: SyncAttempt, answers: Sequence[tuple[Contact, CellState]]
    ) -> None:
        """Merge what differs in both directions. Raises RemoteError."""
        held = {contact.id: answer.held for contact, answer in answers}
        for contact, answer in answers:
            if answer.held != held_of(self._store, cell):
                near, is_backup = contact.id in attempt.near, attempt.is_backup(contact)
                await self._take_from(contact, answer.held, is_near=near, push=is_backup)
                if is_backup:
                    held[contact.id] = held_of(self._store, cell)
        for contact, _ in answers:
            if attempt.is_backup(contact) and held[contact.id] != held_of(self._store, cell):
                await self._reconcile(contact, held[contact.id], push=True)

    def _may_open(self, cell: Cell, attempt: SyncAttempt) -> bool:
        """Return whether the cell may be opened after the merge."""
        if not self._is_current(cell, attempt) or cell not in self._holdings.owned:
            return False
        target, me = self._holdings.places(cell)[OWNER], self._overlay.me
        unheard = [contact for peer, contact in self._heard_providers(cell).items() if peer not in attempt.asked]
        is_open = self._holdings.is_open(cell)
        # A provider that came meanwhile claims the cell, or leaves, or may be crawling it: hear it first.
        return not (attempt.was_patient and any(nearer(contact, me, target) or not is_open for contact in unheard))

    def _open(self, progress: SyncProgress, attempt: SyncAttempt, *, holds_records: bool) -> None:
        """Open the cell, and tell each asked peer to keep or to drop its copy."""
        cell, answers = progress.cell, attempt.in_merge_order()
        owned = self._holdings.owned[cell]
        for _, answer in answers:
            self._crawl.leave_in_hand(cell, answer.in_progress)
        was_released = attempt.was_released()
        hold = (holds_records or self.must_hold_empty_cells) and not was_released
        unsure_since = None if was_released else self._unsure_since(attempt, holds_records=holds_records)
        self._opener.open(cell, hold=hold, unsure_since=unsure_since)
        owned.set_whole(owned.backups == tuple(attempt.backups))
        self.count += 1
        for role, contact in enumerate(attempt.backups, FIRST_BACKUP):
            self._parts.replicator.keep(contact, cell, role)
        progress.hear(attempt.answers)
        for contact, answer in answers:
            self.providers.discard(cell, contact.id)
            if attempt.must_drop(contact, answer):
                self._parts.replicator.drop(contact, answer.held)
        came = attempt.newcomers != self._newcomers
        if came and not all(attempt.is_backup(contact) for contact in self._known_backups(cell)):
            progress.request_again()  # A nearer peer came during the attempt.

    def _unsure_since(self, attempt: SyncAttempt, *, holds_records: bool) -> float | None:
        """Return the last loop second at which a peer that did not say so may have leased shared clocks of a cell."""
        now = self._now()
        if holds_records or attempt.lacks_clocks():
            return now
        lost_s = attempt.lost_s()
        known = [self.unsure_since, None if lost_s is None else now - lost_s]
        return max((at for at in known if at is not None), default=None)

    # --- asking ------------------------------------------------------------------------------------------------------

    async def _ask_all(self, progress: SyncProgress, attempt: SyncAttempt) -> bool:
        """Ask all peers of the attempt for their holdings. Return False if the cell cannot be taken over now."""
        cell = progress.cell
        while unasked := attempt.unasked:
            if progress.state is SyncState.RELEASING:
                progress.move(SyncState.ASKING)
            got = await asyncio.gather(*(self._cell_queries.ask(contact, cell) for contact in unasked))
            outcome = self._note_answers(cell, attempt, list(zip(unasked, got, strict=True)))
            if outcome.is_over:
                return False
            if outcome.releasing and not attempt.saved and self._parts.may_own(cell):
                await self._save(cell, attempt, outcome.releasing)
                attempt.saved = True
            if outcome.has_silent:
                return False
            if outcome.releasing:
                progress.move(SyncState.RELEASING)
                await self.pause(self._release_poll_s(cell, attempt))
                if [one.id for one in self._known_backups(cell)] != [one.id for one in attempt.backups]:
                    return False  # Other peers are to be the backups by now.
            if not self._parts.may_own(cell):
                return False
        if progress.state is SyncState.RELEASING:
            progress.move(SyncState.ASKING)
        return True

    def _note_answers(self, cell: Cell, attempt: SyncAttempt, got: Sequence[tuple[Contact, CellState | None]]) -> Round:
        """Take in the answers of one round, and add the peers they name to the questions."""
        me = self._overlay.me
        has_silent = False
        is_patient = self._is_patient(cell, attempt)
        releasing: list[tuple[Contact, CellState]] = []
        for contact, answer in got:
            if answer is None:
                if self._cell_queries.is_gone(contact):
                    del attempt.asked[contact.id]
                    self.providers.discard(cell, contact.id)
                else:
                    has_silent = True
                continue
            # Named only once: after its release a peer names us, and if this attempt fails they must still be asked.
            others = [one for one in answer.others if one.id != me.id and ip_version(one.host) is not None]
            self.providers.add_named(cell, others)
            is_heard = contact.id in attempt.placed or self.work_quota.has_quota(contact.id, self._now())
            if answer.releasing and is_patient and is_heard:
                self.work_quota.charge(contact.id, FAILED_COST, self._now())
                releasing.append((contact, answer))
                self._close(cell, attempt)
                continue
            if answer.releasing:
                self._say("unreleased", f"cell={cell} by={contact}")  # As if it could not tell its clocks.
                answer = replace(answer, releasing=False, clocks_incomplete=True)
            attempt.answers[contact.id] = answer
            if answer.rival is not None:
                # A nearer peer lives, says the answer. The overlay checks that, and the cell is synced again.
                self._overlay.suspect(answer.rival)
                return Round(is_over=True, releasing=releasing, has_silent=has_silent)
            if is_patient:
                now = self._now()
                attempt.ask_too({one.id: one for one in others if self.work_quota.has_quota(one.id, now)}, me.id)
        return Round(is_over=False, releasing=releasing, has_silent=has_silent)

    def _release_poll_s(self, cell: Cell, attempt: SyncAttempt) -> float:
        """Return the seconds until the releasing peers are asked again."""
        now = self._now()
        share_s = min(RELEASE_POLL_SHARE * (now - attempt.began), RELEASE_POLL_MOST_S)
        return max(RELEASE_POLL_S, min(share_s, self._release_wait.remaining_s(cell, attempt.began, now)))

    def _heard_providers(self, cell: Cell) -> dict[bytes, Contact]:
        """Return the providers of a cell that have quota left. Forget the others."""
        now = self._now()
        for peer in self.providers.of(cell):
            if not self.work_quota.has_quota(peer, now):
                self.providers.discard(cell, peer)
        return self.providers.of(cell)

    def _known_backups(self, cell: Cell) -> list[Contact]:
        """Return the peers that are to be the cell's backups, of all known peers."""
        places, copies = self._holdings.places(cell), self._holdings.copies
        return holders([self._overlay.nearest_known(place, copies) for place in places])[FIRST_BACKUP:]

    def _close(self, cell: Cell, attempt: SyncAttempt) -> None:
        """Close a cell that another peer still crawls."""
        owned = self._holdings.owned.get(cell)
        if owned is not None and owned.open:
            owned.set_closed()
            attempt.left_closed = True
            self._crawl.close(cell)

    # --- merging -----------------------------------------------------------------------------------------------------

    async def _save(self, cell: Cell, attempt: SyncAttempt, releasing: Sequence[tuple[Contact, CellState]]) -> None:
        """Copy the records of peers that still crawl the cell to the new holders.

        The last requests of those peers may take minutes, and no other peer may have the records: the first peer of a
        swarm has no backups, and a releasing peer replaces no backup that dies.
        """
        self._holdings.own(cell, self._now())
        self._holdings.back_up_at(cell, attempt.backups)
        for contact, answer in releasing:
            if answer.held != held_of(self._store, cell):
                await self._take_from(contact, answer.held, is_near=contact.id in attempt.near, push=False)
        for contact in attempt.backups:
            at_backup = attempt.answers.get(contact.id)
            if at_backup is not None and at_backup.held != held_of(self._store, cell):
                await self._reconcile(contact, at_backup.held, push=True)

    async def _take_from(self, contact: Contact, held: CellSummary, *, is_near: bool, push: bool) -> None:
        """Merge the records of a peer. Skip its DONE records if it is not near the cell. `push` to a backup."""
        cell = Cell(held.cell)
        trust_done = is_near or self._parts.trust_policy.is_settling(cell, self._now())
        if not trust_done:
            self._say("unbelieved", f"cell={cell} from={contact} keys={held.keys} pending={held.pending}")
        await self._reconcile(contact, held, push=push, trust_done=trust_done)

    async def _reconcile(self, contact: Contact, held: CellSummary, *, push: bool, trust_done: bool = True) -> None:
        try:
            await self._parts.anti_entropy.reconcile(contact, held, push=push, trust_done=trust_done)
        except RemoteError:
            self.work_quota.charge(contact.id, FAILED_COST, self._now())
            raise

    # --- tools -------------------------------------------------------------------------------------------------------

    def _say(self, what: str, fields: str) -> None:
        """Log a limited number of warnings, as a peer can keep thousands of cells closed."""
        left_out = self._log_limiter.count(what, self._now())
        if left_out is not None:
            log.warning("sync.%s %s%s", what, fields, left_out_note(left_out))

    def _is_patient(self, cell: Cell, attempt: SyncAttempt) -> bool:
        """Return whether the cell has waiting time left."""
        return self._release_wait.may_wait(cell, attempt.began, self._now())

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
