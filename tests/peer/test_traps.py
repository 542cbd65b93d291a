"""Test that a crawl of sites with endless invented pages ends.

The crawl fetches its allowance, and names the reason of the end.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from kadcrawl import Peer
from kadcrawl.crawl.content.simhash import simhash as text_hash
from kadcrawl.peer.job_store import journaled_job
from scripts.kadcrawl_run import LoggedPage
from sim import sample_traps
from sim.sample_web import SampleWeb
from tests.support.sites.owned_sites import SITES, sites_of
from tests.support.sites.web import Web, html
from tests.support.swarm.crash import crash
from tests.support.swarm.peers import QUICK, MakePeer, finish, swarm
from tests.support.waiting import until

Lines = Callable[[], dict[str, LoggedPage]]


async def test_a_site_of_traps_is_crawled_to_its_bounds_and_the_totals_name_them(
    make_peer: MakePeer, lines: Lines
) -> None:
    bounds = sample_traps.Bounds()
    async with SampleWeb(traps=bounds) as sample:
        peer = await make_peer(scope="host", site_pages_max=bounds.site_pages, path_queries_max=bounds.path_queries)
        await peer.crawl([f"{sample.trap_origin}/"])
        await finish([peer])
        paths = [f"{sample.trap_origin}{path}" for path in sample_traps.paths(bounds)]
        assert sorted(paths) == sorted(access.url for access in sample.access_log)
        assert set(paths) - {f"{sample.trap_origin}/robots.txt"} == set(lines())
        assert sample_traps.left_out() == peer.counters.left_out
        assert (bounds.site_pages, bounds.site_pages) == (peer.counters.urls, peer.counters.pages)


async def test_a_list_of_facets_without_end_is_ended_by_its_queries_alone(make_peer: MakePeer) -> None:
    async with SampleWeb(traps=sample_traps.Bounds()) as sample:
        peer = await make_peer(scope="host", path_queries_max=9)
        await peer.crawl([f"{sample.trap_origin}/list"])
        await finish([peer])
        assert ({"path_queries": 1}, 10) == (peer.counters.left_out, peer.counters.pages)


def calendar(request: web.BaseRequest) -> web.StreamResponse:
    return html(f"/{int(request.path[1:] or 0) + 1}")


def owner_of(url: str, peers: Sequence[Peer]) -> Peer | None:
    """Return the peer that may crawl the URL's cell, if any may just now."""
    for peer in peers:
        if peer.components.frontier.is_open(peer.components.partitioner.locate(url).cell):
            return peer
    return None


@pytest.mark.parametrize("go", [Peer.leave, crash], ids=["leaves", "dies"])
async def test_a_site_has_its_share_of_urls_and_no_more_when_its_owner_goes(
    go: Callable[[Peer], Awaitable[None]], make_peer: MakePeer
) -> None:
    """The count covers the knowledge of all holders of the cell, so the next owner does not start at zero."""
    async with Web() as site:
        site.fallback = calendar
        site.pages["/new"] = lambda request: html("/100", "/5", "/200")
        peers = await swarm(make_peer, "abc", site_pages_max=10)
        await peers[0].crawl([site.url()])
        for peer in peers:
            await peer.wait_done()
        assert 10 == len(site.fetched)
        owner = owner_of(site.url(), peers)
        assert owner is not None
        assert {"site_pages": 1} == owner.counters.left_out
        peers.remove(owner)
        await go(owner)
        await until(lambda: owner_of(site.url(), peers))
        await peers[0].crawl([site.url("/new")])
        heir = owner_of(site.url(), peers)
        assert heir is not None
        await until(lambda: heir.counters.left_out == {"site_pages": 2})
        await finish(peers)
        assert {*(site.url(f"/{n or ''}") for n in range(10)), site.url("/new")} == set(site.fetched)


async def test_a_site_whose_share_is_spent_gets_no_more_after_a_restart(make_peer: MakePeer, tmp_path: Path) -> None:
    async with Web(1) as site:
        site.fallback = calendar
        first = await make_peer("a", site_pages_max=10)
        await first.crawl([site.url("/")])
        await finish([first])
        await first.__aexit__(None, None, None)
        again = await make_peer("a", site_pages_max=10)
        await again.crawl([site.url("/50")])
        await finish([again])
        assert 11 == len(site.fetched)
        assert {"site_pages": 2} == again.counters.left_out


