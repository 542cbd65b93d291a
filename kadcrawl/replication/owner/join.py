"""`JoinHandshake`: a newcomer, or a peer that was away, asks its siblings which of their cells it owns by now.

No other message names an empty cell: it has no records to copy, and if several peers join at once, the peer that crawls
it may be none of its holders any more. No cell is opened until all siblings have answered. A peer that was away and
hears no other is more likely cut off than the last of its swarm, so it waits a minute for another peer.

Tests: tests/replication/owner/test_sync.py
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from kadcrawl.errors import KadcrawlError, RemoteError
from kadcrawl.keys import Cell
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import Contact, FindMyCells, MyCells
from kadcrawl.replication.overlay_port import SyncOverlay
from kadcrawl.replication.peer_tasks import NotRunningError
from kadcrawl.system.event import Event

FIND_MY_CELLS_DEADLINE_S = 5.0
JOIN_RETRY_S = 0.5
UNHEARD_MAX_S = 90.0
"""Longest wait for siblings that live and do not answer: they must not hold up a peer for ever."""
CELL_BYTES = 4

log = logging.getLogger(__name__)


def packed(cells: list[Cell]) -> bytes:
    """Return cells as `MyCells` carries them."""
    return b"".join(cell.to_bytes(CELL_BYTES, "big") for cell in cells)


def unpacked(cells: bytes) -> list[Cell]:
    """Return the cells of a `MyCells`. An incomplete last cell is skipped."""
    starts = range(0, len(cells) - CELL_BYTES + 1, CELL_BYTES)
    return [Cell(int.from_bytes(cells[start : start + CELL_BYTES], "big")) for start in starts]


class JoinHandshake:
    """The handshake of one peer."""

    def __init__(
        self,
        overlay: SyncOverlay,
        client: LinkClient,
        want: Callable[[Cell, Contact], None],
        spawn: Callable[[Coroutine[Any, Any, None], str], object],
    ) -> None:
        """Ask nobody yet.

        Args:
            overlay: the siblings, and the contact of this peer.
            client: asks them.
            want: requests the sync of a cell that this peer owns by now; the contact is the peer that crawls it.
            spawn: starts a task that ends with the peer.
        """
        self._overlay = overlay
        self._client = client
        self._want = want
        self._spawn = spawn
        self._answered: set[bytes] = set()
        """The siblings, by ID, that have answered since the handshake began."""
        self._began_at = 0.0
        self._alone_at = 0.0
        """Second at which a peer without siblings counts itself as alone."""
        self._asking = False
        self.done = Event()
        """Set when all siblings have answered."""

    def begin(self, patience_s: float = 0.0) -> None:
        """Ask all siblings, anew if they were asked before. Wait up to `patience_s` seconds for the first sibling."""
        self._answered = set()
        self._began_at = asyncio.get_running_loop().time()
        self._alone_at = self._began_at + patience_s
        self.done.clear()
        if not self._asking:
            with suppress(NotRunningError):  # A peer that ends has nothing more to ask.
                self._spawn(self._run(), "join handshake")
                self._asking = True

    async def _run(self) -> None:
        """Ask until every sibling has answered or is known to be gone."""
        loop = asyncio.get_running_loop()
        while loop.time() < self._began_at + UNHEARD_MAX_S:
            unasked = [one for one in self._overlay.siblings() if one.id not in self._answered]
            if unasked:
                answered = self._answered
                if await self._ask_all(unasked, answered) and answered is self._answered:
                    continue  # Others may have come meanwhile.
            elif self._answered or loop.time() >= self._alone_at:
                break
            await asyncio.sleep(JOIN_RETRY_S)
        self._asking = False
        self.done.set()

    async def _ask_all(self, siblings: list[Contact], answered: set[bytes]) -> bool:
        """Ask these siblings. Return whether all of them answered."""
        answers = await asyncio.gather(*map(self._ask, siblings))
        answered |= {contact.id for contact, answer in zip(siblings, answers, strict=True) if answer}
        return all(answers)

    async def _ask(self, sibling: Contact) -> bool:
        """Ask a sibling and request its cells. Return whether it answered."""
        try:
            answer = await self._client.ask(sibling, FindMyCells(self._overlay.me), MyCells, FIND_MY_CELLS_DEADLINE_S)
        except RemoteError as error:
            log.info("join.silent sibling=%s why=%s", sibling, error.why)
            self._overlay.suspect(sibling)
            return False
        try:
            for cell in unpacked(answer.cells):
                self._want(cell, sibling)
        except KadcrawlError as error:
            log.warning("join.malformed sibling=%s why=%s", sibling, error)
        return True
