"""`Cells` puts the replication of one peer together, and ties it to the store, the overlay and the crawl.

A cell is crawled here only between `open` and `close`. A link is acknowledged when it is journaled here and at every
backup of its cell. A peer that was stopped or starved for a moment may have lost cells without noticing, so it asks
its siblings before it goes on (absence_check.py).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from typing import Any

from msgspec import structs

from kadcrawl.crawl.build import CrawlComponents
from kadcrawl.crawl.scope.partitioner import UrlLocation
from kadcrawl.keys import Cell, Key, anchor
from kadcrawl.link.client import LinkClient
from kadcrawl.link.handler import Handler
from kadcrawl.link.wire.messages import (
    EPOCH_FILTER_BYTES_MAX,
    AbsenceSeen,
    AssignReplica,
    CellsHeld,
    CompareDigests,
    Contact,
    FindMyCells,
    GetEpochFilters,
    GetFilterPart,
    KeepEpochFilters,
    KeepFilterPart,
    KeptFilterPart,
    Link,
    Message,
    Reconcile,
    Replicate,
    Replicated,
    TakeOver,
    TakeOverAnswer,
    WasAway,
)
from kadcrawl.overlay import Overlay
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.replication.absence import AbsenceLog
from kadcrawl.replication.absence_check import AbsenceCheck
from kadcrawl.replication.anti_entropy import AntiEntropy
from kadcrawl.replication.cell_crawl import CellCrawl
from kadcrawl.replication.epoch_filter_chunks import IncomingEpochFilters
from kadcrawl.replication.epoch_filter_transfer import EpochFilterSync, encoded_filters, sent_by
from kadcrawl.replication.events import ReplicationEvents
from kadcrawl.replication.holder_side import HolderSide
from kadcrawl.replication.owner.owner_parts import OwnerParts, opened_together
from kadcrawl.replication.owner.sync import CellSync
from kadcrawl.replication.owner.trust import TrustPolicy
from kadcrawl.replication.peer_tasks import NotRunningError, PeerTasks
from kadcrawl.replication.placement.holdings import Holdings
from kadcrawl.replication.record_codec import Records
from kadcrawl.replication.replicator import Replicator
from kadcrawl.store.cell_digest import EMPTY
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.store import Store
from kadcrawl.store.visit import Visit
from kadcrawl.system.clock import Clock

OPEN_WAIT_S = 4.0
"""Longest wait of an offer for its cells to open. Then the sender tries again."""
WHOLE_WAIT_S = 5.0
"""Longest wait of an offer for the backups. Both waits together are shorter than the sender's deadline
(crawl/links/forwarder.py)."""
SETTLE_POLL_S = 0.1
"""Time between two looks at whether all cells are at their owners."""
BEAT_S = 0.5
"""Time between two beats of the stall detection."""
STALL_S = 1.5
"""Time between two beats after which other peers may have missed this peer (overlay/settings.py: two misses)."""
LOST_LATELY_S = 15.0
"""Seconds for which a peer tells that it has lost another: longer than a lease of a shared clock goes on
(crawl/clocks/clock_names.py)."""

AcceptLink = Callable[[Link, UrlLocation, float], None]
log = logging.getLogger(__name__)


class Cells:
    """The cells of one peer."""

    def __init__(
        self,
        components: CrawlComponents,
        overlay: Overlay,
        client: LinkClient,
        store: Store,
        activity: Activity,
        clock: Clock,
        min_interval_s: float,
    ) -> None:
        """Listen to the store and the overlay. Send nothing before `run`."""
        bits, copies = components.job.bits, components.job.copies
        self._components = components
        self._store = store
        self._activity = activity
        self._clock = clock
        self.events = ReplicationEvents()
        self.tasks = PeerTasks()
        self.crawl = CellCrawl(components, store, clock, self.events)
        self.holdings = Holdings(overlay.me.number, bits, copies)
        trust_policy = TrustPolicy(overlay, self.holdings, bits)
        self.records = Records(
            store,
            components.frontier,
            components.intake,
            components.partitioner,
            components.crawler.is_taken,
            clock.now,
            trust_policy,
        )
        self.replicator = Replicator(
            *(overlay, client, store, self.holdings, self.records.replication_batch, min_interval_s),
            spawn=self.tasks.spawn,
            events=self.events,
            has_time=components.has_time,
        )
        self.filter_sync = EpochFilterSync(
            client, store, partial(self.records.merge_epoch_filters, adopt=False), self.replicator.put_epochs
        )
        self._incoming = IncomingEpochFilters(EPOCH_FILTER_BYTES_MAX)
        self.anti_entropy = AntiEntropy(
            lambda: overlay.me,
            client,
            store,
            self.records.moving,
            self.records.merge,
            self.filter_sync,
            self.records.refused,
        )
        self.holder_side = HolderSide(overlay, client, store, self.holdings, self.crawl, bits, self.events)
        self.sync = CellSync(
            OwnerParts(
                overlay=overlay,
                client=client,
                store=store,
                holdings=self.holdings,
                replicator=self.replicator,
                anti_entropy=self.anti_entropy,
                holder_side=self.holder_side,
                crawl=self.crawl,
                trust_policy=trust_policy,
                cell_bits=bits,
                opened_together=opened_together(components.job.partition, bits),
                spawn=self.tasks.spawn,
                events=self.events,
            )
        )
        self.events.records_forgotten.append(components.crawler.wake)
        store.events.page_done.append(self._page_done)
        store.events.record_changed.append(self._changed)
        store.events.site_changed.append(self._site_changed)
        overlay.on_joined.append(self._joined)
        overlay.on_lost.append(self._lost)
        self._overlay = overlay
        self._absences = AbsenceLog()
        self._absence_check = AbsenceCheck(
            *(overlay, client, self.tasks.spawn, self.away_s, lambda: STALL_S),
            close_all=self._close_all,
            go_on=components.crawler.wake,
        )
        self._lost_at = -inf
        """Loop second at which this peer last lost another."""
        self._beat_at: float | None = None

    @property
    def unacknowledged(self) -> int:
        return self.replicator.unacknowledged

    @property
    def unsettled(self) -> int:
        """Cells between two owners, as far as this peer knows: no peer may crawl them just now."""
        return self.holder_side.unnotified + sum(not owned.open for owned in self.holdings.owned.values())

    @property
    def pending_closed(self) -> int:
        """PENDING records in cells owned here that are closed."""
        closed = (cell for cell, owned in self.holdings.owned.items() if not owned.open)
        return sum(self._store.cells.get(cell, EMPTY).pending for cell in closed)

    @property
    def at_home(self) -> bool:
        """True if the owners of all stored cells know the records, as far as this peer knows."""
        return not (self.unsettled or self.sync.busy or self.holdings.strays(self._store.cells))

    async def settle(self, seconds: float) -> bool:
        """Wait up to so many seconds until all cells are `at_home`. Return whether they are."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.at_home:  # noqa: ASYNC110 -- changes in many places
                    await asyncio.sleep(SETTLE_POLL_S)
        return self.at_home

    def handlers(self) -> Mapping[type[Message], Handler]:
        """Return the handlers of the messages about cells."""
        return {
            Replicate: self._answer_replicate,
            KeepEpochFilters: self._answer_keep_epoch_filters,
            KeepFilterPart: self._answer_keep_filter_part,
            CellsHeld: _at_once(self.sync.cells_held),
            FindMyCells: _at_once(self.sync.find_my_cells),
            WasAway: _at_once(self.absence_seen),
            TakeOver: _at_once(self._answer_take_over),
            AssignReplica: _at_once(self.holder_side.assign_replica),
            CompareDigests: self.anti_entropy.answer_compare,
            Reconcile: self.anti_entropy.answer_reconcile,
            GetEpochFilters: self.filter_sync.answer,
            GetFilterPart: self.filter_sync.part,
        }

    async def run(self) -> None:
        """Sync cells, notify owners and watch for stalls. Return never."""
        async with self.tasks.running():
            self.tasks.spawn(self.sync.run(), "sync")
            self.tasks.spawn(self.holder_side.run(), "notify_owners")
            self.tasks.spawn(self._beat(), "beat")

    async def accept(self, links: Sequence[tuple[Link, UrlLocation]], accept_link: AcceptLink) -> list[int]:
        """Accept links of cells owned here, and wait until they are on all disks. Return the indices of those to retry.

        `accept_link` writes a link into the open transaction.
        """
        wanted = {location.cell for _, location in links}
        opened = {cell for cell in wanted if self.holdings.is_open(cell)}
        # Links of open cells do not wait for the others, and their copies leave before the backups can change.
        groups = [self._safe_in(cells, links, accept_link) for cells in (opened, wanted - opened) if cells]
        parts = await asyncio.gather(*groups) if len(groups) > 1 else [await group for group in groups]
        safe = set[Cell]().union(*parts)
        return [index for index, (_, location) in enumerate(links) if location.cell not in safe]

    async def _safe_in(
        self, cells: set[Cell], links: Sequence[tuple[Link, UrlLocation]], accept_link: AcceptLink
    ) -> set[Cell]:
        """Accept the links of these cells once the cells are open. Return the cells whose links are on all disks."""
        opened = await self.sync.opened(cells, OPEN_WAIT_S)
        now, accepted = self._clock.now(), {cell: list[Key]() for cell in opened}
        for link, location in links:
            if location.cell in opened:
                accept_link(link, location, now)
                accepted[location.cell].append(location.key)
        with suppress(TimeoutError):  # A disk does not keep up; the sender tries again.
            async with asyncio.timeout(WHOLE_WAIT_S + 1.0):
                _, safe = await asyncio.gather(self._store.journal.durable(), self.sync.whole(accepted, WHOLE_WAIT_S))
                return safe
        return set()

    async def receive(self, message: Replicate) -> list[int]:
        """Journal records that another peer sent. Return the indices of runs that this peer has otherwise."""
        cells, unlike = self.records.merge_runs(message.runs, message.sender)
        cells |= self.records.merge(message.batch, sender=message.sender)
        self.holder_side.backed(cells, message.sender)
        self._activity.move()
        await self._store.journal.durable()
        self._components.crawler.wake()
        return unlike

    async def keep_epoch_filters(self, message: KeepEpochFilters) -> None:
        """Journal epoch filters that the owner of a cell sent."""
        for filters in message.cells:
            self._store.check(filters.cell)
        for filters in message.cells:
            cell = Cell(filters.cell)
            if cell not in self.holdings.owned and self._is_owner(message.owner, cell):
                await self.records.merge_epoch_filters(cell, encoded_filters(filters.epoch_filters), adopt=True)
                self.holder_side.backed([cell], message.owner)
        self._activity.move()
        await self._store.journal.durable()
        self._components.crawler.wake()

    async def keep_filter_part(self, message: KeepFilterPart) -> int | None:
        """Accept a part of a large epoch filter. Return the bytes received so far, or None if it is to come later.

        Raises PartError for a part of the wrong length.
        """
        self._store.check(message.cell)
        sent, size = sent_by(message), message.size
        seen = self._store.expiring_filters
        if seen is None or sent.cell in self.holdings.owned or not seen.may_live(sent.encoded.epoch):
            return size
        if not self._is_owner(message.owner, sent.cell):
            return size  # Not kept: only the owner of the cell is to send it.
        if seen.labels(sent.cell).get(sent.encoded.epoch) == sent.encoded.label:
            return size  # It came another way, or the answer was lost.
        upto = self._incoming.take(sent, message.offset, message.bits, asyncio.get_running_loop().time())
        if upto == size:
            await self.records.merge_epoch_filters(sent.cell, [self._incoming.whole(sent.sender)], adopt=True)
            self.holder_side.backed([sent.cell], message.owner)
            await self._store.journal.durable()
        self._activity.move()
        self._components.crawler.wake()
        return upto

    def _is_owner(self, claimed_sender: Contact, cell: Cell) -> bool:
        """Return whether no known peer is nearer to the cell than this claimed owner."""
        return self.holder_side.rival(claimed_sender, anchor(cell, self._components.job.bits)) is None

    def away_s(self, now: float) -> float:
        """Return the seconds since the last beat, at this second of the loop."""
        return 0.0 if self._beat_at is None else now - self._beat_at

    def is_stalled(self) -> bool:
        """Return whether this peer was away so long that others may own its cells, and has not asked them yet.

        Until they have answered it must start nothing.
        """
        now = self._clock.loop_now()  # Each page asks several times.
        away_s = self.away_s(now)
        if away_s >= STALL_S:
            log.warning("peer.stalled seconds=%.1f", away_s)
            self._beat_at = now
            self._absence_check.begin(now - away_s)
        return self._absence_check.in_doubt

    @property
    def in_doubt(self) -> bool:
        """True while this peer, which was away, does not know whether its cells are its own."""
        return self._absence_check.in_doubt

    async def sure(self) -> None:
        """Return when this peer, if it was away, knows again which cells are its own."""
        while self.is_stalled():
            await self._absence_check.over()

    def absence_seen(self, question: WasAway) -> AbsenceSeen:
        """Answer a peer that was away: has this peer taken it for dead, or has another come meanwhile?"""
        peer, now = question.peer, asyncio.get_running_loop().time()
        if not self._overlay.is_live(peer.id):
            self._overlay.suspect(peer)
            return AbsenceSeen(noticed=True)
        # From now on its silence counts anew, so that this answer holds when it arrives.
        self._overlay.note_heard(peer)
        return AbsenceSeen(self._absences.noticed(peer.id, question.away_s, now))

    def _close_all(self) -> None:
        """Close all cells until they are synced again. With many cells that takes a second, which is no stall."""
        self.sync.close_all()
        self._beat_at = asyncio.get_running_loop().time()

    async def leave(self, goodbye: Callable[[], Awaitable[None]], deadline_s: float) -> None:
        """Close all cells, say goodbye, and answer until other peers hold them, or none has moved for `deadline_s`."""
        self.holder_side.begin_leaving()
        await goodbye()
        self.holder_side.hand_over()
        self.sync.close_all()
        left, since = sum(digest.keys for digest in self._store.cells.values()), self._clock.now()
        handed_over = asyncio.create_task(self.holder_side.handed_over(), name="hand over")
        try:
            while not handed_over.done() and self._clock.now() < since + deadline_s:
                await asyncio.wait([handed_over], timeout=1.0)
                keys = sum(digest.keys for digest in self._store.cells.values())
                if keys < left:
                    left, since = keys, self._clock.now()
        finally:
            handed_over.cancel()
            await asyncio.gather(handed_over, return_exceptions=True)

    def journal_borrowed(
        self, entry: FrontierEntry, line: bytes, records: bytes, visit: Visit | None, rounds: int, *, reported: bool
    ) -> bool:
        """Journal a page fetched for another peer as DONE, and return False if it was known to be.

        If a report tells the lender, this peer does not tell the page's owner. In a job that keeps fingerprints, it
        then writes only the lines, unless it holds the page's cell: a fingerprint cannot be taken back.
        """
        if reported and not self._store.keeps_keys and self._store.state(entry.key) is None:
            return self._store.finish_for_owner(entry.key, line, records)
        self.records.merging = reported
        try:
            return self._store.finish(entry, line, records, visit, rounds)
        finally:
            self.records.merging = False

    async def _answer_replicate(self, message: Replicate) -> Replicated:
        return Replicated(await self.receive(message))

    async def _answer_keep_epoch_filters(self, message: KeepEpochFilters) -> Replicated:
        await self.keep_epoch_filters(message)
        return Replicated()

    async def _answer_keep_filter_part(self, message: KeepFilterPart) -> KeptFilterPart:
        return KeptFilterPart(await self.keep_filter_part(message))

    def _changed(self, cell: Cell, key: Key) -> None:
        if cell in self.holdings.owned:
            if self._is_copied(cell):
                self.replicator.changed(cell, key)
        elif not self.records.merging:
            self.holder_side.notify_owner(cell)  # A page was finished late: its owner must know.

    def _page_done(self, entry: FrontierEntry) -> None:
        cell = self._store.cell_of(entry.key)
        if self._is_copied(cell):
            self.replicator.page_done(cell, entry)

    def _is_copied(self, cell: Cell) -> bool:
        """Return whether a change in an owned cell goes to its backups.

        A sync compares its merged records with the backups at its end.
        """
        return not (self.records.merging and self.sync.is_syncing(cell))

    def _joined(self, newcomer: Contact) -> None:
        self._absences.joined(asyncio.get_running_loop().time())
        with suppress(NotRunningError):
            self.sync.joined(newcomer)

    def _answer_take_over(self, message: TakeOver) -> TakeOverAnswer:
        """Answer as a holder, and say when this peer lost another that may have leased shared clocks."""
        answer, lost_s = self.holder_side.answer(message), asyncio.get_running_loop().time() - self._lost_at
        if lost_s >= LOST_LATELY_S:
            return answer
        return TakeOverAnswer([structs.replace(state, lost_s=lost_s) for state in answer.cells])

    def _lost(self, peer: Contact) -> None:
        self._lost_at = asyncio.get_running_loop().time()
        self._absences.lost(peer.id, self._lost_at)
        self._incoming.lost(peer.id)
        with suppress(NotRunningError):
            self.sync.lost(peer)

    def _site_changed(self, site: str) -> None:
        self.replicator.site_changed(self._components.partitioner.cell(site), site)

    async def _beat(self) -> None:
        self._beat_at = asyncio.get_running_loop().time()
        self._absences.begin(self._beat_at)
        while True:
            await asyncio.sleep(BEAT_S)
            self.is_stalled()
            self._beat_at = asyncio.get_running_loop().time()
            self._incoming.let_go(self._beat_at)


def _at_once(answer: Callable[[Any], Message]) -> Handler:
    """Return a handler that answers without waiting."""

    async def handler(message: Any) -> Message:
        return answer(message)

    return handler
