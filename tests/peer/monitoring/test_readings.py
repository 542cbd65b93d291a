"""Test the metrics of a crawl: their values, their form, and that each metric of the catalog has a value."""

import asyncio
from collections import Counter
from pathlib import Path

from aiohttp import web

from kadcrawl.link.wire.basics import REASONS_MAX
from kadcrawl.peer.monitoring.catalog import METRICS, MetricKind
from kadcrawl.peer.monitoring.readings import OTHER_REASONS, Reading, _by_reason, verdict
from kadcrawl.peer.monitoring.verdict import CrawlVerdict
from tests.support.monitored import get, promtool, scrape, value
from tests.support.sites.web import Web, html, tree
from tests.support.swarm.peers import MakePeer, finish, swarm

ANY_PORT = ("127.0.0.1", 0)
SITES = 20
"""So many that each of two peers owns some, whatever the ports and IDs are."""
SERIES_MAX = 1_000
"""Series of one peer at most. A large crawl has as many as a small crawl."""


async def test_the_metrics_of_a_crawl_are_its_counters(make_peer: MakePeer, tmp_path: Path) -> None:
    async with Web() as site:
        site.fallback = tree(30)(site)
        site.pages["/1"] = lambda request: web.Response(status=404)
        sinks = [f"sqlite:{tmp_path / 'one.db'}", f"sqlite:{tmp_path / 'two.db'}"]
        peer = await make_peer(metrics=ANY_PORT, sinks=sinks)
        await peer.crawl([site.url("/0")])
        await asyncio.wait_for(peer.wait_done(), 60)
        series, counters = await scrape(peer.metrics_address), peer.counters
        assert counters.pages == value(series, "pages_total", outcome="first") > 15
        assert 0 == value(series, "pages_total", outcome="unanswered")
        assert counters.body_bytes == value(series, "received_bytes_total") > 0
        assert counters.urls == value(series, "urls_found_total") == value(series, "urls_done_total")
        assert 1 == value(series, "urls_failed_total", reason="http_404")
        assert 1 == value(series, "verdict", verdict="done")
        assert 1 == sum(number for (name, _), number in series.items() if name == "kadcrawl_verdict")
        assert 0 == value(series, "urls_pending")
        # Each page, and robots.txt.
        assert (
            counters.pages + 1 == value(series, "fetch_seconds_count") == value(series, "politeness_wait_seconds_count")
        )
        assert 1 == value(series, "cells_owned") == value(series, "cells_open")
        assert 0 == value(series, "copies_missing")
        assert 0 < value(series, "journal_bytes")
        assert 0 == value(series, "sink_failing", sink="sqlite-1") == value(series, "sink_failing", sink="sqlite-2")


async def test_promtool_finds_no_fault(make_peer: MakePeer) -> None:
    async with Web() as site:
        site.fallback = tree(5)(site)
        peer = await make_peer(metrics=ANY_PORT)
        await peer.crawl([site.url("/0")])
        await finish([peer])
        _, text, headers = await get(peer.metrics_address, "/metrics")
        assert headers["Content-Type"].startswith("text/plain; version=")
        assert (0, "") == await promtool("check", "metrics", text=text)


async def test_every_metric_of_the_catalog_has_a_value(make_peer: MakePeer, tmp_path: Path) -> None:
    async with Web() as site:
        site.pages["/"] = lambda request: html("/gone", "/" + "a/" * 100)
        peer = await make_peer(metrics=ANY_PORT, sinks=[f"jsonl:{tmp_path / 'out'}"])
        await peer.crawl([site.url()])
        await finish([peer])
        names = {name for name, _ in await scrape(peer.metrics_address)}
        for metric in METRICS.values():
            assert (f"{metric.name}_count" if metric.kind is MetricKind.HISTOGRAM else metric.name) in names


async def test_no_series_names_a_site_a_url_or_a_peer(make_peer: MakePeer) -> None:
    async with Web(6) as site:
        site.fallback = tree(60, 6)(site)
        peers = await swarm(make_peer, "ab", metrics=ANY_PORT)
        await peers[0].crawl([site.url("/0")])
        await finish(peers)
        series = await scrape(peers[0].metrics_address)
        labels = {text for _, pairs in series for _, text in pairs}
        assert [] == [
            text for text in labels if "127.0.0" in text or "/" in text or peers[0].contact.id.hex()[:8] in text
        ]
        assert len(series) < SERIES_MAX


async def test_two_peers_keep_a_copy_of_each_cell(make_peer: MakePeer) -> None:
    async with Web(SITES) as site:
        site.fallback = tree(60, SITES)(site)
        one, two = await swarm(make_peer, "ab")
        await one.crawl([site.url("/0")])
        await finish([one, two])
        for peer in (one, two):
            holdings = peer.cells.holdings
            assert 0 == holdings.copies_missing(1)
            # With one more peer that keeps nothing yet, each cell lacks a copy.
            assert len(holdings.owned) == holdings.copies_missing(2)
        assert SITES <= len(one.cells.holdings.owned) + len(two.cells.holdings.owned)
        assert one.cells.sync.times.count == one.cells.sync.syncs > 0
        assert one.components.forwarder.acknowledgement_times.count > 0


async def test_the_verdict_follows_the_crawl(make_peer: MakePeer) -> None:
    answer = asyncio.Event()

    async def late(request: web.BaseRequest) -> web.StreamResponse:
        await answer.wait()
        return html()

    async with Web() as site:
        site.pages["/"] = late
        peer = await make_peer(metrics=ANY_PORT)
        monitored = peer._monitored()
        assert CrawlVerdict.NO_SEEDS == verdict(monitored)
        await peer.crawl([site.url()])
        async with asyncio.timeout(60):
            while site.url() not in site.fetched:
                await asyncio.sleep(0.01)
        assert CrawlVerdict.FETCHING == verdict(monitored)
        await peer.state_gossip.order("pause")
        assert CrawlVerdict.PAUSED == verdict(monitored)
        await peer.state_gossip.order("resume")
        answer.set()
        await finish([peer])
        assert CrawlVerdict.ENDING == verdict(monitored)


async def test_a_site_with_a_delay_lets_the_crawl_wait(make_peer: MakePeer) -> None:
    async with Web() as site:
        site.fallback = tree(3)(site)
        peer = await make_peer(metrics=ANY_PORT, delay_s=3600.0)
        await peer.crawl([site.url("/0")])
        async with asyncio.timeout(60):
            while verdict(peer._monitored()) is not CrawlVerdict.WAITING_FOR_SITES:
                await asyncio.sleep(0.01)
        series = await scrape(peer.metrics_address)
        assert 1 == value(series, "sites_waiting") == value(series, "sites_active")
        assert 3500 < value(series, "politeness_wait_seconds_sum")


def test_reasons_beyond_the_limit_share_a_series_and_none_goes_back() -> None:
    failed = Counter({f"reason_{number}": 1 for number in range(REASONS_MAX + 2)})
    before = {reading.labels: reading.value for reading in _by_reason("urls_failed_total", failed)}
    assert REASONS_MAX + 1 == len(before)
    assert 2 == before[OTHER_REASONS,]
    failed[f"reason_{REASONS_MAX + 1}"] += 1_000
    after = {reading.labels: reading.value for reading in _by_reason("urls_failed_total", failed)}
    assert {(OTHER_REASONS,): 1_002} == {labels: count for labels, count in after.items() if count != before[labels]}
    assert Reading("urls_failed_total", 1, ("reason_0",)) == next(_by_reason("urls_failed_total", failed))
