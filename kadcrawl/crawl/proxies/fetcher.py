"""Requests through pools of proxies: `ThroughProxies` is a `Fetcher` to the crawler, and chooses the way.

The rules of the job say which pool a URL goes by, or none. Each request goes through one proxy (pool.py says which) and
out of what came of it the pool learns. If another proxy is to try, or none is alive, the failure says so, and the
crawler gives the URL back as if nothing had been; the site's clock runs all the same if the site may have been asked. A
request is never made twice here, so that every one of them has its turn at its site's clock.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from kadcrawl.crawl.fetch.fetcher import Fetcher, always
from kadcrawl.crawl.fetch.memory_slots import MemorySlots
from kadcrawl.crawl.fetch.result import FetchError, FetchResult, not_asked
from kadcrawl.crawl.proxies.pool import Outcome, Proxies, outcome
from kadcrawl.urls import Partition, site_of


class ThroughProxies:
    """Fetches URLs, each through a proxy of its pool."""

    def __init__(
        self,
        fetcher: Fetcher,
        pools: Mapping[str, Proxies],
        partition: Partition,
        now: Callable[[], float],
        pool_of: Callable[[str], str | None],
    ) -> None:
        """`now` is the world's clock, in seconds since 1970. `pool_of` returns the name of the pool of a URL, or None
        for a URL that is fetched without a proxy."""
        self._pool_of = pool_of
        self._fetcher = fetcher
        self._pools = pools
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
        name = self._pool_of(url)
        if name is None:
            return await self._fetcher.fetch(url, extra_headers, may_send, memory_slots=memory_slots, form=form)
        pool = self._pools[name]
        proxy = pool.choose(site_of(url, self._partition), url)
        if proxy is None:
            # Without a named pool only its sites wait, and not the crawl.
            error = FetchError.VERIFYING if pool.alive or name else FetchError.NO_PROXY
            return not_asked(url, error, self._now(), asyncio.get_running_loop().time())
        fetched = await self._fetcher.fetch(url, extra_headers, may_send, proxy, memory_slots=memory_slots, form=form)
        now = self._now()
        match outcome(fetched, proxy):
            case Outcome.CAME:
                pool.came(proxy, url, fetched.seconds, now)
            case Outcome.PROXY:
                pool.failed(proxy, now)
                return _without_answer(fetched, FetchError.PROXY)
            case Outcome.DOUBT if pool.doubted(proxy, url, now):
                return _without_answer(fetched, FetchError.UNSURE)
        return fetched


def _without_answer(result: FetchResult, error: FetchError) -> FetchResult:
    return replace(result, status=None, error=error, headers=(), body=b"", content=b"", retry_after_s=None)
