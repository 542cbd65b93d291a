"""The rows of a census: each peer packs its own, and only the peer that asked reads them, a few at a time.

On their way they are opaque bytes. So the content that a member puts into them costs only the asker, and never more
than some milliseconds at once. A malformed row is left out.

Tests: tests/link/wire/test_messages.py, tests/hostile/test_wire.py
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence

from msgspec import Raw

from kadcrawl.link.wire.codec import MalformedError, pack_part, unpack_part
from kadcrawl.link.wire.messages import ROWS_MAX, PeerRow
from kadcrawl.link.wire.peer_state import PeerState

ROWS_AT_ONCE = 20
"""Rows read before other tasks run. The largest take a quarter of a millisecond each."""

log = logging.getLogger(__name__)


def has_left(row: PeerRow) -> bool:
    """Return whether this row describes a peer that has left."""
    return row.state is PeerState.LEFT


def packed_rows(rows: Iterable[PeerRow]) -> list[Raw]:
    """Return rows as they travel."""
    return [Raw(pack_part(row)) for row in rows]


def fitting(rows: Sequence[Raw], bytes_max: int) -> list[Raw]:
    """Return the first rows that fit a message. A peer may make its own row as long as it can."""
    for count, row in enumerate(rows[:ROWS_MAX]):
        bytes_max -= memoryview(row).nbytes
        if bytes_max < 0:
            return [*rows[:count]]
    return [*rows[:ROWS_MAX]]


async def read_rows(rows: Sequence[Raw]) -> list[PeerRow]:
    """Return the rows that are well-formed, in their order."""
    read: list[PeerRow] = []
    why = None
    for number, row in enumerate(rows, 1):
        try:
            read.append(unpack_part(row, PeerRow))
        except MalformedError as error:
            why = error
        if not number % ROWS_AT_ONCE:
            await asyncio.sleep(0)
    if why is not None:
        log.warning("census.malformed rows=%d why=%s", len(rows) - len(read), why)
    return read
