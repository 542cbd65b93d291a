"""`Fetcher.fetch` sends one request and turns any answer into one `FetchResult`.

The fetcher owns the connections. It never follows a redirect, never repeats a request that a server may have seen (its
caller decides about politeness and retries), never keeps a cookie, never reads the environment, and never raises for
anything that a server can do. Sizes are bounded while they arrive. The guard sees every address before the fetcher
connects to it. Time comes from the loop. One timer per fetch asks `ResponseDeadline`, and only when a verdict is
possible, so that a quick page pays nothing per chunk. c-ares looks up names without threads: a silent name server
delays only its own hosts, and neither a commit nor the end of the process. A fetch may name the proxy that it goes
through.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from socket import AF_UNSPEC
from typing import ClassVar, Final, Protocol
from weakref import WeakSet

import aiohttp
from aiohttp.abc import AbstractResolver
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from kadcrawl.crawl.fetch.address_guard import Guard, PermittedOnly
from kadcrawl.crawl.fetch.answer import PartialAnswer, clean
from kadcrawl.crawl.fetch.content_encoding import (
    GZIP_MAGIC,
    BadEncodingError,
    IncompleteError,
    TooLargeError,
    decoding,
)
from kadcrawl.crawl.fetch.direct_request import HEADERS_MAX, DirectRequests, DirectResponse
from kadcrawl.crawl.fetch.errors import Broken, classified
from kadcrawl.crawl.fetch.head_filter import as_received
from kadcrawl.crawl.fetch.late_resolver import LateResolver
from kadcrawl.crawl.fetch.memory_slots import MemorySlots
from kadcrawl.crawl.fetch.metered_connection import MeteredConnection, meter
from kadcrawl.crawl.fetch.pinned_address import PinnedResolver, leads_astray
from kadcrawl.crawl.fetch.poison_pages import PoisonPages
from kadcrawl.crawl.fetch.request_rules import RequestRule, RequestRules, Way, request_head
from kadcrawl.crawl.fetch.response_watch import ResponseWatch
from kadcrawl.crawl.fetch.result import FetchError, FetchResult, RelayedAnswer, retry_after_s
from kadcrawl.crawl.fetch.timeouts import ResponseDeadline
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.proxy_list import Proxy
from kadcrawl.system.cooperative import run_cooperatively
from kadcrawl.urls import host_of

KEEPALIVE_S: Final = 5.0
"""Seconds for which an idle connection is kept: more than the usual delay, yet a broad crawl must not run out of
files."""
DNS_TTL_S: Final = 60
MIME_CHARS_MAX: Final = 255
"""RFC 6838 4.2: type and subtype have at most 127 characters each."""


def always() -> bool:
    return True


_may_send: ContextVar[Callable[[], bool]] = ContextVar("may_send", default=always)
"""The `may_send` argument of the fetch that the current task makes. aiohttp carries no argument of ours to its
request."""
_proxy: ContextVar[Proxy | None] = ContextVar("proxy", default=None)
"""The proxy of the fetch that the current task makes."""


def user_agent(version: str, contact: str = "") -> str:
    """Return the User-Agent, which tells a site's owner the name of the crawler and a person to reach."""
    return f"kadcrawl/{version} (+{contact})" if contact else f"kadcrawl/{version}"


class Fetching(Protocol):
    """The interface of a fetcher, as a crawler uses it."""

    async def fetch(
        self,
        url: str,
        extra_headers: Sequence[tuple[str, str]] = (),
        may_send: Callable[[], bool] = always,
        *,
        memory_slots: MemorySlots | None = None,
    ) -> FetchResult:
        """Return the result of one GET of a canonical URL. `memory_slots` holds the slots of the answer until it is
        read."""


class FormFetching(Fetching, Protocol):
    """The interface of a fetcher that can send forms as well."""

    async def fetch(
        self,
        url: str,
        extra_headers: Sequence[tuple[str, str]] = (),
        may_send: Callable[[], bool] = always,
        *,
        memory_slots: MemorySlots | None = None,
        form: bytes = b"",
    ) -> FetchResult:
        """Return the result of one GET of a canonical URL, or of a POST with `form`."""


