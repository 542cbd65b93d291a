"""Health checks keep a pool of proxies fresh: they verify each proxy and refill the pool from a list.

The job's author names the health-check page. At most `HEALTH_CHECKS_AT_ONCE` requests for it are under way at a time,
and no more than one per `HEALTH_CHECKS_APART_S` begins, whatever happens. The health-check page is no page of the
crawl: a request for it counts on no site's clock. So its site is out of scope (crawl/scope/scope.py), else many peers
would ask that site beside its own pace. Each peer fetches the list itself and directly. The size of the list is
bounded, and bad lines are skipped.

Tests: tests/peer/test_proxies.py
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from kadcrawl.crawl.fetch.fetcher import Fetcher
from kadcrawl.crawl.fetch.result import UNASKED, FetchError
from kadcrawl.crawl.pause_reasons import Pausable, PauseReason
from kadcrawl.crawl.proxies.pool import Proxies
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.proxy_list import LIST_BYTES_MAX, PROXIES_MAX, Proxy, lines, parse
from kadcrawl.system.min_interval import MinInterval

HEALTH_CHECKS_AT_ONCE = 4
HEALTH_CHECKS_APART_S = 0.1
CHECK_S = 10.0
"""Patience with one verification or one answer of the source."""
FEW = 3
"""The number of live proxies at which the list is asked again soon."""
FEW_WAIT_S = 30.0
PAUSE_POLL_S = 0.2
"""Seconds between two looks at whether a paused crawler may go on."""

log = logging.getLogger(__name__)


class ProxyChecks:
    """Verifies and refills one pool."""

    def __init__(
        self,
        job: Job,
        pool: Proxies,
        make_fetcher: Callable[[Limits], Fetcher],
        limits: Limits,
        now: Callable[[], float],
    ) -> None:
        """`make_fetcher` makes the fetcher for the health-check page and the list. `now` is the clock of the pool,
        in seconds."""
        self._pool = pool
        self._health_check_url = job.proxy_judge
        self._list_url = job.proxies_from
        self._limits = limits
        self._now = now
        self._fetcher = make_fetcher(
            replace(
                limits,
                connect_timeout_s=min(limits.connect_timeout_s, CHECK_S / 2),
                fetch_timeout_s=min(limits.fetch_timeout_s, CHECK_S),
                idle_timeout_s=min(limits.idle_timeout_s, CHECK_S),
                body_bytes_max=LIST_BYTES_MAX,
                inflated_bytes_max=LIST_BYTES_MAX,
                fetches_max=HEALTH_CHECKS_AT_ONCE + 1,
            )
        )
        self._min_interval = MinInterval(HEALTH_CHECKS_APART_S)
        pool.learn(map(parse, job.proxies))

    async def run(self, crawler: Pausable) -> None:
        """Verify and refill, and let the crawler go on when it waited for a proxy, until cancelled."""
        await self._fetcher.start()
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(HEALTH_CHECKS_AT_ONCE):
                    group.create_task(self._verify(), name="verify proxies")
                group.create_task(self._release(crawler), name="wait for proxies")
                if self._list_url is not None:
                    group.create_task(self._refill(self._list_url), name="refill proxies")
        finally:
            await self._fetcher.close()

    # --- the judge -----------------------------------------------------------------------------------------------

    async def _verify(self) -> None:
        while True:
            proxy = self._pool.to_check(self._now())
            if proxy is None:
                await asyncio.sleep(PAUSE_POLL_S)
                continue
            await asyncio.sleep(self._min_interval.wait_s(asyncio.get_running_loop().time()))
            await self._check(proxy)

    async def _check(self, proxy: Proxy) -> None:
        was_alive = self._pool.is_alive(proxy)
        fetched = await self._fetcher.fetch(self._health_check_url, proxy=proxy)
        now = self._now()
        if fetched.error in UNASKED and fetched.error is not FetchError.PROXY:
            self._pool.unchecked(proxy, now)
            return
        whole = fetched.error in (None, FetchError.BODY_TOO_LARGE)
        works = whole and fetched.status is not None and 200 <= fetched.status < 300
        self._pool.checked(proxy, fetched.seconds if works else None, now)
        if was_alive != self._pool.is_alive(proxy):
            state, why = ("dead", fetched.why_failed or fetched.status) if was_alive else ("alive", "")
            log.info("proxy.%s proxy=%s why=%s alive=%d of=%d", state, proxy, why, self._pool.alive, self._pool.known)

    # --- the source ----------------------------------------------------------------------------------------------

    async def _refill(self, list_url: str) -> None:
        """Ask the source, now and again: at intervals, and sooner while few proxies are alive."""
        wait_s = FEW_WAIT_S
        while True:
            learned = await self._learn(list_url)
            asked_at = self._now()
            soon_s = wait_s if learned else self._limits.proxy_retry_s
            while (left_s := asked_at + self._limits.proxy_source_s - self._now()) > 0:
                await asyncio.sleep(min(soon_s, left_s))
                if not learned or self._pool.alive <= FEW:
                    break
            few = self._pool.alive <= FEW
            wait_s = min(2 * wait_s, self._limits.proxy_source_s) if few and learned else FEW_WAIT_S

    async def _learn(self, list_url: str) -> bool:
        """Learn the proxies of the list, and return whether it named any. If not, its earlier proxies are kept."""
        fetched = await self._fetcher.fetch(list_url)
        text = fetched.content.decode("utf-8", "replace") if fetched.status == 200 else ""
        if fetched.error is FetchError.BODY_TOO_LARGE:
            text = text[: text.rfind("\n") + 1]
        found: dict[Proxy, None] = {}
        bad = more = 0
        for _, proxy in lines(text):
            if not isinstance(proxy, Proxy):
                bad += 1
            elif len(found) < PROXIES_MAX:
                found[proxy] = None
            else:
                more += 1
        if not found:
            # Not the source's URL, which may hold a key.
            log.warning("proxy.list_failed status=%s failure=%s bad=%d", fetched.status, fetched.error, bad)
            return False
        self._pool.learn(found)
        log.info("proxy.list known=%d bad_lines=%d too_many=%d", len(found), bad, more)
        return True

    # --- whoever waits -------------------------------------------------------------------------------------------

    async def _release(self, crawler: Pausable) -> None:
        """Let the crawler go on once a proxy is alive."""
        waiting = False
        while True:
            held = PauseReason.PROXIES in crawler.pause_reasons
            if held and not waiting:
                log.warning("proxy.waiting known=%d", self._pool.known)
            if held and self._pool.alive:
                log.warning("proxy.going_on alive=%d", self._pool.alive)
                crawler.pause_reasons.discard(PauseReason.PROXIES)
                crawler.wake()
                held = False
            waiting = held
            await asyncio.sleep(PAUSE_POLL_S)
