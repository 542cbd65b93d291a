"""Real crawls of redirects: loops and cookie walls have their own reasons, and a seed that leaves the scope says so."""

import logging
from collections.abc import Callable
from random import Random

import pytest
from aiohttp import web

from scripts.kadcrawl_run import LoggedPage
from tests.support.sites.web import Page, Web, html
from tests.support.swarm.peers import MakePeer, finish, swarm

Lines = Callable[[], dict[str, LoggedPage]]


def moved(to: str, **headers: str) -> Page:
    return lambda request: web.Response(status=302, headers={"Location": to, **headers})


async def crawled(make_peer: MakePeer, site: Web, *seeds: str, **job: object) -> None:
    """Crawl with three peers, and check that each URL was asked for once."""
    peers = await swarm(make_peer, "abc", **job)
    await peers[0].crawl(seeds)
    await finish(peers)
    assert set() == site.repeated


async def test_loops_over_sites_of_several_owners_fail_where_they_close(make_peer: MakePeer, lines: Lines) -> None:
    async with Web(6) as site:
        ring = [site.url("/ring", site=number) for number in range(5)]

        async def turn(request: web.BaseRequest) -> web.StreamResponse:
            place = ring.index(f"http://{request.host}/ring")
            return web.Response(status=301, headers={"Location": ring[(place + 1) % len(ring)]})

        site.pages |= {
            "/": lambda request: html("/self", "/wall", "/tail", "/x", ring[0]),
            "/ring": turn,
            "/self": moved("/self#top"),
            "/wall": moved("/wall", **{"Set-Cookie": "seen=1"}),
            "/tail": moved("/knot"),
            "/knot": moved("/knot2"),
            "/knot2": moved("/knot"),
            "/x": moved("/y"),
            "/y": moved("/end"),
        }
        site.fallback = lambda request: html()
        await crawled(make_peer, site, site.url())
        found = lines()
        assert {
            site.url("/self"): "redirect_loop",
            site.url("/wall"): "cookie_wall",
            site.url("/knot2"): "redirect_loop",
            ring[-1]: "redirect_loop",
        } == {url: line.failed for url, line in found.items() if line.failed}
        assert [*ring[1:], ring[0]] == [found[url].fields["location"] for url in ring]
        assert site.url("/end") == found[site.url("/y")].fields["location"]
        assert "location" not in found[site.url("/end")].fields
        assert 14 == len(found)


async def test_a_seed_that_redirects_out_of_scope_fails_and_says_what_to_give(
    make_peer: MakePeer, lines: Lines, caplog: pytest.LogCaptureFixture
) -> None:
    async with Web(2) as site:
        away = site.url("/home", site=1)
        site.pages |= {"/": moved("/welcome"), "/welcome": moved(away), "/ok": lambda request: html("/page")}
        site.pages["/page"] = moved(away)
        with caplog.at_level(logging.WARNING, "kadcrawl.crawl"):
            await crawled(make_peer, site, site.url("/"), site.url("/ok"), scope="host")
        found = lines()
    assert {site.url("/welcome"): "seed_left_scope"} == {url: line.failed for url, line in found.items() if line.failed}
    advice = f"it leads to {away}, which is out of scope; give that URL as a seed as well"
    assert (advice, away) == (
        found[site.url("/welcome")].fields["detail"],
        found[site.url("/welcome")].fields["location"],
    )
    assert away == found[site.url("/page")].fields["location"]
    said = [record.getMessage() for record in caplog.records if "seed_left_scope" in record.getMessage()]
    assert [f"crawl.seed_left_scope url={site.url('/welcome')} why={advice}"] == said


@pytest.mark.parametrize("seed", range(3))
async def test_chains_are_followed_to_their_ends_and_nothing_is_lost(
    make_peer: MakePeer, lines: Lines, seed: int
) -> None:
    """Each of 60 URLs redirects to another one, at random, and a page links to some of them."""
    random = Random(seed)
    async with Web(4) as site:
        urls = [site.url(f"/{number}", site=random.randrange(4)) for number in range(60)]
        leads = {url: random.choice([*urls, site.url("/end")]) for url in urls}

        async def turn(request: web.BaseRequest) -> web.StreamResponse:
            to = leads.get(f"http://{request.host}{request.path}")
            return html() if to is None else web.Response(status=308, headers={"Location": to})

        first = random.sample(urls, 10)
        site.pages["/"] = lambda request: html(*first)
        site.fallback = turn
        await crawled(make_peer, site, site.url())
        reached, waiting = {site.url()}, list(first)
        while waiting:
            if (url := waiting.pop()) not in reached:
                reached.add(url)
                waiting += [leads[url]] if url in leads else []
        found = lines()
        assert reached == set(found)
        assert {"redirect_loop", "redirect_limit"} >= {line.failed for line in found.values() if line.failed}
