"""A range on the move between two live peers: to a newcomer that asks for it, or from a peer that leaves.

The giver stops fetching what is to go, lets what is in flight finish, and sends keys, PENDING URLs and the waits of
their sites in acknowledged batches; only then does it forget the PENDING ones. The newcomer fetches nothing before
every sibling has given. Merging is a join in a lattice (PENDING < DONE, the later instant wins), so batches may repeat,
arrive in any order, and meet URLs that have come another way meanwhile.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from kadcrawl.errors import RemoteError
from kadcrawl.history.store import DONE, PENDING
from kadcrawl.keys import Cell, Key, anchor, cell_of, id_bytes
from kadcrawl.link.messages import (
    BATCH_MAX,
    Contact,
    Link,
    PendingRecord,
    Recorded,
    Records,
    SiteRecord,
    Sync,
    Synced,
)
from kadcrawl.urls import canonical

if TYPE_CHECKING:
    from kadcrawl.history.entry import Entry
    from kadcrawl.peer.peer import Peer

log = logging.getLogger(__name__)

SYNC_DEADLINE_S = 3600.0
"""A giver answers when all is given, however much that is; a dead one is noticed by the broken connection."""
BATCH_DEADLINE_S = 30.0
WAIT_MAX_S = 86_400.0
"""Of a wait on the wire."""
POLL_S = 0.05
"""How often to look whether what was in flight is finished; every fetch ends by its own limits."""
TRIES = 3
RETRY_S = 1.0

REPAIR_S = 1.0
"""How soon after a peer came (back) what is not ours any more is given away."""
CANDIDATES_MAX = 8
"""Peers tried as takers of one cell before it stays."""

Takers = Callable[[Cell], Iterable[Contact]]
"""Who is to have a cell, in the order they are to be tried; nobody if it stays."""


class Handover:
    """The moving of ranges, for one peer."""

    def __init__(self, peer: "Peer") -> None:
        self._peer = peer
        self._given: dict[Cell, tuple[bytes, int]] = {}
        """To whom a cell was given, and with how many keys, so that it is not sent again; at most one entry a cell."""
        self.moving = 0
        """Ranges being given just now."""

    # --- taking --------------------------------------------------------------------------------------------------

    async def take(self) -> None:
        """Ask every sibling to hand over what is now nearer to this peer; return when all have, or are gone."""
        async with asyncio.TaskGroup() as group:
            for sibling in self._peer.overlay.siblings():
                group.create_task(self._take_from(sibling), name=f"sync from {sibling}")

    async def _take_from(self, sibling: Contact) -> None:
        peer = self._peer
        for _ in range(TRIES):
            try:
                await peer.client.ask(sibling.address, Sync(peer.contact), Synced, SYNC_DEADLINE_S)
                return
            except RemoteError:
                peer.overlay.suspect(sibling)
                await asyncio.sleep(RETRY_S)

    def receive(self, records: Records) -> None:
        """Merge a batch into the open transaction; the caller acknowledges when it is durable."""
        peer, now = self._peer, self._peer.clock.now()
        parts = peer.parts
        for key in records.done:
            entry = peer.store.entry(Key(key))
            peer.store.learn_done(Key(key))
            if entry is not None:
                parts.frontier.remove(entry, now)
        for site in records.sites:
            parts.frontier.learn_wait(site.site, site.wait_s, now)
        for one in records.pending:
            due = now + one.wait_s if one.wait_s else 0.0
            if canonical(one.url) == one.url:
                # The giver's scope has let it in; it may know seeds that are still on their way here.
                link = Link(one.url, one.depth, one.hops)
                parts.intake.take(link, parts.placer.place(one.url), now, one.tries, due)
        peer.activity.move()

    # --- giving --------------------------------------------------------------------------------------------------

    async def give_to(self, newcomer: Contact) -> int:
        """Hand over every cell that is nearer to `newcomer` than to anybody known; return the records given.

        Raises RemoteError if the newcomer does not take them.
        """

        def takers(cell: Cell) -> list[Contact]:
            target = anchor(cell, self._bits)
            nearest = self._peer.overlay.nearest_known(target, 1)[0]
            return [newcomer] if newcomer.number ^ target <= nearest.number ^ target else []

        return await self._give(self._cells(), takers)

    async def give_all(self) -> int:
        """Hand over every cell to the nearest other peer that takes it; return the records given.

        What nobody takes stays in this peer's journal.
        """

        def takers(cell: Cell) -> list[Contact]:
            nearest = self._peer.overlay.nearest_known(anchor(cell, self._bits), CANDIDATES_MAX + 1)
            return [contact for contact in nearest if contact.id != self._peer.contact.id]

        return await self._give(self._cells(), takers, all_or_nothing=False)

    async def give_foreign(self) -> int:
        """Hand over the cells that others own, unless they have them as they are; return the records given."""
        cells = (cell for cell in self._cells() if not self._peer.overlay.owns(cell) and not self._is_given(cell))
        return await self._give(cells, self._owner, all_or_nothing=False)

    async def repair(self) -> None:
        """Give away what others own, when a peer came (back) or the crawler met such a site; until cancelled."""
        due = asyncio.Event()
        crawler = self._peer.parts.crawler
        self._peer.overlay.on_joined.append(lambda _: due.set())
        crawler.on_foreign = due.set
        while True:
            await due.wait()
            await asyncio.sleep(REPAIR_S)
            due.clear()
            if self._peer.leaving or self._peer.joining:
                continue
            await self.give_foreign()
            while crawler.foreign:
                site = next(iter(crawler.foreign))
                del crawler.foreign[site]
                self._peer.parts.frontier.thaw(site, self._peer.clock.now())
            crawler.wake()

    @property
    def _bits(self) -> int:
        return self._peer.job.cell_bits

    def _owner(self, cell: Cell) -> list[Contact]:
        """Return the owner of a cell if it is another peer."""
        nearest = self._peer.overlay.nearest_known(anchor(cell, self._bits), 1)
        return [contact for contact in nearest if contact.id != self._peer.contact.id]

    def _is_given(self, cell: Cell) -> bool:
        """Return whether the cell's owner has been given it as it is."""
        given = self._given.get(cell)
        return (
            given is not None and [given[0]] == [one.id for one in self._owner(cell)] and given[1] == self._count(cell)
        )

    def _count(self, cell: Cell) -> int:
        return self._peer.store.count_between(self._first(cell), self._end(cell))

    async def _give(self, cells: Iterable[Cell], takers: Takers, *, all_or_nothing: bool = True) -> int:
        self.moving += 1
        try:
            await self._give_waits(takers)
            given = 0
            for cell in cells:
                for contact in takers(cell):
                    try:
                        given += await self._give_cell(cell, contact)
                        self._given[cell] = (contact.id, self._count(cell))
                        log.info("handover.gave cell=%d to=%s", cell, contact)
                        break
                    except RemoteError as error:
                        log.warning("handover.refused cell=%d to=%s why=%s", cell, contact, error.why)
                        if all_or_nothing:
                            raise
            return given
        finally:
            self.moving -= 1
            self._peer.parts.crawler.wake()

    async def _give_waits(self, takers: Takers) -> None:
        """Tell the takers which sites must still be left alone, whether anything of them moves or not."""
        waits: dict[Contact, list[SiteRecord]] = defaultdict(list)
        for site, wait_s in self._peer.parts.frontier.waits(self._peer.clock.now()).items():
            for contact in islice(takers(self._peer.parts.placer.cell(site)), 1):
                waits[contact].append(SiteRecord(site, min(wait_s, WAIT_MAX_S)))
        for contact, records in waits.items():
            for start in range(0, len(records), BATCH_MAX):
                with suppress(RemoteError):  # Told again with the cells, or not needed as they do not go there.
                    await self._send(contact, Records([], [], records[start : start + BATCH_MAX]))

    async def _give_cell(self, cell: Cell, contact: Contact) -> int:
        """Give one cell; its sites are frozen meanwhile, and afterwards they are the new owner's."""
        peer = self._peer
        frontier = peer.parts.frontier
        sites = self._sites(cell)
        for site in sites:
            frontier.freeze(site)
        given = 0
        try:
            while any(frontier.out(site) for site in sites):  # noqa: ASYNC110 -- every fetch ends by its own limits
                await asyncio.sleep(POLL_S)
            first = self._first(cell)
            while rows := peer.store.keys_from(first, self._end(cell), BATCH_MAX):
                first = rows[-1][0] + b"\0"
                given += await self._give_batch(contact, rows)
        finally:
            for site in sites:
                frontier.thaw(site, peer.clock.now())
        return given

    async def _give_batch(self, contact: Contact, rows: list[tuple[Key, int]]) -> int:
        peer, now = self._peer, self._peer.clock.now()
        entries: list[Entry] = []
        for key, state in rows:
            entry = peer.store.entry(key) if state == PENDING else None
            if entry is not None:
                entries.append(entry)
        sites = sorted({entry.site for entry in entries})
        records = Records(
            [key for key, state in rows if state == DONE],
            [
                PendingRecord(one.url, one.depth, one.hops, one.tries, min(max(0.0, one.due - now), WAIT_MAX_S))
                for one in entries
            ],
            [SiteRecord(site, min(peer.parts.frontier.wait_s(site, now), WAIT_MAX_S)) for site in sites],
        )
        await self._send(contact, records)
        for entry in entries:
            peer.store.forget(entry)
            peer.parts.frontier.remove(entry, now)
            peer.totals.urls -= 1
        peer.activity.move()
        return len(rows)

    async def _send(self, contact: Contact, records: Records) -> None:
        for attempt in range(TRIES):
            try:
                await self._peer.client.ask(contact.address, records, Recorded, BATCH_DEADLINE_S)
                return
            except RemoteError:
                if attempt == TRIES - 1:
                    raise
                self._peer.overlay.suspect(contact)
                await asyncio.sleep(RETRY_S)

    def _cells(self) -> Iterator[Cell]:
        """Yield the cells of which anything is stored, without reading what is in them."""
        first = b""
        while rows := self._peer.store.keys_from(first, None, 1):
            cell = cell_of(rows[0][0], self._bits)
            yield cell
            end = self._end(cell)
            if end is None:
                return
            first = end

    def _first(self, cell: Cell) -> bytes:
        """Return the first key of the cell."""
        return id_bytes(anchor(cell, self._bits))

    def _end(self, cell: Cell) -> bytes | None:
        """Return the first key beyond the cell; None for the last one."""
        return self._first(Cell(cell + 1)) if cell + 1 < 1 << self._bits else None

    def _sites(self, cell: Cell) -> list[str]:
        """Return the sites of the cell that have PENDING URLs."""
        store = self._peer.store
        first = self._first(cell)
        return store.sites_between(first, self._end(cell))
