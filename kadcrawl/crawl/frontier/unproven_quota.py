"""A limit on requests to sites that are not known to answer, shared by all frontiers of one peer.

A request is *unproven* if the site has not answered its last request, or has other requests in flight. Sites that
accept requests and do not answer could otherwise take all `fetches_max` requests of the peer. A share of the requests
is therefore kept for one request each to sites that answer. A decision: no I/O, no clock.

Tests: tests/crawl/frontier/test_frontier.py
"""

from kadcrawl.settings.limits import Limits

KEPT_SHARE = 8
"""Divisor of `fetches_max`: this part of the requests is kept for sites that answer."""


class UnprovenQuota:
    """Counts the unproven requests in flight."""

    def __init__(self, limits: Limits) -> None:
        # One site alone may still use all its connections, however few requests the peer may make.
        kept = limits.fetches_max - limits.fetches_max // KEPT_SHARE
        self._most = max(kept, limits.site_connections_max - 1)
        self.used = 0
        """Unproven requests in flight."""

    @property
    def has_room(self) -> bool:
        """One more unproven request may start."""
        return self.used < self._most

    def add(self, requests: int) -> None:
        """Count more unproven requests in flight, or fewer if the number is negative."""
        self.used += requests
