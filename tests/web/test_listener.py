"""Test the dashboard of a peer: who may look at it, what a browser gets, and that nobody pays for nothing."""

import asyncio
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from kadcrawl import Config, Job, Leaf, Peer, StartError
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.settings.config import WEB_PORT_DEFAULT
from kadcrawl.system.file_names import DASHBOARD
from kadcrawl.version import VERSION
from kadcrawl.web import listener
from kadcrawl.web.page_files import page_files
from tests.support.sites.web import Web, html
from tests.support.swarm.peers import QUICK, MakePeer
from tests.support.viewers import ANY_PORT, document_when, token_of, viewer

DATA_PATHS = ("/events", "/session", "/api/anything")


async def test_a_token_buys_a_session_once(make_peer: MakePeer, tmp_path: Path) -> None:
    await make_peer(web=ANY_PORT)
    token = token_of(tmp_path / "one")
    async with viewer(tmp_path / "one", is_in=False) as first, viewer(tmp_path / "one", is_in=False) as thief:
        said = await first.begin(token)
        assert 200 == said.status
        cookie = said.headers["Set-Cookie"]
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
        assert said.body == (await first.ask("/session")).body
        stolen = await thief.begin(token)
        assert (401, {}) == (stolen.status, thief.cookies)
        assert "kadcrawl web" in stolen.body["error"]


@pytest.mark.parametrize("body", [b"", b"no json", b"[]", b"{}", b'{"token": 1}', b'{"token": "x"}', b"{" * 5000])
async def test_what_is_no_token_buys_nothing(make_peer: MakePeer, tmp_path: Path, body: bytes) -> None:
    await make_peer(web=ANY_PORT)
    async with viewer(tmp_path / "one", is_in=False) as browser:
        said = await browser.ask("/session", body, method="POST")
        assert (401, {}) == (said.status, browser.cookies)


async def test_no_data_is_told_without_a_session(make_peer: MakePeer, tmp_path: Path) -> None:
    await make_peer(web=ANY_PORT)
    async with viewer(tmp_path / "one", is_in=False) as browser:
        cookie = f"kadcrawl_session_{browser.url.rpartition(':')[2]}={'0' * 48}.{'0' * 64}"
        for path in DATA_PATHS:
            assert 401 == (await browser.ask(path)).status
            assert 401 == (await browser.ask(path, headers={"Cookie": cookie})).status


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", ""])
async def test_a_name_that_leads_here_is_refused(make_peer: MakePeer, tmp_path: Path, host: str) -> None:
    await make_peer(web=ANY_PORT)
    async with viewer(tmp_path / "one") as browser:
        for path in ("/", *DATA_PATHS):
            assert 403 == (await browser.ask(path, headers={"Host": host})).status


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", "http://127.0.0.1:1"])
async def test_a_page_of_another_site_begins_no_session(make_peer: MakePeer, tmp_path: Path, origin: str) -> None:
    await make_peer(web=ANY_PORT)
    token = token_of(tmp_path / "one")
    async with viewer(tmp_path / "one", is_in=False) as browser:
        said = await browser.ask("/session", {"token": token}, headers={"Origin": origin})
        assert (403, {}) == (said.status, browser.cookies)
        assert 200 == (await browser.begin(token)).status, "a refused request must not spend the token"


async def test_a_page_of_another_site_reads_nothing(make_peer: MakePeer, tmp_path: Path) -> None:
    await make_peer(web=ANY_PORT)
    async with viewer(tmp_path / "one") as browser:
        assert 403 == (await browser.ask("/events", headers={"Sec-Fetch-Site": "cross-site"})).status
        assert 403 == (await browser.ask("/session", headers={"Sec-Fetch-Site": "same-site"})).status
        assert 200 == (await browser.ask("/session", headers={"Sec-Fetch-Site": "same-origin"})).status


async def test_another_key_of_the_swarm_ends_sessions_and_streams(make_peer: MakePeer, tmp_path: Path) -> None:
    peer = await make_peer(key=SwarmKey.generate(), web=ANY_PORT)
    async with viewer(tmp_path / "one") as browser:
        async with browser.events() as events:
            await anext(events)
            peer.change_key(SwarmKey.generate())
            assert [] == [event async for event in events if event.name == "state"]
        assert 401 == (await browser.ask("/session")).status
        assert 200 == (await browser.begin(token_of(tmp_path / "one"))).status


