"""The query limit bounds how many URLs that differ only in their query a site's owner takes (`Job.path_queries_max`).

A shop's lists link to themselves with one more filter, or with the same two in another order. Such a list has more URLs
than any crawl can fetch, and each looks honest. So at each path (scheme, host and all else before the ``?``) only the
first URLs found are taken. Every text of a query counts as another query: the crawler cannot know whether the order of
parameters matters to a server, and any order is half of the explosion. A URL without a query does not count and is
always taken.

The history has keys and no paths, so the owner of the site counts accepted URLs in memory. The count begins anew after
a restart, when the site falls to another owner, and for a path that was not met while `PATHS_MAX` others were. So the
bound holds for each owner by itself, and each owner may take as many once. A decision: no I/O, no clock.
"""

from collections import OrderedDict
from hashlib import blake2b

PATHS_MAX = 100_000
"""Paths that are counted at a time, those met last: some 20 MB."""
_HASH_BYTES = 8
"""Two of a hundred thousand paths share a count by chance once in four billion crawls."""


class PathQueries:
    """The counts of one owner."""

    def __init__(self, queries_max: int, paths_max: int = PATHS_MAX) -> None:
        """`queries_max`: URLs with a query that each path may have; `paths_max`: paths kept."""
        self._queries_max = queries_max
        self._paths_max = paths_max
        self._counts: OrderedDict[bytes, int] = OrderedDict()

    def __len__(self) -> int:
        """Return how many paths are counted."""
        return len(self._counts)

    def is_full(self, url: str) -> bool:
        """Say whether a canonical URL has a query, and its path all it may have."""
        path = _path(url)
        if path is None or path not in self._counts:
            return False
        self._counts.move_to_end(path)
        return self._counts[path] >= self._queries_max

    def count(self, url: str) -> None:
        """Count a canonical URL that was accepted, and never before."""
        path = _path(url)
        if path is None:
            return
        self._counts[path] = self._counts.get(path, 0) + 1
        self._counts.move_to_end(path)
        if len(self._counts) > self._paths_max:
            self._counts.popitem(last=False)


def _path(url: str) -> bytes | None:
    """Return a hash of the part of a canonical URL before its query, or None without a query."""
    path, mark, _ = url.partition("?")
    return blake2b(path.encode(), digest_size=_HASH_BYTES).digest() if mark else None
