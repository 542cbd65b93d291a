"""Requests through a pool of proxies: `ThroughProxies` is a `Fetcher` to the crawler, and chooses the way.

Each request goes through one proxy (pool.py says which) and out of what came of it the pool learns. If another proxy
is to try, or none is alive, the failure says so, and the crawler gives the URL back as if nothing had been; the site's
clock runs all the same if the site may have been asked. A request is never made twice here, so that every one of them
has its turn at its site's clock.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from kadcrawl.crawl.fetch.fetcher import Fetcher, always
from kadcrawl.crawl.fetch.memory_slots import MemorySlots
from kadcrawl.crawl.fetch.result import FetchError, FetchResult, not_asked
from kadcrawl.crawl.proxies.pool import Outcome, Proxies, outcome
from kadcrawl.urls import Partition, site_of


def _never(_url: str) -> bool:
    return False


class ThroughProxies:
    """Fetches URLs, each through a proxy of the pool."""

    def __init__(
        self,
        fetcher: Fetcher,
        pool: Proxies,
        partition: Partition,
        now: Callable[[], float],
        is_direct: Callable[[str], bool] = _never,
    ) -> None:
        """`now` is the world's clock, in seconds since 1970. `is_direct` returns whether a URL is fetched without a
        proxy."""
        self._is_direct = is_direct
        self._fetcher = fetcher
        self._pool = pool
        # A site of one URL would never meet its proxy again.
        self._partition: Partition = "host" if partition == "url" else partition
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
        """Return the result of one request for a canonical URL, as `Fetcher.fetch` does, or of no request at all.

        NO_PROXY, VERIFYING, PROXY and UNSURE are this fetcher's own errors. The first two come without waiting for
        anything.
        """
        if self._is_direct(url):
            return await self._fetcher.fetch(url, extra_headers, may_send, memory_slots=memory_slots, form=form)
        proxy = self._pool.choose(site_of(url, self._partition), url)
        if proxy is None:
            error = FetchError.VERIFYING if self._pool.alive else FetchError.NO_PROXY
            return not_asked(url, error, self._now(), asyncio.get_running_loop().time())
        fetched = await self._fetcher.fetch(url, extra_headers, may_send, proxy, memory_slots=memory_slots, form=form)
        now = self._now()
        match outcome(fetched, proxy):
            case Outcome.CAME:
                self._pool.came(proxy, url, fetched.seconds, now)
            case Outcome.PROXY:
                self._pool.failed(proxy, now)
                return _without_answer(fetched, FetchError.PROXY)
            case Outcome.DOUBT if self._pool.doubted(proxy, url, now):
                return _without_answer(fetched, FetchError.UNSURE)
        return fetched


def _without_answer(result: FetchResult, error: FetchError) -> FetchResult:
    return replace(result, status=None, error=error, headers=(), body=b"", content=b"", retry_after_s=None)
