"""`OtelTraces` records the steps of one peer as spans of OpenTelemetry, and sends them to a collector.

It sends by OTLP over HTTP, in a thread of the library, a batch every few seconds. The queue has a limit: if the
collector does not keep up, spans are lost and the crawl goes on. The variables OTEL_EXPORTER_OTLP_HEADERS and
OTEL_RESOURCE_ATTRIBUTES hold, as for other programs with OpenTelemetry.

Tests: tests/peer/tracing/test_otel_traces.py
"""

import asyncio
import logging
from collections.abc import Mapping
from random import Random

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    set_span_in_context,
)

from kadcrawl.crawl.fetch.result import FetchResult
from kadcrawl.crawl.scope.partitioner import UrlLocation
from kadcrawl.crawl.url_traces import FETCH
from kadcrawl.keys import Key
from kadcrawl.link.wire.messages import Contact, Link
from kadcrawl.peer.tracing.trace_ids import TraceIdentifier, TraceIds
from kadcrawl.system.clock import Clock
from kadcrawl.system.daemon_threads import DaemonThreadExecutor
from kadcrawl.urls import host_of
from kadcrawl.version import VERSION

QUEUE_SPANS_MAX = 2048
"""Limit on the spans that wait for the collector. More are lost."""
SEND_S = 5.0
"""Time for the last spans when a peer stops, in seconds, and for one request of the collector."""
UNFINISHED_MAX = 10_000
"""Limit on the shown pages whose last request is remembered until they are finished. The oldest is forgotten."""
TRACES_PATH = "/v1/traces"
log = logging.getLogger(__name__)


class _SpanIds(IdGenerator):
    """Gives a root span its derived IDs, and other spans IDs by chance."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.next: TraceIds | None = None
        """The IDs of the next span, if it is a root."""

    def generate_span_id(self) -> int:
        return self.next.root if self.next is not None else self._random.getrandbits(64) or 1

    def generate_trace_id(self) -> int:
        assert self.next is not None, "only a root span has a trace ID of its own"
        return self.next.trace


class OtelTraces:
    """The traces of one peer (`UrlTraces`)."""

    def __init__(
        self, endpoint: str, share: float, clock: Clock, random: Random, exporter: SpanExporter | None = None
    ) -> None:
        """`endpoint` is the base URL of the collector, such as http://localhost:4318.

        `share` is the part of the URLs to show, from 0 to 1. `exporter` stands for the collector.
        """
        self._share = share
        self._clock = clock
        self._ids = _SpanIds(random)
        self._exporter = exporter or OTLPSpanExporter(endpoint.rstrip("/") + TRACES_PATH, timeout=SEND_S)
        self._provider: TracerProvider | None = None
        self._tracer: Tracer | None = None
        self._identifier = TraceIdentifier("", 0.0)
        self._read_since: dict[Key, float] = {}
        """The end of the last request of each shown page that this peer has not finished, in wall-clock seconds."""

    def begin(self, peer: str, crawl: str) -> None:
        """Begin to record, as the peer with this ID in the crawl of this name."""
        self._identifier = TraceIdentifier(crawl, self._share)
        resource = Resource.create(
            {
                "service.name": "kadcrawl",
                "service.version": VERSION,
                "service.namespace": crawl,
                "service.instance.id": peer,
            }
        )
        # The loop of the peer ends the provider, so the library needs no handler of its own at the exit.
        self._provider = TracerProvider(resource=resource, id_generator=self._ids, shutdown_on_exit=False)
        processor = BatchSpanProcessor(self._exporter, QUEUE_SPANS_MAX, export_timeout_millis=SEND_S * 1000)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("kadcrawl", VERSION)

    async def close(self) -> None:
        """Send the last spans, for some seconds at most."""
        if self._provider is not None:
            provider, self._provider, self._tracer = self._provider, None, None
            try:
                async with asyncio.timeout(SEND_S):
                    await asyncio.get_running_loop().run_in_executor(DaemonThreadExecutor(), provider.shutdown)
            except TimeoutError:
                log.warning("traces.unsent seconds=%.0f", SEND_S)

    def accepted(self, link: Link, location: UrlLocation) -> None:
        """Record that this peer accepted a URL as its owner: the root of the trace."""
        if (ids := self._identifier.ids(location.key)) is not None:
            now = self._clock.now()
            self._ids.next = ids
            try:
                self._span(None, "accept", now, now, {"url.full": link.url, "kadcrawl.depth": link.depth})
            finally:
                self._ids.next = None

    def forwarded(self, key: Key, url: str, began: float) -> None:
        """Record that the owner of a URL has acknowledged the link, which this peer found at `began`."""
        if (ids := self._identifier.ids(key)) is not None:
            self._span(ids, "forward link", began, self._clock.now(), {"url.full": url})

    def fetched(self, key: Key, step: str, result: FetchResult) -> None:
        """Record a request that went out for the page of a key."""
        if (ids := self._identifier.ids(key)) is None:
            return
        began = result.started_at.timestamp()
        ended = began + result.seconds
        facts: dict[str, str | int] = {
            "url.full": result.url,
            "http.request.method": "GET",
            "server.address": host_of(result.url),
            "http.response.body.size": len(result.body),
        }
        if result.status is not None:
            facts["http.response.status_code"] = result.status
        if result.address:
            facts["network.peer.address"] = result.address
        if result.via:
            facts["kadcrawl.via"] = result.via
        # A robots.txt with status 404 is no fault.
        failed = result.why_failed if step == FETCH or result.error is not None else None
        self._span(ids, step, began, ended, facts, failed, SpanKind.CLIENT)
        if step == FETCH:
            self._read_since[key] = ended
            if len(self._read_since) > UNFINISHED_MAX:
                del self._read_since[next(iter(self._read_since))]

    def finished(self, key: Key, url: str, failed: str | None) -> None:
        """Record that this peer finished a page, since the end of its request."""
        if (ids := self._identifier.ids(key)) is not None:
            now = self._clock.now()
            self._span(ids, "finish", self._read_since.pop(key, now), now, {"url.full": url}, failed)

    def reported(self, borrower: Contact, key: Key) -> None:
        """Record that a borrower of this peer reported a finished page."""
        if (ids := self._identifier.ids(key)) is not None:
            now = self._clock.now()
            self._span(ids, "report of borrower", now, now, {"kadcrawl.borrower": borrower.id.hex()})

    def _span(
        self,
        parent: TraceIds | None,
        name: str,
        began: float,
        ended: float,
        facts: Mapping[str, str | int],
        failed: str | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> None:
        """Record one span, in the trace of `parent`, or as the root if that is None."""
        if self._tracer is None:
            return
        context = Context()
        if parent is not None:
            of_root = SpanContext(parent.trace, parent.root, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
            context = set_span_in_context(NonRecordingSpan(of_root), context)
        span = self._tracer.start_span(name, context, kind, facts, start_time=_nanoseconds(began))
        if failed is not None:
            span.set_attribute("error.type", failed)
            span.set_status(Status(StatusCode.ERROR, failed))
        span.end(_nanoseconds(ended))


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1_000_000_000)
