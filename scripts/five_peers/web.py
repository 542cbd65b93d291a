"""A web on loopback that answers each asker only as fast as it is meant to crawl.

An asker is known by its address. Its *line* serves one page after the other: each takes as long as its crawl rate says,
or its bandwidth if that is longer, and the bytes come at its bandwidth. Were it never idle it would get exactly its
rate; so how long all pages take at least is known. robots.txt costs nothing. Shares no code with kadcrawl.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from aiohttp import web

CHUNKS: Final = 4
"""Parts in which a page is sent."""


@dataclass(slots=True, kw_only=True)
class AccessLine:
    """The line between one asker and the web."""

    pages_s: float
    """Pages a second."""
    bytes_s: float
    """Bandwidth, bytes a second."""
    free_at: float = 0.0
    """Second of the loop."""
    pages: int = 0
    """Pages answered so far, ..."""
    last_at: float = 0.0
    """... the last one at this second."""

    def page_s(self, size: int) -> float:
        """Return how long a page of so many bytes takes."""
        return max(1 / self.pages_s, size / self.bytes_s)


@dataclass(slots=True)
class RequestLog:
    """The requests since the beginning."""

    first_at: float | None = None
    """Second of the loop of the first page asked for."""
    urls: Counter[str] = field(default_factory=Counter)
    """The number of answers for each page."""
    strangers: int = 0
    """Requests from an address without a line."""


class CappedWeb:
    """Async context manager: serves so many sites as `open` is told of, each with `pages` pages of `size` bytes."""

    def __init__(self, lines: dict[str, AccessLine], pages: int, size: int) -> None:
        """`lines` by the address of the asker."""
        self.lines = lines
        self.seen = RequestLog()
        self.port = 0
        self._pages = pages
        self._size = size
        self._runner = web.ServerRunner(web.Server(self._answer, access_log=None), shutdown_timeout=1)
        self._resources = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        self._resources.push_async_callback(self._runner.cleanup)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._resources.aclose()

    async def open(self, address: str) -> None:
        """Open a site at a loopback address, all at one port. Raises OSError if that cannot be."""
        listener = socket.socket()
        try:
            listener.bind((address, self.port))
        except OSError:
            listener.close()
            raise
        self.port = listener.getsockname()[1]
        await web.SockSite(self._runner, listener).start()

    def urls(self, address: str) -> Sequence[str]:
        """Return all pages of a site."""
        return [f"http://{address}:{self.port}/{number}" for number in range(self._pages)]

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        number = request.path.removeprefix("/")
        if not number.isdecimal() or int(number) >= self._pages:
            return web.Response(status=404)
        line = self.lines.get(request.remote or "")
        if line is None:
            self.seen.strangers += 1
            return web.Response(status=403)
        time = asyncio.get_running_loop().time
        if self.seen.first_at is None:
            self.seen.first_at = time()
        done_at = line.free_at = max(time(), line.free_at) + line.page_s(self._size)
        body = self._body(int(number))
        begins_at = done_at - len(body) / line.bytes_s
        response = web.StreamResponse(headers={"Content-Type": "text/html"})
        response.content_length = len(body)
        part = -(-len(body) // CHUNKS)
        for index in range(CHUNKS):
            await asyncio.sleep(begins_at + (done_at - begins_at) * (index + 1) / CHUNKS - time())
            if index == 0:
                await response.prepare(request)
            await response.write(body[index * part : (index + 1) * part])
        await response.write_eof()
        line.pages += 1
        line.last_at = time()
        self.seen.urls[f"http://{request.host}{request.path}"] += 1
        return response

    def _body(self, number: int) -> bytes:
        head = f'<!doctype html><title>{number}</title><a href="/{(number + 1) % self._pages}">next</a><p>'
        return head.encode().ljust(self._size, b".")
