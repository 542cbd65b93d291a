"""The table of single values by name: the job, the node ID, counters, and other facts of one peer.

Tests: tests/store/test_store.py
"""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from kadcrawl.store.journal import Journal

Value = TypeVar("Value")


class MetaTable:
    """The named values of one peer."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._written: dict[str, bytes] = {}
        """The values written in this run, by name."""

    def get(self, name: str) -> bytes | None:
        """Return the journaled value of a name, or None."""
        row = self._journal.row((bytes,), "SELECT value FROM meta WHERE name=?", (name,))
        return row[0] if row else None

    def read(self, name: str, decode: Callable[[bytes], Value]) -> Value | None:
        """Return the decoded value of a name, or None.

        Raises StorageError if `decode` raises ValueError or MsgspecError.
        """
        value = self.get(name)
        try:
            return None if value is None else decode(value)
        except (ValueError, msgspec.MsgspecError):
            raise self._journal.damaged(f"its {name} cannot be read") from None

    def set(self, name: str, value: bytes) -> None:
        """Journal a value by its name, unless this run wrote the same value last."""
        if self._written.get(name) != value:
            self._journal.write("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))
            self._written[name] = value
