"""A password in a URL: a seed with one is refused, a link is followed without it, and none is written down."""

from pathlib import Path

import pytest
from aiohttp import web

from kadcrawl import ConfigError, RemoteError
from kadcrawl.link.wire.messages import Add, AddAgain, Refused
from tests.support.sites.web import Web, html
from tests.support.swarm.peers import MakePeer, finish


async def test_links_and_redirects_are_followed_without_their_passwords(make_peer: MakePeer, tmp_path: Path) -> None:
    asked: list[str | None] = []

    def page(request: web.BaseRequest) -> web.StreamResponse:
        asked.append(request.headers.get("Authorization"))
        return html()

    async with Web() as site:
        with_password = site.url("/a").replace("//", "//user:secret@")
        site.pages |= {"/": lambda _: html(with_password, "/to"), "/a": page}
        site.pages["/to"] = lambda _: web.Response(status=302, headers={"Location": f"{with_password}?b"})
        site.fallback = page
        peer = await make_peer()
        await peer.crawl([site.url("/")])
        await finish([peer])
        assert {site.url("/"), site.url("/a"), site.url("/to"), site.url("/a?b")} == site.fetched.keys()
    assert [None, None] == asked
    assert "secret" not in (tmp_path / "one" / "pages.jsonl").read_text()


async def test_seeds_with_passwords_are_refused_in_every_way(make_peer: MakePeer) -> None:
    url, peer = "https://user:secret@example.org/", await make_peer()
    for give in (peer.crawl, peer.add_seeds, peer.fetch_again):
        with pytest.raises(ConfigError, match="and give example") as refused:
            await give([url])
        assert "secret" not in str(refused.value)
    for message in (Add([url]), AddAgain([url])):
        with pytest.raises(RemoteError, match="and give example") as answer:
            await peer.client.ask(peer.contact, message, Refused, 5.0)
        assert "secret" not in str(answer.value)
