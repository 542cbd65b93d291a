"""Test what the dashboard gathers from a swarm of peers."""

import asyncio
from pathlib import Path

from aiohttp import web

from tests.support.sites.web import Web, tree
from tests.support.swarm.peers import MakePeer
from tests.support.viewers import ANY_PORT, document_when, viewer


async def test_the_dashboard_shows_all_peers_and_the_end_of_the_crawl(make_peer: MakePeer, tmp_path: Path) -> None:
    async with Web(4) as site:
        site.fallback = tree(40, 4)(site)
        site.pages["/missing"] = lambda _: web.Response(status=404)
        first = await make_peer(web=ANY_PORT)
        second = await make_peer("two", join=first)
        async with viewer(tmp_path / "one") as browser, browser.events() as events, asyncio.timeout(30):
            await first.crawl([site.url("/0"), site.url("/missing")])
            done = await document_when(events, lambda document: document["crawl"]["verdict"]["done"])
        assert {first.contact.id.hex(), second.contact.id.hex()} == set(done["peers"])
        assert first.contact.id.hex() == done["me"]
        assert "Done: nothing is left to fetch." == done["crawl"]["verdict"]["sentence"]
        assert done["crawl"]["found"] == done["crawl"]["done"] == 41
        assert done["crawl"]["pages"] == sum(peer["pages"] for peer in done["peers"].values())
        assert {"http_404": 1} == {reason: one["count"] for reason, one in done["failures"].items()}
        assert not done["control"]
