"""The asking end of the link: `ask` sends one request to one peer over a kept connection.

It owns the connections to other peers. In a swarm with a key they are encrypted, and the peer that answers must be the
peer that the contact names. Every request has a deadline. Silence, a broken connection, a malformed or unexpected
answer all become RemoteError, so that a caller handles one exception.

Tests: tests/link/test_link.py, tests/link/test_client_connection.py
"""

import asyncio
import logging
import ssl
from functools import partial
from typing import TypeVar

import aiohttp
from yarl import URL

from kadcrawl.errors import RemoteError
from kadcrawl.link.client_connection import CLOSE_S, NO_ANSWER, NUMBER_BYTES, BrokenError, ClientConnection, UnsentError
from kadcrawl.link.handler import LINK_PATH
from kadcrawl.link.peer_score import Misbehavior, PeerScore, Source
from kadcrawl.link.process_links import InsideConnection, ProcessLinks
from kadcrawl.link.wire.clock_messages import LeaseClocks
from kadcrawl.link.wire.codec import MalformedError, pack, unpack
from kadcrawl.link.wire.leaf_messages import is_leaf
from kadcrawl.link.wire.messages import Contact, DatedOffer, Message, Offer, Refused, StreamSeeds
from kadcrawl.members.certificates import peer_id_of
from kadcrawl.members.credentials import Credentials

log = logging.getLogger(__name__)

REFUSED_PREFIX = "does not let us in"
"""The first words of an error if the other end does not accept our key."""
NO_KEY = (
    "it goes by none, as a peer that was begun with --insecure does, which others join with --insecure, or it is no "
    "peer"
)
ANOTHER_KEY = "it goes by another swarm's key, or its swarm's was changed (kadcrawl rekey), or it is no peer"

ENDING = "is asked nothing more, as this peer ends"

Expected = TypeVar("Expected", bound=Message)
Address = tuple[str, int]
Endpoint = tuple[str, int, bytes | None]
"""Host, port, and the ID of the peer that must be there, if it is known and can be proven."""


