"""`DashboardListener` answers the requests of browsers to the dashboard of one peer, on an address of its own.

Pages hold no data and need no session. All data needs one, which a one-time token buys. A file in the peer's directory,
which its owner alone can read, has the address and the secret of the tokens, for `kadcrawl web`. Importing this module
loads aiohttp.web.
"""

import asyncio
import errno
import json
import logging
import secrets
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any

from aiohttp import web

from kadcrawl.errors import ConfigError, KadcrawlError, StartError
from kadcrawl.link.http_log import quiet_logger
from kadcrawl.members.key_file import write_secret
from kadcrawl.settings.config import WEB_PORT_DEFAULT
from kadcrawl.system.file_names import DASHBOARD
from kadcrawl.system.host_header import is_loopback
from kadcrawl.system.listening import listen
from kadcrawl.urls import URL_CHARS_MAX
from kadcrawl.web import sessions, tokens
from kadcrawl.web.event_stream import stream
from kadcrawl.web.hub import DashboardHub
from kadcrawl.web.page_files import page_files
from kadcrawl.web.request_guard import AskedBy, RequestGuard
from kadcrawl.web.sessions import Sessions
from kadcrawl.web.source import DashboardSource
from kadcrawl.web.tokens import OneTimeTokens

CONNECTIONS_MAX = 96
"""Connections at a time. One more takes the place of the oldest that streams no events."""
VIEWERS_MAX = 32
"""Streams of events at a time."""
BODY_BYTES_MAX = 4096
"""Bytes of the body of a request."""
HEADER = "X-Kadcrawl-Token"
"""The header that each order carries."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""The Content-Security-Policy of all answers."""
SECURE_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

log = logging.getLogger(__name__)


