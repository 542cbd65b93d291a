"""`UrlTraces` records the way of URLs over peers: the steps on this peer of each URL that the traces are to show.

A crawl without traces has None in its place, and pays a comparison. The spans belong to kadcrawl/peer/tracing.

Tests: tests/peer/tracing/test_otel_traces.py
"""

from typing import Protocol

from kadcrawl.crawl.fetch.result import FetchResult
from kadcrawl.crawl.scope.partitioner import UrlLocation
from kadcrawl.keys import Key
from kadcrawl.link.wire.messages import Contact, Link

FETCH = "fetch"
FETCH_OTHER = "fetch for page"
"""A request of robots.txt, or of another URL that a page needs."""


class UrlTraces(Protocol):
    """The traces of one peer. All seconds are wall-clock seconds, and `key` is that of the URL of the trace."""

    def begin(self, peer: str, crawl: str) -> None:
        """Begin to record, as the peer with this ID in the crawl of this name."""

    def accepted(self, link: Link, location: UrlLocation) -> None:
        """Record that this peer accepted a URL as its owner."""

    def forwarded(self, key: Key, url: str, began: float) -> None:
        """Record that the owner of a URL has acknowledged the link, which this peer found at `began`."""

    def fetched(self, key: Key, step: str, result: FetchResult) -> None:
        """Record a request that went out for the page of a key."""

    def finished(self, key: Key, url: str, failed: str | None) -> None:
        """Record that this peer finished a page: its links are acknowledged, and its lines are journaled."""

    def reported(self, borrower: Contact, key: Key) -> None:
        """Record that a borrower of this peer reported a finished page."""

    async def close(self) -> None:
        """Send the last spans, for some seconds at most."""
