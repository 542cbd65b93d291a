"""The tables of sites: politeness clocks, refusals and cookies by site, and robots.txt rules by origin.

Tests: tests/store/test_store.py, tests/crawl/robots/test_cache.py
"""

from kadcrawl.keys import Cell
from kadcrawl.store.back_off import NO_REFUSALS, BackOff
from kadcrawl.store.events import StoreEvents
from kadcrawl.store.journal import Journal
from kadcrawl.store.kept_cookies import NO_COOKIES, KeptCookies

_BACK_OFF = "refusals, wait_s, status, until, version"
_BACK_OFF_TYPES = (int, float, int, float, int)


class SiteTable:
    """The clocks, refusals, cookies and robots.txt rules that one peer has journaled."""

    def __init__(self, journal: Journal, events: StoreEvents) -> None:
        """`events.site_changed` is called after each `set_clock`, `set_back_off` and `set_cookies`."""
        self._journal = journal
        self._events = events
        self._any_back_off: bool | None = None
        """Whether the table of refusals has rows, once that is known. Most crawls must not pay for the table."""
        self._any_cookies: bool | None = None

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

    def back_off(self, site: str) -> BackOff:
        """Return the journaled refusals of a site, `NO_REFUSALS` without any."""
        if self._any_back_off is None:
            self._any_back_off = self._journal.row((int,), "SELECT 1 FROM back_off LIMIT 1") is not None
        if not self._any_back_off:
            return NO_REFUSALS
        row = self._journal.row(_BACK_OFF_TYPES, f"SELECT {_BACK_OFF} FROM back_off WHERE site=?", (site,))
        return BackOff._make(row) if row else NO_REFUSALS

    def set_back_off(self, site: str, cell: Cell, back_off: BackOff) -> None:
        """Journal the refusals of a site of this cell."""
        self._any_back_off = True
        self._journal.write("INSERT OR REPLACE INTO back_off VALUES (?, ?, ?, ?, ?, ?, ?)", (site, cell, *back_off))
        for listener in self._events.site_changed:
            listener(site)

    def backed_off(self, cell: Cell, most: int) -> list[str]:
        """Return the sites of a cell whose refusals still count, at most `most`."""
        select = "SELECT site FROM back_off WHERE cell=? AND (refusals>0 OR wait_s>0) ORDER BY site LIMIT ?"
        return [row[0] for row in self._journal.rows((str,), select, (cell, most))]

    def cookies(self, site: str) -> KeptCookies:
        """Return the journaled cookies of a site, `NO_COOKIES` without any."""
        if self._any_cookies is None:
            self._any_cookies = self._journal.row((int,), "SELECT 1 FROM cookies LIMIT 1") is not None
        if not self._any_cookies:
            return NO_COOKIES
        row = self._journal.row((bytes, int), "SELECT jar, version FROM cookies WHERE site=?", (site,))
        return KeptCookies(row[0], row[1]) if row else NO_COOKIES

    def set_cookies(self, site: str, cell: Cell, cookies: KeptCookies) -> None:
        """Journal the cookies of a site of this cell."""
        self._any_cookies = True
        self._journal.write("INSERT OR REPLACE INTO cookies VALUES (?, ?, ?, ?)", (site, cell, *cookies))
        for listener in self._events.site_changed:
            listener(site)

    def learn_cookies(self, site: str, cell: Cell, cookies: KeptCookies) -> None:
        """Journal the cookies of a site as another holder of its cell told them, unless those known are as new."""
        if cookies.version > self.cookies(site).version:
            self.set_cookies(site, cell, cookies)

    def forget_cookies(self, cell: Cell) -> None:
        """Delete the cookies of a cell that other peers hold now."""
        if self._any_cookies is not False:
            self._journal.write("DELETE FROM cookies WHERE cell=?", (cell,))

    def with_cookies(self, cell: Cell, most: int) -> list[str]:
        """Return the sites of a cell with cookies, at most `most`."""
        return [
            row[0]
            for row in self._journal.rows(
                (str,), "SELECT site FROM cookies WHERE cell=? ORDER BY site LIMIT ?", (cell, most)
            )
        ]

    def robots(self, origin: str) -> tuple[bytes, float] | None:
        """Return the journaled (rules, wall-clock second of the fetch) of an origin, or None."""
        row = self._journal.row((bytes, float), "SELECT rules, fetched_at FROM robots WHERE origin=?", (origin,))
        return (row[0], row[1]) if row else None

    def set_robots(self, origin: str, rules: bytes, fetched_at: float) -> None:
        """Journal the rules of an origin (see `robots`)."""
        self._journal.write("INSERT OR REPLACE INTO robots VALUES (?, ?, ?)", (origin, rules, fetched_at))

    def forget_robots(self, origin: str) -> None:
        """Journal that the rules of an origin are to be fetched again."""
        self._journal.write("DELETE FROM robots WHERE origin=?", (origin,))

    def learn_robots(self, origin: str, rules: bytes, fetched_at: float) -> None:
        """Journal rules that another peer fetched at that wall-clock second, unless the known rules are as new."""
        known = self.robots(origin)
        if known is None or known[1] < fetched_at:
            self.set_robots(origin, rules, fetched_at)
