"""A range on the move between two live peers: to a newcomer that asks for it, or from a peer that leaves.

The giver stops fetching what is to go, lets what is in flight finish, and sends keys, PENDING URLs and the waits of
their sites in acknowledged batches; only then does it forget the PENDING ones. The newcomer fetches nothing before
every sibling has given. Merging is a join in a lattice (PENDING < DONE, the later instant wins), so batches may repeat,
arrive in any order, and meet URLs that have come another way meanwhile.
"""

import asyncio
from collections.abc import Callable, Iterator
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

if TYPE_CHECKING:
    from kadcrawl.history.entry import Entry
    from kadcrawl.peer.peer import Peer

SYNC_DEADLINE_S = 3600.0
"""A giver answers when all is given, however much that is; a dead one is noticed by the broken connection."""
BATCH_DEADLINE_S = 30.0
POLL_S = 0.05
"""How often to look whether what was in flight is finished; every fetch ends by its own limits."""
TRIES = 5
RETRY_S = 1.0

Taker = Callable[[Cell], Contact | None]
"""Who is to have a cell; None if it stays."""


class Handover:
    """The moving of ranges, for one peer."""

    def __init__(self, peer: "Peer") -> None:
        self._peer = peer
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
            link = Link(one.url, one.depth, one.hops)
            parts.intake.take_offered(link, parts.placer.place(one.url), now, one.tries, due)
        peer.activity.move()

    # --- giving --------------------------------------------------------------------------------------------------

    async def give_to(self, newcomer: Contact) -> int:
        """Hand over every cell that is nearer to `newcomer` than to anybody known; return the records given.

        Raises RemoteError if the newcomer does not take them.
        """
        bits = self._peer.job.cell_bits

        def taker(cell: Cell) -> Contact | None:
            target = anchor(cell, bits)
            nearest = self._peer.overlay.nearest_known(target, 1)[0]
            return newcomer if newcomer.number ^ target <= nearest.number ^ target else None

        return await self._give(taker)

    async def give_all(self) -> int:
        """Hand over every cell to the nearest other peer; return the records given."""
        bits, me = self._peer.job.cell_bits, self._peer.contact.id

        def taker(cell: Cell) -> Contact | None:
            nearest = self._peer.overlay.nearest_known(anchor(cell, bits), 2)
            return next((contact for contact in nearest if contact.id != me), None)

        return await self._give(taker)

    async def _give(self, taker: Taker) -> int:
        self.moving += 1
        try:
            given = 0
            for cell in self._cells():
                contact = taker(cell)
                if contact is not None:
                    given += await self._give_cell(cell, contact)
            return given
        finally:
            self.moving -= 1
            self._peer.parts.crawler.wake()

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
            first = id_bytes(anchor(cell, peer.job.cell_bits))
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
                PendingRecord(one.url, one.depth, one.hops, one.tries, min(max(0.0, one.due - now), 86_400.0))
                for one in entries
            ],
            [SiteRecord(site, min(peer.parts.frontier.wait_s(site, now), 86_400.0)) for site in sites],
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
        bits = self._peer.job.cell_bits
        first = b""
        while rows := self._peer.store.keys_from(first, None, 1):
            cell = cell_of(rows[0][0], bits)
            yield cell
            end = self._end(cell)
            if end is None:
                return
            first = end

    def _end(self, cell: Cell) -> bytes | None:
        """Return the first key beyond the cell; None for the last one."""
        bits = self._peer.job.cell_bits
        return id_bytes(anchor(Cell(cell + 1), bits)) if cell + 1 < 1 << bits else None

    def _sites(self, cell: Cell) -> list[str]:
        """Return the sites of the cell that have PENDING URLs."""
        store = self._peer.store
        first = id_bytes(anchor(cell, self._peer.job.cell_bits))
        return store.sites_between(first, self._end(cell))
