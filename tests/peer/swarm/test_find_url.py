"""Test the way of a URL: any peer finds its owner, which tells what it knows."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

from kadcrawl.errors import ConfigError, RemoteError
from kadcrawl.link.wire.find_url_messages import FindUrl, UrlFound
from kadcrawl.peer.swarm.find_url import find_url
from tests.support.sites.web import Web, html
from tests.support.swarm.peers import MakePeer


def is_told(found: UrlFound, ids: set[bytes], expected: tuple[str, str]) -> bool:
    """Return whether a URL is in its last state, with these holders."""
    if found.state in ("unknown", "pending", "under way"):
        return False
    assert expected == (found.state, found.reason)
    return ids == {found.owner.id, *(backup.id for backup in found.backups)}


@pytest.mark.parametrize("partition", ["host", "domain", "url"])
@pytest.mark.parametrize("history", [{}, {"history": "bloom", "recrawl_after_s": 86_400.0}])
async def test_every_peer_tells_the_same_of_a_url(make_peer: MakePeer, partition: str, history: dict[str, Any]) -> None:
    async with Web(4) as site:
        site.fallback = lambda request: html()
        site.pages["/missing"] = lambda _: web.Response(status=404)
        first = await make_peer(delay_s=0.0, partition=partition, **history)
        second = await make_peer("two", join=first)
        urls = [site.url(path, number) for path in ("/", "/missing") for number in range(4)]
        await first.crawl(urls)
        ids = {first.contact.id, second.contact.id}
        for url in urls:
            expected = ("failed", "http_404") if url.endswith("missing") else ("done", "")
            # Fingerprints do not say which of the two it was.
            expected = ("finished", "") if history else expected
            for peer in (first, second):
                async with asyncio.timeout(60):
                    while not is_told(await find_url(peer.runtime, url), ids, expected):
                        await asyncio.sleep(0.01)
        unknown = await find_url(second.runtime, site.url("/never"))
        assert ("unknown", None) == (unknown.state, unknown.due_at)


async def test_a_url_that_waits_for_its_site_is_pending(make_peer: MakePeer) -> None:
    async with Web() as site:
        site.fallback = lambda request: html(site.url("/next"))
        peer = await make_peer(delay_s=600.0)
        await peer.crawl([site.url("/")])
        async with asyncio.timeout(60):
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
