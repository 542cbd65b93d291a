"""A peer that has come, or was away, asks those around it which of the cells they crawl are its own by now.

Of a cell that is empty as yet nobody else would tell it: there is nothing to be copied, and whoever crawls it may be
none of its holders any more, if several peers came at once. Until all around have answered no cell is opened. A peer
that was away, and hears nobody, is more likely cut off than the last of its swarm; it waits a minute for somebody.

Tests: tests/replication/owner/test_sync.py
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from kadcrawl.errors import KadcrawlError, RemoteError
from kadcrawl.keys import Cell
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import Contact, FindMyCells, MyCells
from kadcrawl.replication.overlay_port import SyncOverlay

FIND_MY_CELLS_DEADLINE_S = 5.0
JOIN_RETRY_S = 0.5
UNHEARD_MAX_S = 90.0
"""After this time siblings that live and still do not answer are passed over: they must not hold up a peer for ever."""
CELL_BYTES = 4

log = logging.getLogger(__name__)


def packed(cells: list[Cell]) -> bytes:
    """Return cells as they travel in Claimed."""
    return b"".join(cell.to_bytes(CELL_BYTES, "big") for cell in cells)


def unpacked(cells: bytes) -> list[Cell]:
    """Return the cells of a Claimed; a last one cut short is passed over."""
    starts = range(0, len(cells) - CELL_BYTES + 1, CELL_BYTES)
    return [Cell(int.from_bytes(cells[start : start + CELL_BYTES], "big")) for start in starts]


class JoinHandshake:
    """One peer's asking."""

    def __init__(
        self,
        overlay: SyncOverlay,
        client: LinkClient,
        want: Callable[[Cell, Contact], None],
        spawn: Callable[[Coroutine[Any, Any, None], str], object],
    ) -> None:
        """`want` is called with each cell that is ours by now, and who crawls it; `spawn` starts a task of the peer."""
        self._overlay = overlay
        self._client = client
        self._want = want
        self._spawn = spawn
        self._answered: set[bytes] = set()
        """Who has, by ID, since we began to ask."""
        self._began_at = 0.0
        self._alone_at = 0.0
        """Second from which it is believed that nobody is there."""
        self._asking = False
        self.done = asyncio.Event()
        """All around have answered."""

    def begin(self, patience_s: float = 0.0) -> None:
        """Ask all around, anew if they were asked before; if nobody is there, wait so long for somebody."""
        self._answered = set()
        self._began_at = asyncio.get_running_loop().time()
        self._alone_at = self._began_at + patience_s
        self.done.clear()
        if not self._asking:
            self._spawn(self._run(), "arrive")
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
        """Return whether all of them answered."""
        answers = await asyncio.gather(*map(self._ask, siblings))
        answered |= {contact.id for contact, answer in zip(siblings, answers, strict=True) if answer}
        return all(answers)

    async def _ask(self, sibling: Contact) -> bool:
        """Return whether the sibling answered."""
        try:
            claimed = await self._client.ask(sibling, FindMyCells(self._overlay.me), MyCells, FIND_MY_CELLS_DEADLINE_S)
        except RemoteError as error:
            log.info("join.silent sibling=%s why=%s", sibling, error.why)
            self._overlay.suspect(sibling)
            return False
        try:
            for cell in unpacked(claimed.cells):
                self._want(cell, sibling)
        except KadcrawlError as error:
            log.warning("join.malformed sibling=%s why=%s", sibling, error)
        return True
