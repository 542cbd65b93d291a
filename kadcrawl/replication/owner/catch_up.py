"""One sync of one cell by its owner, from the asking to the settling (`sync` says when a cell is due for it).

Everybody who may know of the cell is asked what they have of it: the peer next nearest to the anchor (who owned it
before, or will), both backups, and whoever has said `CellsHeld` or was named by one of these. Who was crawling it
stops and passes its clocks on. What differs is exchanged, the cell is opened, its backups are told to keep it and
everybody else to drop it. Merging is a join in a lattice, so this may be repeated or cut short anywhere.

Tests: tests/replication/owner/test_sync.py
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol

from msgspec.structs import replace

from kadcrawl.errors import RemoteError
from kadcrawl.keys import Cell
from kadcrawl.link.client import LinkClient
from kadcrawl.link.peer_score import LogLimiter, left_out_note
from kadcrawl.link.wire.messages import BATCH_MAX, CellState, CellSummary, Contact
from kadcrawl.overlay.addresses import ip_version
from kadcrawl.replication.anti_entropy import AntiEntropy
from kadcrawl.replication.crawl_port import Crawl
from kadcrawl.replication.owner.batched_cell_queries import BatchedCellQueries
from kadcrawl.replication.owner.providers import Providers
from kadcrawl.replication.owner.release_wait import ReleaseWait
from kadcrawl.replication.owner.trust import TrustPolicy
from kadcrawl.replication.owner.work_quota import FAILED_COST, WorkQuota
from kadcrawl.replication.placement.holdings import Holdings
from kadcrawl.replication.placement.placement import FIRST_BACKUP, HOLDERS, OWNER, holders, nearer, placement_keys
from kadcrawl.replication.replicator import Replicator, held_of
from kadcrawl.store.store import Store

RELEASE_POLL_S = 0.2
RELEASE_POLL_MOST_S = 2.0
RELEASE_POLL_SHARE = 0.1
"""Of how long it has taken so far: who is slow to release many cells is asked for each of them again and again."""
SYNCS_MAX = BATCH_MAX
"""Cells synced at the same time: as many as one message asks about. With twice as many other work waits longer."""

log = logging.getLogger(__name__)


class LookupOverlay(Protocol):
    """What catching up needs of the overlay."""

    @property
    def me(self) -> Contact: ...
    def is_live(self, peer: bytes) -> bool: ...
    def nearest_known(self, target: int, count: int) -> list[Contact]: ...
    async def nearest(self, target: int, count: int) -> list[Contact]: ...
    def suspect(self, contact: Contact) -> None: ...


class CatchUp:
    """How this peer catches up with cells it owns."""

    def __init__(
        self,
        overlay: LookupOverlay,
        client: LinkClient,
        store: Store,
        holdings: Holdings,
        replicator: Replicator,
        anti_entropy: AntiEntropy,
        crawl: Crawl,
        cell_bits: int,
        trust_policy: TrustPolicy,
        *,
        may_own: Callable[[Cell], bool],
        want: Callable[[Cell], None],
        open_cell: Callable[[Cell, bool], None],
        spawn: Callable[[Coroutine[Any, Any, None], str], object],
    ) -> None:
        """`open_cell(cell, hold)` lets a cell be crawled; `want` has it synced once more; `spawn` starts a task."""
        self._overlay = overlay
        self._store = store
        self._holdings = holdings
        self._replicator = replicator
        self._anti_entropy = anti_entropy
        self._crawl = crawl
        self._bits = cell_bits
        self._trust_policy = trust_policy
        self._may_own = may_own
        self._want = want
        self._open = open_cell
        self._cell_queries = BatchedCellQueries(overlay, client, spawn)
        self.places = asyncio.Semaphore(SYNCS_MAX)
        """Whoever calls `once` holds one."""
        self._release_wait = ReleaseWait()
        self._lines = LogLimiter()
        self._closed: set[Cell] = set()
        """Those of the cells at hand that are closed, or were."""
        self.providers = Providers()
        self.work_quota = WorkQuota()
        self.absences = 0
        """How often this peer was away: what was asked before says nothing after."""
        self.newcomers = 0
        """How many peers have come."""
        self.bereaved = False
        """Whether a peer was ever lost: it may have asked a site of a cell of which nobody else has anything."""
        self.count = 0
        """Cells caught up with so far."""

    async def once(self, cell: Cell) -> bool:
        """Go once through the whole of it; return whether it came to its end.

        Raises RemoteError when somebody who is needed fails in the middle.
        """
        loop = asyncio.get_running_loop()  # At the end of a world there is none any more.
        began, settled = loop.time(), False
        if not self._holdings.is_open(cell):
            self._closed.add(cell)
        try:
            settled = await self._once(cell, began)
        finally:
            if cell in self._closed or not settled:
                self._release_wait.waited(cell, loop.time() - began, loop.time())
            self._closed.discard(cell)
        return settled

    def waited(self, cell: Cell, seconds: float) -> None:
        """A cell was left closed, or unsettled, for so long, until now."""
        self._release_wait.waited(cell, seconds, self._now())

    async def _once(self, cell: Cell, began: float) -> bool:
        absences, newcomers = self.absences, self.newcomers
        me = self._overlay.me
        keys = placement_keys(cell, self._bits)
        nearest = [await self._overlay.nearest(key, HOLDERS) for key in keys]
        chosen = holders(nearest)
        if chosen[OWNER].id != me.id:
            return False
        backups = chosen[FIRST_BACKUP:]
        before = {contact.id: contact for contact in self._holdings.others(cell)}
        known = {contact.id: contact for contact in [*backups, *nearest[OWNER][1:2]]}
        near = {contact.id for contact in [*backups, *nearest[OWNER]]}
        # Where a peer is that we know others do not say.
        asked = known | before
        placed = set(asked)
        if is_patient := self._is_patient(cell, began):
            asked |= self._heard_providers(cell) | asked
        else:
            self._say("impatient", f"cell={cell} sources={len(self.providers.of(cell))}")
        asked.pop(me.id, None)
        answers = await self._ask_all(cell, asked, placed, near, backups, began)
        if answers is None or absences != self.absences or not self._may_own(cell):
            return False
        owned = self._holdings.own(cell, self._now())
        released = any(answer.released for _, answer in answers) and not any(
            answer.clocks_incomplete for _, answer in answers
        )
        for _, answer in answers:
            self._crawl.learn_clocks(cell, answer.sites)
        # From now on changes go to the new backups; what was before is compared.
        self._holdings.back_up_at(cell, backups)
        anything = cell in self._store.cells or any(answer.held.keys for _, answer in answers)
        at_backups = {contact.id for contact in backups}
        answers.sort(key=lambda one: (not one[1].released, -one[1].held.keys))
        for contact, answer in answers:
            if answer.held != held_of(self._store, cell):
                await self._take_from(contact, answer.held, is_near=contact.id in near)
        for contact, answer in answers:
            if contact.id in at_backups and answer.held != held_of(self._store, cell):
                await self._reconcile(contact, answer.held, push=True)
        if any(answer.held.keys for contact, answer in answers if contact.id not in at_backups):
            await self._store.journal.durable()  # Before anybody is told to drop it.
        if absences != self.absences or not self._may_own(cell) or cell not in self._holdings.owned:
            return False
        unheard = [contact for peer, contact in self._heard_providers(cell).items() if peer not in asked]
        if is_patient and any(nearer(contact, me, keys[OWNER]) or not owned.open for contact in unheard):
            return False  # It has claimed the cell meanwhile, or leaves, or may be crawling it: hear it first.
        for _, answer in answers:
            self._crawl.leave_in_hand(cell, answer.in_progress)
        self._open(cell, (anything or self.bereaved) and not released)
        owned.whole = owned.backups == tuple(backups)
        self.count += 1
        for role, contact in enumerate(backups, FIRST_BACKUP):
            self._replicator.keep(contact, cell, role)
        for contact, answer in answers:
            self.providers.discard(cell, contact.id)
            if contact.id not in at_backups and (answer.held.keys or contact.id in before):
                # A former backup may have nothing yet of what is on its way to it.
                self._replicator.drop(contact, answer.held)
        came = newcomers != self.newcomers
        if came and any(contact.id not in at_backups for contact in self._known_backups(cell)):
            self._want(cell)  # Somebody nearer came while we were at it.
        return True

    async def _reconcile(self, contact: Contact, held: CellSummary, *, push: bool, trust_done: bool = True) -> None:
        try:
            await self._anti_entropy.reconcile(contact, held, push=push, trust_done=trust_done)
        except RemoteError:
            self.work_quota.charge(contact.id, FAILED_COST, self._now())
            raise

    def _heard_providers(self, cell: Cell) -> dict[bytes, Contact]:
        """Return the sources of a cell, once those are forgotten who have had too much done on their word."""
        now = self._now()
        for peer in self.providers.of(cell):
            if not self.work_quota.has_quota(peer, now):
                self.providers.discard(cell, peer)
        return self.providers.of(cell)

    def _known_backups(self, cell: Cell) -> list[Contact]:
        """Return who the backups of a cell are to be, of those we know."""
        places = placement_keys(cell, self._bits)
        return holders([self._overlay.nearest_known(place, HOLDERS) for place in places])[FIRST_BACKUP:]

    async def _save(
        self,
        cell: Cell,
        near: set[bytes],
        backups: Sequence[Contact],
        releasing: Sequence[tuple[Contact, CellState]],
        answers: Mapping[bytes, CellState],
    ) -> None:
        """Copy what others still crawl to where it will be kept.

        Their last requests may take minutes, and perhaps nobody else has it: who began the swarm had no backups, and
        who is releasing a cell finds none in place of one that dies.
        """
        self._holdings.own(cell, self._now())
        self._holdings.back_up_at(cell, backups)
        for contact, answer in releasing:
            if answer.held != held_of(self._store, cell):
                await self._take_from(contact, answer.held, is_near=contact.id in near)
        for contact in backups:
            at_backup = answers.get(contact.id)
            if at_backup is not None and at_backup.held != held_of(self._store, cell):
                await self._reconcile(contact, at_backup.held, push=True)

    async def _take_from(self, contact: Contact, held: CellSummary, *, is_near: bool) -> None:
        """Take what a peer has of a cell and we lack; not what is done, if it is not where it may know."""
        cell = Cell(held.cell)
        believed = is_near or self._trust_policy.is_settling(cell, self._now())
        if not believed:
            self._say("unbelieved", f"cell={cell} from={contact} keys={held.keys} pending={held.pending}")
        await self._reconcile(contact, held, push=False, trust_done=believed)

    def _close(self, cell: Cell) -> None:
        """Somebody is still crawling it."""
        owned = self._holdings.owned.get(cell)
        if owned is not None and owned.open:
            owned.open = False
            self._closed.add(cell)
            self._crawl.close(cell)

    async def _ask_all(
        self,
        cell: Cell,
        asked: dict[bytes, Contact],
        placed: set[bytes],
        near: set[bytes],
        backups: Sequence[Contact],
        began: float,
    ) -> list[tuple[Contact, CellState]] | None:
        """Ask everybody what they have of a cell; None if it cannot be taken over now.

        `placed` are those who are asked whatever they had done on their word, `near` those who may know what is done.
        """
        me = self._overlay.me
        answers: dict[bytes, CellState] = {}
        saved = False
        while unasked := [contact for peer, contact in asked.items() if peer not in answers]:
            got = await asyncio.gather(*(self._cell_queries.ask(contact, cell) for contact in unasked))
            silent = False
            is_patient = self._is_patient(cell, began)
            releasing: list[tuple[Contact, CellState]] = []
            for contact, answer in zip(unasked, got, strict=True):
                if answer is None:
                    if self._cell_queries.is_gone(contact):
                        del asked[contact.id]
                        self.providers.discard(cell, contact.id)
                    else:
                        silent = True
                    continue
                # Told only once: after its release it names us, and they must still be asked if this try fails.
                others = [one for one in answer.others if one.id != me.id and ip_version(one.host) is not None]
                self.providers.add_named(cell, others)
                is_heard = contact.id in placed or self.work_quota.has_quota(contact.id, self._now())
                if answer.releasing and is_patient and is_heard:
                    self.work_quota.charge(contact.id, FAILED_COST, self._now())
                    releasing.append((contact, answer))
                    self._close(cell)
                    continue
                if answer.releasing:
                    self._say("unreleased", f"cell={cell} by={contact}")  # As if it could not tell its clocks.
                    answer = replace(answer, releasing=False, clocks_incomplete=True)
                answers[contact.id] = answer
                if answer.rival is not None:
                    # Somebody nearer lives, they say: see for ourselves, and come back.
                    self._overlay.suspect(answer.rival)
                    return None
                if is_patient:
                    now = self._now()
                    new = [one for one in others if one.id not in asked and self.work_quota.has_quota(one.id, now)]
                    asked |= {one.id: one for one in new}
            if releasing and not saved and self._may_own(cell):
                await self._save(cell, near, backups, releasing, answers)
                saved = True
            if silent:
                return None
            if releasing:
                now = self._now()
                share_s = min(RELEASE_POLL_SHARE * (now - began), RELEASE_POLL_MOST_S)
                patience_s = self._release_wait.remaining_s(cell, began, now)
                await self.pause(max(RELEASE_POLL_S, min(share_s, patience_s)))
                if [one.id for one in self._known_backups(cell)] != [one.id for one in backups]:
                    return None  # It is to be copied to others by now.
            if not self._may_own(cell):
                return None
        return [(contact, answers[peer]) for peer, contact in asked.items()]

    async def pause(self, seconds: float) -> None:
        """Wait, and leave the place to another cell meanwhile."""
        self.places.release()
        try:
            await asyncio.sleep(seconds)
        finally:
            await self.places.acquire()

    def _say(self, what: str, of: str) -> None:
        """Log it, but not of each of the thousands of cells that somebody may keep closed."""
        left_out = self._lines.count(what, self._now())
        if left_out is not None:
            log.warning("sync.%s %s%s", what, of, left_out_note(left_out))

    def _is_patient(self, cell: Cell, since: float) -> bool:
        return self._release_wait.may_wait(cell, since, self._now())

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
