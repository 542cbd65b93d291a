"""The table of single values by name: the job, the node ID, counters, and other facts of one peer.

One of the values is the wall-clock time of the last run, by which the next run corrects a clock that was put back.

Tests: tests/store/test_store.py, tests/store/test_visit_table.py
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


class SavedTime:
    """The wall-clock second at which the last run committed."""

    def __init__(self, journal: Journal, meta: MetaTable) -> None:
        self._journal = journal
        self._meta = meta
        self.has_run = False
        """True if an earlier run used this journal, as `restore` has found.

        The end of that run may not be journaled.
        """

    def save(self, now: float) -> None:
        """Journal the wall-clock second, so that the next run notices a clock that was put back."""
        self._meta.set("clock", repr(now).encode())

    def restore(self, now: float) -> None:
        """Move all journaled instants back by as much as the clock was put back since the last run."""
        saved = self._meta.get("clock")
        self.has_run = saved is not None
        try:
            ahead_s = float(saved or b"0") - now
        except ValueError:
            raise self._journal.damaged("its time cannot be read") from None
        if ahead_s > 0:
            write = self._journal.write
            write("UPDATE frontier SET due=max(0, due-?) WHERE due>0", (ahead_s,))
            write("UPDATE visit SET due=max(0, due-?) WHERE due>=0", (ahead_s,))
            write("UPDATE site SET not_before=not_before-?", (ahead_s,))
            write("UPDATE back_off SET until=until-?", (ahead_s,))
            write("UPDATE robots SET fetched_at=fetched_at-?", (ahead_s,))
