"""Test what the dashboard gathers from a swarm of peers."""

import asyncio
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kadcrawl.errors import RemoteError
from kadcrawl.link.wire.queue_messages import Queue, QueueCounts, SurveyQueue
from kadcrawl.peer.dashboard.source import dashboard_source
from kadcrawl.peer.dashboard.swarm_view import SwarmView
from kadcrawl.version import VERSION
from tests.support.sites.web import Web, html, tree
from tests.support.swarm.peers import MakePeer
from tests.support.viewers import ANY_PORT, document_when, viewer


async def test_the_dashboard_shows_all_peers_and_the_end_of_the_crawl(make_peer: MakePeer, tmp_path: Path) -> None:
    async with Web(4) as site:
        site.fallback = tree(40, 4)(site)
        site.pages["/missing"] = lambda _: web.Response(status=404)
        first = await make_peer(web=ANY_PORT)
        second = await make_peer("two", join=first)
        async with viewer(tmp_path / "one") as browser, browser.events() as events, asyncio.timeout(60):
            await first.crawl([site.url("/0"), site.url("/missing")])
            done = await document_when(events, lambda document: document["crawl"]["verdict"]["done"])
        assert {first.contact.id.hex(), second.contact.id.hex()} == set(done["peers"])
        assert first.contact.id.hex() == done["me"]
        assert "Done: nothing is left to fetch." == done["crawl"]["verdict"]["sentence"]
        assert done["crawl"]["found"] == done["crawl"]["done"] == 41
        assert done["crawl"]["pages"] == sum(peer["pages"] for peer in done["peers"].values())
        assert {"http_404": 1} == {reason: one["count"] for reason, one in done["failures"].items()}
        assert not done["control"]


async def test_the_dashboard_shows_details_events_moves_and_failed_urls(
    make_peer: MakePeer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kadcrawl")
    async with Web(4) as site:
        site.fallback = tree(60, 4)(site)
        site.pages["/missing"] = lambda _: web.Response(status=404)
        first = await make_peer(web=ANY_PORT)
        async with viewer(tmp_path / "one") as browser, browser.events() as events, asyncio.timeout(60):
            begun = (await anext(events)).data
            await first.crawl([site.url("/0"), site.url("/missing")])
            second = await make_peer("two", join=first)
            await first.pause_site("shop.example.org")
            ids = {first.contact.id.hex(), second.contact.id.hex()}

            def is_all_there(document: dict[str, Any]) -> bool:
                kinds = {event["kind"] for event in document["events"].values()}
                failed = document["failures"].get("http_404", {}).get("samples")
                known = {name for name, peer in document["peers"].items() if "level" in peer}
                return {"peer.joined", "order.heard"} <= kinds and bool(failed) and known == ids

            shown = await document_when(events, is_all_there, begun)
        assert [site.url("/missing")] == shown["failures"]["http_404"]["samples"]
        assert {VERSION} == {peer["version"] for peer in shown["peers"].values()}
        assert all(peer["memory_bytes"] > 2**20 for peer in shown["peers"].values())
        assert 0 < sum(peer["cells_owned"] for peer in shown["peers"].values())
        moves = list(shown["moves"].values())
        assert all({move["from"], move["to"]} == ids and move["count"] for move in moves)


async def test_the_dashboard_shows_the_sites_with_most_pending_urls(make_peer: MakePeer, tmp_path: Path) -> None:
    async with Web(2) as site:
        site.fallback = lambda request: html(*(site.url(f"/{number}", number % 2) for number in range(40)))
        peer = await make_peer(web=ANY_PORT, delay_s=60.0)
        await peer.slow_site(site.url("/", 1), 90)
        await peer.crawl([site.url("/0", 0), site.url("/1", 1)])
        async with viewer(tmp_path / "one") as browser, browser.events() as events, asyncio.timeout(60):
            shown = await document_when(events, lambda document: document.get("sites_total") == 2)
        sites = shown["sites"]
        assert {site.url("", number).removeprefix("http://") for number in (0, 1)} == set(sites)
        assert {peer.contact.id.hex()} == {one["owner"] for one in sites.values()}
        assert [60, 90] == sorted(one["delay_s"] for one in sites.values())
        assert ["slowed"] == [one["order"] for one in sites.values() if "order" in one]
        assert sum(one["pending"] for one in sites.values()) == shown["queue_ages"][0]["urls"]


async def test_each_look_asks_for_the_queue_too_unless_nobody_answers(make_peer: MakePeer) -> None:
    peer = await make_peer()
    answers: list[Queue | None] = [Queue(QueueCounts(7, sites=1), 0, 0), Queue(QueueCounts(6, sites=2), 0, 0), None]
    asked: list[SurveyQueue] = []

    async def look(since_s: float) -> SwarmView:
        return SwarmView()

    async def queue(survey: SurveyQueue) -> Queue:
        asked.append(survey)
        if (answer := answers[len(asked) - 1]) is None:
            raise RemoteError("swarm", "nobody answers")
        return answer

    access = replace(peer._swarm_access(), look=look, queue=queue)
    source = dashboard_source(peer._monitored(), access)
    assert [1, 2, 2, 2] == [(await source.gather())["sites_total"] for _ in range(4)]
    assert 3 == len(asked), "after a failure the queue is left alone for some seconds"
