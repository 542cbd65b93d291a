"""Real crawls of sites that know their visitors by cookies: the session outlives its owner, and no file shows it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web

from kadcrawl import Peer, StartError
from kadcrawl.keys import anchor
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.settings.site_rules import SiteRule
from kadcrawl.urls import Partition
from scripts.kadcrawl_run import LoggedPage
from tests.peer.test_site_auth import everything_below
from tests.support.sites.web import Web, html
from tests.support.swarm.crash import crash
from tests.support.swarm.peers import MakePeer, finish
from tests.support.waiting import until

Lines = Callable[[], dict[str, LoggedPage]]
KEY = SwarmKey.generate()
HOST, OTHER = "127.0.0.2", "127.0.0.3"
KEEP = SiteRule(match=(HOST,), cookies="keep", delay_s=0.02)
PAGES = 30


def serve_sessions(site: Web) -> list[str]:
    """Serve sites that give each visitor without a session a new one, and send it back to the same page.

    Returns the sessions that were begun.
    """
    begun: list[str] = []

    def page(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/robots.txt":
            return web.Response(status=404)
        if request.cookies.get("session") not in begun:
            begun.append(f"hunter2-{len(begun)}")
            answer = html(status=302, Location=str(request.rel_url))
            answer.set_cookie("session", begun[-1])
            return answer
        return html(*(f"/{number}" for number in range(PAGES)))

    site.pages.clear()
    site.fallback = page
    return begun


@pytest.mark.parametrize("partition", ["host", "domain"])
async def test_a_session_is_kept_and_no_file_shows_it(
    partition: Partition, make_peer: MakePeer, lines: Lines, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Web() as site:
        begun = serve_sessions(site)
        first = await make_peer("a", sites=(KEEP,), partition=partition, key=KEY)
        peers = [first, *[await make_peer(name, join=first, key=KEY) for name in "bc"]]
        await first.crawl([site.url("/0")])
        await finish(peers)
        assert 1 == len(begun)
        assert {200} == {line.fields["status"] for line in lines().values()}
        assert PAGES == len(lines())
    journaled = b"".join(path.read_bytes() for path in tmp_path.rglob("peer.sqlite*"))
    everything = everything_below(tmp_path)
    shown = len(everything.split(b"hunter2")) - len(journaled.split(b"hunter2"))
    assert (0, False) == (shown, "hunter2" in caplog.text)


def owner_of(url: str, peers: list[Peer]) -> Peer:
    place = anchor(peers[0].components.partitioner.locate(url).cell, peers[0].job.bits)
    return min(peers, key=lambda peer: peer.contact.number ^ place)


@pytest.mark.parametrize("dies", [False, True])
async def test_a_session_outlives_the_owner_of_its_site(dies: bool, make_peer: MakePeer, lines: Lines) -> None:
    async with Web() as site:
        begun = serve_sessions(site)
        first = await make_peer("a", sites=(KEEP,), key=KEY)
        peers = [first, *[await make_peer(name, join=first, key=KEY) for name in "bcd"]]
        await first.crawl([site.url("/0")])
        await until(lambda: len(site.fetched) >= PAGES // 3)
        owner = owner_of(site.url("/0"), peers)
        # The copy of a new session waits for company, half a second at most.
        place = owner.components.partitioner.locate(site.url("/0"))
        backups = owner.runtime.cells.holdings.owned[place.cell].backups
        holders = [peer for peer in peers if peer.contact in backups]
        assert holders
        await until(lambda: all(peer.store.sites.cookies(place.site).version for peer in holders))
        if dies:
            await crash(owner)
        else:
            await owner.leave()
        peers.remove(owner)
        await finish(peers)
        assert 1 == len(begun)
        assert PAGES == len(site.fetched)


async def test_cookies_are_off_by_default(make_peer: MakePeer, lines: Lines) -> None:
    async with Web() as site:
        begun = serve_sessions(site)
        peer = await make_peer("a", sites=(SiteRule(match=(HOST,), cookies="off"),))
        await peer.crawl([site.url("/0")])
        await finish([peer])
        assert 1 == len(begun)
        assert {site.url("/0"): 1} == dict(site.fetched)


async def test_a_swarm_without_a_key_keeps_no_cookies(make_peer: MakePeer) -> None:
    with pytest.raises(StartError, match="cookies keep needs a swarm with a key"):
        await make_peer("a", sites=(KEEP,))