async def test_pages_are_served_by_their_names_alone(make_peer: MakePeer, tmp_path: Path) -> None:
    await make_peer(web=ANY_PORT)
    async with viewer(tmp_path / "one", is_in=False) as browser:
        for name, file in page_files().items():
            said = await browser.ask(f"/assets/{name}")
            assert (200, file.media_type) == (said.status, said.headers["Content-Type"])
            again = await browser.ask(f"/assets/{name}", headers={"If-None-Match": said.headers["ETag"]})
            assert (304, "") == (again.status, again.body)
        assert "<!doctype html>" in (await browser.ask("/")).body
        for path in ("/assets/", "/assets/../listener.py", "/assets/%2e%2e/listener.py", "/assets//etc/passwd"):
            assert (await browser.ask(path)).status in (401, 404)


async def test_every_answer_has_the_strict_policy(make_peer: MakePeer, tmp_path: Path) -> None:
    await make_peer(web=ANY_PORT)
    async with viewer(tmp_path / "one") as browser:
        for path in ("/", "/assets/index.html", "/session", "/api/anything"):
            headers = (await browser.ask(path)).headers
            assert listener.POLICY == headers["Content-Security-Policy"]
            assert ("nosniff", "no-referrer") == (headers["X-Content-Type-Options"], headers["Referrer-Policy"])
        assert "'unsafe" not in listener.POLICY


async def test_viewers_share_one_gatherer_that_rests_when_nobody_looks(make_peer: MakePeer, tmp_path: Path) -> None:
    peer = await make_peer(web=ANY_PORT)
    assert peer._dashboard is not None
    hub = peer._dashboard.hub
    async with viewer(tmp_path / "one") as browser:
        assert 0 == hub.gatherings
        async with browser.events() as one, browser.events() as two:
            assert ["state", "state"] == [(await anext(events)).name for events in (one, two)]
            assert 2 == hub.viewers
            numbers = [(await anext(events)).id for events in (one, two)]
            assert numbers[0] == numbers[1]
    async with asyncio.timeout(60):
        while hub.viewers:
            await asyncio.sleep(0.01)
    rested = hub.gatherings
    await asyncio.sleep(3)
    assert rested == hub.gatherings


async def test_a_browser_that_comes_back_is_told_what_it_missed(make_peer: MakePeer, tmp_path: Path) -> None:
    await make_peer(web=ANY_PORT)
    async with viewer(tmp_path / "one") as browser:
        async with browser.events() as events:
            state, missed = await anext(events), await anext(events)
        async with browser.events(state.id) as events:
            assert missed == await anext(events)
        for unknown in ("f" * 16 + "-1", state.id.rpartition("-")[0] + "-999", "-", "x"):
            async with browser.events(unknown) as events:
                assert "state" == (await anext(events)).name


async def test_an_order_of_a_viewer_reaches_the_swarm(make_peer: MakePeer, tmp_path: Path) -> None:
    first = await make_peer(web=ANY_PORT, web_control=True)
    second = await make_peer("two", join=first)
    async with viewer(tmp_path / "one") as browser:
        said = await browser.order({"order": "pause", "site": "shop.example.org"})
        assert (200, {"said": "shop.example.org is paused."}) == said[:2]
        assert ["shop.example.org is paused"] == [str(order) for order in second.orders]
        assert 200 == (await browser.order({"order": "pause"})).status
        assert second.paused
        async with browser.events() as events, asyncio.timeout(60):
            shown = await document_when(events, lambda document: document["crawl"]["state"] == "paused")
        assert shown["control"]
        assert 200 == (await browser.order({"order": "resume"})).status
        assert not second.paused


async def test_an_order_needs_the_header_of_its_session_and_its_origin(make_peer: MakePeer, tmp_path: Path) -> None:
    peer = await make_peer(web=ANY_PORT, web_control=True)
    order = {"order": "pause", "site": "example.org"}
    async with viewer(tmp_path / "one") as browser, viewer(tmp_path / "one") as other:
        assert 403 == (await browser.ask("/api/orders", order)).status
        stolen = {listener.HEADER: other.order_header}
        assert 403 == (await browser.ask("/api/orders", order, headers=stolen)).status
        assert 403 == (await browser.order(order, headers={"Origin": "http://evil.example"})).status
    async with viewer(tmp_path / "one", is_in=False) as stranger:
        stranger.order_header = browser.order_header
        assert 401 == (await stranger.order(order)).status
    assert [] == peer.orders