class DashboardListener:
    """The dashboard of one peer."""

    def __init__(self, source: DashboardSource, address: tuple[str, int], *, control: bool) -> None:
        """`control` says that viewers may give orders."""
        self._source = source
        self._host, self._port = address
        self._control = control
        self._secret = secrets.token_bytes(tokens.SECRET_BYTES)
        self._tokens = OneTimeTokens(self._secret)
        self._sessions = Sessions(source.session_key)
        self._guard = RequestGuard(() if is_loopback(self._host) else {socket.gethostname(), socket.getfqdn()})
        self._files = page_files()
        self.hub = DashboardHub(self._gather, source.now, secrets.token_hex(8))
        self._http = web.Server(self._answer, access_log=None, logger=quiet_logger(log, self._note_broken))
        self._listening: asyncio.Server | None = None
        self._streaming: set[Any] = set()
        """The connections that stream events."""

    @property
    def address(self) -> tuple[str, int]:
        """The address (host, port) of the dashboard."""
        return self._host, self._port

    @property
    def url(self) -> str:
        """The address as a browser takes it. For all addresses of the machine, that of this machine itself."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._host, self._host)
        return f"http://{_shown(host, self._port)}/"

    async def open(self) -> None:
        """Listen, and write the file for `kadcrawl web`. Raises StartError."""
        try:
            self._listening = await self._listen()
        except (OSError, OverflowError) as error:
            raise StartError(
                f"cannot listen for --web on {_shown(self._host, self._port)}: {error}; choose another: --web HOST:PORT"
            ) from None
        self._port = self._listening.sockets[0].getsockname()[1]
        log.info("web.listening at=%s control=%s", _shown(self._host, self._port), self._control)
        if not is_loopback(self._host):
            log.warning("web.exposed at=%s", _shown(self._host, self._port))
        secret = {"url": self.url, "secret": self._secret.hex()}
        try:
            write_secret(self._file, json.dumps(secret).encode() + b"\n")
        except StartError:
            self._listening.close()
            raise

    async def close(self) -> None:
        """Listen no more, and end all streams."""
        with suppress(OSError):
            self._file.unlink()
        self.hub.stop()
        if self._listening is not None:
            self._listening.close()
        await self._http.shutdown(0.2)

    # --- inside ----------------------------------------------------------------------------------------------------

    @property
    def _file(self) -> Path:
        return self._source.data / DASHBOARD

    async def _listen(self) -> asyncio.Server:
        try:
            return await listen(self._protocol, self._host, self._port)
        except OSError as error:
            # Nobody asked for the default port by its number, and another dashboard may have it.
            if error.errno != errno.EADDRINUSE or self._port != WEB_PORT_DEFAULT:
                raise
            return await listen(self._protocol, self._host, 0)

    def _protocol(self) -> asyncio.Protocol:
        connections = self._http.connections
        if len(connections) >= CONNECTIONS_MAX:
            next((one for one in connections if one not in self._streaming), connections[0]).force_close()
        return self._http()

    async def _gather(self) -> dict[str, Any]:
        return await self._source.gather() | {"control": self._control}

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        asked_by = AskedBy(*(request.headers.get(name) for name in ("Host", "Origin", "Sec-Fetch-Site")))
        is_page = request.path == "/" or request.path.startswith("/assets/")
        refused = self._guard.why_refused(request.method, asked_by, has_data=not is_page)
        if refused is not None:
            return _told({"error": refused.why}, refused.status)
        if is_page:
            return self._page(request)
        if request.path == "/session" and request.method == "POST":
            return await self._begin_session(request)
        cookie = request.cookies.get(self._cookie_name)
        if cookie is None or not self._sessions.is_good(cookie, self._source.now()):
            return _told(
                {"error": "no session: `kadcrawl web` prints an address that begins one"}, HTTPStatus.UNAUTHORIZED
            )
        match request.method, request.path:
            case "GET", "/session":
                return _told(self._rights(cookie))
            case "GET", "/events":
                return await self._events(request, cookie)
            case "GET", "/api/url" | "/api/check":
                return await self._about_url(request)
            case "POST", "/api/orders":
                return await self._order(request, cookie)
            case _:
                return _told({"error": "there is nothing here"}, HTTPStatus.NOT_FOUND)

    def _page(self, request: web.BaseRequest) -> web.Response:
        name = "index.html" if request.path == "/" else request.path.removeprefix("/assets/")
        file = self._files.get(name)
        if file is None or request.method == "POST":
            return _told({"error": "there is nothing here"}, HTTPStatus.NOT_FOUND)
        headers = SECURE_HEADERS | {"Cache-Control": "no-cache", "ETag": file.etag}
        if request.headers.get("If-None-Match") == file.etag:
            return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
        return web.Response(body=file.body, headers=headers | {"Content-Type": file.media_type})

    async def _begin_session(self, request: web.BaseRequest) -> web.Response:
        said = await _body(request)
        token = said.get("token") if said is not None else None
        now = self._source.now()
        if not isinstance(token, str) or not self._tokens.spend(token, now):
            log.warning("web.token_refused from=%s", request.remote)
            return _told(
                {"error": "this token is spent, too old, or not of this peer: run `kadcrawl web` again"},
                HTTPStatus.UNAUTHORIZED,
            )
        cookie = self._sessions.begin(now, secrets.token_bytes(sessions.NONCE_BYTES))
        log.info("web.session_begun from=%s", request.remote)
        response = _told(self._rights(cookie))
        response.set_cookie(
            self._cookie_name, cookie, max_age=sessions.SESSION_S, path="/", httponly=True, samesite="Strict"
        )
        return response

    @property
    def _cookie_name(self) -> str:
        """The name of the cookie. A browser sends cookies to all ports of a host, so each dashboard has its own."""
        return f"kadcrawl_session_{self._port}"

    def _rights(self, cookie: str) -> dict[str, Any]:
        return {"control": self._control, "header": self._sessions.header(cookie)}

    async def _events(self, request: web.BaseRequest, cookie: str) -> web.StreamResponse:
        if self.hub.viewers >= VIEWERS_MAX:
            why = f"{VIEWERS_MAX} pages look at this peer already: close one, or use the dashboard of another peer"
            return _told({"error": why}, HTTPStatus.SERVICE_UNAVAILABLE)
        headers = SECURE_HEADERS | {"Content-Type": "text/event-stream"}
        response = web.StreamResponse(headers=headers)
        self._streaming.add(request.protocol)
        try:
            await stream(request, response, self.hub, is_allowed=self._lasts(cookie))
        finally:
            self._streaming.discard(request.protocol)
        return response

    async def _order(self, request: web.BaseRequest, cookie: str) -> web.Response:
        if not self._sessions.is_header(cookie, request.headers.get(HEADER)):
            return _told({"error": f"an order carries the header {HEADER} of its session"}, HTTPStatus.FORBIDDEN)
        if not self._control:
            why = "this dashboard only shows: start the peer with --web-control to steer from it"
            return _told({"error": why}, HTTPStatus.FORBIDDEN)
        if (told := await _body(request)) is None:
            return _told({"error": "an order is a JSON object"}, HTTPStatus.BAD_REQUEST)

        async def said() -> dict[str, Any]:
            return {"said": await self._source.order(told)}

        return await _outcome(said())

    async def _about_url(self, request: web.BaseRequest) -> web.Response:
        url = request.query.get("url", "")
        if not 0 < len(url) <= URL_CHARS_MAX:
            return _told(
                {"error": f"give a URL of at most {URL_CHARS_MAX} characters: ?url=..."}, HTTPStatus.BAD_REQUEST
            )

        async def check() -> dict[str, Any]:
            return self._source.check(url)

        return await _outcome(self._source.find(url) if request.path == "/api/url" else check())

    def _lasts(self, cookie: str) -> Callable[[], bool]:
        """Return a function that tells whether a session is still good."""
        return lambda: self._sessions.is_good(cookie, self._source.now())

    def _note_broken(self, why: str) -> None:
        log.debug("web.broken_http why=%s", why)


async def _outcome(asking: Awaitable[dict[str, Any]]) -> web.Response:
    """Return the answer of the peer, or why there is none."""
    try:
        return _told(await asking)
    except ConfigError as error:
        return _told({"error": str(error)}, HTTPStatus.BAD_REQUEST)
    except KadcrawlError as error:
        return _told({"error": str(error)}, HTTPStatus.SERVICE_UNAVAILABLE)


async def _body(request: web.BaseRequest) -> dict[str, Any] | None:
    """Return the JSON object in the body of a request, or None for anything else."""
    data = b""
    while not request.content.at_eof():
        data += await request.content.read(BODY_BYTES_MAX)
        if len(data) > BODY_BYTES_MAX:
            return None
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _told(what: dict[str, Any], status: HTTPStatus = HTTPStatus.OK) -> web.Response:
    return web.json_response(what, status=status, headers=SECURE_HEADERS)


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
