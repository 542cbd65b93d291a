"""A datagram transport for fuzzing: sends nothing, and keeps each datagram that a protocol hands to it.

Tests: tests/fuzz/test_fuzz.py
"""

import asyncio
from typing import Any


class SilentTransport(asyncio.DatagramTransport):
    """A UDP socket that checks each outgoing datagram and records the datagram in place of sending."""

    def __init__(self, bytes_max: int, *, labels: tuple[bytes, ...] = ()) -> None:
        """Accept datagrams of at most `bytes_max` bytes that begin with one of the `labels` of swarm keys, if any."""
        super().__init__({"sockname": ("10.1.0.1", 4160)})
        self.sent: list[tuple[bytes, Any]] = []
        """The datagrams and their addresses, in the order of sending."""
        self._bytes_max = bytes_max
        self._labels = labels

    def is_closing(self) -> bool:
        return False

    def sendto(self, data: Any, addr: Any = None) -> None:
        assert len(data) <= self._bytes_max, "a datagram is too long to be sent"
        assert not self._labels or bytes(data[:4]) in self._labels, "a datagram is sent unsealed"
        self.sent.append((bytes(data), addr))
