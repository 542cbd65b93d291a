"""Test that a former key of the swarm, and everything made by that key, is useless after its hour."""

import asyncio
import socket
import ssl
from contextlib import suppress
from pathlib import Path

from kadcrawl.link.server import LinkServer
from kadcrawl.members.certificates import client_context
from kadcrawl.members.credentials import Credentials
from kadcrawl.members.keyring import Keyring
from kadcrawl.members.peer_key import PeerKey
from kadcrawl.members.swarm_key import SwarmKey
from tests.support.links.link_ends import UPGRADE

FORMER, NEW = SwarmKey(b"f" * 32), SwarmKey(b"n" * 32)
QUESTION = b"\x82\x80\0\0\0\0"
"""A masked binary frame without a number.

A peer that reads the frame ends the connection with a frame of 0x88.
"""


class Former:
    """A member that is to stay outside, with TLS of its own so that its sessions can be had."""

    def __init__(self, port: int, place: Path) -> None:
        self._port = port
        self._context = client_context(FORMER, PeerKey.generate(), place)
        self._context.verify_mode = ssl.CERT_NONE  # It does not mind who answers.

    async def dial(self, name: str, session: ssl.SSLSession | None = None) -> ssl.SSLSocket:
        def dial() -> ssl.SSLSocket:
            plain = socket.create_connection(("127.0.0.1", self._port), 10)
            return self._context.wrap_socket(plain, server_hostname=name, session=session)

        return await asyncio.to_thread(dial)


async def is_heard(connection: ssl.SSLSocket, sessions: list[ssl.SSLSession | None]) -> bool:
    """Return whether the peer reads a question by this connection. Add the session that could resume the connection."""

    def converse() -> bytes:
        said = b""
        with connection, suppress(OSError):
            connection.sendall(UPGRADE)
            said = connection.recv(4096)
            connection.sendall(QUESTION)
            said += connection.recv(4096)
            sessions.append(connection.session)
        return said

    return b"\r\n\r\n\x88" in await asyncio.to_thread(converse)


def is_ended(connection: ssl.SSLSocket) -> bool:
    with connection, suppress(ConnectionError, ssl.SSLError):
        return connection.recv(1) == b""
    return True


async def test_a_former_member_returns_neither_by_a_session_nor_by_a_handshake(tmp_path: Path) -> None:
    now = 0.0
    ours = Credentials(Keyring(NEW, FORMER, 100.0), PeerKey.generate(), tmp_path, lambda: now, 0)
    server = LinkServer(1_000_000, ours)
    former = Former(await server.listen("127.0.0.1", 0), tmp_path)
    try:
        sessions: list[ssl.SSLSession | None] = []
        assert await is_heard(await former.dial(FORMER.name), sessions), "while its key is good"
        assert len(sessions) == 1
        begun, idle = await former.dial(FORMER.name), await former.dial(FORMER.name)
        now = 200.0
        ours.use_keyring(ours.keyring.at(now))
        assert not await is_heard(begun, [])
        server.disconnect()
        assert await asyncio.to_thread(is_ended, idle)
        heard = False
        with suppress(OSError):  # The name of the new key, which is open on the wire, and a session of the former one.
            heard = await is_heard(await former.dial(NEW.name, sessions[0]), [])
        assert not heard
    finally:
        await server.close()