async def test_the_owner_of_a_site_counts_the_queries_that_others_find(make_peer: MakePeer) -> None:
    """Pages of one site link to the list on the other, each with a query of its own: only its owner sees them all."""
    async with Web(2) as web:
        web.pages["/"] = lambda request: html("/0", "/1", "/2")
        web.pages["/list"] = lambda request: html()
        web.fallback = lambda request: html(*(web.url(f"/list?{request.path[1:]}{n}", 1) for n in range(4)))
        peers = await swarm(make_peer, "abc", path_queries_max=5)
        await peers[0].crawl([web.url("/list", 1)])
        for peer in peers:
            await peer.wait_done()
        await peers[0].crawl([web.url()])
        await finish(peers)
        assert 5 == sum("/list?" in url for url in web.fetched)
        owner = owner_of(web.url("/list", 1), peers)
        assert owner is not None
        assert [{"path_queries": 7}] == [peer.counters.left_out for peer in peers if peer.counters.left_out]
        assert {"path_queries": 7} == owner.counters.left_out


async def test_near_duplicates_are_found_by_simhash_if_the_job_asks_for_it(make_peer: MakePeer, lines: Lines) -> None:
    words = " ".join(f"word{number * number % 997}" for number in range(2_000))
    async with Web() as site:
        site.pages["/"] = lambda request: html("/one", "/other", "/gone")
        for path, day in (("/one", "Monday"), ("/other", "Sunday")):
            text = f"<p>Today is {day}.</p>{words}"
            site.pages[path] = lambda request, text=text: web.Response(text=text, content_type="text/html")  # type: ignore[misc]
        peer = await make_peer(simhash=True)
        await peer.crawl([site.url()])
        await finish([peer])
    found = {url: line.fields.get("simhash") for url, line in lines().items()}
    one, other = (str(found[site.url(path)]) for path in ("/one", "/other"))
    assert 16 == len(one)
    assert (int(one, 16) ^ int(other, 16)).bit_count() <= 3
    assert (None, None) == (found[site.url("/gone")], found[site.url()])


TEXT = " ".join(f"word{number * number % 997}" for number in range(2_000))


def dated_page(day: str, *links: str) -> web.Response:
    """Return a page with these links whose long text differs from others in a word."""
    anchors = "".join(f'<a href="{link}">on</a>' for link in links)
    return web.Response(text=f"<p>Today is {day}.</p>{anchors}{TEXT}", content_type="text/html")


