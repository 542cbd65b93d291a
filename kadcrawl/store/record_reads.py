"""Reads of many records by their keys: one statement for each chunk of keys, in place of one or two for each key.

The chunks have few sizes, so that SQLite compiles few statements. A chunk that is not full repeats its last key.

Tests: tests/store/test_record_reads.py
"""

from collections.abc import Iterator, Sequence
from typing import Final

from kadcrawl.keys import Key
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.frontier_table import ENTRY_COLUMNS, ENTRY_TYPES, JOINED, entry_of
from kadcrawl.store.journal import Journal

CHUNKS: Final = (8, 64)
"""Keys in one statement. SQLite reads a key in some microseconds, and a statement costs as much again."""


class RecordReads:
    """The reads of one peer. They see the open transaction."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def states(self, keys: Sequence[Key]) -> dict[Key, int]:
        """Return the state of each key that has a record, fingerprints left out. Raises StorageError."""
        found: dict[Key, int] = {}
        for marks, chunk in _chunks(keys):
            select = f"SELECT key, state FROM history WHERE key IN ({marks})"
            found.update((Key(key), state) for key, state in self._journal.rows((bytes, int), select, chunk))
        return found

    def entries(self, keys: Sequence[Key]) -> dict[Key, FrontierEntry]:
        """Return the frontier entry of each PENDING key. Raises StorageError."""
        found: dict[Key, FrontierEntry] = {}
        for marks, chunk in _chunks(keys):
            select = f"SELECT {ENTRY_COLUMNS} FROM {JOINED} WHERE h.key IN ({marks})"
            for row in self._journal.rows(ENTRY_TYPES, select, chunk):
                entry = entry_of(row)
                found[entry.key] = entry
        return found


def _chunks(keys: Sequence[Key]) -> Iterator[tuple[str, list[Key]]]:
    """Yield the placeholders of a statement and the keys for them."""
    at = 0
    while at < len(keys):
        size = next((size for size in CHUNKS if len(keys) - at <= size), CHUNKS[-1])
        chunk = list(keys[at : at + size])
        chunk += chunk[-1:] * (size - len(chunk))
        yield ",".join("?" * size), chunk
        at += size
