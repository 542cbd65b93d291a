"""Health checks keep the pools of proxies fresh: they verify each proxy and refill a pool from its list or web page.

The job's author names the health-check page. At most `HEALTH_CHECKS_AT_ONCE` requests for it are under way at a time,
and no more than one per `HEALTH_CHECKS_APART_S` begins, whatever happens. The health-check page is no page of the
crawl: a request for it counts on no site's clock. So its site is out of scope (crawl/scope/scope.py), else many peers
would ask that site beside its own pace. Each peer fetches the list itself and directly. The size of the list is
bounded, and bad lines are skipped. If the answer is a web page, page_proxies.py finds the proxies in it.

Tests: tests/crawl/proxies/test_health_checks.py, tests/peer/test_proxies.py
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from kadcrawl.crawl.fetch.fetcher import Fetcher
from kadcrawl.crawl.fetch.result import UNASKED, FetchError, FetchResult
from kadcrawl.crawl.pause_reasons import Pausable, PauseReason
from kadcrawl.crawl.proxies.page_proxies import is_page, page_proxies
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
POOL_EMPTY_S = 10.0
"""Seconds without a live proxy after which a named pool is said to have none."""
PAUSE_POLL_S = 0.2
"""Seconds between two looks at whether a paused crawler may go on."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CheckedPool:
    """A pool with its name, which is empty for the proxies of the job itself, and the URL of its list."""

    name: str
    pool: Proxies
    list_url: str | None = None

    @property
    def label(self) -> str:
        """The name for the log."""
        return self.name or "default"


