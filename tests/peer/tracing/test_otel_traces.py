"""The way of a URL over peers is one trace, which a collector receives by OTLP over HTTP."""

import subprocess
import sys
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from kadcrawl import Config, ConfigError, Leaf
from kadcrawl.peer.tracing import otel_traces
from tests.support.sites.web import Web, html, slow, tree
from tests.support.swarm.peers import QUICK, MakePeer, finish

SITES, PAGES = 8, 80


@dataclass(frozen=True, slots=True)
class Received:
    """A span, as the collector received it."""

    trace: bytes
    span: bytes
    parent: bytes
    name: str
    peer: str
    facts: dict[str, str]
    began: int
    ended: int
    is_error: bool


class Collector:
    """A collector of traces: all spans, by trace."""

    def __init__(self) -> None:
        self.spans: list[Received] = []
        self.url = ""

    @property
    def traces(self) -> dict[bytes, list[Received]]:
        found = defaultdict(list)
        for span in self.spans:
            found[span.trace].append(span)
        return found

    async def receive(self, request: web.BaseRequest) -> web.StreamResponse:
        assert request.path == "/v1/traces"
        sent = ExportTraceServiceRequest.FromString(await request.read())
        for of_peer in sent.resource_spans:
            resource = {one.key: one.value.string_value for one in of_peer.resource.attributes}
            assert ("kadcrawl", "crawl") == (resource["service.name"], resource["service.namespace"])
            for span in (span for scope in of_peer.scope_spans for span in scope.spans):
                facts = {one.key: one.value.string_value or str(one.value.int_value) for one in span.attributes}
                received = Received(
                    *(span.trace_id, span.span_id, span.parent_span_id, span.name, resource["service.instance.id"]),
                    *(facts, span.start_time_unix_nano, span.end_time_unix_nano, bool(span.status.code)),
                )
                self.spans.append(received)
        return web.Response(body=b"", content_type="application/x-protobuf")


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    """Give a collector on loopback."""
    collector = Collector()
    runner = web.ServerRunner(web.Server(collector.receive, access_log=None), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    collector.url = f"http://{host}:{port}"
    try:
        yield collector
    finally:
        await runner.cleanup()


async def test_the_way_of_each_url_over_peers_is_one_trace(make_peer: MakePeer) -> None:
    async with collecting() as collector, Web(SITES) as site:
        site.fallback = tree(PAGES, SITES)(site)
        first = await make_peer("a", traces=collector.url, partition="url")  # No peer owns all of so many.
        peers = [first, *[await make_peer(name, join=first, traces=collector.url) for name in "bc"]]
        await first.crawl([site.url("/0")])
        await finish(peers)
        for peer in peers:
            assert peer.resources.traces is not None
            await peer.resources.traces.close()
        assert {*site.fetched} == site.numbered(PAGES)
        by_url = {spans[0].facts["url.full"]: spans for spans in collector.traces.values()}
        assert {*site.fetched} == {*by_url}
        for spans in by_url.values():
            (root,) = [span for span in spans if not span.parent]
            assert "accept" == root.name
            assert {root.span} == {span.parent for span in spans if span is not root}
            names = [span.name for span in spans]
            assert ["accept", "fetch", "finish"] == sorted({*names} - {"forward link", "fetch for page"})
            (fetched,) = [span for span in spans if span.name == "fetch"]
            assert "200" == fetched.facts["http.response.status_code"]
            assert all(root.began <= span.began <= span.ended for span in spans if span.name in ("fetch", "finish"))
        over_peers = [spans for spans in by_url.values() if len({span.peer for span in spans}) > 1]
        assert over_peers
        forwarded = [span for span in collector.spans if span.name == "forward link"]
        assert {span.peer for span in forwarded} <= {peer.id for peer in peers}


async def test_a_page_that_a_leaf_fetches_is_in_the_trace_of_its_owner(make_peer: MakePeer, tmp_path: Path) -> None:
    async with collecting() as collector, Web(SITES) as site:
        site.fallback = slow(tree(PAGES, SITES)(site), 0.03)
        full = await make_peer("a", traces=collector.url, limits=replace(QUICK, fetches_max=1))
        config = Config(
            data=tmp_path / "leaf",
            allow_networks=("127.0.0.0/8",),
            limits=QUICK,
            traces=collector.url,
            trace_share=1.0,
        )
        async with Leaf(config) as leaf:
            await leaf.join([full.contact.address])
            await full.crawl([site.url("/0")])
            await finish([full])
        assert full.resources.traces is not None
        await full.resources.traces.close()
        reports = [span for span in collector.spans if span.name == "report of borrower"]
        assert reports
        for report in reports:
            peers = {span.name: span.peer for span in collector.traces[report.trace]}
            assert (full.id, leaf.id, full.id) == (peers["accept"], peers["fetch"], peers["report of borrower"])
            assert leaf.id == report.facts["kadcrawl.borrower"]


async def test_a_failure_is_an_error_with_its_reason(make_peer: MakePeer) -> None:
    async with collecting() as collector, Web() as site:
        site.pages["/"] = lambda request: html("/gone")
        peer = await make_peer("a", traces=collector.url)
        await peer.crawl([site.url()])
        await finish([peer])
        assert peer.resources.traces is not None
        await peer.resources.traces.close()
    errors = {span.name: span.facts["error.type"] for span in collector.spans if span.is_error}
    assert {"fetch": "http_404", "finish": "http_404"} == errors


async def test_a_crawl_goes_on_without_its_collector(make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otel_traces, "SEND_S", 0.1)
    async with Web(SITES) as site:
        site.fallback = tree(PAGES, SITES)(site)
        peer = await make_peer("a", traces=site.url("/nothing"))  # It answers, and not as a collector.
        await peer.crawl([site.url("/0")])
        await finish([peer])
        assert {*site.fetched} >= site.numbered(PAGES)


@pytest.mark.parametrize("endpoint", ["localhost:4318", "", "ftp://collector"])
def test_what_is_no_url_of_a_collector_is_refused(tmp_path: Path, endpoint: str) -> None:
    with pytest.raises(ConfigError, match="base URL of a collector"):
        Config(data=tmp_path, traces=endpoint)


@pytest.mark.parametrize("share", [0.0, -1.0, 1.1])
def test_a_share_is_a_part(tmp_path: Path, share: float) -> None:
    with pytest.raises(ConfigError, match="trace_share"):
        Config(data=tmp_path, trace_share=share)


def test_without_the_package_it_is_said_what_to_install() -> None:
    code = (
        "import sys; sys.modules['opentelemetry.sdk.trace'] = None\n"
        "from types import SimpleNamespace\n"
        "from kadcrawl.errors import ConfigError\n"
        "from kadcrawl.peer.resources import _open_traces\n"
        "try: _open_traces(SimpleNamespace(traces='http://localhost:4318'), None, None, None)\n"
        "except ConfigError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'kadcrawl[traces]'" in done.stdout


async def test_without_traces_the_library_is_not_loaded(make_peer: MakePeer) -> None:
    peer = await make_peer("a")
    assert peer.resources.traces is None
