"""Health checks of proxies, in virtual time: one look for all that wait, and several checks at a time."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from kadcrawl.crawl.fetch.fetcher import Fetcher
from kadcrawl.crawl.proxies.health_checks import HEALTH_CHECKS_AT_ONCE, PAUSE_POLL_S, ProxyChecks
from kadcrawl.crawl.proxies.pool import Proxies
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.proxy_list import Proxy
from sim.loop import SimLoop, world

CHECK_S = 5.0
JOB = Job(proxies=("http://192.0.2.1:3128",), proxy_judge="http://health.test/")


class LookedAt:
    """A pool that counts the looks for a proxy to verify."""

    def __init__(self) -> None:
        self.looks = 0
        self.due = 0
        """Proxies to verify now."""
        self.works: list[bool] = []
        self.alive = 1

    def learn(self, *_: object) -> None: ...

    def news(self, _: Proxy) -> bool | None:
        return None

    def to_check(self, _: float) -> Proxy | None:
        self.looks += 1
        if not self.due:
            return None
        self.due -= 1
        return Proxy("http", "192.0.2.1", 3128)

    def checked(self, _: Proxy, seconds: float | None, __: float) -> None:
        self.works.append(seconds is not None)


class SlowFetcher:
    """A fetcher whose requests all take `CHECK_S` and succeed."""

    def __init__(self) -> None:
        self.under_way = self.most = 0

    async def start(self) -> None: ...
    async def close(self) -> None: ...

    async def fetch(self, *_: object, **__: object) -> Any:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(CHECK_S)
        self.under_way -= 1
        return SimpleNamespace(error=None, status=200, seconds=CHECK_S, why_failed="")


def lived(pool: LookedAt, fetcher: SlowFetcher, *, seconds: float, due: int = 0) -> None:
    """Let the checks of a pool run for so many seconds, in which so many proxies become due at once."""
    with world(1) as loop:
        loop.run_until_complete(_story(loop, pool, fetcher, seconds, due))


async def _story(loop: SimLoop, pool: LookedAt, fetcher: SlowFetcher, seconds: float, due: int) -> None:
    checks = ProxyChecks(JOB, lambda _: cast(Proxies, pool), lambda _: cast(Fetcher, fetcher), Limits(), loop.time)
    task = loop.create_task(checks.run(SimpleNamespace(pause_reasons=set(), wake=lambda: None)))
    await asyncio.sleep(1)
    pool.due = due
    await asyncio.sleep(seconds - 1)
    task.cancel()
    await asyncio.wait([task])


def test_while_no_proxy_is_due_one_task_looks_for_all() -> None:
    pool, fetcher = LookedAt(), SlowFetcher()
    lived(pool, fetcher, seconds=100)
    assert 0.9 * 100 / PAUSE_POLL_S <= pool.looks <= 1.1 * 100 / PAUSE_POLL_S
    assert fetcher.most == 0


def test_many_due_proxies_are_checked_several_at_a_time() -> None:
    pool, fetcher = LookedAt(), SlowFetcher()
    lived(pool, fetcher, seconds=3 * CHECK_S, due=2 * HEALTH_CHECKS_AT_ONCE)
    assert fetcher.most == HEALTH_CHECKS_AT_ONCE
    assert pool.works == [True] * 2 * HEALTH_CHECKS_AT_ONCE