class Fetcher:
    """Fetches URLs, `Limits.fetches_max` at a time at most, each from an address the guard permits."""

    def __init__(
        self,
        limits: Limits,
        guard: Guard,
        user_agent: str,
        now: Callable[[], float],
        resolver: Callable[[], AbstractResolver] = LateResolver,
        by_proxies: bool = False,
        poison_pages: PoisonPages | None = None,
        request_rules: RequestRules | None = None,
        *,
        pins: bool = False,
    ) -> None:
        """Make a fetcher with no connection yet.

        `now` is the world's clock, in seconds since 1970. `resolver` makes a resolver for host names. Only with
        `by_proxies` may a fetch name a proxy. `poison_pages` is told which URLs have bodies that are being decoded.
        `request_rules` has the bounds and headers of each request, which are otherwise `limits` and the
        `user_agent`. With `pins`, a fetch may be pinned to an address (pinned_address.py).
        """
        self._pins = pins
        self._poison_pages = poison_pages or PoisonPages(None)
        self._by_proxies = by_proxies
        self._make_resolver = resolver
        self._now = now
        self._limits = limits
        self._request_rules = request_rules or RequestRules(limits, user_agent)
        self._large = asyncio.Semaphore(limits.large_bodies_max)
        self._large_contents = asyncio.Semaphore(limits.large_contents_max)
        """Slots for large bodies, then slots for large contents that are not the body. They are acquired in this
        order."""
        self._decoding = asyncio.Lock()
        """The lock of the body that is in the middle of being decoded."""
        self._guard = guard
        self._loop: asyncio.AbstractEventLoop
        self._session: aiohttp.ClientSession | None = None
        self._is_closed = True
        self._resolver: AbstractResolver | None = None

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._resolver = PermittedOnly(self._make_resolver(), self._guard)
        self._is_closed = False

    def _open_session(self, resolver: AbstractResolver) -> aiohttp.ClientSession:
        """Make the session, at the first fetch: most peers of a small crawl fetch nothing."""
        limits = self._limits
        connector = self._connector_class()(
            limit=limits.fetches_max,
            keepalive_timeout=KEEPALIVE_S,
            ttl_dns_cache=DNS_TTL_S,
            use_dns_cache=not self._pins,
            resolver=PinnedResolver(resolver) if self._pins else resolver,
        )
        meter(connector, limits)
        self._session = session = aiohttp.ClientSession(
            connector=connector,
            request_class=_Request,
            response_class=_Response,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            timeout=aiohttp.ClientTimeout(total=None, connect=limits.connect_timeout_s),
            max_line_size=limits.header_bytes_max,
            max_field_size=limits.header_bytes_max,
            max_headers=HEADERS_MAX,
        )
        self._direct = DirectRequests(session, limits.header_bytes_max)
        return session

    def _connector_class(self) -> Callable[..., aiohttp.TCPConnector]:
        if not self._by_proxies:
            return partial(aiohttp.TCPConnector, socket_factory=self._guard.socket)
        from kadcrawl.crawl.fetch.proxy_connector import ProxyConnector  # Not at the top: most crawls have no proxies.

        return partial(ProxyConnector, self._guard)

    async def close(self) -> None:
        """Close all connections. The caller has ended its fetches."""
        self._is_closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()
        if self._resolver is not None:
            await self._resolver.close()

    async def resolve(self, host: str) -> list[str]:
        """Return the permitted addresses of a name, or all if none is permitted. Raises OSError."""
        assert self._resolver is not None, "start() comes before resolve()"
        return [one["host"] for one in await self._resolver.resolve(host, 0, AF_UNSPEC)]

    async def fetch(
        self,
        url: str,
        extra_headers: Sequence[tuple[str, str]] = (),
        may_send: Callable[[], bool] = always,
        proxy: Proxy | None = None,
        *,
        memory_slots: MemorySlots | None = None,
        form: bytes = b"",
    ) -> FetchResult:
        """Return the result of one GET of a canonical URL, or of a POST with `form`. Raises nothing but CancelledError.

        `may_send` is asked once more when the connection is there, which may take long. If it says no, nothing is sent.
        A target that the guard forbids is refused before a proxy hears of it. A large answer keeps its slots until
        `memory_slots` releases them. Without `memory_slots` the caller must read the answer before it awaits anything.
        """
        assert self._resolver is not None, "start() comes before fetch()"
        assert proxy is None or self._by_proxies, "made to fetch by proxies"
        if memory_slots is None:
            memory_slots = MemorySlots()
            try:
                return await self.fetch(url, extra_headers, may_send, proxy, memory_slots=memory_slots, form=form)
            finally:
                memory_slots.release()
        _may_send.set(may_send)
        _proxy.set(proxy)
        loop = self._loop
        started_at = datetime.fromtimestamp(self._now(), UTC)
        started = loop.time()
        rule = self._request_rules.of(url)
        patience = ResponseDeadline(rule.limits, started)
        answer = PartialAnswer()
        failure: FetchError | None = None
        detail = ""
        watch = ResponseWatch(loop, patience)
        try:
            with watch:
                if proxy is not None and not self._guard.permits_host(host_of(url)):
                    raise Broken(FetchError.ADDRESS_REFUSED, f"{host_of(url)} is not a public host")
                if self._is_closed:
                    raise Broken(FetchError.NOT_SENT, "this peer is stopping")
                way = Way(self._session or self._open_session(self._resolver), proxy, form)
                await self._converse(way, url, extra_headers, answer, patience, memory_slots, rule)
        except Exception as error:
            if watch.verdict is None:
                failure, detail = classified(error, url)
                if answer.malformed:
                    failure = FetchError.PROTOCOL
                elif failure is FetchError.TRUNCATED and patience.broke_by_pause(loop.time()):
                    failure = FetchError.KEPT_WAITING
            else:
                failure = FetchError.PROTOCOL if answer.malformed else watch.verdict
        return await self._result(url, answer, failure, detail, started_at, started, loop.time(), memory_slots)

    async def _ask(
        self, way: Way, url: str, extra_headers: Sequence[tuple[str, str]], answer: PartialAnswer, rule: RequestRule
    ) -> "DirectResponse | _Response":
        """Send the request and return the head of its answer, which the caller closes."""
        if way.proxy is None and not way.form:
            request = self._direct.prepare(url, rule, extra_headers)
            answer.request_head = request.head
            return await self._direct.get(request, _may_send.get())
        answer.request_head = request_head(target := URL(url, encoded=True), rule, extra_headers)
        response = await way.session.request(
            way.method,
            target,
            headers=[*rule.headers, *rule.secret_headers, *extra_headers, *way.headers],
            data=way.form or None,
            allow_redirects=False,
            proxy=way.proxy_url,
            ssl=rule.tls,
        )
        assert isinstance(response, _Response), "the session makes our responses"
        return response

    async def _converse(
        self,
        way: Way,
        url: str,
        extra_headers: Sequence[tuple[str, str]],
        answer: PartialAnswer,
        deadline: ResponseDeadline,
        memory_slots: MemorySlots,
        rule: RequestRule,
    ) -> None:
        """Send the request and read the answer into `answer` as far as it comes."""
        loop = self._loop
        response = await self._ask(way, url, extra_headers, answer, rule)
        try:
            now = loop.time()
            deadline.head_came(now)
            answer.take_head(response, response.address, now, self._limits.header_bytes_max)
            most = rule.limits.body_bytes_max
            content = response.content
            while chunk := await content.readany():
                deadline.bytes_came(len(chunk), loop.time())
                answer.chunks.append(chunk)
                if deadline.body_bytes > most:
                    answer.chunks[-1] = chunk[: most - deadline.body_bytes]
                    raise Broken(FetchError.too_large(self._limits, most), f"cut off at {most} bytes")
                if deadline.body_bytes > self._limits.large_body_bytes and not answer.is_large:
                    deadline.pause(loop.time())
                    await memory_slots.acquire(self._large)
                    answer.is_large = True
                    deadline.resume(loop.time())
                    deadline.has_slot(loop.time(), self._large.locked)
            if isinstance(response.protocol, MeteredConnection) and response.protocol.has_broken_framing:
                raise Broken(FetchError.PROTOCOL, str(response.protocol.exception()))
            if isinstance(response.protocol.exception(), aiohttp.ClientOSError):
                # A body without a length ends where the connection does: a reset is no end.
                raise Broken(FetchError.TRUNCATED, "connection reset")
        except (asyncio.CancelledError, aiohttp.ClientPayloadError):
            # A body whose framing broke looks like a body that is cut off.
            answer.malformed = isinstance(response.protocol.exception(), HttpProcessingError)
            raise
        finally:
            response.close()

    async def received(
        self,
        url: str,
        extra_headers: Sequence[tuple[str, str]],
        answer: RelayedAnswer,
        started_at: datetime,
        started: float,
        memory_slots: MemorySlots,
    ) -> FetchResult:
        """Return the result of an answer that another peer has received for this peer."""
        if len(answer.body) > self._limits.large_body_bytes:
            await memory_slots.acquire(self._large)
        head = request_head(URL(url, encoded=True), self._request_rules.of(url), extra_headers)
        taken = PartialAnswer(request_head=head, chunks=[answer.body], head_at=asyncio.get_running_loop().time())
        try:
            taken.take_relayed(answer, self._limits.header_bytes_max)
        except Broken as broken:
            taken, answer = PartialAnswer(head), replace(answer, error=broken.error, detail=str(broken))
        ended = asyncio.get_running_loop().time()
        result = await self._result(url, taken, answer.error, answer.detail, started_at, started, ended, memory_slots)
        return replace(result, via=answer.via)

    async def _result(
        self,
        url: str,
        answer: PartialAnswer,
        error: FetchError | None,
        detail: str,
        started_at: datetime,
        started: float,
        ended: float,
        memory_slots: MemorySlots,
    ) -> FetchResult:
        body = content = b"".join(answer.chunks)
        answer.chunks.clear()
        if error is None and answer.content_encoding:
            try:
                content = await self._content(url, body, answer.content_encoding, memory_slots)
            except BadEncodingError as bad:
                error, detail = FetchError.BAD_ENCODING, str(bad)
            except IncompleteError as cut:
                error, detail = FetchError.TRUNCATED, str(cut)
            except TooLargeError as large:
                error, detail = FetchError.inflated(self._limits), str(large)
        if error is not None and (not error.is_cut_off or answer.content_encoding):
            content = b""
        if content.startswith(GZIP_MAGIC):
            await memory_slots.acquire(
                self._large_contents
            )  # It is a sitemap perhaps, to be unpacked where it is read.
        return FetchResult(
            url=url,
            status=answer.status,
            error=error,
            detail=clean(detail),
            request_head=answer.request_head,
            http_version=answer.http_version,
            reason=answer.reason,
            headers=answer.headers,
            body=body,
            content=content,
            content_type=answer.content_type,
            mime=answer.content_type.partition(";")[0].strip().lower()[:MIME_CHARS_MAX],
            retry_after_s=retry_after_s(answer.retry_after, started_at, self._limits.retry_after_max_s),
            address=answer.address,
            started_at=started_at,
            seconds=ended - started,
            first_byte_at=ended if answer.head_at is None else answer.head_at,
        )

    async def _content(self, url: str, body: bytes, coding: str, memory_slots: MemorySlots) -> bytes:
        """Return the content of a body. A body that turns out to be large is decoded anew once it has a slot."""
        limits = self._limits
        small = min(limits.large_body_bytes, limits.inflated_bytes_max)
        if len(body) <= small:  # What is large as it came is so afterwards, and long work would be done twice.
            try:
                return await self._decoded(url, body, coding, small)
            except TooLargeError:
                pass
        await memory_slots.acquire(self._large_contents)
        return await self._decoded(url, body, coding, limits.inflated_bytes_max)

    async def _decoded(self, url: str, body: bytes, coding: str, bytes_max: int) -> bytes:
        async with self._poison_pages.reading(url):
            return await run_cooperatively(decoding(body, coding, bytes_max), self._decoding)


