"""`NetworkProof` finds out whether the network of this peer works at this moment, when a host was missed.

This peer connects to hosts that worked, and sends nothing: a connection without a request needs no robots.txt and no
turn at a site's clock. Each test makes a new connection, as a kept connection may go on working where no new connection
can be made. So an answered request proves nothing either. A test that succeeded counts for all misses before it, and a
failed test holds for some seconds, so many misses at once cost one test.
"""

import asyncio
from collections.abc import Callable, Sequence
from math import inf

from kadcrawl.crawl.fetch.fetcher import Fetcher, Fetching
from kadcrawl.crawl.fetch.result import FetchError, FetchResult
from kadcrawl.crawl.reach.network_health import NetworkHealth
from kadcrawl.urls import site_of

FAILED_S = 2.0
"""Seconds for which a failed test says how the network is."""


class NetworkProof:
    """The proof of one peer's network."""

    def __init__(self, fetcher: Fetcher, fetching: Fetching, health: NetworkHealth, now: Callable[[], float]) -> None:
        """`fetcher` makes the connections and is used by nobody else. `fetching` fetches by it, perhaps by proxies."""
        self._fetcher = fetcher
        self._fetching = fetching
        self._health = health
        self._now = now
        self._testing = asyncio.Lock()
        self._started = False
        self.is_closed = False
        """The peer ends, so nothing is tested any more: a request that is not sent proves no connection."""
        self._failed_at: float | None = None
        self._worked_at = -inf
        """Second of the last test that succeeded."""

    async def close(self) -> None:
        """Close the connections of tests, and make no others."""
        self.is_closed = True
        if self._started:
            await self._fetcher.close()

    async def works(self, since: float) -> bool | None:
        """Return whether the network has made a connection since this second, or None if no host is known to work.

        Nothing is known either once the proof is closed.
        """
        async with self._testing:
            if self.is_closed:
                return None
            if self._worked_at >= since:
                return True
            if self._failed_at is not None and self._now() < self._failed_at + FAILED_S:
                return False
            urls = self._health.to_prove()
            if not urls:
                return None
            is_reached = await self.reaches_any(urls)
            if is_reached is False:
                self._failed_at = self._now()
            return is_reached

    async def reaches_any(self, urls: Sequence[str]) -> bool | None:
        """Connect to the hosts of these URLs until one is reached, and return whether one was.

        Return None if the proof was closed meanwhile.
        """
        for url in urls:
            result = await self.connect(url)
            if self.is_closed:
                return None
            if result.error is FetchError.NOT_SENT:
                self._worked_at = self._now()
                self._health.reached(site_of(url, "host"), url)
                return True
        return False

    async def connect(self, url: str) -> FetchResult:
        """Connect to the host of a URL, and return NOT_SENT if it was reached. A closed proof connects to no host."""
        if not self._started:
            self._started = True
            await self._fetcher.start()
        return await self._fetching.fetch(url, (), may_send=lambda: False)
