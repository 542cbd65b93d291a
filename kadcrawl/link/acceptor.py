"""Where members knock: accepts connections and lets in those that prove to be members', soon.

A connection that only knocks costs a quarter of a megabyte, as much as TLS may have to read ahead. So only so many
knock at a time, each for a few seconds, and one more takes the place of the oldest from wherever most of them come: a
member needs a hundredth of a second, so it gets in however many strangers only stand there, or come and go elsewhere.
"""

import asyncio
import ipaddress
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

HANDSHAKES_MAX = 100
HANDSHAKE_S = 5.0
BACKLOG = 128
RETRY_S = 0.5
"""Between two tries while the system has no file left for a connection."""

_WHY = {
    "CALLBACK_FAILED": "it does not go by a key of this swarm",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it has no certificate",
    "CERTIFICATE_VERIFY_FAILED": "its certificate is not of this swarm",
}
"""What OpenSSL says -> what it means here."""


class _PendingHandshake(NamedTuple):
    connection: socket.socket
    host: str
    source: int
    """What is counted as one: a host, or a network of IPv6 that one may have to itself."""


class Acceptor:
    """One listening socket."""

    def __init__(
        self,
        tls: ssl.SSLContext,
        protocol: Callable[[], asyncio.Protocol],
        on_refused: Callable[[str, str], None],
        is_used: Callable[[asyncio.BaseTransport], bool],
    ) -> None:
        """`protocol` makes what serves a member; `on_refused` is told who else knocked, by address, and why not.

        Whoever was let in and does not go on soon, as `is_used` tells, is sent away again.
        """
        self._tls = tls
        self._protocol = protocol
        self._on_refused = on_refused
        self._is_used = is_used
        self._listening: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._pending: dict[asyncio.Task[None], _PendingHandshake] = {}
        """The oldest first."""

    async def open(self, host: str, port: int) -> int:
        """Begin to accept; return the port, which the system chose if `port` is 0. Raises OSError."""
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
        self._accepting = loop.create_task(self._accept(listening), name="link gate")
        bound: int = listening.getsockname()[1]
        return bound

    async def close(self) -> None:
        """Accept nothing more, and send those away that still knock."""
        if self._accepting is not None and self._listening is not None:
            tasks = [self._accepting, *self._pending]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._listening.close()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, (host, *_) = await loop.sock_accept(listening)
            except OSError:
                await asyncio.sleep(RETRY_S)  # Gone again already, or no file is left.
                continue
            self._make_room()
            task = loop.create_task(self._let_in(connection), name="link handshake")
            self._pending[task] = _PendingHandshake(connection, host, _source(host))
            task.add_done_callback(self._done)

    def _make_room(self) -> None:
        """Send one away if there are too many."""
        knocking = {task: knock.source for task, knock in self._pending.items() if not task.cancelling()}
        if len(knocking) >= HANDSHAKES_MAX:
            ((most, _),) = Counter(knocking.values()).most_common(1)
            next(task for task, source in knocking.items() if source == most).cancel()

    async def _let_in(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport, _ = await loop.connect_accepted_socket(
            self._protocol, connection, ssl=self._tls, ssl_handshake_timeout=HANDSHAKE_S
        )
        loop.call_later(HANDSHAKE_S, self._look, transport)

    def _look(self, transport: asyncio.Transport) -> None:
        if not self._is_used(transport):
            transport.abort()

    def _done(self, task: asyncio.Task[None]) -> None:
        connection, host, _ = self._pending.pop(task)
        error = None if task.cancelled() else task.exception()
        if task.cancelled() or error is not None:
            connection.close()  # It may have been sent away before anything was done about it.
            if self._accepting is not None and not self._accepting.cancelling():
                self._on_refused(host, _why(error))


def _source(host: str) -> int:
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return int(address) >> 64
    return int(address)


def _why(error: BaseException | None) -> str:
    """Return why one was not let in, given what its handshake raised, or None if it was sent away."""
    if error is None:
        return "others knocked after it"
    if isinstance(error, ssl.SSLError):
        return _WHY.get(error.reason, f"no TLS of a member: {error.reason}")
    if isinstance(error, ConnectionAbortedError):
        return f"it did not prove to be a member within {HANDSHAKE_S:.0f} s"
    return "it went away" if isinstance(error, OSError) else repr(error)
