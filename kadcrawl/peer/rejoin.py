"""A restarted peer enters the swarm that its directory belongs to, or begins alone."""

import asyncio
from typing import TYPE_CHECKING

from kadcrawl.errors import StartError

if TYPE_CHECKING:
    from kadcrawl.peer.peer import Peer

REJOIN_TURN_S = 5.0
"""Longer than a peer takes to begin."""
REJOIN_RETRY_S = 0.5


async def come_back(peer: "Peer", *, briefly_away: bool = False) -> None:
    """Enter the swarm the peer was of, if any of it is there, or else begin. Raises StartError.

    `briefly_away`: it was there a moment ago. Those it knew may all be away for a moment, too, so they take turns: who
    has the least ID begins at once, the next waits for it to be there for a while, and so on.
    """
    loop = asyncio.get_running_loop()
    turn = sum(contact.id < peer.contact.id for contact in peer.known.contacts) if briefly_away else 0
    begin_at = loop.time() + turn * REJOIN_TURN_S
    while True:
        if known := await peer.known.answering(peer.journaled_job):
            try:
                await peer.join(known)
                return
            except StartError:
                if peer.begun:
                    raise
        if loop.time() >= begin_at:
            break
        await asyncio.sleep(REJOIN_RETRY_S)
    await peer.begin()
    if briefly_away or peer.credentials is not None:
        peer.overlay.remember(peer.known.contacts)
