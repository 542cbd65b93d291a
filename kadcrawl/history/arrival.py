"""A peer that has come, or was away, asks those around it which of the cells they crawl are its own by now.

Of a cell that is empty as yet nobody else would tell it: there is nothing to be copied, and whoever crawls it may be
none of its holders any more, if several peers came at once. Until all around have answered no cell is opened.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from kadcrawl.errors import RemoteError
from kadcrawl.keys import Cell
from kadcrawl.link.client import LinkClient
from kadcrawl.link.messages import Claim, Claimed, Contact

DEADLINE_S = 5.0
RETRY_S = 0.5
CELL_BYTES = 4

log = logging.getLogger(__name__)


class Overlay(Protocol):
    """What arriving needs of the overlay."""

    @property
    def me(self) -> Contact: ...
    def siblings(self) -> list[Contact]: ...
    def suspect(self, contact: Contact) -> None: ...


def packed(cells: list[Cell]) -> bytes:
    """Return cells as they travel in Claimed."""
    return b"".join(cell.to_bytes(CELL_BYTES, "big") for cell in cells)


def unpacked(cells: bytes) -> list[Cell]:
    """Return the cells of a Claimed; a last one cut short is passed over."""
    starts = range(0, len(cells) - CELL_BYTES + 1, CELL_BYTES)
    return [Cell(int.from_bytes(cells[start : start + CELL_BYTES], "big")) for start in starts]


class Arrival:
    """One peer's asking."""

    def __init__(self, overlay: Overlay, client: LinkClient, want: Callable[[Cell, Contact], None]) -> None:
        """`want` is called with each cell that is ours by now, and who crawls it."""
        self._overlay = overlay
        self._client = client
        self._want = want
        self.done = asyncio.Event()
        """All around have answered."""

    async def run(self) -> None:
        """Ask until every sibling has answered or is known to be gone."""
        asked: set[bytes] = set()
        while unasked := [one for one in self._overlay.siblings() if one.id not in asked]:
            answers = await asyncio.gather(*map(self._ask, unasked))
            asked |= {contact.id for contact, answered in zip(unasked, answers, strict=True) if answered}
            if not all(answers):
                await asyncio.sleep(RETRY_S)
        self.done.set()

    async def _ask(self, sibling: Contact) -> bool:
        """Return whether the sibling answered."""
        try:
            claimed = await self._client.ask(sibling.address, Claim(self._overlay.me), Claimed, DEADLINE_S)
        except RemoteError as error:
            log.info("arrival.silent sibling=%s why=%s", sibling, error.why)
            self._overlay.suspect(sibling)
            return False
        for cell in unpacked(claimed.cells):
            self._want(cell, sibling)
        return True
