"""An order to retry: failed URLs are fetched again, once each, wherever they are by then."""

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from kadcrawl import ConfigError, Peer
from kadcrawl.link.wire.retry_messages import RetryOrder
from scripts.kadcrawl_run import page_lines
from tests.support.sites.web import Answer, Web, html
from tests.support.swarm.crash import crash
from tests.support.swarm.peers import MakePeer, finish, swarm
from tests.support.waiting import until

SITES = 6
BROKEN = {"/broken": 500, "/gone": 404}


class Healing:
    """Some sites, each with pages that fail until `heal`, and a link below each of them."""

    def __init__(self, site: Web) -> None:
        self.site = site
        self.healed = False
        site.pages["/"] = lambda request: html(*self.urls(*BROKEN, "/fine"))
        site.pages["/fine"] = site.pages["/below"] = lambda request: html()
        for path, status in BROKEN.items():
            site.pages[path] = lambda request, status=status: self._answer(status)  # type: ignore[misc]

    def urls(self, *paths: str) -> list[str]:
        return [self.site.url(path, number) for number in range(SITES) for path in paths]

    def heal(self) -> None:
        self.healed = True

    def _answer(self, status: int) -> Answer:
        return html(*self.urls("/below")) if self.healed else web.Response(status=status)


def visits(directory: Path, url: str) -> list[tuple[int, str | None]]:
    """Return the (visit, failed) of each line of a URL."""
    lines = [line for line in page_lines(directory) if line.url == url]
    return sorted((int(line.fields.get("visit", 0)), line.fields.get("failed")) for line in lines)


async def crawled(make_peer: MakePeer, site: Web, names: str, **job: object) -> tuple[list[Peer], Healing]:
    """Return the peers of an ended crawl with failures."""
    healing = Healing(site)
    peers = await swarm(make_peer, names, retries=0, **job)
    await peers[0].crawl([site.url("/")])
    async with asyncio.timeout(60):
        for peer in peers:
            await peer.wait_done()
    return peers, healing


async def test_all_failed_urls_are_fetched_again_by_any_peer_of_an_ended_crawl(
    make_peer: MakePeer, tmp_path: Path
) -> None:
    async with Web(SITES) as site:
        peers, healing = await crawled(make_peer, site, "abc")
        healing.heal()
        retried = await peers[1].retry()
        assert {"http_500": SITES, "http_404": SITES} == retried.urls
        assert (0, 0) == (retried.cells_left, retried.parts_missing)
        await finish(peers)
        for url in healing.urls(*BROKEN):
            assert 2 == site.fetched[url]
            assert [(0, "http_500" if "broken" in url else "http_404"), (1, None)] == visits(tmp_path, url)
        assert {1} == {site.fetched[url] for url in healing.urls("/fine", "/below")}, "links on them are followed"
        assert {} == (await peers[2].retry()).urls, "nothing has failed since"


async def test_what_fails_again_stays_failed_until_the_next_order(make_peer: MakePeer, tmp_path: Path) -> None:
    async with Web(SITES) as site:
        peers, healing = await crawled(make_peer, site, "ab")
        for number in (1, 2):
            assert 2 * SITES == sum((await peers[0].retry()).urls.values())
            await until(lambda: all(peer.ended for peer in peers))
            assert {number + 1} == {site.fetched[url] for url in healing.urls(*BROKEN)}
        await finish(peers)
    failures = [(number, "http_500") for number in range(3)]
    assert failures == visits(tmp_path, healing.urls("/broken")[0])


async def test_an_order_is_narrowed_down_by_reason_site_and_url(make_peer: MakePeer) -> None:
    async with Web(SITES) as site:
        peers, healing = await crawled(make_peer, site, "ab")
        healing.heal()
        assert {} == (await peers[0].retry(["dns"])).urls
        one = site.url("/gone", 1)
        assert {"http_404": 1} == (await peers[0].retry(url=one)).urls
        assert {"http_500": 1, "http_404": 1} == (await peers[1].retry(site=site.url("/", 2)[7:-1])).urls
        assert {"http_500": SITES - 1} == (await peers[1].retry(["http_500", "dns"])).urls
        await finish(peers)
        assert SITES - 2 == sum(site.fetched[url] == 1 for url in healing.urls("/gone"))


async def test_an_order_that_arrives_twice_is_carried_out_once(make_peer: MakePeer) -> None:
    async with Web(SITES) as site:
        peers, healing = await crawled(make_peer, site, "ab")
        await peers[0].retry()
        orders = peers[0].runtime.retry_orders.to_wire()
        await until(lambda: all(peer.ended for peer in peers))
        for peer in peers:
            peer.runtime.hear_retries(orders)
            peer.runtime.parts.retrying.looks.heard()
        await until(lambda: not any(peer.runtime.parts.retrying.looks.left for peer in peers))
        await finish(peers)
        assert {2} == {site.fetched[url] for url in healing.urls(*BROKEN)}


async def test_a_peer_that_no_wave_has_reached_hears_the_order_by_heartbeats(make_peer: MakePeer) -> None:
    async with Web(SITES) as site:
        peers, healing = await crawled(make_peer, site, "abc")
        healing.heal()
        runtime = peers[0].runtime
        runtime.hear_retries([runtime.retry_orders.order(RetryOrder(0), runtime.resources.clock.now())])
        await until(lambda: all(site.fetched[url] == 2 for url in healing.urls(*BROKEN)))
        await finish(peers)
        assert {2} == {site.fetched[url] for url in healing.urls(*BROKEN)}


