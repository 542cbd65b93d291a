"""HTTP/1.1 for a web that is a function: a protocol for any event loop, real or virtual, and a log of its requests.

`WebServer` owns the state that all addresses of one web share: the access log, and the request counts of the few URLs
whose answer depends on them. A `WebConnection` serves one client: requests in their order, pipelined requests too, each
only after the answer before it is written. A request is logged when its head is complete, also if the client does not
stay for the answer. The cost of a client is bounded: the size of the head, the bytes that wait behind it, and the time
in which the server waits for the client. Time comes from the loop alone. Shares no code with kadcrawl.

A request with another method than GET or a target that is no path, is refused. It is counted, but not logged. So is a
request with a body, but for the form of a site with a wall.

The same web is served by HTTP proxies (`WebServer.connect_via`), which take whole URLs for targets. They log the
request of their client with their own name, and answer for the health-check page themselves.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Mapping
from http import HTTPStatus
from math import inf
from typing import Final, NamedTuple, Protocol

from .judge import Access
from .site_treatment import RULE_HEADER
from .synthetic_web import SyntheticResponse
from .wall import LOGIN_PATH, Wall

HEAD_BYTES_MAX: Final = 16 * 1024
"""The most bytes of a request head. A longer head is refused. Pipelined bytes behind it wait unread."""
CONNECTION_TIMEOUT_S: Final = 15.0
"""A connection is given up when it waits so long for a whole request, or for the client to read."""
FORM_BYTES_MAX: Final = 1024
"""The most bytes of a form."""
REFUSED: Final = 403
"""The status of all pages of a site that is down. No page of a synthetic web has it otherwise."""
REFUSED_S: Final = 1.5
"""Seconds until such an answer, so that a site may work again when it comes."""
SLOW_PIECE_S: Final = 0.2
"""An answer is written in pieces of this length, or at once if it is shorter."""

HEALTH_HOST: Final = "health.test"
"""The host of the health-check page, by which a crawler verifies proxies. Only proxies know it, and nobody logs it."""

_RELAYED_LINE: Final = re.compile(rb"([A-Z]+) http://[^/ ]+(/[!-~]*) HTTP/1\.([01])(?=\r\n|$)")
_REQUEST_LINE: Final = re.compile(r"([A-Z]+) (/[!-~]*) HTTP/1\.([01])")
_FIELD: Final = re.compile(r"([!#-'*+.^_`|~0-9A-Za-z-]+):[ \t]*([ -~\t]*)")
_HEAD_END: Final = b"\r\n\r\n"


class Web(Protocol):
    """Interface of a web that a server can serve."""

    def answer(self, host: str, target: str, asked: int) -> SyntheticResponse:
        """Return the answer to a GET of `target` (path and query) that was asked for `asked` times before."""
        ...


class Request(NamedTuple):
    """One request as the server saw it."""

    time: float
    """The loop's time, in seconds."""
    host: str
    path: str
    """Path and query as they were sent."""
    status: int
    peer: str
    """The client's IP address, or empty if the connection was gone at once."""
    retry_after_s: float = 0.0
    """Seconds of the answer's Retry-After, or 0."""
    rule: str = ""
    """The value of the request's header `RULE_HEADER`, or an empty text."""
    cookie: str = ""
    """The value of its header Cookie."""
    given: str = ""
    """The cookie that the answer gives."""
    is_form: bool = False
    """It is a POST to the form of a site."""
    via: str = ""
    """The IP address of the proxy through which it came, or an empty text."""

    @property
    def url(self) -> str:
        return f"http://{self.host}{self.path}"

    @property
    def access(self) -> Access:
        """The entry for `sim/judge.py`. The client's IP address stands for the user agent."""
        return Access(self.time, f"http://{self.host}", self.path, self.status, self.peer)


class Head(NamedTuple):
    """The fields of a request head that can be answered."""

    host: str
    target: str
    keep: bool
    """The connection stays open after the answer."""
    rule: str = ""
    """The value of the header `RULE_HEADER`."""
    cookie: str = ""
    """The value of the header Cookie."""
    form_bytes: int | None = None
    """The length of the form that follows, or None for a GET."""
    via: str = ""
    """The IP address of the proxy that takes the request."""


