"""How a peer ends: it finishes what is under way, leaves if it was asked to, and names the disk if that made it end.

Called by `Peer` alone. Nothing here hurries: what is not finished is on disk, and somebody else's or a later run's.

Tests: tests/peer/test_coming_and_going.py
"""

import asyncio
from typing import TYPE_CHECKING

from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.link.wire.leave_messages import Departed
from kadcrawl.peer.membership.departed import send_leave_stats

if TYPE_CHECKING:
    from kadcrawl.peer.peer import Peer

DRAIN_LINKS_S = 5.0
"""How long a stopping peer waits for its last links to be acknowledged: their owners may have stopped already."""
LEAVE_LINKS_S = 10.0
"""How long a leaving one does: their owners may be leaving too, and others have to take over first."""
LOANS_S = 3.0
"""How long it waits until what it lent or borrowed is back at its owner; a lease lasts no longer."""
LINGER_S = 0.5
LEAVE_S = 30.0
"""How long a leaving peer waits for others to take more of what it has; a swarm that takes nothing has all of it."""


async def drain(peer: "Peer", links_s: float = DRAIN_LINKS_S) -> None:
    """Start nothing more and wait until what is under way is finished and on disk."""
    if peer.begun:
        peer.components.crawler.pause_reasons.add(PauseReason.STOPPING)
        loans = peer.balancing.loans
        loans.recall_all()
        await peer.components.crawler.drained(links_s)
        await loans.end(links_s, LOANS_S)
        if not peer.ended:
            # Others are finishing too, and their last links may be for this peer.
            await asyncio.sleep(LINGER_S)
    await peer.store.journal.commit()


async def leave(peer: "Peer") -> None:
    """Finish what is under way, say goodbye, and stay until others have taken over all that is here."""
    await drain(peer, LEAVE_LINKS_S)
    if peer.begun:
        me = Departed(peer.contact, peer.counters.to_wire())
        await send_leave_stats(peer.client, peer.contact.id, peer.departed.leave_stats(me, peer.overlay.nearest_known))
        await peer.cells.leave(peer.overlay.leave, LEAVE_S)
    await peer.store.journal.commit()