class _Response(aiohttp.ClientResponse):
    """Keeps hold of the connection it came by, which aiohttp gives back to the pool once a short body came.

    aiohttp repeats a request on a kept connection that broke (`DirectRequests`). It must not repeat others, nor those
    by a proxy, which may have passed the request on before it closed.
    """

    address: str
    protocol: ResponseHandler
    _used: ClassVar[WeakSet[ResponseHandler]] = WeakSet()

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        assert connection.protocol is not None, "a connection just made or reused has a protocol"
        self.protocol = connection.protocol
        # Neither the transport nor its peer's name outlives a reset.
        peer = connection.transport and connection.transport.get_extra_info("peername")
        by_proxy = _proxy.get() is not None
        self.address = peer[0] if peer and not by_proxy else ""
        kept = self.protocol in self._used and not by_proxy
        self._used.add(self.protocol)
        try:
            await super().start(connection)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            if kept:
                raise
            raise Broken(FetchError.DISCONNECTED, "closed before the answer") from error
        if isinstance(self.protocol, MeteredConnection):
            self._raw_headers = as_received(self._raw_headers, self.protocol.lengths)
        return self


class _Request(aiohttp.ClientRequest):
    """A request that is sent only while the fetch may still send, also to a site behind a tunnel."""

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        if not _may_send.get()():
            raise Broken(FetchError.NOT_SENT, "called off")
        if leads_astray(conn, self.url.raw_host or ""):
            conn.close()  # Kept from the time when the host was at another address.
            raise Broken(FetchError.NOT_SENT, "the host is at another address")
        if self.proxy is not None and not self.proxy.scheme.startswith("http"):
            self.proxy = None  # aiohttp takes each proxy for one that relays.
        return await super().send(conn)
