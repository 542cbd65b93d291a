"""The table of segments: the reach of streamed seeds (crawl/scope/seed_reach.py), and how far inputs were read.

Tests: tests/store/test_store.py
"""

from collections.abc import Iterator, Sequence

import msgpack

from kadcrawl.store.journal import Journal
from kadcrawl.store.meta_table import MetaTable

INPUTS_MAX = 16
"""Inputs whose place is kept: the latest."""


class ReachTable:
    """The journaled segments of one peer, and the places up to which it took the seeds of files."""

    def __init__(self, journal: Journal, meta: MetaTable) -> None:
        self._journal = journal
        self._meta = meta

    def segments(self) -> Iterator[bytes]:
        """Yield all segments."""
        for (segment,) in self._journal.rows((bytes,), "SELECT fingerprints FROM seed_reach"):
            yield segment

    def get(self, ids: Sequence[bytes]) -> list[bytes]:
        """Return the segments of these IDs that are here."""
        found = []
        for one in ids:
            row = self._journal.row((bytes,), "SELECT fingerprints FROM seed_reach WHERE id=?", (one,))
            if row is not None:
                found.append(row[0])
        return found

    def put(self, segment_id: bytes, segment: bytes) -> None:
        """Journal a segment."""
        self._journal.write("INSERT OR IGNORE INTO seed_reach VALUES (?, ?)", (segment_id, segment))

    def place(self, name: bytes) -> tuple[int, int]:
        """Return the (bytes, lines) up to which all seeds of an input are safe, (0, 0) for an unknown input."""
        return self._places().get(name, (0, 0))

    def keep_place(self, name: bytes, offset: int, lines: int) -> None:
        """Journal the place up to which all seeds of an input are safe."""
        places = self._places()
        places.pop(name, None)
        places[name] = (offset, lines)
        latest = list(places.items())[-INPUTS_MAX:]
        self._meta.set("seed_inputs", msgpack.packb([[one, *place] for one, place in latest]))

    def _places(self) -> dict[bytes, tuple[int, int]]:
        return self._meta.read("seed_inputs", _places) or {}


def _places(packed: bytes) -> dict[bytes, tuple[int, int]]:
    """Return the places in a journaled value. Raises ValueError for any other value."""
    rows = msgpack.unpackb(packed)
    try:
        return {bytes(name): (int(offset), int(lines)) for name, offset, lines in rows}
    except TypeError:
        raise ValueError("no list of places") from None