async def test_without_web_control_viewers_only_look(make_peer: MakePeer, tmp_path: Path) -> None:
    peer = await make_peer(web=ANY_PORT)
    async with viewer(tmp_path / "one") as browser:
        assert not (await browser.ask("/session")).body["control"]
        for order in ({"order": "pause"}, {"order": "pause", "site": "example.org"}):
            said = await browser.order(order)
            assert 403 == said.status
            assert "--web-control" in said.body["error"]
    assert (False, []) == (peer.paused, peer.orders)


WRONG = [b"", b"[]", b"x" * 5000, {"order": "pause", "site": "*"}, {"order": "burn", "site": "a"}]


@pytest.mark.parametrize("told", WRONG)
async def test_a_wrong_order_is_said(make_peer: MakePeer, tmp_path: Path, told: object) -> None:
    peer = await make_peer(web=ANY_PORT, web_control=True)
    async with viewer(tmp_path / "one") as browser:
        said = await browser.order(told)
        assert 400 == said.status
        assert said.body["error"]
    assert [] == peer.orders


async def test_a_viewer_follows_a_url(make_peer: MakePeer, tmp_path: Path) -> None:
    first = await make_peer(seeds=("https://example.org/",))
    peer = await make_peer("two", join=first)
    await peer.open_dashboard()
    async with viewer(tmp_path / "two") as browser:
        said = await browser.ask("/api/url?url=https%3A%2F%2Fexample.org%2Fa%3Fb%3D1")
        assert (200, "https://example.org/a?b=1", "unknown") == (said.status, said.body["url"], said.body["state"])
        assert said.body["owner"]["id"] in {first.contact.id.hex(), peer.contact.id.hex()}
        checked = await browser.ask("/api/check?url=nonsense")
        assert (200, "nonsense") == (checked.status, checked.body["url"])
        assert checked.body["why"][0].startswith("Not in scope")
        for query in ("", "?url=", "?url=nonsense", "?url=https%3A%2F%2Fuser%3Ax%40a.example%2F"):
            wrong = await browser.ask(f"/api/url{query}")
            assert 400 == wrong.status
            assert wrong.body["error"]


@pytest.mark.parametrize("history", [{}, {"history": "bloom", "recrawl_after_s": 86_400.0}])
async def test_a_viewer_follows_a_url_that_has_a_place_of_its_own(
    make_peer: MakePeer, tmp_path: Path, history: dict[str, Any]
) -> None:
    async with Web() as site:
        site.fallback = lambda request: html()
        first = await make_peer(web=ANY_PORT, delay_s=0.0, partition="url", **history)
        second = await make_peer("two", join=first)
        urls = [site.url(f"/{number}") for number in range(8)]
        await first.crawl(urls)
        ways: dict[str, Any] = {}
        async with viewer(tmp_path / "one") as browser, asyncio.timeout(60):
            for url in urls:
                while (way := (await browser.ask(f"/api/url?url={quote(url, safe='')}")).body)["state"] not in (
                    "done",
                    "finished",
                ):
                    await asyncio.sleep(0.01)
                ways[url] = way
        assert {"finished" if history else "done"} == {way["state"] for way in ways.values()}
        assert len(urls) == len({way["key"] for way in ways.values()})
        assert {first.contact.id.hex(), second.contact.id.hex()} >= {way["owner"]["id"] for way in ways.values()}
        assert all(way["site"] == way["url"] == url for url, way in ways.items())


async def test_a_viewer_of_a_leaf_follows_a_url(make_peer: MakePeer, tmp_path: Path) -> None:
    peer = await make_peer()
    config = Config(data=tmp_path / "leaf", limits=QUICK, web=ANY_PORT)
    async with Leaf(config) as leaf, viewer(tmp_path / "leaf") as browser:
        assert 400 == (await browser.ask("/api/url?url=https%3A%2F%2Fexample.org%2F")).status
        await leaf.join([peer.contact.address])
        async with asyncio.timeout(60):
            while (said := await browser.ask("/api/url?url=https%3A%2F%2Fexample.org%2F")).status != 200:
                await asyncio.sleep(0.01)
        assert peer.contact.id.hex() == said.body["owner"]["id"]


async def test_too_many_viewers_are_told_so(
    make_peer: MakePeer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "VIEWERS_MAX", 1)
    await make_peer(web=ANY_PORT)
    async with viewer(tmp_path / "one") as browser, browser.events() as events:
        await anext(events)
        said = await browser.ask("/events")
        assert 503 == said.status
        assert "close one" in said.body["error"]


