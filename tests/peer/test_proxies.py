"""Whole peers fetch through proxies: some die, all die, the list changes; and each site keeps its pace."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from aiohttp import web
from warcio.archiveiterator import ArchiveIterator

from kadcrawl import Config, Leaf, Peer
from kadcrawl.crawl.fetch.result import FetchError
from kadcrawl.crawl.proxies import health, health_checks
from kadcrawl.settings.site_rules import SiteRule
from scripts.kadcrawl_run import LoggedPage
from tests.support.sites.given_answers import GivenAnswers
from tests.support.sites.proxies import ProxyServer
from tests.support.sites.web import Answer, Web, html, slow, slow_while, tree
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
    monkeypatch.setattr(health_checks, "FEW_WAIT_S", 0.05)
    monkeypatch.setattr(health, "DEAD_WAIT_MAX_S", 0.1)


@pytest.fixture
async def judge() -> AsyncIterator[Web]:
    async with Web() as web_:
        web_.fallback = lambda request: web.Response(text="fine")
        yield web_


@pytest.fixture
async def proxies() -> AsyncIterator[list[ProxyServer]]:
    kinds = ("http", "socks5", "http")
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(ProxyServer(kind, SECRET).living()) for kind in kinds]


def of_job(proxies: list[ProxyServer], judge: Web) -> dict[str, object]:
    return {"proxies": tuple(proxy.url for proxy in proxies), "proxy_judge": judge.url("/judge")}


def host(site: Web, number: int = 0) -> str:
    return site.url("", number).removeprefix("http://")


async def test_all_requests_use_proxies_and_nothing_shows_their_passwords(
    make_peer: MakePeer, proxies: list[ProxyServer], judge: Web, lines: Lines, tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    caplog.set_level("DEBUG")
    async with Web(sites=4) as site:
        site.fallback = tree(40, sites=4)(site)
        site.pages["/robots.txt"] = lambda request: web.Response(text=f"Sitemap: {site.url('/sitemap.xml')}")
        site.pages["/sitemap.xml"] = lambda request: web.Response(
            text=f"<urlset><url><loc>{site.url('/77')}</loc></url></urlset>"
        )
        peers = await swarm(make_peer, "ab", limits=LIMITS, sitemaps=True, **of_job(proxies, judge))
        await peers[0].crawl([site.url("/0")])
        await finish(peers)
        found = lines()
        assert {"/sitemap.xml", "/77", "/39"} <= {"/" + url.rsplit("/", 1)[1] for url in found}
        assert {200} == {line.status for line in found.values()}
        # One connection of the site for one request or tunnel of a proxy, and none past them.
        asked = [where for proxy in proxies for where in proxy.asked if where != host(judge)]
        assert set(asked) == {host(site, number) for number in range(4)}
        assert len([where for proxy in proxies if proxy.kind == "http" for where in proxy.asked]) > 0
        assert peers[1].job.proxies == tuple(proxy.url for proxy in proxies)
        # A site keeps its proxy, of each peer that asks it.
        for number in range(4):
            assert sum(host(site, number) in proxy.asked for proxy in proxies) <= len(peers)
    shown = caplog.text + repr([(peer, peer.row(), peer.job) for peer in peers])
    outputs = [path for path in tmp_path.rglob("*") if path.suffix in (".jsonl", ".log", ".gz")]
    assert outputs
    for path in outputs:
        if path.suffix == ".gz":
            with path.open("rb") as file:
                for record in ArchiveIterator(file):
                    assert record.rec_headers.get_header("WARC-IP-Address") is None
                    shown += str(record.http_headers) + str(record.rec_headers)
        else:
            shown += path.read_text()
    assert SECRET[1] not in shown
    assert "proxy-auth" not in shown.lower()


async def test_when_a_proxy_dies_others_take_over_and_no_page_is_lost(
    make_peer: MakePeer, proxies: list[ProxyServer], judge: Web, lines: Lines
) -> None:
    async with Web(sites=6) as site:
        site.fallback = slow(tree(150, sites=6)(site), 0.01)
        peer = await make_peer(limits=LIMITS, retries=0, **of_job(proxies, judge))
        await peer.crawl([site.url("/0")])
        await until(lambda: len(site.fetched) > 30)
        await proxies[0].die()
        proxies[1].breaks = True
        await until(lambda: len(site.fetched) > 60)
        proxies[2].refuses = b"HTTP/1.1 502 No way"
        proxies[1].breaks = False
        await finish([peer])
        assert len(lines()) == 150
        assert not [line for line in lines().values() if line.failed]


async def test_with_all_proxies_dead_the_crawl_waits_for_the_first_that_works(
    make_peer: MakePeer, proxies: list[ProxyServer], judge: Web, lines: Lines
) -> None:
    async with Web(sites=4) as site:
        site.fallback = slow(tree(120, sites=4)(site), 0.01)
        peers = await swarm(make_peer, "ab", limits=LIMITS, retries=0, **of_job(proxies, judge))
        await peers[0].crawl([site.url("/0")])
        for round_ in (1, 2):
            enough = len(site.fetched) + 20
            await until(lambda enough=enough: len(site.fetched) > enough)  # type: ignore[misc]
            await asyncio.gather(*(proxy.die() for proxy in proxies))
            await until(lambda: any(peer.state == "waiting for proxies" for peer in peers))
            assert not any(peer.ended for peer in peers)
            await proxies[round_].start()
        await finish(peers)
        assert len(lines()) == 120
        assert not [line for line in lines().values() if line.failed]


async def test_a_peer_without_a_live_proxy_fetches_through_a_peer_that_has_proxies(
    make_peer: MakePeer, proxies: list[ProxyServer], judge: Web, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Web(sites=20) as site:
        site.fallback = tree(60, sites=20)(site)
        able, unable = await swarm(make_peer, "ab", limits=LIMITS, retries=0, **of_job(proxies, judge))
        without = GivenAnswers()
        without.error = FetchError.NO_PROXY
        monkeypatch.setattr(unable.components.reach.watched, "_fetching", without)
        await able.crawl([site.url("/0")])
        await finish([able, unable])
        assert {(200, None)} == {(line.status, line.failed) for line in lines().values()}
        assert 60 == len(lines())
        assert [line for line in lines().values() if line.fields["peer"] == unable.contact.id.hex()[:16]]


async def test_a_crawl_begins_once_a_proxy_lives(
    make_peer: MakePeer, proxies: list[ProxyServer], judge: Web, lines: Lines
) -> None:
    await asyncio.gather(*(proxy.die() for proxy in proxies))
    async with Web() as site:
        site.fallback = tree(3)(site)
        peer = await make_peer(limits=LIMITS, **of_job(proxies, judge))
        await peer.crawl([site.url("/0")])
        await until(lambda: peer.state == "waiting for proxies")
        assert site.requests == []
        await proxies[1].start()
        await finish([peer])
        assert len(lines()) == 3


def broken(request: web.BaseRequest) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def test_a_site_keeps_its_pace_over_all_proxies_and_faults(
    make_peer: MakePeer, proxies: list[ProxyServer], judge: Web, lines: Lines
) -> None:
    delay_s = 0.06
    async with Web() as site:

        def page(request: web.BaseRequest) -> Answer:
            # Now and then a proxy breaks at this site, so that others are asked for it.
            for number, proxy in enumerate(proxies):
                proxy.breaks = len(site.requests) % 7 == 2 * number
            return tree(16)(site)(request)

        site.fallback = page
        # The site was asked, whoever is to blame, so its clock runs.
        site.pages["/3"] = broken
        peer = await make_peer(limits=LIMITS, delay_s=delay_s, retries=1, **of_job(proxies, judge))
        await peer.crawl([site.url("/0")])
        await finish([peer])
        times = [at for at, _ in site.requests]
        assert min(later - sooner for sooner, later in pairwise(times)) >= delay_s
        assert sum(host(site) in proxy.asked for proxy in proxies) > 1
        failed = {line.url: line.failed for line in lines().values() if line.failed}
        assert failed == {site.url("/3"): "disconnected"}
        assert site.fetched[site.url("/3")] > 2  # Tries of its own, and of other proxies.


async def test_a_page_that_breaks_by_every_proxy_fails_and_kills_no_proxy(
    make_peer: MakePeer, proxies: list[ProxyServer], judge: Web, lines: Lines
) -> None:
    async with Web() as site:
        site.fallback = tree(10)(site)
        site.pages["/4"] = broken
        peer = await make_peer(limits=LIMITS, retries=0, **of_job(proxies, judge))
        await peer.crawl([site.url("/0")])
        await finish([peer])
        failed = {line.url: line.failed for line in lines().values() if line.failed}
        assert failed == {site.url("/4"): "disconnected"}
        assert 2 <= site.fetched[site.url("/4")] <= 10
        checks = peer.components.proxy_checks
        assert checks is not None
        await until(lambda: checks.pools[""].alive == 3)


async def test_the_log_says_why_a_proxy_that_never_worked_is_dead(
    make_peer: MakePeer, judge: Web, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with (
        Web() as site,
        ProxyServer("http", SECRET).living() as locked,
        ProxyServer("http").living() as down,
        ProxyServer("http").living() as good,
    ):
        await down.die()
        without = locked.url.replace(":".join(SECRET) + "@", "")
        proxies = (without, down.url, good.url)
        peer = await make_peer(limits=LIMITS, proxies=proxies, proxy_judge=judge.url("/judge"))
        judge.pages["/judge"] = lambda request: web.Response(status=404)
        await peer.crawl([site.url("/0")])
        await until(lambda: caplog.text.count("proxy.dead") == 3)
        assert f"proxy.dead pool=default proxy={without} alive=0 of=3 why=http_407" in caplog.text
        assert f"proxy={down.url} alive=0 of=3 why=proxy: no connection to the proxy" in caplog.text
        assert f"proxy={good.url} alive=0 of=3 why=http_404" in caplog.text
        for proxy in (locked, good):
            asked = len(proxy.heads)
            await until(lambda proxy=proxy, asked=asked: len(proxy.heads) > asked + 1)  # type: ignore[misc]
        assert caplog.text.count("proxy.dead") == 3, "once each"


async def test_a_health_check_page_at_a_refused_address_is_told_to_the_person(
    make_peer: MakePeer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with ProxyServer("http").living() as proxy:
        networks = ("127.0.0.0/28",)
        page = "http://127.0.0.99/judge"
        peer = await make_peer(limits=LIMITS, networks=networks, proxies=(proxy.url,), proxy_judge=page)
        await peer.crawl(["http://example.org/"])
        await until(lambda: "proxy.dead" in caplog.text)
        assert "why=address_refused: 127.0.0.99 is not a public host" in caplog.text
        warning = peer.warning()
        assert warning is not None
        assert warning.startswith("127.0.0.99 is neither public nor allowed here")
        assert not proxy.asked


async def test_the_judges_site_is_never_crawled(
    make_peer: MakePeer, proxies: list[ProxyServer], judge: Web, lines: Lines
) -> None:
    async with Web() as site:
        site.fallback = lambda request: html(judge.url("/page"))
        peer = await make_peer(limits=LIMITS, **of_job(proxies, judge))
        await peer.crawl([site.url("/0"), judge.url("/seed")])
        await finish([peer])
        assert {site.url("/0"): None, judge.url("/seed"): "proxy_judge"} == {
            line.url: line.failed for line in lines().values()
        }
        assert set(judge.fetched) == {judge.url("/judge")}


async def test_the_pool_follows_what_a_url_names(
    make_peer: MakePeer, proxies: list[ProxyServer], judge: Web, lines: Lines
) -> None:
    async with Web() as site, Web() as source:
        site.fallback = slow(tree(80)(site), 0.005)
        named = [proxies[0]]
        source.fallback = lambda request: web.Response(
            text="\n".join(["<p>no proxy", *(proxy.url for proxy in named), "# the end"])
        )
        limits = replace(LIMITS, proxy_source_s=0.1)
        peers = await swarm(
            make_peer, "ab", limits=limits, retries=0, proxies_from=source.url("/list"), proxy_judge=judge.url("/judge")
        )
        await peers[0].crawl([site.url("/0")])
        await until(lambda: len(site.fetched) > 10)
        await proxies[0].die()
        named[:] = [proxies[1]]
        await until(lambda: len(site.fetched) > 30)
        named.clear()  # What names nothing is no list, so what it named before stays.
        asked = len(source.requests)
        await until(lambda: len(source.requests) > asked + 2)
        for peer in peers:
            checks = peer.components.proxy_checks
            assert checks is not None
            assert checks.pools[""].known == 1
        await finish(peers)
        assert len(lines()) == 80
        assert not [line for line in lines().values() if line.failed]


async def test_a_leaf_fetches_through_the_proxies_of_the_job(
    make_peer: MakePeer, proxies: list[ProxyServer], judge: Web, lines: Lines, tmp_path: Path
) -> None:
    async with Web(sites=8) as site:
        site.fallback = slow(tree(200, sites=8)(site), 0.02)
        site.fallback = slow_while(site.fallback, LATE_ANSWER_S, lambda: leaf.counters.pages <= PART)
        peer = await make_peer(limits=replace(LIMITS, fetches_max=2), retries=0, **of_job(proxies, judge))
        config = Config(data=tmp_path / "leaf", allow_networks=("127.0.0.0/8",), limits=LIMITS)
        async with Leaf(config) as leaf:
            await leaf.join([peer.contact.address])
            await peer.crawl([site.url("/0")])
            await until(lambda: leaf.counters.pages > PART)
            await asyncio.gather(*(proxy.die() for proxy in proxies))
            await until(lambda: "waiting for proxies" in (leaf.state, peer.state))
            await proxies[0].start()
            await finish([peer])
            await leaf.finish()
        assert len(lines()) == 200
        assert not [line for line in lines().values() if line.failed]


async def test_a_site_without_proxies_is_fetched_directly_and_all_others_are_not(
    make_peer: MakePeer, proxies: list[ProxyServer], judge: Web, lines: Lines
) -> None:
    async with Web(2) as site:
        site.fallback = lambda request: html("/1", site.url("/", site=1))
        rule = SiteRule(match=("127.0.0.2",), proxies="none")
        peers = await swarm(make_peer, "ab", limits=LIMITS, sites=(rule,), **of_job(proxies, judge))
        await peers[0].crawl([site.url("/")])
        await finish(peers)
        asked = {where for proxy in proxies for where in proxy.asked if where != host(judge)}
        assert {f"127.0.0.3:{site.port}"} == asked
        assert {site.url("/"), site.url("/1"), site.url("/", site=1), site.url("/1", site=1)} == lines().keys()


def known(peer: Peer) -> set[str]:
    """Return the proxies that a peer knows, without their credentials."""
    checks = peer.components.proxy_checks
    assert checks is not None
    return {str(proxy) for proxy in checks.pools[""]._health}


async def test_a_web_page_names_proxies_and_those_at_refused_addresses_are_never_asked(
    make_peer: MakePeer, judge: Web, lines: Lines, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        Web() as site,
        Web() as source,
        ProxyServer("http").living() as one,
        ProxyServer("socks5").living() as two,
    ):
        site.fallback = tree(20)(site)
        private = f"127.0.0.99:{one.port}"
        page = (
            f"<p>Today: 127.0.0.1:{one.port}, {private}</p><table><tr><th>IP<th>Port<th>Type"
            f"<tr><td>127.0.0.1<td>{two.port}<td>SOCKS5</table>"
        )
        source.fallback = lambda request: web.Response(text=page, content_type="text/html")
        networks = ("127.0.0.0/28",)
        of_page = {"proxies_from": source.url("/free"), "proxy_judge": judge.url("/judge")}
        peer = await make_peer(limits=LIMITS, retries=0, networks=networks, **of_page)
        await peer.crawl([site.url("/0")])
        await finish([peer])
        assert {f"http://127.0.0.1:{one.port}", f"socks5://127.0.0.1:{two.port}", f"http://{private}"} == known(peer)
        await until(lambda: "address.refused address=127.0.0.99" in caplog.text)
        assert one.asked
        assert two.asked
        assert 20 == len(lines())


async def test_a_restart_asks_the_health_check_page_of_no_proxy_that_was_just_verified(
    make_peer: MakePeer, proxies: list[ProxyServer], judge: Web, lines: Lines
) -> None:
    limits = replace(LIMITS, proxy_verify_s=3_600)
    async with Web() as site:
        site.fallback = tree(10)(site)
        site.pages["/other"] = lambda request: html()
        await proxies[2].die()
        peer = await make_peer(limits=limits, retries=0, **of_job(proxies, judge))
        await peer.crawl([site.url("/0")])
        await finish([peer])
        checks = peer.components.proxy_checks
        assert checks is not None
        pool = checks.pools[""]
        await until(lambda: pool.alive == 2)
        await peer.drain()
        await peer.__aexit__(None, None, None)
        asked = len(judge.requests)
        peer = await make_peer(limits=limits, retries=0, **of_job(proxies, judge))
        checks = peer.components.proxy_checks
        assert checks is not None
        assert 2 == checks.pools[""].alive, "before anything was verified"
        await peer.crawl([site.url("/other")])
        await finish([peer])
        assert asked == len(judge.requests)
        assert 11 == len(lines())