class WebServer:
    """Serves one web: ``await loop.create_server(server.connect, ip, 80)`` for each of its addresses."""

    def __init__(self, web: Web, walls: Mapping[str, Wall] | None = None) -> None:
        """`walls` are those around single hosts."""
        self.web = web
        self._walls = walls or {}
        self.log: list[Request] = []
        """All requests in the order of arrival."""
        self.overs: list[float] = []
        """The instant at which each request of `log` was answered or lost its connection: infinity while under way."""
        self.cut: set[int] = set()
        """The places in `log` of those whose connection was lost before all of the answer was written."""
        self.refused = 0
        """Requests that were none, or not for us."""
        self.connections: dict[WebConnection, None] = {}
        """The open connections, the oldest first."""
        self.opened: Counter[str] = Counter()
        """The client's IP address -> connections that it opened."""
        self.down: set[str] = set()
        """Hosts that refuse all pages but their robots.txt."""
        self.turned_away: list[tuple[float, str, str]] = []
        """(instant, client's IP address, proxy's) of each request for a page that a proxy with a fault has answered."""
        self._faults: Mapping[str, int] = {}
        self._asked: dict[tuple[str, str], int] = {}

    def set_faults(self, faults: Mapping[str, int]) -> None:
        """Let these proxies, named by their IP addresses, answer everything with these statuses."""
        self._faults = faults

    def connect(self) -> "WebConnection":
        """Return the protocol of a new connection."""
        return WebConnection(self)

    def connect_via(self, proxy: str) -> "WebConnection":
        """Return the protocol of a new connection to a proxy with this IP address."""
        return WebConnection(self, proxy)

    def close(self) -> None:
        """Cut all connections. The owner of the listeners closes the listeners."""
        for connection in list(self.connections):
            connection.abort()

    def take(self, now: float, head: Head, peer: str, form: bytes = b"") -> SyntheticResponse:
        """Log a request and return the answer to it. A proxy answers for the health-check page, which is not logged.

        A proxy with a fault answers for all pages, so the web does not log them.
        """
        host, target, via = head.host, head.target, head.via
        if via and (fault := self._faults.get(via)):
            if host != HEALTH_HOST:
                self.turned_away.append((now, peer, via))
            return SyntheticResponse(fault)
        if via and host == HEALTH_HOST:
            return SyntheticResponse(200)
        asked = self._asked.get((host, target), 0)
        answer = self._at_the_door(head, form) or self.web.answer(host, target, asked)
        if answer.counted:
            self._asked[host, target] = asked + 1
        retry_after_s = float(dict(answer.headers).get("Retry-After", 0))
        given = dict(answer.headers).get("Set-Cookie", "").partition(";")[0] if host in self._walls else ""
        is_form = head.form_bytes is not None
        seen = (now, host, target, answer.status, peer, retry_after_s, head.rule, head.cookie, given, is_form, via)
        self.log.append(Request(*seen))
        self.overs.append(inf)
        return answer

    def _at_the_door(self, head: Head, form: bytes) -> SyntheticResponse | None:
        """Return the answer of a site that is down or has a wall, or None if the page answers."""
        if head.host in self.down and head.target != "/robots.txt":
            return SyntheticResponse(REFUSED, latency_s=REFUSED_S)
        wall = self._walls.get(head.host)
        if head.form_bytes is not None:
            return SyntheticResponse(HTTPStatus.METHOD_NOT_ALLOWED) if wall is None else wall.log_in(form)
        return None if wall is None else wall.answer(head.target, head.cookie)


