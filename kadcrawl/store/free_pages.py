"""Free pages of a journal go back to the disk while its peer runs, some at a time.

SQLite can do that for a file that has a map of its pages (`auto_vacuum=INCREMENTAL`). `kadcrawl vacuum` makes the map
in a journal at rest. A journal without the map keeps its free pages and uses them again.

Tests: tests/store/test_free_pages.py
"""

import asyncio

from kadcrawl.store.journal import Journal

KEPT_SHARE = 0.25
"""Share of the pages that may be free: pending URLs come and go, and new ones use these pages."""
KEPT_LEAST = 1_000
"""Free pages that any journal may keep, 4 MB."""
PAGES_AT_ONCE = 64
"""Pages given back before other tasks run, a millisecond or two of work."""
TURN_S = 0.1
"""Seconds between two turns of giving back, so that their commits do not delay others."""
LOOK_S = 30.0
"""Seconds between two looks at the number of free pages."""
_INCREMENTAL = 2
"""The number of SQLite for `auto_vacuum=INCREMENTAL`."""


class FreePages:
    """The free pages of one journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    @property
    def may_go(self) -> bool:
        """True if the journal has a map of its pages."""
        return self._number("auto_vacuum") == _INCREMENTAL

    def give_back(self) -> int:
        """Give some free pages back within the open transaction, and return how many. The file shrinks later.

        Raises StorageError.
        """
        free = self._number("freelist_count")
        count = min(PAGES_AT_ONCE, free - max(KEPT_LEAST, int(KEPT_SHARE * self._number("page_count"))))
        for _ in range(count):
            self._journal.write("PRAGMA incremental_vacuum(1)", ())
        return max(0, count)

    def _number(self, name: str) -> int:
        return int(self._journal.row((int,), f"PRAGMA {name}")[0])

    async def run(self) -> None:
        """Give back what is free beyond the part to keep, until cancelled."""
        while True:
            given = self.give_back()
            await asyncio.sleep(TURN_S if given else LOOK_S)
