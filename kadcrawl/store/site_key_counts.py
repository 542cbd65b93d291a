"""The number of known URLs of a site, counted once and then kept up to date.

Tests: tests/store/test_store.py, tests/crawl/links/test_intake.py
"""

from kadcrawl.keys import ID_BYTES, SITE_BYTES, Key
from kadcrawl.store.journal import Journal

BEYOND_SITE = b"\xff" * (ID_BYTES - SITE_BYTES) + b"\0"
"""Suffix that makes of a site's 12-byte hash the least bytes greater than all keys of the site."""

SITES_COUNTED_MAX = 50_000
"""Limit on sites with a count in memory, about 10 MB. The next site clears all counts."""


class SiteKeyCounts:
    """The number of records of each site that was asked for."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._counts: dict[bytes, int] = {}
        """The number of records by the 12-byte hash of their site."""

    def count(self, site_hash: bytes) -> int:
        """Return the number of records of a site, given its 12-byte hash.

        The records themselves are counted, so every holder of the site's cell gets the same number. The first question
        reads them, about 20 million per second. From then on the count follows every change.
        """
        count = self._counts.get(site_hash)
        if count is None:
            if len(self._counts) >= SITES_COUNTED_MAX:
                self._counts.clear()
            select = "SELECT count(*) FROM history WHERE key>=? AND key<?"
            count = self._counts[site_hash] = self._journal.row((int,), select, (site_hash, site_hash + BEYOND_SITE))[0]
        return count

    def add(self, key: Key) -> None:
        """Count a new record, if its site was counted before."""
        if (site_hash := key[:SITE_BYTES]) in self._counts:
            self._counts[site_hash] += 1

    def clear(self) -> None:
        """Forget all counts, because records were deleted."""
        self._counts.clear()
