"""What a store keeps beside the records of URLs: site clocks, robots.txt rules, the time, and what else has a name.

Tests: tests/store/test_store.py
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from kadcrawl.store.journal import sync_files
from kadcrawl.store.visit_table import Visits

Value = TypeVar("Value")


class SiteRecords(Visits):
    """What one peer knows of sites and of itself."""

    def __init__(
        self, directory: Path, commit_spacing_s: float, sync: Callable[[Iterable[int]], None] = sync_files
    ) -> None:
        super().__init__(directory, commit_spacing_s, sync)
        self._metas: dict[str, bytes] = {}
        """What was journaled by name in this run."""
        self.has_run = False
        """There was an earlier run, of which not all may have been journaled."""
        self.on_site: Callable[[str], None] = lambda site: None
        """Called after each `set_site`."""

    def site(self, site: str) -> tuple[float, float] | None:
        """Return the journaled (wall-clock second before which it must not be asked, delay in seconds) of a site."""
        row = self._row((float, float), "SELECT not_before, delay_s FROM site WHERE site=?", (site,))
        return (row[0], row[1]) if row else None

    def set_site(self, site: str, not_before: float, delay_s: float) -> None:
        self._write("INSERT OR REPLACE INTO site VALUES (?, ?, ?)", (site, not_before, delay_s))
        self.on_site(site)

    def robots(self, origin: str) -> tuple[bytes, float] | None:
        """Return the journaled (rules, wall-clock second of the fetch) of an origin."""
        row = self._row((bytes, float), "SELECT rules, fetched_at FROM robots WHERE origin=?", (origin,))
        return (row[0], row[1]) if row else None

    def set_robots(self, origin: str, rules: bytes, fetched_at: float) -> None:
        self._write("INSERT OR REPLACE INTO robots VALUES (?, ?, ?)", (origin, rules, fetched_at))

    def learn_robots(self, origin: str, rules: bytes, fetched_at: float) -> None:
        """Another peer fetched the rules of an origin at that wall-clock second; what was fetched later wins."""
        known = self.robots(origin)
        if known is None or known[1] < fetched_at:
            self.set_robots(origin, rules, fetched_at)

    def keep_time(self, now: float) -> None:
        """Journal the second of the world's clock, so that a clock that is put back while nobody runs is noticed."""
        self.set_meta("clock", repr(now).encode())

    def take_up_time(self, now: float) -> None:
        """If the clock was put back since the last run, put back with it every instant somebody waits for."""
        kept = self.meta("clock")
        self.has_run = kept is not None
        try:
            ahead_s = float(kept or b"0") - now
        except ValueError:
            raise self.damaged("its time cannot be read") from None
        if ahead_s > 0:
            self._write("UPDATE frontier SET due=max(0, due-?) WHERE due>0", (ahead_s,))
            self._write("UPDATE visit SET due=max(0, due-?) WHERE due>=0", (ahead_s,))
            self._write("UPDATE site SET not_before=not_before-?", (ahead_s,))
            self._write("UPDATE robots SET fetched_at=fetched_at-?", (ahead_s,))

    def meta(self, name: str) -> bytes | None:
        row = self._row((bytes,), "SELECT value FROM meta WHERE name=?", (name,))
        return row[0] if row else None

    def read_meta(self, name: str, read: Callable[[bytes], Value]) -> Value | None:
        """Return what `read` makes of a journaled value; StorageError if it raises ValueError or MsgspecError."""
        kept = self.meta(name)
        try:
            return None if kept is None else read(kept)
        except (ValueError, msgspec.MsgspecError):
            raise self.damaged(f"its {name} cannot be read") from None

    def set_meta(self, name: str, value: bytes) -> None:
        """Journal a value by its name, unless that is what was journaled last."""
        if self._metas.get(name) != value:
            self._write("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))
            self._metas[name] = value
