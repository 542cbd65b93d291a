"""`DirectRequests` sends a GET without a proxy over aiohttp's connector, past the layers of `ClientSession`.

aiohttp connects, keeps connections and parses answers. A session also builds a request, a response and a URL for each
page, with features that a crawler never uses, at a tenth of the CPU of a page. Requests with a form or by a proxy go by
the session. The rules of repeating are the session's: a GET is sent once more if the kept connection breaks before any
answer, as the server closed it just then (RFC 9112 9.3.1). On a new connection that would be a second request, which
the politeness clock does not know of.

Tests: tests/crawl/fetch/test_direct_request.py, tests/crawl/fetch/test_fetcher.py
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from weakref import WeakSet

import aiohttp
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import RawResponseMessage
from aiohttp.http_writer import HttpVersion
from multidict import CIMultiDictProxy
from yarl import URL

from kadcrawl.crawl.fetch.errors import Broken
from kadcrawl.crawl.fetch.head_filter import as_received
from kadcrawl.crawl.fetch.metered_connection import MeteredConnection
from kadcrawl.crawl.fetch.pinned_address import leads_astray
from kadcrawl.crawl.fetch.request_rules import RequestRule
from kadcrawl.crawl.fetch.result import FetchError

ORIGINS_MAX: Final = 1_024
"""Origins whose request is remembered, at some 3 KB each. Beyond that all are made anew."""
HEADERS_MAX: Final = 256
"""Headers in one answer. Honest answers have below 100."""


class OriginRequest(NamedTuple):
    """What all requests to one origin share."""

    request: aiohttp.ClientRequest
    """A request for the connector: it names the host and the settings of TLS."""
    host: str
    """The value of the Host header."""
    raw_host: str


class PreparedRequest(NamedTuple):
    """A request that is ready to be sent."""

    origin: OriginRequest
    head: bytes
    """The head as it is stored: as it is sent, but for secrets."""
    sent: bytes


@dataclass(slots=True)
class DirectResponse:
    """The head of an answer, and its body while that arrives."""

    connection: Connection
    protocol: MeteredConnection
    address: str
    status: int
    version: HttpVersion
    reason: str
    headers: CIMultiDictProxy[str]
    raw_headers: tuple[tuple[bytes, bytes], ...]
    content: aiohttp.StreamReader

    def close(self) -> None:
        """Give the connection back to the pool, or close it if the answer is not whole."""
        if self.content.is_eof() and self.content.exception() is None:
            self.connection.release()
        else:
            self.connection.close()


def request_line(url: str) -> tuple[str, int]:
    """Return the path of a canonical URL with its query, and the place where its origin ends. Raises InvalidURL."""
    end = url.find("/", url.find("://") + len("://"))
    if end < 0:
        raise aiohttp.InvalidUrlClientError(url)
    path = url[end:]
    return path[:-1] if path.endswith("?") else path, end


def checked(fields: Sequence[tuple[str, str]]) -> str:
    """Return the lines of these headers. Raises ValueError for a header that would be two."""
    lines = "".join([f"{name}: {value}\r\n" for name, value in fields])
    if lines.count("\r") != len(fields) or lines.count("\n") != len(fields) or "\0" in lines:
        raise ValueError("a line break or a NUL in a header")
    return lines


class DirectRequests:
    """The direct requests of one fetcher."""

    def __init__(self, session: aiohttp.ClientSession, header_bytes_max: int) -> None:
        """Make no request yet. The connector of the session makes metered connections only."""
        assert session.connector is not None, "the session is open"
        self._session = session
        self._connector = session.connector
        self._header_bytes_max = header_bytes_max
        self._origins: dict[tuple[str, int], OriginRequest] = {}
        """By origin, and the identity of the settings of TLS, which the request keeps alive."""
        self._used: WeakSet[MeteredConnection] = WeakSet()
        """Connections that have carried a request."""

    def prepare(self, url: str, rule: RequestRule, extra_headers: Sequence[tuple[str, str]]) -> PreparedRequest:
        """Return the request for a canonical URL. Raises aiohttp.InvalidURL, ValueError."""
        path, end = request_line(url)
        origin = self._origin(url[:end], rule)
        start = f"GET {path} HTTP/1.1\r\nHost: {origin.host}\r\n{rule.header_lines}"
        if not extra_headers and not rule.secret_headers:
            head = f"{start}\r\n".encode()
            return PreparedRequest(origin, head, head)
        shown = checked([field for field in extra_headers if field[0] != "Cookie"])
        sent = checked([*rule.secret_headers, *extra_headers])
        return PreparedRequest(origin, f"{start}{shown}\r\n".encode(), f"{start}{sent}\r\n".encode())

    async def get(self, request: PreparedRequest, may_send: Callable[[], bool]) -> DirectResponse:
        """Send a GET and return the head of its answer. Raises Broken, aiohttp.ClientError."""
        try:
            return await self._ask(request, may_send)
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError):
            return await self._ask(request, may_send)

    def _origin(self, origin: str, rule: RequestRule) -> OriginRequest:
        known = self._origins.get((origin, id(rule.tls)))
        if known is None:
            if len(self._origins) >= ORIGINS_MAX:
                self._origins.clear()
            target = URL(f"{origin}/", encoded=True)
            if target.scheme not in self._connector.allowed_protocol_schema_set:
                raise aiohttp.NonHttpUrlClientError(target)
            if not target.raw_host:
                raise aiohttp.InvalidUrlClientError(target)
            loop = asyncio.get_running_loop()
            request = aiohttp.ClientRequest("GET", target, loop=loop, session=self._session, ssl=rule.tls)
            host = target.host_port_subcomponent
            assert host is not None, "a canonical URL has a host"
            known = OriginRequest(request, host, target.raw_host or "")
            self._origins[origin, id(rule.tls)] = known
        return known

    async def _ask(self, request: PreparedRequest, may_send: Callable[[], bool]) -> DirectResponse:
        """Send the request once. An error that `get` may answer by a second try is as aiohttp raises it."""
        origin = request.origin
        connection = await self._connection(origin)
        try:
            protocol = connection.protocol
            assert isinstance(protocol, MeteredConnection), "the connector makes metered connections only"
            protocol.set_response_params(
                read_until_eof=True,
                auto_decompress=False,
                max_line_size=self._header_bytes_max,
                max_field_size=self._header_bytes_max,
                max_headers=HEADERS_MAX,
            )
            if not may_send():
                raise Broken(FetchError.NOT_SENT, "called off")
            if leads_astray(connection, origin.raw_host):
                # Kept from the time when the host was at another address.
                raise Broken(FetchError.NOT_SENT, "the host is at another address")
            # Neither the transport nor its peer's name outlives a reset.
            transport = protocol.transport
            if transport is None or transport.is_closing():
                raise aiohttp.ClientConnectionResetError("Cannot write to closing transport")
            peer = transport.get_extra_info("peername")
            is_kept = protocol in self._used
            self._used.add(protocol)
            transport.write(request.sent)
            try:
                message, content = await _read(protocol, origin)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
                if is_kept:
                    raise
                raise Broken(FetchError.DISCONNECTED, "closed before the answer") from error
        except BaseException:
            connection.close()
            raise
        return DirectResponse(
            connection,
            protocol,
            peer[0] if peer else "",
            message.code,
            message.version,
            message.reason,
            message.headers,
            as_received(message.raw_headers, protocol.lengths),
            content,
        )

    async def _connection(self, origin: OriginRequest) -> Connection:
        try:
            return await self._connector.connect(origin.request, [], self._session.timeout)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError(f"Connection timeout to host {origin.request.url}") from error
        except aiohttp.ClientError:
            raise
        except OSError as error:
            raise aiohttp.ClientOSError(*error.args) from error


async def _read(protocol: MeteredConnection, origin: OriginRequest) -> tuple[RawResponseMessage, aiohttp.StreamReader]:
    """Return the final head of an answer and its body. Raises as aiohttp's response does."""
    while True:
        try:
            message, content = await protocol.read()
        except HttpProcessingError as error:
            raise aiohttp.ClientResponseError(
                origin.request.request_info, (), status=error.code, message=error.message, headers=error.headers
            ) from error
        if not 100 <= message.code < 200 or message.code == 101:
            return message, content
