"""Test the way of a URL: any peer finds its owner, which tells what it knows."""

import asyncio

import pytest
from aiohttp import web

from kadcrawl.errors import ConfigError, RemoteError
from kadcrawl.link.wire.find_url_messages import FindUrl, UrlFound
from kadcrawl.peer.swarm.find_url import find_url
from tests.support.sites.web import Web, html
from tests.support.swarm.peers import MakePeer


async def test_every_peer_tells_the_same_of_a_url(make_peer: MakePeer) -> None:
    async with Web(4) as site:
        site.fallback = lambda request: html()
        site.pages["/missing"] = lambda _: web.Response(status=404)
        first = await make_peer(delay_s=0.0)
        second = await make_peer("two", join=first)
        urls = [site.url(path, number) for path in ("/", "/missing") for number in range(4)]
        await first.crawl(urls)
        async with asyncio.timeout(30):
            await asyncio.gather(first.wait_done(), second.wait_done())
        ids = {first.contact.id, second.contact.id}
        for url in urls:
            found = await find_url(first.runtime, url)
            assert found == await find_url(second.runtime, url)
            assert ids == {found.owner.id, *(backup.id for backup in found.backups)}
            expected = ("failed", "http_404") if url.endswith("missing") else ("done", "")
            assert expected == (found.state, found.reason)
        unknown = await find_url(second.runtime, site.url("/never"))
        assert ("unknown", None) == (unknown.state, unknown.due_at)


async def test_a_url_that_waits_for_its_site_is_pending(make_peer: MakePeer) -> None:
    async with Web() as site:
        site.fallback = lambda request: html(site.url("/next"))
        peer = await make_peer(delay_s=600.0)
        await peer.crawl([site.url("/")])
        async with asyncio.timeout(30):
            while (found := await find_url(peer.runtime, site.url("/"))).state != "pending":
                await asyncio.sleep(0.01)
        assert (peer.contact, 0, 0) == (found.owner, found.depth, found.tries)


async def test_text_that_is_no_url_of_the_crawl_is_refused(make_peer: MakePeer) -> None:
    peer, other = await make_peer(), await make_peer("two")
    for text in ("x", "http://EXAMPLE.org", "http://example.org/\u00e9", "file:///etc/passwd"):
        with pytest.raises(ConfigError):
            await find_url(peer.runtime, text)
        for here in (False, True):
            with pytest.raises(RemoteError):
                await other.client.ask(peer.contact, FindUrl(text, here), UrlFound, 10)
