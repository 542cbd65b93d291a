"""Peers of ours, servers of the plain package and scripted strangers, each on a simulated host of its own."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

from kademlia.network import Server
from kademlia.node import Node

from kadcrawl.keys import NodeId, id_bytes
from kadcrawl.link.wire.codec import MalformedError
from kadcrawl.link.wire.messages import Contact, Message
from kadcrawl.overlay import Overlay, OverlaySettings
from kadcrawl.overlay.datagrams import decode, encode
from sim.loop import SimLoop

PORT = 4160


def ip(number: int) -> str:
    return f"10.0.0.{number + 1}"


async def our_peer(
    loop: SimLoop,
    number: int,
    node_id: int,
    bootstrap: int | None = None,
    settings: OverlaySettings | None = None,
    on_heartbeat: Callable[[Contact, int, int], None] | None = None,
) -> Overlay:
    """Start an overlay on host `number`, joined by way of host `bootstrap`."""
    host = loop.network.host(ip(number))
    overlay = Overlay(NodeId(node_id), Random(node_id), cell_bits=16, settings=settings, on_heartbeat=on_heartbeat)
    await host.spawn(overlay.listen(host.ip, PORT))
    if bootstrap is not None:
        await host.spawn(overlay.join([(ip(bootstrap), PORT)]))
    return overlay


async def plain_peer(loop: SimLoop, number: int, node_id: int, bootstrap: int | None = None) -> Any:
    """The same with a server of the package."""
    host = loop.network.host(ip(number))
    server = Server(node_id=id_bytes(node_id))
    await host.spawn(server.listen(PORT, interface=host.ip))
    if bootstrap is not None:
        await host.spawn(server.bootstrap([(ip(bootstrap), PORT)]))
    return server


def plain_contacts(server: Any) -> list[Node]:
    return [node for bucket in server.protocol.router.buckets for node in bucket.get_nodes()]


class Scripted(asyncio.DatagramProtocol):
    """Answer each request on our wire with the result of `script`, or not at all."""

    def __init__(self, script: Callable[[Message], Message | None]) -> None:
        self.heard: list[Message] = []
        self._script = script

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        try:
            request_id, message = decode(data)
        except MalformedError:
            return  # The plain package answers on its own wire.
        self.heard.append(message)
        if (reply := self._script(message)) is not None:
            self.transport.sendto(encode(request_id, reply), addr)

    def send(self, message: Message, number: int, request_id: int = 1) -> None:
        """Send a message to the peer on host `number`."""
        self.transport.sendto(encode(request_id, message), (ip(number), PORT))


async def scripted_peer(
    loop: SimLoop, number: int, script: Callable[[Message], Message | None] = lambda message: None
) -> Scripted:
    host = loop.network.host(ip(number))
    endpoint = loop.create_datagram_endpoint(lambda: Scripted(script), local_addr=(host.ip, PORT))
    _, scripted = await host.spawn(endpoint)
    found: Scripted = scripted
    return found
