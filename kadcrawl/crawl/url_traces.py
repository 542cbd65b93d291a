"""`UrlTraces` records the way of URLs over peers: the steps on this peer of each URL that the traces are to show.

A crawl without traces has None in its place, and pays a comparison. `TracedFetcher` and `TracedFormFetcher`
record requests. The spans themselves belong to kadcrawl/peer/tracing.

Tests: tests/peer/tracing/test_otel_traces.py
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from kadcrawl.crawl.fetch.fetcher import FormFetching, always
from kadcrawl.crawl.fetch.memory_slots import MemorySlots
from kadcrawl.crawl.fetch.result import FetchResult
from kadcrawl.crawl.reach.relayed_fetcher import PageFetching
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

    def fetched(self, key: Key, step: str, result: FetchResult, began: float) -> None:
        """Record a request, which began at `began`."""

    def finished(self, key: Key, url: str, failed: str | None) -> None:
        """Record that this peer finished a page: its links are acknowledged, and its lines are journaled."""

    def reported(self, borrower: Contact, key: Key) -> None:
        """Record that a borrower of this peer reported a finished page."""

    async def close(self) -> None:
        """Send the last spans, for some seconds at most."""


class TracedFetcher:
    """A `PageFetching` that records the requests of another."""

    def __init__(
        self, fetching: PageFetching, traces: UrlTraces, key_of: Callable[[str], Key], now: Callable[[], float]
    ) -> None:
        self._fetching = fetching
        self._traces = traces
        self._key_of = key_of
        self._now = now

    async def fetch(
        self,
        url: str,
        extra_headers: Sequence[tuple[str, str]] = (),
        may_send: Callable[[], bool] = always,
        *,
        memory_slots: MemorySlots | None = None,
        page: str = "",
    ) -> FetchResult:
        """Return the result of one GET, and record the request in the trace of the page."""
        began = self._now()
        result = await self._fetching.fetch(url, extra_headers, may_send, memory_slots=memory_slots, page=page)
        self._traces.fetched(self._key_of(page or url), FETCH if page in ("", url) else FETCH_OTHER, result, began)
        return result


class TracedFormFetcher:
    """A `FormFetching` that records the requests of another."""

    def __init__(
        self, fetching: FormFetching, traces: UrlTraces, key_of: Callable[[str], Key], now: Callable[[], float]
    ) -> None:
        self._fetching = fetching
        self._traces = traces
        self._key_of = key_of
        self._now = now

    async def fetch(
        self,
        url: str,
        extra_headers: Sequence[tuple[str, str]] = (),
        may_send: Callable[[], bool] = always,
        *,
        memory_slots: MemorySlots | None = None,
        form: bytes = b"",
    ) -> FetchResult:
        """Return the result of one request, and record the request in the trace of its URL."""
        began = self._now()
        result = await self._fetching.fetch(url, extra_headers, may_send, memory_slots=memory_slots, form=form)
        self._traces.fetched(self._key_of(url), FETCH, result, began)
        return result
