"""The journaled wall-clock time of the last run, and the correction of a clock that was put back since.

Tests: tests/store/test_store.py, tests/store/test_visit_table.py
"""

from kadcrawl.store.journal import Journal
from kadcrawl.store.meta_table import MetaTable


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
            write("UPDATE robots SET fetched_at=fetched_at-?", (ahead_s,))
