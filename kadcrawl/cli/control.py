"""Asking a running peer something: status, add, pause, resume, leave, stop."""

import asyncio
from typing import TypeVar

from kadcrawl.errors import RemoteError
from kadcrawl.link.client import LinkClient
from kadcrawl.link.connection import UNREACHED
from kadcrawl.link.messages import Message

MESSAGE_BYTES_MAX = 64 * 1024 * 1024
"""The status of 10,000 peers fits."""
DEADLINE_S = 30.0

Expected = TypeVar("Expected", bound=Message)


def ask(address: tuple[str, int], message: Message, expected: type[Expected]) -> Expected:
    """Ask the peer at `address` and return its answer. Raises RemoteError, with what to do if nobody is there."""

    async def converse() -> Expected:
        client = LinkClient(MESSAGE_BYTES_MAX)
        await client.open()
        try:
            return await client.ask(address, message, expected, DEADLINE_S)
        except RemoteError as error:
            if not error.why.startswith(UNREACHED):
                raise
            hint = "kadcrawl start begins a swarm, --peer HOST:PORT says where one of its peers listens"
            raise RemoteError(error.peer, f"{error.why}; {hint}") from None
        finally:
            await client.close()

    return asyncio.run(converse())
