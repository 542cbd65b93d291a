"""A server on loopback that answers step by step as a test says, and a fetcher that may ask it."""

import asyncio
import socket
import struct
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from aiohttp.abc import AbstractResolver

from kadcrawl.crawl.fetch.address_guard import Guard
from kadcrawl.crawl.fetch.fetcher import Fetcher, user_agent
from kadcrawl.crawl.fetch.late_resolver import LateResolver
from kadcrawl.crawl.fetch.poison_pages import PoisonPages
from kadcrawl.settings.limits import Limits

LIMITS = Limits(
    # Also a machine that is busy elsewhere answers within these, and the loop of the tests passes the waiting quickly.
    connect_timeout_s=5.0,
    fetch_timeout_s=15.0,
    idle_timeout_s=5.0,
    rate_grace_s=7.0,
    rate_min_bytes_s=1_000,
    header_bytes_max=4_000,
    body_bytes_max=10_000,
    inflated_bytes_max=20_000,
)
DRIP_S = 0.2
"""Seconds between two drips: so few that the server never looks silent."""
LOOPBACK = Guard(["127.0.0.0/8"])
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
GZIPPED = OK + b"Content-Encoding: gzip\r\n\r\n"
RESET = "reset the connection"
SEEN = "wait until the client has read of the body"
HANG = "wait until the test is over"
DRIP = "send a byte now and then"
FLOOD = "send without end"
KEEP = "read another request on this connection"
Step = bytes | str


class ScriptedSite:
    """Serve each request with the steps that `answers` lists for its path."""

    def __init__(self) -> None:
        self.answers: dict[str, Sequence[Step]] = {}
        self.requests: dict[str, list[bytes]] = defaultdict(list)
        self.connections = 0
        self.port = 0
        self.seen = asyncio.Event()
        self._over = asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["ScriptedSite"]:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            self._over.set()
            await asyncio.gather(*self._running)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        self.connections += 1
        try:
            keep = True
            while keep:
                request = await reader.readuntil(b"\r\n\r\n")
                path = request.split()[1].decode()
                self.requests[path].append(request)
                keep = await self._answer(self.answers[path], writer)
        except (OSError, EOFError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()
            self._running.discard(task)

    async def _answer(self, steps: Sequence[Step], writer: asyncio.StreamWriter) -> bool:
        """Take the steps. Return whether to read another request."""
        for step in steps:
            if isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
            elif step == RESET:
                raw: socket.socket = writer.get_extra_info("socket")
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()
            elif step == SEEN:
                await self.seen.wait()
            elif step == HANG:
                await self._over.wait()
            elif step in (DRIP, FLOOD):
                while not self._over.is_set():
                    writer.write(b"x" if step == DRIP else b"x" * 65_536)
                    await writer.drain()
                    await asyncio.sleep(DRIP_S if step == DRIP else 0)
        return KEEP in steps


@asynccontextmanager
async def fetching(
    guard: Guard = LOOPBACK,
    limits: Limits = LIMITS,
    resolver: Callable[[], AbstractResolver] = LateResolver,
    deadly: PoisonPages | None = None,
) -> AsyncIterator[Fetcher]:
    """Give a fetcher that has started, and close it at the end."""
    agent = user_agent("0.1", "https://example.com/bot")
    fetcher = Fetcher(limits, guard, agent, time.time, resolver, poison_pages=deadly)
    await fetcher.start()
    try:
        yield fetcher
    finally:
        await fetcher.close()


def length(count: int) -> bytes:
    """Return the head of an answer whose body has so many bytes."""
    return OK + b"Content-Length: %d\r\n\r\n" % count
