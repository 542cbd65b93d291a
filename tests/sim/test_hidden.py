"""A host behind a NAT: it talks to others, and nobody begins to talk to it."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from sim.loop import SimLoop, world
from sim.tcp import CONNECT_GIVE_UP_S

HIDDEN, OPEN = "10.0.0.1", "10.0.0.2"
PORT = 4160


class Heard(asyncio.Protocol, asyncio.DatagramProtocol):
    """A protocol that records received bytes and answers them."""

    def __init__(self) -> None:
        self.said: list[bytes] = []
        self.transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.said.append(data)
        if data == b"question":
            assert isinstance(self.transport, asyncio.Transport)
            self.transport.write(b"answer")

    def datagram_received(self, data: bytes, addr: object) -> None:
        self.said.append(data)


async def on(loop: SimLoop, ip: str, work: Coroutine[Any, Any, Any]) -> Any:
    return await loop.network.hosts[ip].spawn(work)


def test_nobody_begins_to_talk_to_a_hidden_host() -> None:
    with world(1) as loop:
        for ip in (HIDDEN, OPEN):
            loop.network.host(ip)
        loop.network.hosts[HIDDEN].hidden = True
        heard = Heard()

        async def story() -> None:
            await on(loop, HIDDEN, loop.create_server(lambda: heard, HIDDEN, PORT))
            await on(loop, HIDDEN, loop.create_datagram_endpoint(lambda: heard, local_addr=(HIDDEN, PORT)))
            with pytest.raises(TimeoutError):
                await on(loop, OPEN, loop.create_connection(Heard, HIDDEN, PORT))
            assert CONNECT_GIVE_UP_S / 3 < loop.time() < CONNECT_GIVE_UP_S
            turned_away = loop.network.turned_away
            assert turned_away > 0
            endpoint = loop.create_datagram_endpoint(Heard, local_addr=(OPEN, PORT))
            transport, _ = await on(loop, OPEN, endpoint)
            transport.sendto(b"hello", (HIDDEN, PORT))
            await asyncio.sleep(1.0)
            assert [] == heard.said
            assert turned_away + 1 == loop.network.turned_away

        loop.run_until_complete(story())


def test_a_hidden_host_is_answered() -> None:
    with world(1) as loop:
        for ip in (HIDDEN, OPEN):
            loop.network.host(ip)
        loop.network.hosts[HIDDEN].hidden = True
        asks = Heard()

        async def story() -> None:
            await on(loop, OPEN, loop.create_server(Heard, OPEN, PORT))
            transport, _ = await on(loop, HIDDEN, loop.create_connection(lambda: asks, OPEN, PORT))
            transport.write(b"question")
            await asyncio.sleep(1.0)
            assert [b"answer"] == asks.said

        loop.run_until_complete(story())
        assert 0 == loop.network.turned_away
