"""`DatagramDrain` reads the datagrams that wait in a socket beyond the first.

A selector loop of asyncio reads one datagram of a socket in each of its turns. If a turn takes a third of a second, a
peer then reads three datagrams a second, and the pings of its siblings wait for longer than they may. uvloop reads
many at a time by itself.

Tests: tests/overlay/test_protocol.py
"""

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

DATAGRAMS_PER_TURN_MAX = 64
"""Datagrams read in one turn of the loop: those of some seconds in a busy swarm. A flood must leave time for others."""
DATAGRAM_BYTES_READ_MAX = 65_536
"""Bytes read of one datagram. No datagram is longer."""


class DatagramDrain:
    """The datagrams that wait in the socket of one transport."""

    def __init__(self, transport: asyncio.BaseTransport, loop: asyncio.AbstractEventLoop) -> None:
        """Read nothing yet. The transport must be open."""
        wrapped = transport.get_extra_info("socket")
        self._socket: socket.socket | None = None
        if wrapped is not None and isinstance(loop, asyncio.SelectorEventLoop):
            self._socket = wrapped.dup()

    def waiting(self) -> Iterator[tuple[bytes, Any]]:
        """Yield the datagrams that wait, with the address of each, as many as one turn may read."""
        for _ in range(DATAGRAMS_PER_TURN_MAX - 1):
            if self._socket is None:
                return
            try:
                yield self._socket.recvfrom(DATAGRAM_BYTES_READ_MAX)
            except OSError:  # None waits, or the transport will meet the error itself.
                return

    def close(self) -> None:
        """Read nothing any more."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
