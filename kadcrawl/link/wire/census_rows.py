"""The rows of a census: packed by each peer for itself, and read by who asked, a few at a time.

On their way they are bytes that nobody looks into; so what a member may put into them costs only who asked, and never
more than some milliseconds in one go. A row that is none is left out.

Tests: tests/link/wire/test_messages.py, tests/hostile/test_wire.py
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence

from msgspec import Raw

from kadcrawl.link.wire.codec import MalformedError, pack_part, unpack_part
from kadcrawl.link.wire.leaf_messages import LEAF_STATE
from kadcrawl.link.wire.messages import LEFT, ROWS_MAX, PeerRow

ROWS_AT_ONCE = 20
"""The largest take a quarter of a millisecond each."""

LEFT_STATES = (LEFT, LEAF_STATE + LEFT)
"""Of peers that are not there any more, and of leaves."""

log = logging.getLogger(__name__)


def has_left(row: PeerRow) -> bool:
    """Say whether this describes a peer that is not there any more."""
    return row.state in LEFT_STATES


def packed_rows(rows: Iterable[PeerRow]) -> list[Raw]:
    """Return rows as they travel."""
    return [Raw(pack_part(row)) for row in rows]


def fitting(rows: Sequence[Raw], bytes_max: int) -> list[Raw]:
    """Return as many rows, in their order, as one message takes: some peer may make its own as long as it can."""
    for count, row in enumerate(rows[:ROWS_MAX]):
        bytes_max -= memoryview(row).nbytes
        if bytes_max < 0:
            return [*rows[:count]]
    return [*rows[:ROWS_MAX]]


async def read_rows(rows: Sequence[Raw]) -> list[PeerRow]:
    """Return what rows say, in their order, but for those that are none."""
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
