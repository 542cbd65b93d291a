"""The asking end of the link: `ask` one peer one question over a kept connection.

Owns the connections to other peers. Every question has a deadline; silence, a broken connection, a malformed or
unexpected answer all become RemoteError, so that a caller has one thing to handle.
"""

import asyncio
from functools import partial
from typing import TypeVar

import aiohttp
from yarl import URL

from kadcrawl.errors import RemoteError
from kadcrawl.link.codec import MalformedError, pack, unpack
from kadcrawl.link.connection import CLOSE_S, NUMBER_BYTES, BrokenError, Connection, UnsentError
from kadcrawl.link.messages import DatedOffer, Message, Offer, Refused, Reply
from kadcrawl.link.server import PATH

Expected = TypeVar("Expected", bound=Message)
Address = tuple[str, int]


class LinkClient:
    """Asks other peers; keeps one connection to each between questions."""

    def __init__(self, message_bytes_max: int) -> None:
        self.message_bytes_max = message_bytes_max
        self.asked = 0
        self._session: aiohttp.ClientSession | None = None
        self._connections: dict[Address, Connection] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        """Of the connections, those that are being closed included."""

    async def open(self) -> None:
        """Make ready to dial; the connections belong to the running loop."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, use_dns_cache=False),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
            middlewares=(_only_peers,),
        )

    async def close(self) -> None:
        """End all connections; whoever waits for an answer gets a RemoteError."""
        for connection in list(self._connections.values()):
            connection.drop("is asked nothing more, as this peer ends")
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._session is not None:
            await self._session.close()
        self._session = None

    async def ask(self, address: Address, message: Message, expected: type[Expected], deadline_s: float) -> Expected:
        """Send `message` to the peer at `address` (host, port) and return its answer, of type `expected`.

        Raises RemoteError when there is no such answer within `deadline_s` seconds, or when it is Refused.
        """
        self.asked += 1
        name, shown = type(message).__name__, f"{address[0]}:{address[1]}"
        question = pack(message)
        connection = self._connection(address)
        asked_at = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(deadline_s):
                try:
                    answer = await _ask(connection, message, question)
                except UnsentError:
                    connection = self._connection(address)
                    answer = await _ask(connection, message, question)
        except TimeoutError:
            connection.silent_since(asked_at)
            raise RemoteError(shown, f"no answer to {name} within {deadline_s:g} s") from None
        except BrokenError as error:
            raise RemoteError(shown, f"{error} [{name}]") from None
        if not answer:
            raise RemoteError(shown, f"calls this {name} malformed")
        try:
            reply = unpack(answer, Reply, self.message_bytes_max)
        except MalformedError as error:
            raise RemoteError(shown, f"malformed answer to {name}: {error}") from None
        if isinstance(reply, Refused):
            raise RemoteError(shown, reply.why)
        if not isinstance(reply, expected):
            raise RemoteError(shown, f"answered {name} by {type(reply).__name__}")
        return reply

    def _connection(self, address: Address) -> Connection:
        """Return the connection to a peer, dialling if there is none."""
        connection = self._connections.get(address)
        if connection is None:
            connection = Connection(partial(self._dial, address), partial(self._forget, address))
            self._connections[address] = connection
            self._tasks.add(connection.task)
            connection.task.add_done_callback(self._tasks.discard)
        return connection

    def _forget(self, address: Address, connection: Connection) -> None:
        if self._connections.get(address) is connection:
            del self._connections[address]

    async def _dial(self, address: Address) -> aiohttp.ClientWebSocketResponse[bool]:
        assert self._session is not None, "open() before ask()"
        host, port = address
        return await self._session.ws_connect(
            URL.build(scheme="http", host=host, port=port, path=PATH),
            timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_S),
            autoclose=False,
            compress=0,
            max_msg_size=self.message_bytes_max + NUMBER_BYTES + 1,  # aiohttp takes what is below it.
            decode_text=False,
        )


async def _ask(connection: Connection, message: Message, question: bytes) -> bytes:
    if isinstance(
        message, Offer | DatedOffer
    ):  # It waits at the other end until copies of its links are safe elsewhere.
        return await connection.ask_patiently(question)
    return await connection.ask(question)


async def _only_peers(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Let nothing but a WebSocket be an answer to dialling; a redirect could send questions anywhere."""
    response = await handler(request)
    if response.status != 101:
        response.close()
        raise BrokenError(f"is not a peer of this version (HTTP {response.status})")
    return response
