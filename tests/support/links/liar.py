"""A member that lies, and the values at the limits of messages."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kadcrawl import Peer
from kadcrawl.errors import RemoteError
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import (
    LONG_S_MAX,
    SMALL_MAX,
    Message,
    Reply,
    VisitRecord,
)

BYTES_MAX = 5 * 1024 * 1024
LIAR = b"\x99" * 20
DIGEST = bytes(16)
NOWHERE = ["0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "localhost", "127.1", "fe80::1%lo", "[::1]", "x" * 64]


def visit(url: str, state: int, due_s: float | None = LONG_S_MAX) -> VisitRecord:
    odd = "x" * 64
    return VisitRecord(url, SMALL_MAX, state, SMALL_MAX, 86_400.0, due_s, LONG_S_MAX, odd, odd, odd, odd, SMALL_MAX)


@asynccontextmanager
async def liar() -> AsyncIterator[LinkClient]:
    client = LinkClient(BYTES_MAX)
    await client.open()
    try:
        yield client
    finally:
        await client.close()


async def say(client: LinkClient, peer: Peer, lie: Message) -> Message | str:
    """Return the answer, or the sentence by which it is refused."""
    try:
        return await client.ask(peer.contact.address, lie, Reply, 10.0)  # type: ignore[arg-type]
    except RemoteError as error:
        why = error.why
    assert "an error of this peer" not in why, f"{type(lie).__name__}: {why}"
    assert "malformed" not in why, f"{type(lie).__name__}: {why}"
    return why