async def test_connections_beyond_the_limit_take_the_place_of_those_that_show_nothing(
    make_peer: MakePeer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "CONNECTIONS_MAX", 2)
    peer = await make_peer(web=ANY_PORT)
    assert peer.web_address is not None
    async with viewer(tmp_path / "one") as browser, browser.events() as events:
        await anext(events)
        silent_reader, silent = await asyncio.open_connection(*peer.web_address)
        assert 200 == (await browser.ask("/session")).status
        assert b"" == await silent_reader.read()
        silent.close()
        await anext(events)


async def test_a_leaf_shows_the_swarm_of_its_full_peer(make_peer: MakePeer, tmp_path: Path) -> None:
    peer = await make_peer()
    async with Leaf(Config(data=tmp_path / "leaf", limits=QUICK, web=ANY_PORT)) as leaf:
        await leaf.join([peer.contact.address])
        ids = {peer.contact.id.hex(), leaf.contact.id.hex()}
        async with viewer(tmp_path / "leaf") as browser, browser.events() as events, asyncio.timeout(60):
            await document_when(events, lambda document: ids == set(document["peers"]))


async def test_all_dashboards_show_the_details_and_sinks_of_a_leaf(make_peer: MakePeer, tmp_path: Path) -> None:
    peer = await make_peer(web=ANY_PORT)
    sinks = (f"sqlite:{tmp_path / 'pages.db'}",)
    async with Leaf(Config(data=tmp_path / "leaf", limits=QUICK, web=ANY_PORT, sinks=sinks)) as leaf:
        await leaf.join([peer.contact.address])
        me = leaf.contact.id.hex()

        def is_told(document: dict[str, Any]) -> bool:
            return "memory_bytes" in document["peers"].get(me, ()) and bool(document["sinks"])

        for directory in ("leaf", "one"):
            async with viewer(tmp_path / directory) as browser, browser.events() as events, asyncio.timeout(60):
                shown = await document_when(events, is_told)
            row = shown["peers"][me]
            assert ("leaf", VERSION) == (row["kind"], row["version"])
            assert row["memory_bytes"] > 2**20
            assert row["level"] <= 0
            assert "cells_owned" not in row
            assert ["full", "leaf"] == sorted(peer["kind"] for peer in shown["peers"].values())
            assert 1 == len(shown["sinks"])


async def test_an_order_at_a_leaf_reaches_the_swarm(make_peer: MakePeer, tmp_path: Path) -> None:
    peer = await make_peer()
    config = Config(data=tmp_path / "leaf", limits=QUICK, web=ANY_PORT, web_control=True)
    async with Leaf(config) as leaf, viewer(tmp_path / "leaf") as browser:
        assert 503 == (await browser.order({"order": "pause"})).status
        await leaf.join([peer.contact.address])
        async with asyncio.timeout(60):
            while (await browser.order({"order": "pause"})).status != 200:
                await asyncio.sleep(0.01)
        assert peer.paused
        assert 200 == (await browser.order({"order": "slow", "site": "example.org", "delay_s": 9})).status
        assert ["example.org is left alone for 9 s after each request"] == [str(order) for order in peer.orders]


async def test_the_secret_is_the_owners_alone_and_goes_with_the_peer(tmp_path: Path) -> None:
    async with Peer(Config(data=tmp_path, port=0, web=ANY_PORT), Job()):
        assert 0o600 == (tmp_path / DASHBOARD).stat().st_mode & 0o777
    assert not (tmp_path / DASHBOARD).exists()


async def test_a_taken_port_is_an_error_unless_it_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Peer(Config(data=tmp_path / "one", port=0, web=ANY_PORT), Job()) as one:
        assert one.web_address is not None
        with pytest.raises(StartError, match=r"choose another: --web HOST:PORT"):
            await Peer(Config(data=tmp_path / "two", port=0, web=one.web_address), Job()).__aenter__()
        monkeypatch.setattr(listener, "WEB_PORT_DEFAULT", one.web_address[1])
        async with Peer(Config(data=tmp_path / "two", port=0, web=one.web_address), Job()) as two:
            assert two.web_address not in (None, one.web_address)
    assert WEB_PORT_DEFAULT != one.web_address[1]


async def test_a_peer_without_a_dashboard_does_not_load_it(tmp_path: Path) -> None:
    program = f"""
import asyncio, sys
from pathlib import Path
from kadcrawl import Config, Job, Peer

async def main():
    async with Peer(Config(data=Path({str(tmp_path)!r}), port=0), Job()) as peer:
        await peer.begin()
        print([name for name in sys.modules if name.startswith("kadcrawl.web")])

asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
    said, _ = await process.communicate()
    assert (0, "[]\n") == (process.returncode, said.decode())
