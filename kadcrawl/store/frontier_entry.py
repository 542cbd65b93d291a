"""One PENDING URL as the frontier and the journal both see it.

Tests: tests/crawl/frontier/test_frontier.py
"""

from typing import NamedTuple

from kadcrawl.keys import Key


class FrontierEntry(NamedTuple):
    """A URL to crawl. Entries compare by depth, then by order of arrival: breadth first."""

    depth: int
    """Links away from the nearest seed, along the path it was found."""
    seq: int
    """Order of arrival at this owner; unique."""
    key: Key
    site: str
    url: str
    hops: int
    """Redirects in a row that led here."""
    tries: int
    """Fetches that failed in a passing way so far."""
    due: float
    """Wall-clock second before which it is not tried; 0 for at once."""
