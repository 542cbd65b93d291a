"""Fetches the segments of reach that another peer has and this one lacks (crawl/scope/seed_reach.py).

Tests: tests/peer/swarm/test_seed_streams.py, tests/leaf/test_leaf.py
"""

from collections.abc import AsyncIterator, Sequence

from kadcrawl.link.client import Address, LinkClient
from kadcrawl.link.wire.messages import Contact, GetReach, GotReach
from kadcrawl.link.wire.seed_messages import SEGMENTS_ASKED_MAX

REACH_DEADLINE_S = 10.0


async def fetch_segments(
    client: LinkClient, to: Contact | Address, lacking: Sequence[bytes]
) -> AsyncIterator[list[bytes]]:
    """Yield the segments of these IDs, some at a time. Raises RemoteError."""
    for start in range(0, len(lacking), SEGMENTS_ASKED_MAX):
        ids = list(lacking[start : start + SEGMENTS_ASKED_MAX])
        yield (await client.ask(to, GetReach(ids), GotReach, REACH_DEADLINE_S)).segments
