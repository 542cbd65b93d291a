"""`Replicator` copies every change to the backups, by one ordered stream to each peer.

A change joins the streams of its cell's backups and travels with the next batch, in its state by then. Batches that no
page waits for are `CALM_S` apart, as long as the crawl goes on. `delivered` returns when the changes of some keys are
journaled at a peer. After the changes of a cell travels the notice to keep or drop it; its answer shows whether the
copy is as expected. A stream is retried until its peer is lost (`lost`). The cells of a lost peer lack a copy then, and
their next sync finds another backup. The streams are in replication_stream.py.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from msgspec.structs import replace

from kadcrawl.errors import RemoteError, StorageError
from kadcrawl.keys import Cell, Key
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import (
    AssignReplica,
    Batch,
    CellSummary,
    Contact,
    KeepEpochFilters,
    KeptFilterPart,
    Message,
    ReplicaAssigned,
    Replicate,
    Replicated,
)
from kadcrawl.replication.done_runs import done_run, in_runs
from kadcrawl.replication.epoch_filter_transfer import in_parts, packed, part_message
from kadcrawl.replication.events import ReplicationEvents
from kadcrawl.replication.overlay_port import LivenessOverlay
from kadcrawl.replication.peer_tasks import Spawn
from kadcrawl.replication.placement.holdings import Holdings
from kadcrawl.replication.placement.placement import OWNER
from kadcrawl.replication.replication_stream import CopySpacing, ReplicationStream
from kadcrawl.store.cell_digest import DIGEST_BYTES, EMPTY, CellDigest
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.store import Store
from kadcrawl.system.spaced_batches import BUSY_S

CALM_S = 1.25
"""Least time between two batches to one peer that nobody waits for. If the owner of a cell dies, the pages that it
fetched in that time are fetched again. With 1 s a crawl of 2,000 pages by 8 peers sent 1.16 times the batches."""
HAS_TIME_S = 1.0
"""Least time between two batches that pages wait for, of a peer that crawls by URL and has URLs to fetch. All peers
send it links all the time: with half a second there were twice the batches, each with half as much."""
REPLICATE_DEADLINE_S = 10.0
"""Deadline of one batch, which includes the journaling at the other end."""
REPLICATE_RETRY_S = 0.5
FAILURES_MAX = 3
"""Failures in a row after which a peer that the overlay does not know counts as dead."""
QUEUE_MAX = 50_000
"""Changes waiting for one peer. With more the peer counts as lost, and a comparison finds the records it lacks."""

log = logging.getLogger(__name__)

Expected = TypeVar("Expected", bound=Message)

MakeBatch = Callable[[Sequence[Key], Sequence[str]], Batch]
"""(keys, sites) -> the batch of their records as they are now."""


def digest_of(cell: Cell, digest: CellDigest) -> CellSummary:
    """Return the digest of a cell as it travels."""
    return CellSummary(cell, digest.keys, digest.pending, digest.digest.to_bytes(DIGEST_BYTES, "big"))


def held_of(store: Store, cell: Cell) -> CellSummary:
    """Return the digest of a cell in the store, as it travels."""
    return digest_of(cell, store.cells.get(cell, EMPTY))


def _never() -> bool:
    return False


class Replicator:
    """The streams of one peer."""

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
        has_time: Callable[[], bool] = _never,
    ) -> None:
        """Start no stream yet. `min_interval_s` is the shortest time between two batches to one peer.

        `has_time` returns whether this peer has enough to do while its pages wait for copies.
        """
        self._overlay = overlay
        self._client = client
        self._store = store
        self._holdings = holdings
        self._make_batch = make_batch
        self._spacing = CopySpacing(min_interval_s, *(max(one, min_interval_s) for one in (BUSY_S, HAS_TIME_S, CALM_S)))
        self._has_time = has_time
        self._streams: dict[bytes, ReplicationStream] = {}
        self._spawn = spawn
        self._events = events

    @property
    def unacknowledged(self) -> int:
        """Changes on their way to backups."""
        return sum(stream.queued - stream.delivered for stream in self._streams.values())

    def no_backup_reachable(self, cell: Cell) -> bool:
        """Return whether all backups of a cell owned here are silent, before the overlay knows why.

        Until then only this peer knows the pages fetched from the cell, and its death would have them fetched again.
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
                stream.put(key, cell)
                if len(stream.keys) > QUEUE_MAX:
                    self._give_up(contact)
            if self._is_idle:
                self._hurry()

    def page_done(self, cell: Cell, entry: FrontierEntry) -> None:
        """Note the place of a page that is done, of a cell owned here. `changed` follows."""
        owned = self._holdings.owned.get(cell)
        if owned is not None:
            for contact in owned.backups:
                self._stream(contact).put_place(cell, entry)

    def known_to(self, peer: Contact, key: Key) -> None:
        """Note that a peer has reported the page of this key as done, right after `changed`."""
        stream = self._streams.get(peer.id)
        if stream is not None:
            stream.note_known(key)

    def site_changed(self, cell: Cell, site: str) -> None:
        """Send a site's clock and delay to the backups of its cell."""
        owned = self._holdings.owned.get(cell)
        if owned is not None:
            for contact in owned.backups:
                stream = self._stream(contact)
                stream.put_site(site)
                if len(stream.sites) > QUEUE_MAX:
                    self._give_up(contact)

    def put_epochs(self, contact: Contact, cell: Cell, epochs: Iterable[int]) -> None:
        """Send these epoch filters of a cell owned here to a backup."""
        for epoch in epochs:
            self._stream(contact).put_epoch(cell, epoch)

    def keep(self, contact: Contact, cell: Cell, role: int) -> None:
        """Tell a peer that it is a backup of a cell owned here, and compare its copy."""
        assert role != OWNER, "only backups are told to keep a cell"
        self._stream(contact).put_notice(cell, role, None)

    def drop(self, contact: Contact, held: CellSummary) -> None:
        """Tell a peer to drop its copy of a cell, if the copy has not changed."""
        self._stream(contact).put_notice(Cell(held.cell), OWNER, held)

    async def delivered(self, contact: Contact, keys: Collection[Key] | None = None, *, hurries: bool = False) -> bool:
        """Return True when all changes of these keys are journaled at the peer, or False if the peer is lost first.

        None stands for all keys. With `hurries` they do not wait for company.
        """
        delivery = self.delivery(contact, keys, hurries=hurries)
        return True if delivery is None else await delivery

    def delivery(
        self, contact: Contact, keys: Collection[Key] | None = None, *, hurries: bool = False
    ) -> asyncio.Future[bool] | None:
        """Return a future with the result of `delivered`, or None if the peer has all changes of these keys.

        From now on the next batch to the peer is urgent, so ask for all peers before you wait for one.
        """
        stream = self._streams.get(contact.id)
        if stream is None or stream.delivered == stream.queued or (keys is not None and not stream.lacks(keys)):
            return None
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        stream.wait(future, hurries=hurries)
        return future

    def lost(self, peer: bytes) -> None:
        """Give up the stream to a peer, by ID, that is dead or gone."""
        stream = self._streams.pop(peer, None)
        if stream is not None:
            stream.give_up()

    def _stream(self, contact: Contact) -> ReplicationStream:
        stream = self._streams.get(contact.id)
        if stream is None:
            stream = self._streams[contact.id] = ReplicationStream(contact, self._spacing)
        if stream.task is None or stream.task.done():
            stream.task = self._spawn(self._deliver(stream), f"copies to {contact}")
        return stream

    @property
    def _is_idle(self) -> bool:
        """True if no URL known here is to be fetched, so that only the copies hold up the end of the crawl."""
        return self._store.pending == 0

    def _hurry(self) -> None:
        for stream in self._streams.values():
            stream.hurried.set()

    async def _is_due(self, stream: ReplicationStream) -> bool:
        """Wait until the next delivery of a stream is due. Return False if its peer is lost."""
        time = asyncio.get_running_loop().time
        while (wait_s := stream.wait_s(time(), is_hurried=self._is_idle, has_time=self._has_time())) > 0:
            stream.hurried.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await stream.hurried.wait()
        return not stream.lost

    async def _deliver(self, stream: ReplicationStream) -> None:
        """Deliver the queue. Return when it is empty or the peer is lost."""
        await asyncio.sleep(0)  # Changes of this moment travel together.
        while not stream.empty and not stream.lost:
            if not await self._is_due(stream):
                return
            stream.begin(asyncio.get_running_loop().time())
            try:
                if stream.epochs:
                    await self._deliver_epoch_filters(stream)
                elif stream.is_turn_of_notices:
                    await self._deliver_notices(stream)
                else:
                    await self._deliver_records(stream)
            except StorageError:
                raise
            except Exception:
                # A bug must not end the peer; a comparison finds the records that did not arrive.
                log.exception("replication.bug to=%s", stream.contact)
                self._give_up(stream.contact)
            finally:
                stream.end()

    async def _deliver_records(self, stream: ReplicationStream) -> None:
        """Deliver the next changes, in several batches at the same time if many wait."""
        keys, places, sites = stream.take()
        total, left = len(stream.in_flight), stream.batches(keys) or [[]] * bool(sites)
        while left and not stream.lost:
            batches = [self._in_runs(some, places, [] if index else sites) for index, some in enumerate(left)]
            # If others hear DONE before it is on this disk, a crash would lose the page unnoticed.
            await self._store.journal.durable()
            answers = await self._ask_all(stream, [message for message, _ in batches], Replicated)
            unanswered = list(zip(left, batches, answers, strict=True))
            left = []
            for some, (_, runs), answer in unanswered:
                unlike = [] if answer is None else [runs[index] for index in answer.unlike if index < len(runs)]
                stream.refused.update(keys[run[0]] for run in unlike)
                rest = some if answer is None else [key for run in unlike for key in run]
                left += [rest] * bool(rest)
            if answers[0] is not None:
                sites = []
            elif not left:
                left = [[]]
            places = {}  # The peer may have merged a batch whose answer was lost.
        if not left:
            stream.advance(total, asyncio.get_running_loop().time())

    def _in_runs(
        self, keys: list[Key], places: Mapping[Key, FrontierEntry], sites: Sequence[str]
    ) -> tuple[Replicate, list[list[Key]]]:
        """Return the message with the records of these keys as they are now, and its runs of done pages."""
        batch = self._make_batch(keys, sites)
        runs, rest = in_runs(batch.done, places, self._store.frontier.has_between)
        return Replicate(self._overlay.me, replace(batch, done=rest), [done_run(run) for run in runs]), runs

    async def _deliver_epoch_filters(self, stream: ReplicationStream) -> None:
        """Deliver epoch filters of some cells in their state by then: they include all changes sent before."""
        left = stream.take_epochs()
        while left and not stream.lost:
            cells, portions = packed(self._store, left)
            if cells:
                await self._store.journal.durable()
            if not cells or await self._ask(stream, KeepEpochFilters(self._overlay.me, cells), Replicated) is not None:
                for cell, some in portions.items():
                    for epoch in some.large:
                        await self._deliver_parts(stream, cell, epoch)
                    stream.advance(some.through, asyncio.get_running_loop().time())
                    left[cell] = left[cell][some.through :]
                left = {cell: rest for cell, rest in left.items() if rest}

    async def _deliver_parts(self, stream: ReplicationStream, cell: Cell, epoch: int) -> None:
        """Deliver a large epoch filter. If that fails, the next comparison finds that the filter is missing."""
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
        # The new owner decides about cells given away meanwhile.
        taken = {cell: held for cell, held in taken.items() if self._holdings.is_open(cell)}
        if not taken:
            return
        cells = [held or held_of(self._store, cell) for cell, held in taken.items()]
        settled = await self._ask(stream, AssignReplica(self._overlay.me, role, cells), ReplicaAssigned)
        if settled is None:
            # The next repair repeats a keep; a peer that misses a drop keeps its copy and notifies the owner. But a
            # peer that left while it was chosen is lost to no sync, and three repairs would find that out too late.
            if not stream.lost and not self._overlay.is_live(stream.contact.id):
                stream.return_notices(role, taken)
            return
        for unlike in settled.differing:
            if Cell(unlike.cell) in taken:
                for listener in self._events.copy_differs:
                    listener(stream.contact, Cell(unlike.cell))

    async def _ask(self, stream: ReplicationStream, message: Message, expected: type[Expected]) -> Expected | None:
        """Return the answer of the stream's peer. None, after a pause, if there is none."""
        return (await self._ask_all(stream, [message], expected))[0]

    async def _ask_all(
        self, stream: ReplicationStream, messages: Sequence[Message], expected: type[Expected]
    ) -> list[Expected | None]:
        """Return the answers of the stream's peer, after a pause if any is missing."""
        contact = stream.contact
        if len(messages) == 1:  # As nearly always: without a task of its own.
            answers = [await self._ask_once(stream, messages[0], expected)]
        else:
            answers = await asyncio.gather(*(self._ask_once(stream, message, expected) for message in messages))
        if any(answer is not None for answer in answers):
            stream.note_success()
        if all(answer is not None for answer in answers):
            return answers
        failures = stream.failures if any(answer is not None for answer in answers) else stream.note_failure()
        self._overlay.suspect(contact)
        await asyncio.sleep(REPLICATE_RETRY_S)
        if failures >= FAILURES_MAX and not stream.lost and not self._overlay.is_live(contact.id):
            self._give_up(contact)
        return answers

    async def _ask_once(self, stream: ReplicationStream, message: Message, expected: type[Expected]) -> Expected | None:
        try:
            answer = await self._client.ask(stream.contact, message, expected, REPLICATE_DEADLINE_S)
        except RemoteError as error:
            log.info("replication.failed to=%s why=%s", stream.contact, error.why)
            return None
        stream.advance(0, asyncio.get_running_loop().time())
        return answer

    def _give_up(self, contact: Contact) -> None:
        """Report a peer as unreachable, as far as its stream can say."""
        for listener in self._events.peer_unreachable:
            listener(contact)
