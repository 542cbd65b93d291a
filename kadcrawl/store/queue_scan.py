"""Counts the PENDING URLs of a peer by site, depth and age, a bounded number of rows at a time.

The rows of a site lie together in the table, breadth first. With partition `url` each URL is a site of its own, and
its host counts instead. The age of a URL is the time since this peer has it: rows are numbered in the order of their
arrival, and the arrival marks say when a number came.

Tests: tests/store/test_queue_scan.py
"""

from collections import Counter
from collections.abc import Sequence

from kadcrawl.keys import SITE_BYTES
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.frontier_table import ENTRY_COLUMNS, ENTRY_TYPES, entry_of
from kadcrawl.store.journal import Journal
from kadcrawl.urls import site_of

ROWS_AT_ONCE = 5_000
"""Rows counted before other tasks run, in some milliseconds."""
URLS_AT_ONCE = 500
"""Rows whose URLs are read before other tasks run."""
SITES_COUNTED_MAX = 20_000
"""Sites in memory. Beyond that only those with the most URLs stay."""
LAST = 2**62
"""A depth beyond all depths."""

_RANGE = "(site_hash, depth, seq)>(?, ?, ?) AND site_hash<=? ORDER BY site_hash, depth, seq LIMIT ?"


class QueueScan:
    """One count of the PENDING URLs of some ranges of keys."""

    def __init__(self, journal: Journal, marks: Sequence[int], depths_max: int, *, host: str | None, urls: int) -> None:
        """`marks` are the numbers of the last rows that are older than each age, for ages that rise.

        Only with partition `url` a host is needed: empty counts all hosts, otherwise the URLs of this host count.
        `urls` is the number of next URLs to keep.
        """
        self._journal = journal
        self._marks = marks
        self._depths_max = depths_max
        self._host = host
        self._urls = urls
        self.pending = 0
        self.sites = 0
        """Sites counted. With partition `url`, hosts as far as they fit in memory."""
        self.by_depth: list[int] = []
        self.by_age = [0] * (len(marks) + 1)
        self.next: list[FrontierEntry] = []
        """The first URLs, breadth first."""
        self._by_site: Counter[bytes | str] = Counter()
        self._last_site = b""

    def step(self, after: tuple[bytes, int, int], last_site: bytes) -> tuple[bytes, int, int] | None:
        """Count some rows beyond a place, up to a site, and return the place reached, or None at the end."""
        if self._host is not None:
            return self._count_urls(after, last_site, self._host)
        older = "".join(f", sum(seq<={int(mark)})" for mark in self._marks)
        rows = list(
            self._journal.rows(
                (bytes, int, int, int, *(int for _ in self._marks)),
                f"SELECT site_hash, depth, count(*), max(seq){older} FROM "
                f"(SELECT site_hash, depth, seq FROM frontier WHERE {_RANGE}) GROUP BY site_hash, depth "
                "ORDER BY site_hash, depth",
                (*after, last_site, ROWS_AT_ONCE),
            )
        )
        for site, depth, count, _, *are_older in rows:
            self.sites += site != self._last_site
            self._last_site = site
            self._by_site[site] += count
            self._note(depth, count, are_older)
        self._prune()
        if self._urls and not self.next and rows:
            self._read_next(after, last_site)
        return (rows[-1][0], rows[-1][1], rows[-1][3]) if sum(row[2] for row in rows) == ROWS_AT_ONCE else None

    def top(self, sites: int) -> list[tuple[str, int]]:
        """Return (name, PENDING URLs) of the sites with the most URLs, those first."""
        most = self._by_site.most_common(sites)
        return [(self._name(site) if isinstance(site, bytes) else site, count) for site, count in most]

    def _count_urls(self, after: tuple[bytes, int, int], last_site: bytes, host: str) -> tuple[bytes, int, int] | None:
        entries = self._read(after, last_site, URLS_AT_ONCE)
        for entry in entries:
            name = site_of(entry.url, "host")
            if not host or name == host:
                self._by_site[name] += 1
                self._note(entry.depth, 1, [int(entry.seq <= mark) for mark in self._marks])
                if self._urls:
                    self.next = sorted([*self.next, entry])[: self._urls]
        self._prune()
        self.sites = len(self._by_site)
        last = entries[-1] if len(entries) == URLS_AT_ONCE else None
        return None if last is None else (last.key[:SITE_BYTES], last.depth, last.seq)

    def _note(self, depth: int, count: int, are_older: Sequence[int]) -> None:
        """Count rows of one depth, given how many are older than each age."""
        self.pending += count
        place = min(depth, self._depths_max - 1)
        self.by_depth += [0] * (place + 1 - len(self.by_depth))
        self.by_depth[place] += count
        older = [count, *are_older, 0]
        for age in range(len(self.by_age)):
            self.by_age[age] += older[age] - older[age + 1]

    def _prune(self) -> None:
        if len(self._by_site) > SITES_COUNTED_MAX:
            self._by_site = Counter(dict(self._by_site.most_common(SITES_COUNTED_MAX // 2)))

    def _read_next(self, after: tuple[bytes, int, int], last_site: bytes) -> None:
        self.next = self._read(after, last_site, self._urls)

    def _read(self, after: tuple[bytes, int, int], last_site: bytes, count: int) -> list[FrontierEntry]:
        select = f"SELECT {ENTRY_COLUMNS} FROM frontier f WHERE {_RANGE}"
        return [entry_of(row) for row in self._journal.rows(ENTRY_TYPES, select, (*after, last_site, count))]

    def _name(self, site: bytes) -> str:
        row = self._journal.row((str, str), "SELECT site, url FROM frontier WHERE site_hash=? LIMIT 1", (site,))
        return (row[0] or row[1]) if row else site.hex()