class ProxyChecks:
    """Verifies and refills the pools of a job."""

    def __init__(
        self,
        job: Job,
        make_pool: Callable[[str], Proxies],
        make_fetcher: Callable[[Limits], Fetcher],
        limits: Limits,
        now: Callable[[], float],
    ) -> None:
        """`make_pool` makes an empty pool of this name, and `make_fetcher` the fetcher for the health-check page and
        the lists. `now` is the clock of the pools, in seconds."""
        named = [(each.name, each.proxies, each.proxies_from) for each in job.pools]
        default = [("", job.proxies, job.proxies_from)] if job.proxied_by_default else []
        self._pools: list[CheckedPool] = []
        for name, proxies, list_url in [*default, *named]:
            checked = CheckedPool(name, make_pool(name), list_url)
            if proxies:
                checked.pool.learn(map(parse, proxies), now())
            self._pools.append(checked)
        self._turn = 0
        """The pools that have had their turn to be verified."""
        self._health_check_url = job.proxy_judge
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
        self._looking = asyncio.Lock()
        """Held by the task that looks for a proxy to verify, as mostly none is due. The others wait without a look."""

    @property
    def pools(self) -> dict[str, Proxies]:
        """The pools by name."""
        return {each.name: each.pool for each in self._pools}

    async def run(self, crawler: Pausable) -> None:
        """Verify and refill, and let the crawler go on when it waited for a proxy, until cancelled."""
        await self._fetcher.start()
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(HEALTH_CHECKS_AT_ONCE):
                    group.create_task(self._verify(), name="verify proxies")
                for each in self._pools:
                    group.create_task(self._release(each, crawler), name="wait for proxies")
                    if each.list_url is not None:
                        group.create_task(self._refill(each, each.list_url), name="refill proxies")
        finally:
            await self._fetcher.close()

    # --- the judge -----------------------------------------------------------------------------------------------

    async def _verify(self) -> None:
        while True:
            async with self._looking:
                while (found := next(self._to_check(), None)) is None:  # noqa: ASYNC110 -- proxies are due by time
                    await asyncio.sleep(PAUSE_POLL_S)
                await asyncio.sleep(self._min_interval.wait_s(asyncio.get_running_loop().time()))
            await self._check(*found)

    def _to_check(self) -> Iterator[tuple[CheckedPool, Proxy]]:
        """Yield a proxy to verify now of each pool that has one. The pools take turns to be the first."""
        self._turn += 1
        first = self._turn % len(self._pools)
        for each in [*self._pools[first:], *self._pools[:first]]:
            if (proxy := each.pool.to_check(self._now())) is not None:
                yield each, proxy

    async def _check(self, checked: CheckedPool, proxy: Proxy) -> None:
        pool = checked.pool
        fetched = await self._fetcher.fetch(self._health_check_url, proxy=proxy)
        now = self._now()
        if fetched.error in UNASKED and fetched.error is not FetchError.PROXY:
            pool.unchecked(proxy, now)
            return
        whole = fetched.error is None or fetched.error.is_cut_off
        works = whole and fetched.status is not None and 200 <= fetched.status < 300
        pool.checked(proxy, fetched.seconds if works else None, now)
        if (is_alive := pool.news(proxy)) is not None:
            state, why = ("alive", "") if is_alive else ("dead", _why(fetched))
            log.info(
                "proxy.%s pool=%s proxy=%s alive=%d of=%d why=%s",
                *(state, checked.label, proxy, pool.alive, pool.known, why),
            )

    # --- the source ----------------------------------------------------------------------------------------------

    async def _refill(self, checked: CheckedPool, list_url: str) -> None:
        """Ask the source, now and again: at intervals, and sooner while few proxies are alive."""
        wait_s = FEW_WAIT_S
        while True:
            learned = await self._learn(checked, list_url)
            asked_at = self._now()
            soon_s = wait_s if learned else self._limits.proxy_retry_s
            while (left_s := asked_at + self._limits.proxy_source_s - self._now()) > 0:
                await asyncio.sleep(min(soon_s, left_s))
                if not learned or checked.pool.alive <= FEW:
                    break
            few = checked.pool.alive <= FEW
            wait_s = min(2 * wait_s, self._limits.proxy_source_s) if few and learned else FEW_WAIT_S

    async def _learn(self, checked: CheckedPool, list_url: str) -> bool:
        """Learn the proxies of the list, and return whether it named any. If not, its earlier proxies are kept."""
        fetched = await self._fetcher.fetch(list_url)
        text = fetched.content.decode("utf-8", "replace") if fetched.status == 200 else ""
        if fetched.error is not None and fetched.error.is_cut_off and not is_page(fetched.mime, text):
            text = text[: text.rfind("\n") + 1]
        found: dict[Proxy, None] = {}
        bad = more = 0
        for proxy in page_proxies(text) if is_page(fetched.mime, text) else (proxy for _, proxy in lines(text)):
            if not isinstance(proxy, Proxy):
                bad += 1
            elif len(found) < PROXIES_MAX:
                found[proxy] = None
            else:
                more += 1
        if not found:
            # Not the source's URL, which may hold a key.
            log.warning(
                "proxy.list_failed pool=%s status=%s failure=%s bad=%d",
                *(checked.label, fetched.status, fetched.error, bad),
            )
            return False
        checked.pool.learn(found, self._now())
        log.info("proxy.list pool=%s known=%d bad_lines=%d too_many=%d", checked.label, len(found), bad, more)
        return True

    # --- whoever waits -------------------------------------------------------------------------------------------

    async def _release(self, checked: CheckedPool, crawler: Pausable) -> None:
        """Let the crawler go on once a proxy of the job is alive, and tell of a named pool that has none.

        Only the sites of a named pool wait for it (crawl/attempt.py).
        """
        pool, waiting, alive_at = checked.pool, False, self._now()
        while True:
            if pool.alive:
                alive_at = self._now()
            if checked.name:
                held = self._now() >= alive_at + POOL_EMPTY_S
            else:
                held = PauseReason.PROXIES in crawler.pause_reasons
            if held and not waiting:
                log.warning("proxy.waiting pool=%s known=%d", checked.label, pool.known)
            if held and pool.alive:
                log.warning("proxy.going_on pool=%s alive=%d", checked.label, pool.alive)
                crawler.pause_reasons.discard(PauseReason.PROXIES)
                crawler.wake()
                held = False
            elif checked.name and waiting and pool.alive:
                log.warning("proxy.going_on pool=%s alive=%d", checked.label, pool.alive)
            waiting = held
            await asyncio.sleep(PAUSE_POLL_S)


def _why(fetched: FetchResult) -> str:
    """Return the reason of a failed verification. No text of it holds credentials (crawl/fetch/proxy_connector.py)."""
    reason = fetched.why_failed or str(fetched.status)
    return f"{reason}: {fetched.detail}" if fetched.detail else reason
