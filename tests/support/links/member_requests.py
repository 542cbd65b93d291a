"""A request of a member of a swarm, or of a non-member."""

from pathlib import Path

from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import Contact, Message
from kadcrawl.members.credentials import Credentials
from kadcrawl.members.keyring import Keyring
from kadcrawl.members.peer_key import PeerKey
from kadcrawl.members.swarm_key import SwarmKey

KEY, OTHER_KEY = SwarmKey(b"k" * 32), SwarmKey(b"o" * 32)


async def ask(
    to: Contact | tuple[str, int],
    message: Message,
    expected: type[Message],
    place: Path,
    *,
    key: SwarmKey | None = KEY,
    peer_key: PeerKey | None = None,
) -> Message:
    """Ask as a member with these keys, or as a non-member without keys."""
    credentials = None
    if key is not None:
        credentials = Credentials(Keyring(key), peer_key or PeerKey.generate(), place, lambda: 0.0, 0)
    client = LinkClient(10_000_000, credentials)
    await client.open()
    try:
        return await client.ask(to, message, expected, 10)
    finally:
        await client.close()
