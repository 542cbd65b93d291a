"""Members of a swarm with a key, at both ends of a link."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kadcrawl.link.acceptor import Acceptor
from kadcrawl.link.client import LinkClient
from kadcrawl.link.server import LinkServer
from kadcrawl.link.wire.messages import Hello, Ok
from kadcrawl.members.credentials import Credentials
from kadcrawl.members.keyring import Keyring
from kadcrawl.members.peer_key import PeerKey
from kadcrawl.members.swarm_key import SwarmKey

KEYRING = Keyring(SwarmKey(b"k" * 32))


def credentials(place: Path) -> Credentials:
    """Return the credentials of a new member of the swarm."""
    return Credentials(KEYRING, PeerKey.generate(), place, lambda: 0.0, 0)


@asynccontextmanager
async def served(place: Path) -> AsyncIterator[tuple[LinkServer, Acceptor, tuple[str, int]]]:
    """Give a member's server, its acceptor and its address. The server answers Hello."""
    server = LinkServer(1_000_000, credentials(place))

    async def hello(_: Hello) -> Ok:
        return Ok()

    server.handle(Hello, hello)
    address = ("127.0.0.1", await server.listen("127.0.0.1", 0))
    assert server._acceptor is not None
    try:
        yield server, server._acceptor, address
    finally:
        await server.close()


async def is_answered(address: tuple[str, int], place: Path) -> bool:
    """Return whether the server at an address answers a new member."""
    client = LinkClient(1_000_000, credentials(place))
    await client.open()
    try:
        return await client.ask(address, Hello(1), Ok, 10) == Ok()
    finally:
        await client.close()


def files() -> int:
    """Return how many files this process has open."""
    return len(os.listdir("/proc/self/fd"))