class WebConnection(asyncio.Protocol):
    """One connection: it waits for a request, or writes an answer."""

    def __init__(self, server: WebServer, via: str = "") -> None:
        """`via` is the IP address of a proxy, for a connection to that proxy."""
        self._server = server
        self._via = via
        self._loop = asyncio.get_running_loop()
        self._received = bytearray()
        self._reading = True
        self._number: int | None = None
        """The number of the last request in the server's log, or None if that was not logged."""
        self._unsent: memoryview | None = None
        """The rest of the answer under way, or None while waiting for a request."""
        self._piece_bytes = 0
        self._keep = True
        self._may_write = True
        self._write_timer: asyncio.TimerHandle | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._idle_since = 0.0
        """The instant since which, or from which on, the connection waits for its client."""

    def abort(self) -> None:
        """Cut the connection."""
        self._transport.abort()

    # --- what the loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), "served on a stream"
        self._transport = transport
        peername = transport.get_extra_info("peername")
        self._peer = str(peername[0]) if peername else ""
        self._server.connections[self] = None
        self._server.opened[self._peer] += 1
        self._idle_since = self._loop.time()
        self._idle_timer = self._loop.call_later(CONNECTION_TIMEOUT_S, self._look)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._unsent is None:
            self._next_request()
        self._read_on()

    def pause_writing(self) -> None:
        self._may_write = False
        self._idle_since = self._loop.time()

    def resume_writing(self) -> None:
        self._may_write = True
        if self._unsent is not None and self._write_timer is None:
            self._write()

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.pop(self, None)
        if self._unsent is not None:
            self._over()
            if self._number is not None:
                self._server.cut.add(self._number)
        for timer in (self._write_timer, self._idle_timer):
            if timer is not None:
                timer.cancel()

    # --- requests

    def _next_request(self) -> None:
        """Begin to answer the next request, if all of its head is here."""
        end = self._received.find(_HEAD_END)
        if max(end, len(self._received) if end < 0 else 0) > HEAD_BYTES_MAX:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            return
        if end < 0:
            return
        sent = bytes(self._received[:end])
        head = parse_head(relayed_head(sent) if self._via else sent)
        if isinstance(head, HTTPStatus):
            self._refuse(head)
            return
        body_from = end + len(_HEAD_END)
        body_to = body_from + (head.form_bytes or 0)
        if len(self._received) < body_to:
            return
        form = bytes(self._received[body_from:body_to])
        del self._received[:body_to]
        number = len(self._server.log)
        answer = self._server.take(self._loop.time(), head._replace(via=self._via), self._peer, form)
        self._number = number if number < len(self._server.log) else None
        self._keep = head.keep
        self._unsent = memoryview(_rendered(answer, head.keep))
        self._piece_bytes = max(1, int(min(answer.bytes_per_s * SLOW_PIECE_S, len(self._unsent))))
        self._write_after(answer.latency_s)

    def _read_on(self) -> None:
        """Read as long as there is room."""
        reading = len(self._received) <= HEAD_BYTES_MAX
        if reading != self._reading and not self._transport.is_closing():
            self._reading = reading
            if reading:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def _refuse(self, status: HTTPStatus) -> None:
        self._server.refused += 1
        self._received.clear()
        self._transport.write(_rendered(SyntheticResponse(status), keep=False))
        self._transport.close()

    # --- answers

    def _write_after(self, seconds: float) -> None:
        self._idle_since = self._loop.time() + seconds
        self._write_timer = self._loop.call_later(seconds, self._write)

    def _write(self) -> None:
        """Write the next piece, unless the client is slow to read."""
        self._write_timer = None
        if not self._may_write or self._transport.is_closing():
            return
        assert self._unsent is not None, "there is an answer under way"
        piece, self._unsent = self._unsent[: self._piece_bytes], self._unsent[self._piece_bytes :]
        self._transport.write(bytes(piece))
        if self._unsent:
            self._write_after(SLOW_PIECE_S)
            return
        self._unsent = None
        self._over()
        self._idle_since = self._loop.time()
        if not self._keep:
            self._transport.close()
            return
        self._next_request()
        self._read_on()

    def _over(self) -> None:
        if self._number is not None:
            self._server.overs[self._number] = self._loop.time()

    def _look(self) -> None:
        """Give the client up if nothing has been up to us for long."""
        idle_s = self._loop.time() - self._idle_since
        if idle_s >= CONNECTION_TIMEOUT_S:
            self.abort()
        else:
            self._idle_timer = self._loop.call_later(CONNECTION_TIMEOUT_S - idle_s, self._look)


def relayed_head(head: bytes) -> bytes:
    """Return the request head that a proxy sends on, or an empty one for a target that is no URL."""
    relayed, count = _RELAYED_LINE.subn(rb"\1 \2 HTTP/1.\3", head, count=1)
    return relayed if count and _RELAYED_LINE.match(head) else b""


def parse_head(head: bytes) -> Head | HTTPStatus:
    """Return the parsed request head (given without the empty line), or the status to refuse it with."""
    first, *lines = head.decode("latin-1").split("\r\n")
    request = _REQUEST_LINE.fullmatch(first)
    if request is None:
        return HTTPStatus.BAD_REQUEST
    method, target, minor = request.groups()
    is_form = method == "POST" and target == LOGIN_PATH
    if method != "GET" and not is_form:
        return HTTPStatus.METHOD_NOT_ALLOWED
    hosts: list[str] = []
    connection = "" if minor == "1" else "close"
    rule = cookie = ""
    form_bytes = None
    for line in lines:
        field = _FIELD.fullmatch(line)
        if field is None:
            return HTTPStatus.BAD_REQUEST
        name, value = field[1].lower(), field[2].strip().lower()
        if name == "host":
            hosts.append(value.removesuffix(":80"))
        elif name == "connection":
            connection = value
        elif name == RULE_HEADER.lower():
            rule = value
        elif name == "cookie":
            cookie = value
        elif name == "content-length" and is_form and value.isdecimal() and int(value) <= FORM_BYTES_MAX:
            form_bytes = int(value)
        elif name in ("content-length", "transfer-encoding"):
            return HTTPStatus.BAD_REQUEST
    if len(hosts) != 1 or not hosts[0] or (is_form and form_bytes is None):
        return HTTPStatus.BAD_REQUEST
    return Head(hosts[0], target, keep="close" not in connection, rule=rule, cookie=cookie, form_bytes=form_bytes)


def _rendered(answer: SyntheticResponse, keep: bool) -> bytes:
    """Return an answer as it goes over the wire."""
    lines = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in answer.headers]
    lines.append(f"Content-Length: {len(answer.body)}")
    if not keep:
        lines.append("Connection: close")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + answer.body
