"""One PENDING URL, as the frontier and the journal both see it.

Tests: tests/crawl/frontier/test_frontier.py
"""

from typing import NamedTuple

from kadcrawl.keys import Key


class FrontierEntry(NamedTuple):
    """A URL to crawl. Entries sort by depth, then by order of arrival: breadth first."""

    depth: int
    """Number of links from the nearest seed, along the path by which the URL was found."""
    seq: int
    """Order of arrival at this owner, unique."""
    key: Key
    site: str
    url: str
    hops: int
    """Number of consecutive redirects that led to the URL."""
    tries: int
    """Number of fetches that failed temporarily so far."""
    due: float
    """Wall-clock second before which the URL is not fetched, or 0 for at once."""
    trail: bytes = b""
    """Hashes of the URLs whose redirects led to the URL, in order (crawl/content/redirects.py)."""
    drop_order: int = 0
    """Stamp of the latest order to drop URLs that was known where the URL became PENDING. Later orders apply to it."""
