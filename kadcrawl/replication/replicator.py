"""Copies of every change at the backups: one ordered stream to each peer that keeps something for us.

A change joins the streams of its cell's backups and travels with the next batch, as it is by then; `delivered` tells
when all changes so far have been journaled there. After the changes travel the notices: keep this cell, drop that one,
whose answer shows whether the copy is what we think it is. A stream that cannot be delivered is tried until the peer
is lost (`lost`), which leaves its cells short of a copy: the sync of the cell finds another backup.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from kadcrawl.errors import RemoteError, StorageError
from kadcrawl.keys import Cell, Key
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import (
    BATCH_MAX,
    AssignReplica,
    Batch,
    CellSummary,
    Contact,
    KeepEpochFilters,
    KeptFilterPart,
    ReplicaAssigned,
    Replicate,
    Replicated,
)
from kadcrawl.replication.epoch_filter_transfer import in_parts, packed, part_message
from kadcrawl.replication.events import ReplicationEvents
from kadcrawl.replication.overlay_port import LivenessOverlay
from kadcrawl.replication.peer_tasks import Spawn
from kadcrawl.replication.placement.holdings import Holdings
from kadcrawl.replication.placement.placement import FIRST_BACKUP, OWNER, SECOND_BACKUP
from kadcrawl.store.cell_digest import DIGEST_BYTES, EMPTY, CellDigest
from kadcrawl.store.store import Store
from kadcrawl.system.min_interval import MinInterval

REPLICATE_DEADLINE_S = 10.0
"""One batch, journaled at the other end."""
REPLICATE_RETRY_S = 0.5
FAILURES_MAX = 3
"""In a row, after which a peer the overlay does not know is taken for dead."""
SILENT_S = 1.0
"""A stream on which nothing has arrived for so long, beside its spacing, is silent: who knows what changes now?"""
SILENT_MAX_S = 20.0
"""After which a peer that is live but takes nothing is not waited for any more."""
QUEUE_MAX = 50_000
"""Changes waiting for one peer; with more it counts as lost, and what it lacks is found by comparing."""

log = logging.getLogger(__name__)

MakeBatch = Callable[[Sequence[Key], Sequence[str]], Batch]
"""(keys, sites) -> their records as they are now."""


def digest_of(cell: Cell, digest: CellDigest) -> CellSummary:
    """Return a tally as it travels."""
    return CellSummary(cell, digest.keys, digest.pending, digest.digest.to_bytes(DIGEST_BYTES, "big"))


def held_of(store: Store, cell: Cell) -> CellSummary:
    """Return what a store has of a cell, as it travels."""
    return digest_of(cell, store.cells.get(cell, EMPTY))


class ReplicationStream:
    """What is on its way to one peer."""

    def __init__(self, contact: Contact, min_interval: MinInterval) -> None:
        self.contact = contact
        self.min_interval = min_interval
        self.keys: dict[Key, Cell] = {}
        self.sites: dict[str, None] = {}
        self.epochs: dict[Cell, set[int]] = {}
        """Of jobs that keep fingerprints: grains of a cell in which the peer has something else. They go first."""
        self.notices: dict[Cell, tuple[int, CellSummary | None]] = {}
        """Cell -> role, and what the peer has of it; what we have, if None."""
        self.queued = 0
        """Changes ever queued; `delivered` counts those journaled at the other end."""
        self.delivered = 0
        self.moved_at = 0.0
        """Second at which some of them were delivered, or the first was queued."""
        self.waiting: list[tuple[int, asyncio.Future[bool]]] = []
        self.failures = 0
        """In a row."""
        self.lost = False
        self.task: asyncio.Task[None] | None = None

    @property
    def empty(self) -> bool:
        return not (self.keys or self.sites or self.epochs or self.notices)

    def put_epoch(self, cell: Cell, epoch: int, now: float) -> None:
        grains = self.epochs.setdefault(cell, set())
        if epoch not in grains:
            if self.delivered == self.queued:
                self.moved_at = now
            grains.add(epoch)
            self.queued += 1

    def put(self, key: Key, cell: Cell, now: float) -> None:
        if key not in self.keys:
            if self.delivered == self.queued:
                self.moved_at = now
            self.keys[key] = cell
            self.queued += 1

    def is_silent(self, now: float) -> bool:
        """Say whether changes have waited so long that the peer may be lost, yet not so long that it is known."""
        waited_s = now - self.moved_at - self.min_interval.interval_s
        return self.delivered < self.queued and SILENT_S <= waited_s < SILENT_MAX_S

    def take(self) -> tuple[dict[Key, Cell], list[str]]:
        """Take the next changes from the queue."""
        keys = dict(islice(self.keys.items(), BATCH_MAX))
        sites = list(islice(self.sites, BATCH_MAX))
        for key in keys:
            del self.keys[key]
        for site in sites:
            del self.sites[site]
        return keys, sites

    def take_epochs(self) -> dict[Cell, list[int]]:
        """Take the slices of the next cells from the queue, each cell's in order of time."""
        taken = {cell: sorted(grains) for cell, grains in islice(self.epochs.items(), BATCH_MAX)}
        for cell in taken:
            del self.epochs[cell]
        return taken

    def take_notices(self) -> tuple[int, dict[Cell, CellSummary | None]]:
        """Take the next notices of one role from the queue."""
        role = next(iter(self.notices.values()))[0]
        taken = {cell: held for cell, (its, held) in islice(self.notices.items(), BATCH_MAX) if its == role}
        for cell in taken:
            del self.notices[cell]
        return role, taken

    def advance(self, count: int, now: float) -> None:
        """`count` further changes are journaled at the other end."""
        self.delivered += count
        self.moved_at = now
        still = []
        for target, future in self.waiting:
            if self.delivered < target:
                still.append((target, future))
            elif not future.done():
                future.set_result(True)
        self.waiting = still

    def give_up(self) -> None:
        """The peer is lost: nothing more will be delivered."""
        self.lost = True
        for _, future in self.waiting:
            if not future.done():
                future.set_result(False)
        self.waiting.clear()
        self.keys.clear()
        self.sites.clear()
        self.epochs.clear()
        self.notices.clear()


