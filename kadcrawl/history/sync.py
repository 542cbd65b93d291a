"""sync(cell): how whoever becomes the owner of a cell catches up, whatever happened before.

A join, a leave, a crash, a restart with an old disk or none, a healed partition and the periodic repair differ only in
why a cell is synced. The owner asks everybody who may know of the cell what they have of it: the peer next nearest to
the anchor (who owned it before, or will), both backups, and whoever has said `Have` (see `tell`, the other side). Who
was crawling it stops and passes its clocks on. What differs is exchanged, the cell is opened, its backups are told
to keep it and everybody else to drop it. Merging is a join in a lattice, so a sync may be repeated or cut short.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Protocol

from kadcrawl.errors import RemoteError, StorageError
from kadcrawl.history.arrival import Arrival, packed
from kadcrawl.history.copies import Copies, digest_of
from kadcrawl.history.exchange import Exchanger
from kadcrawl.history.holdings import Holdings
from kadcrawl.history.inquiry import Inquiry
from kadcrawl.history.placement import FIRST_BACKUP, HOLDERS, OWNER, check_cell, holders, placement_keys
from kadcrawl.history.store import Store
from kadcrawl.history.tally import EMPTY
from kadcrawl.history.tell import Crawl, Telling
from kadcrawl.keys import Cell, anchor
from kadcrawl.link.client import LinkClient
from kadcrawl.link.messages import (
    BATCH_MAX,
    CLAIMED_MAX,
    CellAnswer,
    CellDigest,
    Claim,
    Claimed,
    Contact,
    Have,
    Taken,
)

DEADLINE_S = 5.0
RETRY_S = 0.5
RELEASE_POLL_S = 0.2
SOURCES_MAX = 8
"""Peers remembered for one cell as having something of it."""
SYNCS_MAX = 2 * BATCH_MAX
"""Cells synced at the same time."""
WHOLE_POLL_S = 0.1
REPAIR_S = 10.0
"""How often an owner compares digests with its backups."""
SILENCE_MAX_S = 3.5 * REPAIR_S
"""An owner that has not spoken of a cell for this long is asked whether it still is."""
RECHECK_ROUNDS = 6
"""Repairs after which the holders of a cell are worked out anew."""

log = logging.getLogger(__name__)


class Overlay(Protocol):
    """What sync needs of the overlay."""

    @property
    def me(self) -> Contact: ...
    def owns(self, cell: Cell) -> bool: ...
    def is_live(self, peer: bytes) -> bool: ...
    def contacts(self) -> list[Contact]: ...
    def siblings(self) -> list[Contact]: ...
    def nearest_known(self, target: int, count: int) -> list[Contact]: ...
    async def nearest(self, target: int, count: int) -> list[Contact]: ...
    def suspect(self, contact: Contact) -> None: ...


class CellSync:
    """All cells of one peer."""

    def __init__(
        self,
        overlay: Overlay,
        client: LinkClient,
        store: Store,
        holdings: Holdings,
        copies: Copies,
        exchanger: Exchanger,
        telling: Telling,
        crawl: Crawl,
        cell_bits: int,
    ) -> None:
        self._overlay = overlay
        self._client = client
        self._store = store
        self._holdings = holdings
        self._copies = copies
        self._exchanger = exchanger
        self._telling = telling
        self._crawl = crawl
        self._bits = cell_bits
        self._syncing: dict[Cell, bool] = {}
        """Cell being synced -> whether to sync it once more."""
        self._places = asyncio.Semaphore(SYNCS_MAX)
        self._sources: defaultdict[Cell, dict[bytes, Contact]] = defaultdict(dict)
        """Who has said `Have` since the last sync."""
        self._opened: defaultdict[Cell, list[asyncio.Future[None]]] = defaultdict(list)
        self._inquiry = Inquiry(overlay, client, lambda work, name: self.spawn(work, name))
        self._arrival = Arrival(overlay, client, self.want)
        self._absences = 0
        """How often this peer was away: what was asked before says nothing after."""
        self._newcomers = 0
        """How many peers have come."""
        self._round = 0
        self.syncs = 0
        """Cells synced so far."""
        self.spawn: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]
        copies.on_unlike = self._unlike
        copies.on_dead = self.lost
        telling.on_own = self.want
        telling.on_claimed = self._claimed

    # --- what others ask of it -----------------------------------------------------------------------------------

    def is_syncing(self, cell: Cell) -> bool:
        """Return whether the cell is being synced just now."""
        return cell in self._syncing

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
            if not self._holdings.is_open(cell) and not self._telling.leaving and self._overlay.owns(cell):
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

    def want(self, cell: Cell, source: Contact | None = None) -> None:
        """Sync a cell soon; `source` has something of it."""
        check_cell(cell, self._bits)
        if source is not None and source.id != self._overlay.me.id:
            sources = self._sources[cell]
            if source.id in sources or len(sources) < SOURCES_MAX:
                sources[source.id] = source
        if cell in self._syncing:
            self._syncing[cell] = True
        elif not self._overlay.contacts() and not self._sources.get(cell) and not self._telling.leaving:
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
                    delivered = [await self._copies.delivered(contact) for contact in backups]
                    if all(delivered) and owned.whole and owned.backups == backups:
                        break
                if cell not in self._syncing and not owned.whole:
                    self.want(cell)
                await asyncio.sleep(WHOLE_POLL_S)
        return True

    def joined(self, newcomer: Contact) -> None:
        """A peer has come: cells that it is to hold in our place are told to their owners (P1 1.3.2)."""
        self._newcomers += 1
        ours, our_backups = self._holdings.joined(newcomer.number)
        for cell in ours:
            self._telling.tell(cell)
        for cell in [*our_backups, *self._holdings.short()]:
            self.want(cell)

    def lost(self, peer: Contact) -> None:
        """A peer is dead or gone: find other backups for our cells, and other owners for its cells."""
        self._copies.lost(peer.id)
        self._sources_lost(peer.id)
        unsafe, orphans = self._holdings.lost(peer.id)
        for cell in unsafe:
            self.want(cell)
        for cell in orphans:
            self._telling.tell(cell)

    def close_all(self) -> None:
        """This peer was away: others may own its cells by now, so it crawls none before it has synced again."""
        self._absences += 1
        for cell in list(self._holdings.owned):
            self._crawl.close(cell)
            self._holdings.let_go(cell)
        for cell in self._store.cells:
            self._telling.tell(cell)
        if self._arrival.done.is_set():
            self.spawn(self._arrival.run(), "arrive")
            self._arrival.done.clear()

    async def run(self) -> None:
        """Sync what this peer came with, and repair now and then; until cancelled."""
        self._telling.tell_strays()
        self.spawn(self._arrival.run(), "arrive")
        while True:
            await asyncio.sleep(REPAIR_S)
            self._repair()

    # --- the owner's side ----------------------------------------------------------------------------------------

    def _open_alone(self, cell: Cell) -> None:
        """There is nobody else: what we have is all there is."""
        owned = self._holdings.own(cell)
        self._holdings.back_up_at(cell, ())
        owned.whole = True
        self._open(cell, hold=cell in self._store.cells)

    def _open(self, cell: Cell, *, hold: bool) -> None:
        owned = self._holdings.owned[cell]
        self._telling.told(cell)
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
            async with self._places:
                while self._overlay.owns(cell) and not self._telling.leaving:
                    self._syncing[cell] = False
                    try:
                        settled = await self._catch_up(cell)
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
                        await asyncio.sleep(RETRY_S)
        finally:
            del self._syncing[cell]
            if not self._holdings.is_open(cell):
                self._sources.pop(cell, None)
        if not self._holdings.is_open(cell) and cell in self._store.cells:
            self._telling.tell(cell)

    async def _catch_up(self, cell: Cell) -> bool:
        """Go once through the whole of it; return whether it came to its end."""
        await self._arrival.done.wait()
        absences, newcomers = self._absences, self._newcomers
        me = self._overlay.me
        keys = placement_keys(cell, self._bits)
        nearest = [await self._overlay.nearest(key, HOLDERS) for key in keys]
        chosen = holders(nearest)
        if chosen[OWNER].id != me.id:
            return False
        backups = chosen[FIRST_BACKUP:]
        before = self._holdings.others(cell)
        asked = {contact.id: contact for contact in [*backups, *nearest[OWNER][1:2], *before]} | self._sources[cell]
        asked.pop(me.id, None)
        answers = await self._ask_all(cell, asked)
        if answers is None or absences != self._absences or not self._overlay.owns(cell):
            return False
        owned = self._holdings.own(cell)
        released = [answer for _, answer in answers if answer.released]
        for answer in released:
            self._crawl.learn_clocks(answer.sites)
        # From now on changes go to the new backups; what was before is compared.
        self._holdings.back_up_at(cell, backups)
        anything = cell in self._store.cells or any(answer.held.keys for _, answer in answers)
        at_backups = {contact.id for contact in backups}
        answers.sort(key=lambda one: (not one[1].released, -one[1].held.keys))
        for contact, answer in answers:
            if answer.held != self._held(cell):
                await self._exchanger.reconcile(contact, answer.held, push=False)
        for contact, answer in answers:
            if contact.id in at_backups and answer.held != self._held(cell):
                await self._exchanger.reconcile(contact, answer.held, push=True)
        if any(answer.held.keys for contact, answer in answers if contact.id not in at_backups):
            await self._store.durable()  # Before anybody is told to drop it.
        if absences != self._absences or not self._overlay.owns(cell) or cell not in self._holdings.owned:
            return False
        if any(_nearer(one, me, keys[OWNER]) for peer, one in self._sources[cell].items() if peer not in asked):
            return False  # It has claimed the cell meanwhile, or leaves: hear it first.
        self._open(cell, hold=anything and not released)
        owned.whole = owned.backups == tuple(backups)
        self.syncs += 1
        for role, contact in enumerate(backups, FIRST_BACKUP):
            self._copies.keep(contact, cell, role)
        for contact, answer in answers:
            if contact.id not in at_backups:
                self._sources[cell].pop(contact.id, None)
                if answer.held.keys:
                    self._copies.drop(contact, answer.held)
        for contact in backups:
            self._sources[cell].pop(contact.id, None)
        if not self._sources[cell]:
            del self._sources[cell]
        if newcomers != self._newcomers:
            known = holders([self._overlay.nearest_known(key, HOLDERS) for key in keys])
            if any(contact.id not in at_backups for contact in known[FIRST_BACKUP:]):
                self._syncing[cell] = True  # Somebody nearer came while we were at it.
        return True

    async def _ask_all(self, cell: Cell, asked: dict[bytes, Contact]) -> list[tuple[Contact, CellAnswer]] | None:
        """Ask everybody what they have of a cell; None if it cannot be taken over now."""
        me = self._overlay.me
        answers: dict[bytes, CellAnswer] = {}
        while unasked := [contact for peer, contact in asked.items() if peer not in answers]:
            got = await asyncio.gather(*(self._inquiry.ask(contact, cell) for contact in unasked))
            silent = releasing = False
            for contact, answer in zip(unasked, got, strict=True):
                if answer is None:
                    if self._inquiry.is_gone(contact):
                        del asked[contact.id]
                        self._sources[cell].pop(contact.id, None)
                    else:
                        silent = True
                    continue
                # Told only once: after its release it names us, and they must still be asked if this try fails.
                self._sources[cell] |= {one.id: one for one in answer.others if one.id != me.id}
                if answer.releasing:
                    releasing = True
                    continue
                answers[contact.id] = answer
                if answer.rival is not None:
                    # Somebody nearer lives, they say: see for ourselves, and come back.
                    self._overlay.suspect(answer.rival)
                    return None
                asked |= {one.id: one for one in answer.others if one.id not in asked and one.id != me.id}
            if silent:
                return None
            if releasing:
                await asyncio.sleep(RELEASE_POLL_S)
            if not self._overlay.owns(cell) or self._telling.leaving:
                return None
        return [(contact, answers[peer]) for peer, contact in asked.items()]

    def _held(self, cell: Cell) -> CellDigest:
        return digest_of(cell, self._store.cells.get(cell, EMPTY))

    def _unlike(self, contact: Contact, cell: Cell) -> None:
        if self._holdings.is_open(cell):
            self.want(cell, contact)

    def _claimed(self, cell: Cell, claimant: Contact) -> None:
        if cell in self._syncing:
            self.want(cell, claimant)  # We are about to open it ourselves.

    def _repair(self) -> None:
        """Compare every cell owned here with its backups; tell of every cell whose owner is silent."""
        now = self._now()
        self._round += 1
        for cell, owned in list(self._holdings.owned.items()):
            if not self._overlay.owns(cell):
                self._telling.tell(cell)
            elif not owned.open or not owned.whole or (self._round + cell) % RECHECK_ROUNDS == 0:
                self.want(cell)
            elif cell in self._store.cells:
                for role, contact in enumerate(owned.backups, FIRST_BACKUP):
                    self._copies.keep(contact, cell, role)
        for cell in self._holdings.silent(now - SILENCE_MAX_S):
            self._telling.tell(cell)
        self._telling.tell_strays()

    def have(self, message: Have) -> Taken:
        """Somebody holds cells that we own, it says."""
        for held in message.cells:
            check_cell(held.cell, self._bits)
        taken: list[int] = []
        for held in message.cells:
            cell = Cell(held.cell)
            if self._overlay.owns(cell) and not self._telling.leaving:
                self.want(cell, message.holder)
                taken.append(cell)
        if not self._overlay.is_live(message.holder.id):
            self._overlay.suspect(message.holder)  # We may not know each other yet.
        return Taken(taken)

    def claim(self, message: Claim) -> Claimed:
        """A peer has come and asks which cells crawled here are its."""
        newcomer = message.newcomer
        if not self._overlay.is_live(newcomer.id):
            self._overlay.suspect(newcomer)
        me = self._overlay.me
        # It may be back without what it had, so soon that nobody has missed it.
        at_newcomer, of_newcomer = self._holdings.shared(newcomer.id)
        for cell in at_newcomer:
            self.want(cell)
        for cell in of_newcomer:
            self._telling.tell(cell)
        cells = [
            cell
            for cell in self._syncing
            if cell not in self._holdings.owned and _nearer(newcomer, me, anchor(cell, self._bits))
        ]
        cells += self._holdings.owned_nearer_to(newcomer.number)
        return Claimed(packed(cells[:CLAIMED_MAX]))

    # --- tools ---------------------------------------------------------------------------------------------------

    def _sources_lost(self, peer: bytes) -> None:
        for sources in self._sources.values():
            sources.pop(peer, None)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _nearer(one: Contact, other: Contact, target: int) -> bool:
    return one.number ^ target < other.number ^ target
