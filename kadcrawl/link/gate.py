"""Where members knock: accepts connections and lets in those that prove to be members', soon.

A connection that only knocks costs a quarter of a megabyte, as much as TLS may have to read ahead. So only so many
knock at a time, each for a few seconds, and one more takes the place of the oldest: a member needs a hundredth of a
second, so it gets in however many strangers only stand there.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable

HANDSHAKES_MAX = 100
HANDSHAKE_S = 5.0
BACKLOG = 128
PAUSE_S = 0.5
"""Between two tries while the system has no file left for a connection."""


class Gate:
    """One listening socket."""

    def __init__(self, tls: ssl.SSLContext, protocol: Callable[[], asyncio.Protocol]) -> None:
        """`protocol` makes what serves a member's connection."""
        self._tls = tls
        self._protocol = protocol
        self._listening: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._knocking: dict[asyncio.Task[None], socket.socket] = {}
        """The oldest first."""
        self.turned_away = 0
        """Those that did not prove to be members in time."""

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
            tasks = [self._accepting, *self._knocking]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._listening.close()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listening)
            except OSError:
                await asyncio.sleep(PAUSE_S)  # Gone again already, or no file is left.
                continue
            if sum(not task.cancelling() for task in self._knocking) >= HANDSHAKES_MAX:
                next(task for task in self._knocking if not task.cancelling()).cancel()
            task = loop.create_task(self._let_in(connection), name="link handshake")
            self._knocking[task] = connection
            task.add_done_callback(self._done)

    async def _let_in(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await loop.connect_accepted_socket(self._protocol, connection, ssl=self._tls, ssl_handshake_timeout=HANDSHAKE_S)

    def _done(self, task: asyncio.Task[None]) -> None:
        connection = self._knocking.pop(task)
        if task.cancelled() or task.exception() is not None:
            self.turned_away += 1
            connection.close()  # It may have been sent away before anything was done about it.
