"""The acceptor of connections: completes TLS handshakes with members, and closes connections of non-members soon.

A connection in its handshake costs a quarter of a megabyte, as much as TLS may read ahead. So the number of handshakes
at a time is limited, each has a few seconds, and one more takes the place of the oldest handshake from the source that
has most. A member needs a hundredth of a second. So it gets in however many non-members wait silently, or come and go
from other sources.
"""

import asyncio
import ipaddress
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

HANDSHAKES_MAX = 100
"""Limit on the connections in their handshake at a time.

A new connection then ends the oldest handshake of the busiest source."""
HANDSHAKE_S = 5.0
BACKLOG = 128
RETRY_S = 0.5
"""Interval between two tries while the system has no file left for a connection."""

_WHY = {
    "CALLBACK_FAILED": "it does not use a key of this swarm",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it has no certificate",
    "CERTIFICATE_VERIFY_FAILED": "its certificate is not of this swarm",
}
"""The meaning of OpenSSL's reasons for this peer."""


class _PendingHandshake(NamedTuple):
    connection: socket.socket
    host: str
    source: int
    """The unit of counting: a host, or a /64 network of IPv6, which one host may have to itself."""


class Acceptor:
    """One listening socket."""

    def __init__(
        self,
        tls: Callable[[], ssl.SSLContext],
        protocol: Callable[[], asyncio.Protocol],
        on_refused: Callable[[str, str], None],
        is_used: Callable[[asyncio.BaseTransport], bool],
    ) -> None:
        """The factory `protocol` makes the protocol that serves a member. `tls` returns the context of a connection: a
        context takes memory, and peers of one process do not connect to each other.

        `on_refused` receives the address of each refused connection, and the reason. A connection that was let in and
        sends no request soon, as `is_used` tells, is closed again.
        """
        self._tls = tls
        self._protocol = protocol
        self._on_refused = on_refused
        self._is_used = is_used
        self._listening: socket.socket | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._pending: dict[asyncio.Task[None], _PendingHandshake] = {}
        """The handshakes under way, oldest first."""

    async def open(self, host: str, port: int) -> int:
        """Begin to accept. Return the port, which the system chose if `port` is 0. Raises OSError."""
        loop = asyncio.get_running_loop()
        (family, kind, protocol, _, address), *_ = await loop.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.setblocking(False)
            listening.bind(address)
            listening.listen(BACKLOG)
        except OSError:
            listening.close()
            raise
        self._listening = listening
        loop.add_reader(listening, self._accept, listening)
        bound: int = listening.getsockname()[1]
        return bound

    async def close(self) -> None:
        """Accept no more connections, and close those in their handshakes."""
        listening, self._listening = self._listening, None
        if listening is not None:
            if self._retry is not None:
                self._retry.cancel()
            asyncio.get_running_loop().remove_reader(listening)
            listening.close()
        for task in self._pending:
            task.cancel()
        await asyncio.gather(*self._pending, return_exceptions=True)

    def _accept(self, listening: socket.socket) -> None:
        """Accept the next connection, as `listening` has one.

        A callback of the loop, not a task: a task that is cancelled just then would lose the accepted connection.
        """
        loop = asyncio.get_running_loop()
        try:
            connection, (host, *_) = listening.accept()
        except (BlockingIOError, InterruptedError):
            return  # The client has gone already.
        except OSError:  # No file is left, perhaps.
            loop.remove_reader(listening)
            self._retry = loop.call_later(RETRY_S, loop.add_reader, listening, self._accept, listening)
            return
        connection.setblocking(False)
        self._make_room()
        task = loop.create_task(self._let_in(connection), name="link handshake")
        self._pending[task] = _PendingHandshake(connection, host, _source(host))
        task.add_done_callback(self._done)

    def _make_room(self) -> None:
        """Close the oldest handshake of the source that has most, if there are too many."""
        pending = {task: handshake.source for task, handshake in self._pending.items() if not task.cancelling()}
        if len(pending) >= HANDSHAKES_MAX:
            ((most, _),) = Counter(pending.values()).most_common(1)
            next(task for task, source in pending.items() if source == most).cancel()

    async def _let_in(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport, _ = await loop.connect_accepted_socket(
            self._protocol, connection, ssl=self._tls(), ssl_handshake_timeout=HANDSHAKE_S
        )
        loop.call_later(HANDSHAKE_S, self._look, transport)

    def _look(self, transport: asyncio.Transport) -> None:
        if not self._is_used(transport):
            transport.abort()

    def _done(self, task: asyncio.Task[None]) -> None:
        connection, host, _ = self._pending.pop(task)
        error = None if task.cancelled() else task.exception()
        if task.cancelled() or error is not None:
            connection.close()  # The task may have been cancelled before it began.
            if self._listening is not None:
                self._on_refused(host, _why(error))


def _source(host: str) -> int:
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return int(address) >> 64
    return int(address)


def _why(error: BaseException | None) -> str:
    """Return the reason for a refusal, given the exception of the handshake.

    None as the exception means that the handshake was closed to make room.
    """
    if error is None:
        return "newer handshakes took its place"
    if isinstance(error, ssl.SSLError):
        return _WHY.get(error.reason, f"its TLS is not that of a member: {error.reason}")
    if isinstance(error, ConnectionAbortedError):
        return f"it did not prove to be a member within {HANDSHAKE_S:.0f} s"
    return "it went away" if isinstance(error, OSError) else repr(error)
