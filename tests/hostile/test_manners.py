"""A member that lies about how a site is to be treated: its owner believes nobody who has no business with it."""

from pathlib import Path

import pytest
from aiohttp import web

from kadcrawl.link.wire.messages import Batch, Contact, PendingRecord, Replicate, Replicated, RobotsRecord, SiteRecord
from kadcrawl.members.peer_key import PeerKey
from kadcrawl.urls import origin_of
from tests.support.links.member_requests import KEY, ask
from tests.support.sites.web import Web, html
from tests.support.swarm.peers import MakePeer, finish, make_peer as make_peer


@pytest.mark.parametrize("with_a_page", [False, True])
async def test_nobody_but_its_owner_says_how_a_site_is_to_be_treated(
    with_a_page: bool, make_peer: MakePeer, tmp_path: Path
) -> None:
    async with Web() as site:
        site.pages["/robots.txt"] = lambda request: web.Response(text="User-agent: *\nDisallow: /private\n")
        site.fallback = lambda request: html()
        peer = await make_peer("a", key=KEY)
        url = site.url("/private")
        clock = SiteRecord(peer.components.partitioner.locate(url).site, 3600.0, 60.0)
        pending = [PendingRecord(site.url("/lie"), 0, 0, 0, 0.0)] if with_a_page else []
        batch = Batch([], pending, [clock], [RobotsRecord(origin_of(url), b"", 0.0)])
        liar = PeerKey.generate()
        said = Replicate(Contact(liar.id, "127.0.0.1", 9), batch)
        assert await ask(peer.contact, said, Replicated, tmp_path, peer_key=liar) == Replicated()
        await peer.crawl([url, site.url("/public")])
        await finish([peer])
        assert site.requests[0][1] == site.url("/robots.txt")
        assert site.url("/private") not in site.fetched
        assert site.fetched[site.url("/public")] == 1
