"""Test that a kept port is refused, and free for the peer that names it."""

import socket

import pytest

from kadcrawl.link.server import LinkServer
from tests.support.swarm.kept_port import HOST, kept_port


async def test_a_kept_port_is_refused_until_a_peer_listens_there() -> None:
    with kept_port() as port:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((HOST, port))
        server = LinkServer(1_000_000)
        assert port == await server.listen(HOST, port)
        socket.create_connection((HOST, port)).close()
        await server.close()


def test_a_kept_port_is_given_to_nobody_who_does_not_name_it() -> None:
    with kept_port() as port, socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((HOST, port))
