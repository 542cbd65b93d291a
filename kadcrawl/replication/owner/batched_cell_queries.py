"""`BatchedCellQueries` asks peers for their holdings of cells, with a `TakeOver` message per peer for many cells.

Questions asked at nearly the same time travel together. Silent peers are counted, so that no sync waits for ever for a
peer that the overlay does not know.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from kadcrawl.errors import RemoteError
from kadcrawl.keys import Cell
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import BATCH_MAX, CellState, Contact, TakeOver, TakeOverAnswer
from kadcrawl.replication.overlay_port import LivenessOverlay

TAKE_OVER_DEADLINE_S = 5.0
LINGER_S = 0.03
"""Wait of a question for others to the same peer. In a job by URL each URL may be in a cell of its own."""
SILENCES_MAX = 3
"""Unanswered questions in a row after which a peer the overlay does not know is taken for dead."""
SILENT_MAX = 1_000
"""Silent peers remembered. Other peers name them, and may invent them."""

log = logging.getLogger(__name__)


class BatchedCellQueries:
    """The questions of one peer."""

    def __init__(
        self,
        overlay: LivenessOverlay,
        client: LinkClient,
        spawn: Callable[[Coroutine[Any, Any, None], str], object],
    ) -> None:
        """`spawn` starts a task that ends with the peer."""
        self._overlay = overlay
        self._client = client
        self._spawn = spawn
        self._asking: dict[bytes, dict[Cell, asyncio.Future[CellState | None]]] = {}
        self._silences: dict[bytes, int] = {}
        """Peer, by ID -> unanswered questions in a row. The latest silent peer is last."""

    async def ask(self, contact: Contact, cell: Cell) -> CellState | None:
        """Return the holdings of a peer in a cell, or None if it does not answer."""
        waiting = self._asking.get(contact.id)
        if waiting is None:
            waiting = {}
            self._spawn(self._ask_soon(contact, waiting), f"sync with {contact}")
            self._asking[contact.id] = waiting
        if cell not in waiting:
            waiting[cell] = asyncio.get_running_loop().create_future()
        return await asyncio.shield(waiting[cell])

    async def _ask_soon(self, contact: Contact, waiting: dict[Cell, asyncio.Future[CellState | None]]) -> None:
        await asyncio.sleep(LINGER_S)
        del self._asking[contact.id]
        cells = list(waiting)
        for start in range(0, len(cells), BATCH_MAX):
            some = cells[start : start + BATCH_MAX]
            got: Sequence[CellState | None]
            try:
                synced = await self._client.ask(
                    contact, TakeOver(self._overlay.me, [*some]), TakeOverAnswer, TAKE_OVER_DEADLINE_S
                )
                got = synced.cells if [answer.held.cell for answer in synced.cells] == some else [None] * len(some)
                self._silences.pop(contact.id, None)
            except RemoteError as error:
                log.info("sync.silent peer=%s why=%s", contact, error.why)
                got = [None] * len(some)
                self._note_silence(contact.id)
                self._overlay.suspect(contact)
            for cell, answer in zip(some, got, strict=True):
                if not waiting[cell].done():
                    waiting[cell].set_result(answer)

    def is_gone(self, contact: Contact) -> bool:
        """Return whether a silent peer counts as dead, so that the sync goes on without it."""
        return self._silences.get(contact.id, 0) >= SILENCES_MAX and not self._overlay.is_live(contact.id)

    def _note_silence(self, peer: bytes) -> None:
        self._silences[peer] = self._silences.pop(peer, 0) + 1
        if len(self._silences) > SILENT_MAX:
            del self._silences[next(iter(self._silences))]
