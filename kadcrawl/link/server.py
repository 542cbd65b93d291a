"""The answering end of the link: a WebSocket for each asking peer, one message out for one message in.

It owns the listening TCP socket. Each type of request has one handler, registered by the room that understands it. A
handler may answer Refused; any exception beyond RemoteError is our own bug: logged, and answered by Refused. A frame
whose bytes are no message of this wire is answered by its bare number, and a frame that is no request ends the
connection. Both are counted, and never reach a handler.

Tests: tests/link/test_link.py, tests/link/test_non_members.py
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextvars import copy_context
from functools import partial
from typing import Any, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from aiohttp import WSCloseCode

# The server alone, without the package `aiohttp.web`: an application, its routes and static files take 1.5 MB.
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse
from aiohttp.web_server import Server
from aiohttp.web_ws import WebSocketResponse

from kadcrawl.errors import DiskFullError, KadcrawlError, StorageError
from kadcrawl.link.acceptor import BACKLOG, Acceptor
from kadcrawl.link.admission_control import AdmissionControl, PeerQuota
from kadcrawl.link.client_connection import CLOSE_S, NUMBER_BYTES, BrokenError
from kadcrawl.link.handler import LINK_PATH, Handler
from kadcrawl.link.http_log import quiet_logger
from kadcrawl.link.peer_score import LogLimiter, Misbehavior, MisbehaviorError, PeerScore, Source, left_out_note
from kadcrawl.link.process_links import ENDED, OTHER_KEY, Address, ProcessLinks
from kadcrawl.link.sender_check import claimed_sender
from kadcrawl.link.server_connection import ServerConnection
from kadcrawl.link.wire.codec import MalformedError, pack, unpack
from kadcrawl.link.wire.messages import Message, Refused, Request
from kadcrawl.members.certificates import peer_id_of
from kadcrawl.members.credentials import Credentials
from kadcrawl.system.listening import listen

CONNECTIONS_PER_PEER_MAX = 8
"""Connections of one peer. A peer needs one, and may have lost some without either end knowing."""
SERVER_CONNECTIONS_MAX = 4_000
"""Connections of all peers, as in a swarm of so many all may ask within a minute. Each takes a file, and up to half a
megabyte. A peer that is disconnected dials again.
"""

ANSWERS_S = 0.25
"""Longest wait of a closing server for the answers under way. Slower answers mostly wait for an event that no longer
comes, such as the opening of a cell."""
INSIDE = "this process"
"""The place of a peer of the same process, in the log."""

log = logging.getLogger(__name__)

Kind = TypeVar("Kind", bound=Message)


class RemotePeer(NamedTuple):
    """The peer at the other end of a connection."""

    remote: str | None
    """The IP address."""
    peer: bytes | None
    """The proven ID, or None without credentials."""

    def __str__(self) -> str:
        return f"{self.peer.hex()[:8]}@{self.remote}" if self.peer is not None else str(self.remote)


class LinkServer:
    """Listens on TCP and answers each request by its handler."""

    def __init__(
        self,
        message_bytes_max: int,
        credentials: Credentials | None = None,
        peer_score: PeerScore | None = None,
        process_links: ProcessLinks | None = None,
    ) -> None:
        """Any client is answered without `credentials`. `peer_score` knows the banned peers.

        The other peers of `process_links` ask without a socket.
        """
        self._process_links = process_links
        self._address: Address | None = None
        self._context = copy_context()
        """The context of this peer's tasks, for handlers that another peer of the process calls."""
        self.message_bytes_max = message_bytes_max
        self._credentials = credentials
        self._peer_score = peer_score or PeerScore()
        self._peer_score.on_banned.append(self._disconnect_banned)
        self.malformed = 0
        self.non_members = 0
        """Connections that did not prove to be a member's."""
        self._lines = LogLimiter()
        self._handlers: dict[type[Message], Handler] = {}
        self._server: Server | None = None
        self._listening: asyncio.Server | None = None
        """The listening socket of a swarm without a key."""
        self._acceptor: Acceptor | None = None
        """The acceptor of a swarm with a key."""
        self._incoming: dict[ServerConnection, RemotePeer] = {}
        """The connections, in order, with the peers at their other ends."""
        self._used: set[asyncio.BaseTransport] = set()
        """The transports of the connections."""
        self._answering: set[asyncio.Task[Any]] = set()
        """Tasks of requests of all connections."""
        self._admission_control: AdmissionControl | None = None
        self._quotas: WeakValueDictionary[bytes, PeerQuota] = WeakValueDictionary()
        """The quota of each peer, for as long as any of its requests is being handled."""

    def register(self, handlers: Mapping[type[Message], Handler]) -> None:
        """Add the handlers of one part of the peer: each answers the requests of its type.

        A type has one handler. A message of a type without a handler is answered by Refused.
        """
        for kind, handler in handlers.items():
            assert kind not in self._handlers, f"{kind.__name__} has a handler already"
            self._handlers[kind] = handler

    def handle(self, kind: type[Kind], handler: Callable[[Kind], Awaitable[Message]]) -> None:
        """Add the handler of one type of request. The type checker compares the two, which `register` cannot."""
        self.register({kind: handler})

    async def listen(self, host: str, port: int) -> int:
        """Begin to answer. Return the port, which the system chose if `port` is 0. Raises OSError."""
        # aiohttp's low-level server: no routes, no middlewares, as there is only one path.
        note = partial(self._log, "http", "a member")
        # A handler is cancelled with its connection: requests read and not begun are dropped.
        server = Server(self._respond, access_log=None, logger=quiet_logger(log, note), handler_cancellation=True)
        self._admission_control = AdmissionControl(self._disconnect_from)
        self._server = server
        try:
            if (credentials := self._credentials) is not None:
                self._acceptor = Acceptor(
                    lambda: credentials.server, server, self._note_non_member, self._used.__contains__
                )
                bound = await self._acceptor.open(host, port)
            else:
                self._listening = await listen(server, host, port, BACKLOG)
                bound = self._listening.sockets[0].getsockname()[1]
        except BaseException:  # Also a cancellation.
            await self.close()
            raise
        self._address = (host, bound)
        if self._process_links is not None:
            self._process_links.add(self._address, self)
        return bound

    async def close(self) -> None:
        """Stop listening, give running handlers a moment to finish, and end all connections."""
        if self._server is None:
            return
        server, self._server = self._server, None
        if self._process_links is not None and self._address is not None:
            self._process_links.remove(self._address)
        if self._listening is not None:
            self._listening.close()
        if self._acceptor is not None:
            await self._acceptor.close()
        if self._answering:
            _, late = await asyncio.wait(self._answering, timeout=ANSWERS_S)
            for task in late:
                task.cancel()
        async with asyncio.TaskGroup() as partings:
            for incoming in self._incoming:
                partings.create_task(incoming.close(WSCloseCode.GOING_AWAY))
        await asyncio.sleep(0)  # Requests that have just come begin, so that the server knows of them.
        server.pre_shutdown()
        await server.shutdown(CLOSE_S)
        if self._answering:
            await asyncio.wait(self._answering, timeout=ANSWERS_S)

    def disconnect(self) -> None:
        """End all connections. Peers dial again, by keys that are valid now."""
        for incoming in self._incoming:
            incoming.disconnect()
        connections = self._server.connections if self._server is not None else []
        for one in connections:  # Also connections without a request yet.
            one.force_close()

    def id_inside(self, asker: Credentials | None) -> bytes | None:
        """Return the ID that this peer proves to another peer of this process. Raises BrokenError unless it lets the
        other peer in."""
        if self._server is None:
            raise BrokenError(ENDED)
        if self._credentials is None:
            if asker is None:
                return None
            raise BrokenError(OTHER_KEY)
        if asker is None or not asker.is_let_in_by(self._credentials):
            raise BrokenError(OTHER_KEY)
        return self._credentials.peer_key.id

    def begin_inside(self, asker: Credentials | None, question: bytes) -> asyncio.Task[bytes]:
        """Return the task that answers a request of another peer of this process, which `id_inside` has let in.

        The request is handled to its end, although the asker may have gone. Raises BrokenError.
        """
        sender = RemotePeer(INSIDE, asker.peer_key.id if asker is not None else None)
        if self._is_banned(sender):
            raise BrokenError("lets this peer in no more, as it has misbehaved too often")
        task: asyncio.Task[bytes] = asyncio.get_running_loop().create_task(
            self._reply(sender, question), name="link answer", context=self._context.copy()
        )
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)
        return task

    async def _respond(self, request: BaseRequest) -> StreamResponse:
        if request.method != "GET" or request.path != LINK_PATH:
            return Response(status=404)
        if "Origin" in request.headers:
            return Response(status=403)  # Sent by a page in a browser, which must command no peer.
        if "Sec-WebSocket-Protocol" in request.headers:
            return Response(status=400)  # Peers send no subprotocol, and aiohttp would log its name.
        # One byte more than any request, as aiohttp accepts less than this.
        bytes_max = self.message_bytes_max + NUMBER_BYTES + 1
        socket = WebSocketResponse[bool](
            compress=False, autoclose=False, autoping=False, max_msg_size=bytes_max, decode_text=False, timeout=CLOSE_S
        )
        transport = request.transport
        if transport is None or not socket.can_prepare(request):
            return Response(status=400)
        try:
            await socket.prepare(request)
        except ConnectionError:
            return Response(status=400)  # The dialer has gone already.
        tls = transport.get_extra_info("ssl_object")
        asker = RemotePeer(request.remote, peer_id_of(tls) if tls is not None else None)
        if tls is not None and asker.peer is None:
            transport.abort()  # Its certificate has a key of another kind than a peer's.
            return socket
        if tls is not None and self._credentials is not None and not self._credentials.is_good(tls.context):
            transport.abort()  # Its handshake used a former key while that was valid; the request comes too late.
            return socket
        if self._is_banned(asker):
            self._log("banned", asker, "it has misbehaved too often")
            transport.abort()
            return socket
        self._make_room(asker)
        assert self._admission_control is not None, "it listens"
        quota = self._quotas.get(asker.peer or b"") or PeerQuota(self._admission_control)
        if asker.peer is not None:
            self._quotas[asker.peer] = quota
        incoming = ServerConnection(
            socket, request.protocol, transport, partial(self._reply, asker), self._answering, quota
        )
        self._incoming[incoming] = asker
        self._used.add(transport)
        code = WSCloseCode.OK
        try:
            await incoming.run()
        except MalformedError as error:
            self._note_malformed(error, asker)
            code = WSCloseCode.PROTOCOL_ERROR
        finally:
            del self._incoming[incoming]
            self._used.discard(transport)
        await incoming.close(code)
        return socket

    def _make_room(self, asker: RemotePeer) -> None:
        """End the oldest connection of a peer at its limit.

        At the limit of all connections, end a connection of the peer that has most.
        """
        before = [incoming for incoming, other in self._incoming.items() if other.peer == asker.peer is not None]
        if len(before) >= CONNECTIONS_PER_PEER_MAX:
            self._log("crowded", asker, f"it has {len(before)} connections already; the oldest is closed")
            for incoming in before[: len(before) - CONNECTIONS_PER_PEER_MAX + 1]:
                incoming.disconnect()
        if len(self._incoming) < SERVER_CONNECTIONS_MAX:
            return  # The usual case, which spares a search through all connections.
        open_ = {incoming: other for incoming, other in self._incoming.items() if not incoming.is_ending}
        if len(open_) >= SERVER_CONNECTIONS_MAX:
            counts = Counter(other.peer for other in open_.values())
            quietest = min(open_, key=lambda conn: (-counts[open_[conn].peer], conn.under_way > 0, conn.heard_at))
            self._log(
                "crowded", open_[quietest], f"there are {len(open_)} connections; one of the peer with most is closed"
            )
            quietest.disconnect()

    def _disconnect_from(self, quota: PeerQuota) -> None:
        """End the connections of the peer with the most waiting bytes."""
        for incoming, asker in self._incoming.items():
            if incoming.quota is quota:
                self._log("unread", asker, "more of its requests and answers wait than of any other peer")
                incoming.disconnect()

    async def _reply(self, asker: RemotePeer, question: bytes) -> bytes:
        """Return the packed answer to a packed request, or nothing if the request is malformed."""
        try:
            message = unpack(question, Request, self.message_bytes_max)
        except MalformedError as error:
            self._note_malformed(error, asker)
            return b""
        del question  # The request may be large, and the answer take minutes.
        try:
            return pack(await self._answer(asker, message))
        except StorageError as error:
            # The text of the error has paths of this machine, which stay private.
            full = isinstance(error, DiskFullError)
            return pack(Refused("the disk of this peer is full" if full else "this peer cannot write to its disk"))
        except MisbehaviorError as error:
            self._note_malformed(error, asker, error.misbehavior)
            return pack(Refused(str(error)[:1000]))
        except KadcrawlError as error:
            return pack(Refused(str(error)[:1000]))
        except Exception as error:
            log.exception("link.bug request=%s", type(message).__name__)
            return pack(Refused(f"an error of this peer: {error!r}"[:1000]))

    async def _answer(self, asker: RemotePeer, message: Message) -> Message:
        if asker.peer is not None and (named := claimed_sender(message)) is not None and named != asker.peer:
            self._note_malformed(f"{type(message).__name__} in the name of {named.hex()}", asker, Misbehavior.CLAIM)
            return Refused("this peer takes nothing in the name of another")
        handler = self._handlers.get(type(message))
        if handler is None:
            return Refused(f"this peer does not answer {type(message).__name__}")
        return await handler(message)

    def _note_malformed(self, why: object, asker: RemotePeer, misbehavior: Misbehavior = Misbehavior.MALFORMED) -> None:
        self.malformed += 1
        self._log("malformed", asker, str(why))
        # Only a proven ID is blamed, as many peers may share an address.
        if asker.peer is not None and self._peer_score.note(asker.peer, misbehavior, asyncio.get_running_loop().time()):
            self._log("banned", asker, "it has misbehaved too often")

    def _disconnect_banned(self, banned: Source) -> None:
        for incoming, asker in self._incoming.items():
            if asker.peer == banned:
                incoming.disconnect()

    def _note_non_member(self, host: str, why: str) -> None:
        self.non_members += 1
        self._log("non_member", host, why)

    def _is_banned(self, asker: RemotePeer) -> bool:
        now = asyncio.get_running_loop().time()
        return asker.peer is not None and self._peer_score.banned_until(asker.peer, now) is not None

    def _log(self, what: str, who: object, why: str) -> None:
        left_out = self._lines.count(what, asyncio.get_running_loop().time())
        if left_out is not None:
            log.warning("link.%s from=%s why=%s%s", what, who, why, left_out_note(left_out))