class Replicator:
    """All streams of one peer."""

    def __init__(
        self,
        overlay: LivenessOverlay,
        client: LinkClient,
        store: Store,
        holdings: Holdings,
        make_batch: MakeBatch,
        min_interval_s: float,
        spawn: Spawn,
        events: ReplicationEvents,
    ) -> None:
        """`spacing_s`: least time between two beginnings of a stream."""
        self._overlay = overlay
        self._client = client
        self._store = store
        self._holdings = holdings
        self._make_batch = make_batch
        self._min_interval_s = min_interval_s
        self._streams: dict[bytes, ReplicationStream] = {}
        self._spawn = spawn
        self._events = events

    @property
    def unacknowledged(self) -> int:
        """Changes on their way."""
        return sum(stream.queued - stream.delivered for stream in self._streams.values())

    def no_backup_reachable(self, cell: Cell) -> bool:
        """Say whether no backup of a cell owned here takes what we send it; by and by the overlay knows why.

        Until then what is fetched of the cell is known to this peer alone, and would be fetched again were it to die.
        """
        owned = self._holdings.owned.get(cell)
        if owned is None or not owned.backups:
            return False
        now = asyncio.get_running_loop().time()
        streams = [self._streams.get(contact.id) for contact in owned.backups]
        return all(stream is not None and stream.is_silent(now) for stream in streams)

    def changed(self, cell: Cell, key: Key) -> None:
        """Send a record of a cell owned here to its backups."""
        owned = self._holdings.owned.get(cell)
        if owned is not None:
            for contact in owned.backups:
                stream = self._stream(contact)
                stream.put(key, cell, asyncio.get_running_loop().time())
                if len(stream.keys) > QUEUE_MAX:
                    self._give_up(contact)

    def site_changed(self, cell: Cell, site: str) -> None:
        """Send a site's clock and delay to the backups of its cell."""
        owned = self._holdings.owned.get(cell)
        if owned is not None:
            for contact in owned.backups:
                stream = self._stream(contact)
                stream.sites[site] = None
                if len(stream.sites) > QUEUE_MAX:
                    self._give_up(contact)

    def put_epochs(self, contact: Contact, cell: Cell, epochs: Iterable[int]) -> None:
        """Send these slices of a cell owned here to a backup."""
        for grain in epochs:
            self._stream(contact).put_epoch(cell, grain, asyncio.get_running_loop().time())

    def keep(self, contact: Contact, cell: Cell, role: int) -> None:
        """Tell a backup of a cell owned here that it is one, and compare what it has."""
        assert role in (FIRST_BACKUP, SECOND_BACKUP), "the owner needs no telling"
        self._stream(contact).notices[cell] = (role, None)

    def drop(self, contact: Contact, held: CellSummary) -> None:
        """Tell a peer to drop what it holds of a cell, if it is still just that."""
        self._stream(contact).notices[Cell(held.cell)] = (OWNER, held)

    async def delivered(self, contact: Contact) -> bool:
        """Return when all that is queued for the peer now is journaled there; False if the peer is lost first."""
        stream = self._streams.get(contact.id)
        if stream is None or stream.delivered == stream.queued:
            return True
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        stream.waiting = [one for one in stream.waiting if not one[1].done()]  # Who has not the time gives up.
        stream.waiting.append((stream.queued, future))
        return await future

    def lost(self, peer: bytes) -> None:
        """A peer, by ID, is dead or gone."""
        stream = self._streams.pop(peer, None)
        if stream is not None:
            stream.give_up()

    def _stream(self, contact: Contact) -> ReplicationStream:
        stream = self._streams.get(contact.id)
        if stream is None:
            stream = self._streams[contact.id] = ReplicationStream(contact, MinInterval(self._min_interval_s))
        if stream.task is None or stream.task.done():
            stream.task = self._spawn(self._deliver(stream), f"copies to {contact}")
        return stream

    async def _deliver(self, stream: ReplicationStream) -> None:
        """Deliver what is queued; returns when all is delivered or the peer is lost."""
        await asyncio.sleep(stream.min_interval.wait_s(asyncio.get_running_loop().time()))
        while not stream.empty and not stream.lost:
            try:
                if stream.epochs:
                    await self._deliver_epoch_filters(stream)
                elif stream.keys or stream.sites:
                    await self._deliver_records(stream)
                else:
                    await self._deliver_notices(stream)
            except StorageError:
                raise
            except Exception:
                # A fault of ours must not end the peer; what did not arrive is found by comparing.
                log.exception("replication.bug to=%s", stream.contact)
                self._give_up(stream.contact)

    async def _deliver_records(self, stream: ReplicationStream) -> None:
        keys, sites = stream.take()
        while not stream.lost:
            # Made anew at each try: by then it may be DONE.
            records = Replicate(self._overlay.me, self._make_batch(list(keys), sites))
            # Were others to hear DONE before it is on our disk, a crash would lose the page and nobody would know.
            await self._store.journal.durable()
            if await self._ask(stream, records, Replicated) is not None:
                stream.advance(len(keys), asyncio.get_running_loop().time())
                return

    async def _deliver_epoch_filters(self, stream: ReplicationStream) -> None:
        """Deliver slices of some cells, as they are by then: with all that has gone before, and some that comes."""
        left = stream.take_epochs()
        while left and not stream.lost:
            cells, portions = packed(self._store, left)
            if cells:
                await self._store.journal.durable()
            if not cells or await self._ask(stream, KeepEpochFilters(self._overlay.me, cells), Replicated) is not None:
                for cell, some in portions.items():
                    for grain in some.large:
                        await self._deliver_parts(stream, cell, grain)
                    stream.advance(some.through, asyncio.get_running_loop().time())
                    left[cell] = left[cell][some.through :]
                left = {cell: rest for cell, rest in left.items() if rest}

    async def _deliver_parts(self, stream: ReplicationStream, cell: Cell, epoch: int) -> None:
        """Deliver a large slice; if it cannot be now, the next comparison finds that it is missing."""
        outgoing = in_parts(self._store, cell, epoch)
        while outgoing is not None and not outgoing.is_over and not stream.lost:
            message = part_message(self._overlay.me, cell, epoch, outgoing)
            await self._store.journal.durable()
            kept = await self._ask(stream, message, KeptFilterPart)
            if kept is None:
                outgoing.failed()
            else:
                outgoing.kept(kept.upto)
                stream.advance(0, asyncio.get_running_loop().time())

    async def _deliver_notices(self, stream: ReplicationStream) -> None:
        role, taken = stream.take_notices()
        # Of what was given away meanwhile others decide.
        taken = {cell: held for cell, held in taken.items() if self._holdings.is_open(cell)}
        if not taken:
            return
        cells = [held or held_of(self._store, cell) for cell, held in taken.items()]
        settled = await self._ask(stream, AssignReplica(self._overlay.me, role, cells), ReplicaAssigned)
        if settled is None:
            # Comes again with the next repair; whoever cannot be told to drop keeps what it has and asks.
            return
        for unlike in settled.differing:
            if Cell(unlike.cell) in taken:
                for listener in self._events.copy_differs:
                    listener(stream.contact, Cell(unlike.cell))

    async def _ask(self, stream: ReplicationStream, message: Any, expected: Any) -> Any:
        """Return the answer; None, after a while, if there is none."""
        contact = stream.contact
        try:
            answer = await self._client.ask(contact, message, expected, REPLICATE_DEADLINE_S)
        except RemoteError as error:
            log.info("replication.failed to=%s why=%s", contact, error.why)
            stream.failures += 1
            self._overlay.suspect(contact)
            await asyncio.sleep(REPLICATE_RETRY_S)
            if stream.failures >= FAILURES_MAX and not stream.lost and not self._overlay.is_live(contact.id):
                self._give_up(contact)
            return None
        stream.failures = 0
        return answer

    def _give_up(self, contact: Contact) -> None:
        """Report a peer as unreachable, as far as its stream can say."""
        for listener in self._events.peer_unreachable:
            listener(contact)
