"""Sites that make up pages for ever: a crawl of them ends, fetches what it may, and says what ended it."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from kadcrawl import Peer
from kadcrawl.peer.job_record import journaled_job
from scripts.kadcrawl_run import PageLine
from sim import sample_traps
from sim.sample_web import SampleWeb
from tests.peer.conftest import MakePeer, finish, swarm, until
from tests.peer.crash import crash
from tests.web import Web, html

Lines = Callable[[], dict[str, PageLine]]


async def test_a_site_of_nothing_but_traps_is_crawled_to_its_bounds_and_the_totals_tell_which(
    make_peer: MakePeer, lines: Lines
) -> None:
    async with SampleWeb(traps=sample_traps.Bounds()) as sample:
        peer = await make_peer(scope="host", site_pages_max=200)
        await peer.crawl([f"{sample.trap_origin}/"])
        await finish([peer])
        paths = [f"{sample.trap_origin}{path}" for path in sample_traps.paths(sample_traps.Bounds())]
        assert sorted(paths) == sorted(access.url for access in sample.access_log)
        assert set(paths) - {f"{sample.trap_origin}/robots.txt"} == set(lines())
        assert sample_traps.left_out() == peer.totals.left_out
        assert (200, 200) == (peer.totals.urls, peer.totals.pages)


def calendar(request: web.BaseRequest) -> web.StreamResponse:
    return html(f"/{int(request.path[1:] or 0) + 1}")


def owner_of(url: str, peers: Sequence[Peer]) -> Peer | None:
    """Return the peer that may crawl the URL's cell, if any may just now."""
    for peer in peers:
        if peer.parts.frontier.is_open(peer.parts.placer.place(url).cell):
            return peer
    return None


@pytest.mark.parametrize("go", [Peer.leave, crash], ids=["leaves", "dies"])
async def test_a_site_has_its_share_of_urls_and_no_more_when_its_owner_goes(
    go: Callable[[Peer], Awaitable[None]], make_peer: MakePeer
) -> None:
    """The count is of what all holders of the site's cell know, so the next owner does not begin it anew."""
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
        assert {"site_pages": 1} == owner.totals.left_out
        peers.remove(owner)
        await go(owner)
        await until(lambda: owner_of(site.url(), peers))
        await peers[0].crawl([site.url("/new")])
        heir = owner_of(site.url(), peers)
        assert heir is not None
        await until(lambda: heir.totals.left_out == {"site_pages": 2})
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
        assert {"site_pages": 2} == again.totals.left_out


async def test_near_identical_pages_are_told_by_their_simhash_if_the_job_asks_for_it(
    make_peer: MakePeer, lines: Lines
) -> None:
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


async def test_a_joiner_has_the_bounds_of_the_swarm(make_peer: MakePeer, tmp_path: Path) -> None:
    first = await make_peer("a", path_segments_max=7, session_ids="keep", site_pages_max=3)
    second = await make_peer("b", join=first)
    assert first.parts.job == second.parts.job
    assert (7, "keep", 3) == (
        second.parts.job.path_segments_max,
        second.parts.job.session_ids,
        second.parts.job.site_pages_max,
    )


async def test_a_directory_of_a_build_without_these_bounds_goes_on_with_the_defaults(
    make_peer: MakePeer, tmp_path: Path
) -> None:
    peer = await make_peer("a")
    older = msgspec.to_builtins(peer.parts.job)
    for name in ("path_segments_max", "path_repeats_max", "query_parameters_max", "session_ids", "site_pages_max"):
        del older[name]
    peer.store.set_meta("job", msgspec.json.encode(older))
    await peer.store.durable()
    assert peer.parts.job == journaled_job(tmp_path / "a")
