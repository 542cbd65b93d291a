"""A command asks a running peer a question: status, add, pause, resume, leave, stop.

Tests: tests/cli/test_command_live.py
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

from kadcrawl.errors import RemoteError
from kadcrawl.link.wire.messages import Contact, Message
from kadcrawl.members.credentials import Credentials
from kadcrawl.members.keyring import Keyring
from kadcrawl.members.peer_key import PeerKey
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.system.lean_imports import import_lean

import_lean()  # A question needs no certificates of authorities and no names resolved, so its answer is sooner there.

from kadcrawl.link.client import LinkClient  # noqa: E402
from kadcrawl.link.client_connection import UNREACHED_PREFIX, is_hung_up  # noqa: E402

MESSAGE_BYTES_MAX = 64 * 1024 * 1024
"""The status of 10,000 peers fits."""
COMMAND_DEADLINE_S = 30.0

Expected = TypeVar("Expected", bound=Message)


@asynccontextmanager
async def asking(swarm_key: SwarmKey | None, peer_key: PeerKey | None = None) -> AsyncIterator[LinkClient]:
    """Give a client that asks peers as a member, if there is a key. With `peer_key` it is that peer, else none."""
    credentials = None
    if swarm_key is not None:
        # Whoever has the key is a member; one that only asks may have any key of its own.
        credentials = Credentials(Keyring(swarm_key), peer_key or PeerKey.generate(), None, lambda: 0.0, 0)
    client = LinkClient(MESSAGE_BYTES_MAX, credentials)
    await client.open()
    try:
        yield client
    finally:
        await client.close()


def ask(
    to: Contact | tuple[str, int],
    message: Message,
    expected: type[Expected],
    swarm_key: SwarmKey | None,
    peer_key: PeerKey | None = None,
) -> Expected:
    """Ask a peer, or the peer at an address, and return its answer. With a `key` the question comes from a member.

    With `peer_key` the question comes from that peer, else from no particular peer. Raises RemoteError, with what to do
    if no peer is there or the key is not the key of its swarm.
    """

    async def converse() -> Expected:
        try:
            async with asking(swarm_key, peer_key) as client:
                return await client.ask(to, message, expected, COMMAND_DEADLINE_S)
        except RemoteError as error:
            if not error.why.startswith(UNREACHED_PREFIX) and swarm_key is not None:
                raise
            hint = "kadcrawl start begins a swarm, --peer HOST:PORT says where one of its peers listens"
            if is_hung_up(error.why):
                hint = "if its swarm has a key, give it: --data DIR of a peer here, --key-file FILE, or KADCRAWL_KEY"
            elif not error.why.startswith(UNREACHED_PREFIX):
                raise
            raise RemoteError(error.peer, f"{error.why}; {hint}") from None

    return asyncio.run(converse())
