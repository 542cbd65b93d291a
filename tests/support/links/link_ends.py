"""The two ends of a link for tests, and ends that are not ours."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp

from kadcrawl.link.client import LinkClient
from kadcrawl.link.handler import LINK_PATH
from kadcrawl.link.server import LinkServer
from kadcrawl.link.wire.messages import Hello, Message, Ok

BYTES_MAX = 10_000
LOCAL = "127.0.0.1"

Address = tuple[str, int]


@asynccontextmanager
async def link(
    answer: Callable[[Hello], Message] | None = None, slow: Callable[[Hello], Awaitable[Message]] | None = None
) -> AsyncIterator[tuple[LinkServer, LinkClient, Address]]:
    """Give both ends. `answer` answers Hello at once, `slow` slowly."""
    server, client = LinkServer(BYTES_MAX), LinkClient(BYTES_MAX)

    async def handler(hello: Hello) -> Message:
        return await slow(hello) if slow is not None else answer(hello) if answer is not None else Ok()

    server.handle(Hello, handler)
    port = await server.listen(LOCAL, 0)
    await client.open()
    try:
        yield server, client, (LOCAL, port)
    finally:
        await client.close()
        await server.close()


@asynccontextmanager
async def serving(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[tuple[LinkClient, Address]]:
    """Give a client and the address of a server that is not ours."""
    server, client = await asyncio.start_server(serve, LOCAL, 0), LinkClient(BYTES_MAX)
    await client.open()
    try:
        yield client, server.sockets[0].getsockname()
    finally:
        await client.close()
        server.close()
        await server.wait_closed()


class Gate:
    """A handler that holds every question until it is opened."""

    def __init__(self) -> None:
        self.inside = 0
        self.most = 0
        self._open = asyncio.Event()

    def open(self) -> None:
        self._open.set()

    async def __call__(self, _: Message) -> Message:
        self.inside += 1
        self.most = max(self.most, self.inside)
        await self._open.wait()
        self.inside -= 1
        return Ok()


@asynccontextmanager
async def frames(address: Address) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """Give a WebSocket to say anything by."""
    host, port = address
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"http://{host}:{port}{LINK_PATH}", autoclose=False) as socket,
    ):
        yield socket


def server_frame(data: bytes, opcode: int = 2) -> bytes:
    assert len(data) < 126, "or the header is longer"
    return bytes([0x80 | opcode, len(data)]) + data


async def shake_hands(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Accept a WebSocket as RFC 6455 4.2.2 has it."""
    head = await reader.readuntil(b"\r\n\r\n")
    key = next(line.split()[1] for line in head.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key"))
    accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    writer.write(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
    )


UPGRADE = (
    f"GET {LINK_PATH} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
).encode()
