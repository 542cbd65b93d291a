"""Whole peers fetch by named pools of proxies: each site through its own pool, and nothing past it."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web

from kadcrawl import Config, Leaf
from kadcrawl.crawl import attempt
from kadcrawl.crawl.proxies import health, health_checks
from kadcrawl.settings.proxy_list import ProxyPool
from kadcrawl.settings.site_rules import SiteRule
from scripts.kadcrawl_run import LoggedPage
from tests.support.sites.proxies import ProxyServer
from tests.support.sites.web import Web, slow, slow_while, tree
from tests.support.swarm.peers import QUICK, MakePeer, finish, swarm
from tests.support.waiting import until

Lines = Callable[[], dict[str, LoggedPage]]
LIMITS = replace(QUICK, proxy_retry_s=0.05, proxy_verify_s=0.3, connect_timeout_s=1)
SECRET = ("someone", "pa55word")
PART = 10
"""Pages of a leaf, until which each answer is late: else the others may be through before it has begun."""
LATE_ANSWER_S = 0.3


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_checks, "HEALTH_CHECKS_APART_S", 0.01)
    monkeypatch.setattr(health_checks, "PAUSE_POLL_S", 0.01)
    monkeypatch.setattr(health_checks, "POOL_EMPTY_S", 0.05)
    monkeypatch.setattr(health, "DEAD_WAIT_MAX_S", 0.1)
    monkeypatch.setattr(attempt, "POOL_WAIT_S", 0.05)


@pytest.fixture
async def judge() -> AsyncIterator[Web]:
    async with Web() as web_:
        web_.fallback = lambda request: web.Response(text="fine")
        yield web_


@pytest.fixture
async def eu() -> AsyncIterator[ProxyServer]:
    async with ProxyServer("http", SECRET).living() as proxy:
        yield proxy


@pytest.fixture
async def us() -> AsyncIterator[ProxyServer]:
    async with ProxyServer("socks5", SECRET).living() as proxy:
        yield proxy


def host(site: Web, number: int = 0) -> str:
    return site.url("", number).removeprefix("http://")


def of_job(site: Web, eu: ProxyServer, us: ProxyServer, judge: Web) -> dict[str, object]:
    """Return a job in which site 0 goes by the pool eu, site 1 by the pool us, and site 2 directly."""
    return {
        "pools": (ProxyPool(name="eu", proxies=(eu.url,)), ProxyPool(name="us", proxies=(us.url,))),
        "proxy_judge": judge.url("/judge"),
        "sites": (
            SiteRule(match=(host(site, 0),), proxies="eu"),
            SiteRule(match=(host(site, 1),), proxies="us"),
            SiteRule(match=(host(site, 2),), proxies="none"),
        ),
    }


def asked(proxy: ProxyServer, judge: Web) -> set[str]:
    return {where for where in proxy.asked if where != host(judge)}


async def test_each_site_goes_by_its_own_pool_and_nothing_shows_a_password(
    make_peer: MakePeer, eu: ProxyServer, us: ProxyServer, judge: Web, lines: Lines, tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    caplog.set_level("DEBUG")
    async with Web(sites=4) as site:
        site.fallback = tree(60, sites=4)(site)
        peers = await swarm(make_peer, "ab", limits=LIMITS, **of_job(site, eu, us, judge))
        await peers[0].crawl([site.url("/0")])
        await finish(peers)
        assert {host(site, 0)} == asked(eu, judge)
        assert {host(site, 1)} == asked(us, judge)
        assert {200} == {line.status for line in lines().values()}
        assert {host(site, number) for number in range(4)} == {url.split("/")[2] for url in lines()}
        assert peers[1].job.pools == peers[0].job.pools
    assert "proxy.alive pool=eu" in caplog.text
    assert "proxy.alive pool=us" in caplog.text
    shown = caplog.text + repr([(peer, peer.row(), peer.job) for peer in peers])
    for path in tmp_path.rglob("*"):
        if path.suffix in (".jsonl", ".log"):
            shown += path.read_text()
    assert SECRET[1] not in shown


async def test_a_dead_pool_keeps_its_own_sites_waiting_and_no_other(
    make_peer: MakePeer, eu: ProxyServer, us: ProxyServer, judge: Web, lines: Lines, caplog: pytest.LogCaptureFixture
) -> None:
    async with Web(sites=4) as site:
        site.fallback = tree(60, sites=4)(site)
        await eu.die()
        peer = await make_peer("a", limits=LIMITS, retries=0, **of_job(site, eu, us, judge))
        seeds = [site.url(f"/{number}", number) for number in range(4)]
        await peer.crawl(seeds)
        await until(lambda: {host(site, number) for number in (1, 2, 3)} <= {url.split("/")[2] for url in lines()})
        await until(lambda: "proxy.waiting pool=eu" in caplog.text)
        assert peer.state != "waiting for proxies"
        assert not peer.ended
        assert not [url for url in lines() if url.startswith(site.url("/", 0))]
        await eu.start()
        await finish([peer])
        assert {host(site, 0)} == asked(eu, judge)
        assert {200} == {line.status for line in lines().values()}
    assert "proxy.going_on pool=eu" in caplog.text


async def test_a_leaf_keeps_to_the_pools_of_the_job(
    make_peer: MakePeer, eu: ProxyServer, us: ProxyServer, judge: Web, lines: Lines, tmp_path: Path
) -> None:
    async with Web(sites=8) as site:
        site.fallback = slow(tree(160, sites=8)(site), 0.02)
        site.fallback = slow_while(site.fallback, LATE_ANSWER_S, lambda: leaf.counters.pages <= PART)
        fields = of_job(site, eu, us, judge)
        peer = await make_peer("a", limits=replace(LIMITS, fetches_max=2), retries=0, **fields)
        config = Config(data=tmp_path / "leaf", allow_networks=("127.0.0.0/8",), limits=LIMITS)
        async with Leaf(config) as leaf:
            await leaf.join([peer.contact.address])
            await peer.crawl([site.url("/0")])
            await until(lambda: leaf.counters.pages > PART)
            await finish([peer])
            await leaf.finish()
        assert {host(site, 0)} == asked(eu, judge)
        assert {host(site, 1)} == asked(us, judge)
        assert 160 == len(lines())
