"""A browser for tests of the dashboard: it buys a session with a token, and reads the events."""

import json
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from kadcrawl.cli.commands.web import read_dashboard
from kadcrawl.system.clock import wall
from kadcrawl.system.file_names import DASHBOARD
from kadcrawl.web.merge_patch import patched
from kadcrawl.web.tokens import NONCE_BYTES, make_token

ANY_PORT = ("127.0.0.1", 0)


class Said(NamedTuple):
    """One answer of the dashboard."""

    status: int
    body: Any
    headers: Mapping[str, str]


class Event(NamedTuple):
    """One server-sent event."""

    id: str
    name: str
    data: dict[str, Any]


class Viewer:
    """One browser, with its cookies."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url = url.rstrip("/")
        self._session = session
        self.order_header = ""

    @property
    def cookies(self) -> dict[str, str]:
        """The cookies that the dashboard has set."""
        return {cookie.key: cookie.value for cookie in self._session.cookie_jar}

    async def ask(
        self, path: str, body: Any = None, *, method: str | None = None, headers: Mapping[str, str] | None = None
    ) -> Said:
        """Ask as a page of the dashboard does. With a body it is a POST."""
        method = method or ("GET" if body is None else "POST")
        sent = ({"Origin": self.url} if method == "POST" else {}) | dict(headers or {})
        data = body if isinstance(body, bytes | None) else json.dumps(body)
        async with self._session.request(method, self.url + path, data=data, headers=sent) as response:
            text = await response.text()
            is_json = response.content_type == "application/json"
            return Said(response.status, json.loads(text) if is_json else text, response.headers)

    async def begin(self, token: str) -> Said:
        """Buy a session."""
        said = await self.ask("/session", {"token": token})
        if said.status == 200:
            self.order_header = said.body["header"]
        return said

    async def order(self, order: Any, headers: Mapping[str, str] | None = None) -> Said:
        """Give an order, as a page of the dashboard does."""
        sent = {"X-Kadcrawl-Token": self.order_header} | dict(headers or {})
        return await self.ask("/api/orders", order, headers=sent)

    @asynccontextmanager
    async def events(self, last_id: str | None = None) -> AsyncIterator[AsyncIterator[Event]]:
        """Read the events, from the one after `last_id`."""
        headers = {} if last_id is None else {"Last-Event-ID": last_id}
        async with self._session.get(f"{self.url}/events", headers=headers) as response:
            assert 200 == response.status, await response.text()
            yield _events(response)


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[Event]:
    fields: dict[str, str] = {}
    while line := (await response.content.readline()).decode():
        name, _, value = line.rstrip("\n").partition(": ")
        if name:
            fields[name] = value
        elif fields:
            yield Event(fields["id"], fields["event"], json.loads(fields["data"]))
            fields = {}


async def document_when(
    events: AsyncIterator[Event], is_it: Any, document: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the document once it is as wanted, as a page keeps it. `document` is that of earlier events."""
    document = document or {}
    async for event in events:
        document = event.data if event.name == "state" else patched(document, event.data)
        if is_it(document):
            return document
    raise AssertionError("the events ended")


def token_of(data: Path) -> str:
    """Return a token for the dashboard of a directory, as `kadcrawl web` makes it."""
    return make_token(read_dashboard(data / DASHBOARD).secret, wall(), secrets.token_bytes(NONCE_BYTES))


@asynccontextmanager
async def viewer(data: Path, *, is_in: bool = True) -> AsyncIterator[Viewer]:
    """Give a viewer of the dashboard of this directory, with a session if `is_in`."""
    jar = aiohttp.CookieJar(unsafe=True)  # For cookies of IP addresses, as browsers keep them.
    timeout = aiohttp.ClientTimeout(total=None, sock_read=20)
    connector = aiohttp.TCPConnector(force_close=True)
    async with aiohttp.ClientSession(
        cookie_jar=jar, timeout=timeout, connector=connector, read_bufsize=2**22
    ) as session:
        one = Viewer(read_dashboard(data / DASHBOARD).url, session)
        if is_in:
            assert 200 == (await one.begin(token_of(data))).status
        yield one