async def test_an_order_reaches_the_failures_of_peers_that_crashed_and_left(make_peer: MakePeer) -> None:
    """The failures move with their cells, although the peers that wrote their lines are gone."""
    async with Web(SITES) as site:
        peers, healing = await crawled(make_peer, site, "abcd")
        await peers[1].leave()
        await peers[1].__aexit__(None, None, None)
        await until(lambda: all(peer.cells.at_home for peer in (peers[0], *peers[2:])))
        await crash(peers[2])
        healing.heal()
        await peers[0].retry()
        await until(lambda: all(site.fetched[url] == 2 for url in healing.urls(*BROKEN)))
        await finish([peers[0], peers[3]])
        assert {2} == {site.fetched[url] for url in healing.urls(*BROKEN)}


async def test_a_peer_goes_on_with_an_order_after_a_restart(make_peer: MakePeer) -> None:
    async with Web(SITES) as site:
        (peer,), healing = await crawled(make_peer, site, "a")
        peer.obey(peer.state_gossip.say("pause"))
        await peer.retry()
        assert 2 * SITES == peer.pending
        await peer.drain()
        await peer.__aexit__(None, None, None)
        healing.heal()
        again = await make_peer("a")
        again.obey(again.state_gossip.say("resume"))
        await finish([again])
        assert {2} == {site.fetched[url] for url in healing.urls(*BROKEN)}
        assert {1} == {site.fetched[url] for url in healing.urls("/below")}


async def test_a_site_whose_robots_txt_failed_is_asked_for_it_again(make_peer: MakePeer) -> None:
    async with Web() as site:
        site.pages["/robots.txt"] = lambda request: web.Response(status=500)
        site.fallback = lambda request: html()
        peer = await make_peer("a", retries=0)
        await peer.crawl([site.url("/page")])
        await until(lambda: peer.ended)
        site.pages["/robots.txt"] = lambda request: web.Response(text="User-agent: *\nDisallow: /page")
        assert {"robots_unreachable": 1} == (await peer.retry()).urls
        await until(lambda: peer.ended)
        site.pages["/robots.txt"] = lambda request: web.Response(status=404)
        assert {"robots": 1} == (await peer.retry()).urls
        await finish([peer])
        assert 1 == site.fetched[site.url("/page")]


async def test_a_crawl_that_keeps_fingerprints_refuses_the_order(make_peer: MakePeer) -> None:
    peer = await make_peer("a", history="bloom")
    with pytest.raises(ConfigError, match="does not remember which URLs failed"):
        await peer.retry()


async def test_a_recrawl_and_an_order_do_not_disturb_each_other(make_peer: MakePeer, tmp_path: Path) -> None:
    async with Web(SITES) as site:
        healing = Healing(site)
        peers = await swarm(make_peer, "ab", retries=0, recrawl_after_s=3600.0)
        await peers[0].crawl([site.url("/")])
        await until(lambda: all(peer.state == "resting" for peer in peers))
        healing.heal()
        assert 2 * SITES == sum((await peers[1].retry()).urls.values())
        await until(lambda: all(peer.state == "resting" for peer in peers))
        await asyncio.gather(*(peer.drain() for peer in peers))
        assert {2} == {site.fetched[url] for url in healing.urls(*BROKEN)}
        assert {1} == {site.fetched[url] for url in healing.urls("/fine", "/below")}
    assert [(0, "http_500"), (1, None)] == visits(tmp_path, healing.urls("/broken")[0])


async def test_a_retried_page_counts_again_for_the_budget_and_keeps_its_depth(
    make_peer: MakePeer, tmp_path: Path
) -> None:
    async with Web(SITES) as site:
        pages = 1 + 3 * SITES
        peers, healing = await crawled(make_peer, site, "a", max_pages=pages + 3, max_depth=1)
        healing.heal()
        assert 2 * SITES == sum((await peers[0].retry()).urls.values())
        await finish(peers)
        again = [url for url in healing.urls(*BROKEN) if site.fetched[url] == 2]
        assert 3 == len(again)
        assert not any(site.fetched[url] for url in healing.urls("/below")), "they would be at depth 2"
    assert {1} == {line.fields["depth"] for line in page_lines(tmp_path) if line.url in again}


async def test_the_totals_add_up_after_an_order(make_peer: MakePeer) -> None:
    from kadcrawl.cli.view.summary import add_up

    async with Web(SITES) as site:
        peers, healing = await crawled(make_peer, site, "abc")
        healing.heal()
        await peers[1].retry(["http_500"])
        await finish(peers)
        total = add_up((peer.row() for peer in peers), 1.0, peers[0].job)
        assert total.urls_found == total.urls_done == 1 + 4 * SITES
        assert {"http_404": SITES} == total.urls_failed
        assert 0 == total.duplicates


async def test_a_request_under_way_counts_as_older_than_the_order(make_peer: MakePeer) -> None:
    async with Web() as site:
        asked, answer = asyncio.Event(), asyncio.Event()

        async def hanging(request: web.BaseRequest) -> web.StreamResponse:
            if site.fetched[site.url("/page")] > 1:
                return html()
            asked.set()
            await answer.wait()
            return web.Response(status=404)

        site.pages["/page"] = hanging
        peer = await make_peer("a")
        await peer.crawl([site.url("/page")])
        await asked.wait()
        assert {} == (await peer.retry()).urls
        answer.set()
        await finish([peer])
        assert 2 == site.fetched[site.url("/page")]
