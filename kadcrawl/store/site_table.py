"""The tables of sites: politeness clocks by site, and robots.txt rules by origin.

Tests: tests/store/test_store.py, tests/crawl/robots/test_cache.py
"""

from kadcrawl.store.events import StoreEvents
from kadcrawl.store.journal import Journal


class SiteTable:
    """The clocks and robots.txt rules that one peer has journaled."""

    def __init__(self, journal: Journal, events: StoreEvents) -> None:
        """`events.site_changed` is called after each `set_clock`."""
        self._journal = journal
        self._events = events

    def clock(self, site: str) -> tuple[float, float] | None:
        """Return the journaled (not_before, delay_s) of a site, or None.

        No request goes to the site before the wall-clock second `not_before`. `delay_s` is the time between requests.
        """
        row = self._journal.row((float, float), "SELECT not_before, delay_s FROM site WHERE site=?", (site,))
        return (row[0], row[1]) if row else None

    def set_clock(self, site: str, not_before: float, delay_s: float) -> None:
        """Journal the clock of a site (see `clock`)."""
        self._journal.write("INSERT OR REPLACE INTO site VALUES (?, ?, ?)", (site, not_before, delay_s))
        for listener in self._events.site_changed:
            listener(site)

    def robots(self, origin: str) -> tuple[bytes, float] | None:
        """Return the journaled (rules, wall-clock second of the fetch) of an origin, or None."""
        row = self._journal.row((bytes, float), "SELECT rules, fetched_at FROM robots WHERE origin=?", (origin,))
        return (row[0], row[1]) if row else None

    def set_robots(self, origin: str, rules: bytes, fetched_at: float) -> None:
        """Journal the rules of an origin (see `robots`)."""
        self._journal.write("INSERT OR REPLACE INTO robots VALUES (?, ?, ?)", (origin, rules, fetched_at))

    def learn_robots(self, origin: str, rules: bytes, fetched_at: float) -> None:
        """Journal rules that another peer fetched at that wall-clock second, unless the known rules are as new."""
        known = self.robots(origin)
        if known is None or known[1] < fetched_at:
            self.set_robots(origin, rules, fetched_at)