class LinkClient:
    """Sends requests to other peers. Keeps one connection to each between requests."""

    def __init__(
        self,
        message_bytes_max: int,
        credentials: Credentials | None = None,
        peer_score: PeerScore | None = None,
        process_links: ProcessLinks | None = None,
    ) -> None:
        """Connections are plain without `credentials`. `peer_score` knows the banned peers.

        Peers that `process_links` knows are asked without a socket.
        """
        self._process_links = process_links
        self.message_bytes_max = message_bytes_max
        self.asked = 0
        self.dialed = 0
        self._credentials = credentials
        self._peer_score = peer_score or PeerScore()
        self._peer_score.on_banned.append(self._disconnect_from)
        self._session: aiohttp.ClientSession | None = None
        """Made with the first connection: a peer whose whole swarm is in its process dials no other."""
        self._is_open = False
        self._is_closed = False
        self._connections: dict[Endpoint, ClientConnection] = {}
        self._inside: dict[Endpoint, InsideConnection] = {}
        """The peers of this process that are being asked."""
        self._tasks: set[asyncio.Task[None]] = set()
        """The tasks of the connections, also of those that are being closed."""

    @property
    def has_key(self) -> bool:
        """The client is a member of a swarm with a key."""
        return self._credentials is not None

    async def open(self) -> None:
        """Get ready to dial. The connections belong to the running loop."""
        self._is_open = True

    async def close(self) -> None:
        """End all connections, and make no other. Waiting and later callers get a RemoteError."""
        self._is_closed = True
        for connection in self._all():
            connection.drop(ENDING)
        try:
            if self._tasks:
                await asyncio.wait(self._tasks)
        finally:  # Also if the caller is cancelled in its wait.
            self._is_open = False
            session, self._session = self._session, None
            if session is not None:
                await session.close()

    def disconnect(self) -> None:
        """End all connections, as after a change of keys. Later requests dial by the new keys."""
        for connection in list(self._connections.values()):
            connection.drop("is asked by other keys from now on")

    async def ask(
        self, to: Contact | Address, message: Message, expected: type[Expected], deadline_s: float
    ) -> Expected:
        """Send `message` to a peer, or to any peer at an address (host, port). Return its answer, of type `expected`.

        Raises RemoteError when there is no such answer within `deadline_s` seconds, or when it is Refused.
        """
        self.asked += 1
        host, port = to.address if isinstance(to, Contact) else to
        proven = to.id if isinstance(to, Contact) and self._credentials is not None else None
        place = (host, port, proven)
        name, shown = type(message).__name__, f"{host}:{port}"
        asked_at = asyncio.get_running_loop().time()
        if proven is not None and self._peer_score.banned_until(proven, asked_at) is not None:
            raise RemoteError(shown, "is banned, as it has misbehaved too often", name)
        if self._is_closed:
            raise RemoteError(shown, ENDING, name)
        question = pack(message)
        connection = self._inside_connection(place) or self._connection(place)
        try:
            async with asyncio.timeout(deadline_s):
                try:
                    answer = await _ask(connection, message, question)
                except UnsentError:
                    connection = self._connection(place)
                    answer = await _ask(connection, message, question)
        except TimeoutError:
            connection.silent_since(asked_at)
            raise RemoteError(shown, f"{NO_ANSWER} within {deadline_s:g} s", name) from None
        except BrokenError as error:
            raise RemoteError(shown, str(error), name) from None
        if not answer:
            raise RemoteError(shown, "rejects the question as malformed", name)
        try:
            reply = unpack(answer, expected | Refused, self.message_bytes_max)
        except MalformedError as error:
            now = asyncio.get_running_loop().time()
            if proven is not None and self._peer_score.note(proven, Misbehavior.MALFORMED, now):
                log.warning("link.banned from=%s@%s why=it has answered wrongly too often", proven.hex()[:8], host)
            raise RemoteError(shown, f"malformed answer: {error}", name) from None
        if isinstance(reply, Refused):
            raise RemoteError(shown, reply.why)
        answered: Expected = reply
        return answered

    def _disconnect_from(self, banned: Source) -> None:
        for connection in self._all(banned):
            connection.drop("is banned, as it has misbehaved too often")

    def _all(self, peer: Source | None = None) -> list[ClientConnection | InsideConnection]:
        """Return all connections, or those to one peer."""
        dialed = [one for place, one in self._connections.items() if peer in (None, place[2])]
        inside = [one for place, one in self._inside.items() if peer in (None, place[2])]
        return [*dialed, *inside]

    def _inside_connection(self, place: Endpoint) -> InsideConnection | None:
        """Return the connection to a peer of this process, or None if there is no such peer."""
        connection = self._inside.get(place)
        if connection is None and self._process_links is not None:
            end = self._process_links.at(place[:2])
            if end is not None:
                connection = InsideConnection(end, place[2], self._credentials, partial(self._forget_inside, place))
                self._inside[place] = connection
        return connection

    def _forget_inside(self, place: Endpoint, connection: InsideConnection) -> None:
        if self._inside.get(place) is connection:
            del self._inside[place]

    def _connection(self, place: Endpoint) -> ClientConnection:
        """Return the connection to a peer. Dial if there is none. Raises BrokenError if this client is closed."""
        connection = self._connections.get(place)
        if connection is None:
            if self._is_closed:
                raise BrokenError(ENDING)
            connection = ClientConnection(partial(self._dial, place), partial(self._forget, place))
            self._connections[place] = connection
            self.dialed += 1
            assert connection.task is not None, "it has just begun"
            self._tasks.add(connection.task)
            connection.task.add_done_callback(self._tasks.discard)
        return connection

    def _forget(self, place: Endpoint, connection: ClientConnection) -> None:
        if self._connections.get(place) is connection:
            del self._connections[place]

    async def _dial(self, place: Endpoint) -> aiohttp.ClientWebSocketResponse[bool]:
        if self._credentials is None:
            return await self._dial_by(place[:2], None, None)
        refused: aiohttp.ClientConnectorError | None = None
        for key, context in self._credentials.to_dial:
            try:
                socket = await self._dial_by(place[:2], context, key.name)
            except aiohttp.ClientConnectorError as error:
                # A peer of another key ends the connection, with or without an alert. Then the next key is tried.
                if not isinstance(error, aiohttp.ClientSSLError) and not isinstance(
                    error.os_error, ConnectionResetError
                ):
                    raise
                refused = error
                continue
            try:
                tls = socket.get_extra_info("ssl_object")
                there = None if tls is None else peer_id_of(tls)
                if place[2] is None and there == self._credentials.peer_key.id:
                    raise BrokenError("is this very peer")
                if place[2] not in (None, there):
                    raise BrokenError("is another peer than the one that was to be asked")
            except BaseException:
                await socket.close()
                raise
            return socket
        tried = " and ".join(key.description for key, _ in self._credentials.to_dial)
        raise BrokenError(f"{REFUSED_PREFIX} by {tried}: {_other(refused)}") from refused

    async def _dial_by(
        self, address: Address, tls: ssl.SSLContext | None, name: str | None
    ) -> aiohttp.ClientWebSocketResponse[bool]:
        assert self._is_open, "open() before ask()"
        if self._session is None:
            self._session = _new_session()
        host, port = address
        return await self._session.ws_connect(
            URL.build(scheme="http" if tls is None else "https", host=host, port=port, path=LINK_PATH),
            ssl=True if tls is None else tls,
            server_hostname=name,
            timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_S),
            autoclose=False,
            autoping=False,
            compress=0,
            max_msg_size=self.message_bytes_max + NUMBER_BYTES + 1,  # aiohttp takes what is below it.
            decode_text=False,
        )


def _new_session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, use_dns_cache=False),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
        skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
        middlewares=(_only_peers,),
    )


def _other(refused: aiohttp.ClientConnectorError | None) -> str:
    """Return the likely reason why the other end refused us."""
    if refused is not None and "WRONG_VERSION_NUMBER" in str(refused.os_error):
        return NO_KEY
    return ANOTHER_KEY


async def _ask(connection: ClientConnection | InsideConnection, message: Message, question: bytes) -> bytes:
    is_of_leaf = isinstance(message, LeaseClocks) and is_leaf(message.holder)
    if is_of_leaf or isinstance(message, Offer | DatedOffer | StreamSeeds):
        # It waits at the other end until copies of its links are safe elsewhere, or until the turn of the leaf comes.
        return await connection.ask_patiently(question)
    return await connection.ask(question)


async def _only_peers(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Raise BrokenError unless the answer to dialing is a WebSocket. A redirect could send requests anywhere."""
    response = await handler(request)
    if response.status != 101:
        response.close()
        raise BrokenError(f"is not a peer of this version (HTTP {response.status})")
    return response
