"""Test a peer that asks much and reads nothing: its answers do not pile up, and its connection ends."""

import asyncio
import socket
from contextlib import closing
from unittest.mock import patch

import pytest

from kadcrawl.link import server_connection
from kadcrawl.link.handler import LINK_PATH
from kadcrawl.link.server import LinkServer, RemotePeer
from kadcrawl.link.wire.codec import pack
from kadcrawl.link.wire.messages import Hello
from tests.support.links.link_ends import BYTES_MAX, LOCAL
from tests.support.waiting import until

ANSWER_BYTES = 4_000_000
QUESTIONS = 8
UPGRADE = (
    f"GET {LINK_PATH} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


async def long_answer(asker: RemotePeer, question: bytes) -> bytes:
    return bytes(ANSWER_BYTES)


async def test_who_does_not_read_its_answers_has_one_at_a_time_and_is_sent_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_connection, "SEND_S", 0.5)
    loop, server = asyncio.get_running_loop(), LinkServer(BYTES_MAX)
    with patch.object(server, "_reply", long_answer), closing(socket.socket()) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.setblocking(False)
        await loop.sock_connect(slow, (LOCAL, await server.listen(LOCAL, 0)))
        await loop.sock_sendall(slow, UPGRADE.encode())
        for number in range(QUESTIONS):
            frame = number.to_bytes(8, "big") + pack(Hello(1))
            await loop.sock_sendall(slow, bytes([0x82, 0x80 | len(frame), 0, 0, 0, 0]) + frame)
        await until(lambda: server._incoming)
        (one,) = server._incoming
        most = 0

        def is_away() -> bool:
            nonlocal most
            most = max(most, one._transport.get_write_buffer_size())
            return not server._incoming

        async with asyncio.timeout(60):
            await until(is_away)
        assert 0 < most < 2 * ANSWER_BYTES
        await until(lambda: not server._answering)
        await server.close()