@pytest.mark.parametrize("simhash", [False, True])
async def test_near_duplicates_leave_links_to_the_first_if_the_job_says_so(
    simhash: bool, make_peer: MakePeer, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[bytes] = []

    def counting(html: bytes) -> int | None:
        read.append(html)
        return text_hash(html)

    monkeypatch.setattr("kadcrawl.crawl.page_processor.simhash", counting)
    async with Web() as site:
        site.pages["/"] = lambda request: html("/one")
        site.pages["/one"] = lambda request: dated_page("Monday", "/two", "/1")
        site.pages["/two"] = lambda request: dated_page("Tuesday", "/three", "/2", "/1")
        site.pages["/seed"] = lambda request: dated_page("Friday", "/4")
        site.fallback = lambda request: html()
        peer = await make_peer(twins="skip", simhash=simhash)
        await peer.crawl([site.url()])
        await peer.wait_done()
        await peer.crawl([site.url("/seed")])
        await finish([peer])
        assert {site.url(path) for path in ("/", "/one", "/two", "/1", "/seed", "/4")} == set(site.fetched)
    found = lines()
    assert {site.url("/two"): site.url("/one")} == {
        url: line.fields["twin"] for url, line in found.items() if "twin" in line.fields
    }
    two = found[site.url("/two")]
    assert (3, 200, 2_000 < two.fields["bytes"]) == (two.fields["links"], two.status, True)
    assert {"twins": 3} == peer.counters.left_out
    assert simhash is ("simhash" in two.fields)
    assert 4 == len(read), "once for each page that is not empty"


async def test_each_peer_compares_the_lent_pages_it_fetched_and_loses_none(make_peer: MakePeer, lines: Lines) -> None:
    """Ten texts of many pages each, on one site without a delay: their links are found with each peer's first ones."""
    pages, part, texts = 200, 20, 10

    async def page(request: web.BaseRequest) -> web.StreamResponse:
        late = sum(site.fetched.values()) > pages // 2
        await asyncio.sleep(0.2 if late and quick.counters.pages < part else 0.02)
        text = int(request.path[1:]) % texts
        words = " ".join(f"word{number * number % (901 + 2 * text)}" for number in range(400))
        return web.Response(text=f'<a href="/to/{text}">on</a>{words}', content_type="text/html")

    async with Web(SITES) as site:
        site.pages |= {f"/to/{text}": lambda request: html() for text in range(texts)}
        site.pages["/"] = lambda request: html(*(f"/{number}" for number in range(pages)))
        site.fallback = page
        slow = await make_peer("a", limits=replace(QUICK, fetches_max=1), twins="skip", block_urls=5, update_s=0.3)
        quick = await make_peer("b", join=slow)
        await slow.crawl([site.url(site=sites_of(slow, quick, site, 1)[0])])
        await finish([slow, quick])
    assert part <= quick.counters.pages == slow.balancing.loans.lender.done
    found = lines()
    assert 1 + pages + texts == len(found)
    for url, line in found.items():
        if (first := line.fields.get("twin")) is not None:
            assert (line.fields["peer"], None) == (found[first].fields["peer"], found[first].fields.get("twin"))
            assert int(url.rpartition("/")[2]) % texts == int(first.rpartition("/")[2]) % texts
    of_twins = sum("twin" in line.fields for line in found.values())
    assert pages - 2 * texts <= of_twins <= pages - texts
    assert of_twins == sum(peer.counters.left_out["twins"] for peer in (slow, quick))


async def test_a_joiner_has_the_bounds_of_the_swarm(make_peer: MakePeer, tmp_path: Path) -> None:
    bounds = {
        "path_segments_max": 7,
        "session_ids": "keep",
        "site_pages_max": 3,
        "path_queries_max": 4,
        "twins": "skip",
        "nofollow": "ignore",
        "strip_parameters": ("utm", "a*"),
        "sort_query": True,
    }
    first = await make_peer("a", **bounds)
    second = await make_peer("b", join=first)
    assert first.job == second.job
    assert bounds == {name: getattr(second.job, name) for name in bounds}


async def test_a_directory_without_trap_bounds_goes_on_with_the_defaults(make_peer: MakePeer, tmp_path: Path) -> None:
    peer = await make_peer("a")
    older = msgspec.to_builtins(peer.job)
    later = ("path_segments_max", "path_repeats_max", "query_parameters_max", "session_ids", "site_pages_max")
    for name in (*later, "path_queries_max", "twins", "nofollow", "strip_parameters", "sort_query"):
        del older[name]
    peer.store.meta.set("job", msgspec.json.encode(older))
    await peer.store.journal.durable()
    assert peer.job == journaled_job(tmp_path / "a")


async def test_a_swarm_crawls_each_page_once_whatever_its_parameters(make_peer: MakePeer) -> None:
    async with Web(4) as site:
        urls = [site.url(f"/{number}", site=number) for number in range(4)]
        links = [f"{url}?{query}" for url in urls for query in ("b&a", "a&b", "a&utm_source=x&b", "gclid=1&b&a")]
        site.pages["/"] = lambda request: html(*links)
        site.fallback = lambda request: html(*links)
        peers = await swarm(make_peer, "abc", strip_parameters=("utm", "click-ids"), sort_query=True)
        await peers[0].crawl([site.url("/?utm_source=seed")])
        await finish(peers)
        assert {site.url("/?utm_source=seed"), *(f"{url}?a&b" for url in urls)} == set(site.fetched)
        assert {1} == set(site.fetched.values())


@pytest.mark.parametrize(("nofollow", "fetched", "left_out"), [("obey", 2, {"nofollow": 1}), ("ignore", 3, {})])
async def test_a_swarm_follows_nofollow_links_only_if_its_job_ignores_nofollow(
    make_peer: MakePeer, nofollow: str, fetched: int, left_out: dict[str, int]
) -> None:
    body = "<a href=/a rel=nofollow>a</a><a href=/b>b</a>"
    async with Web() as site:
        site.pages["/"] = lambda request: web.Response(text=body, content_type="text/html")
        site.fallback = lambda request: html()
        first = await make_peer("a", nofollow=nofollow)
        second = await make_peer("b", join=first)
        await first.crawl([site.url()])
        await finish([first, second])
        assert fetched == len(site.fetched)
    assert left_out == {**first.counters.left_out, **second.counters.left_out}
