"""A peer as it describes itself to a person: one row of the status, one word or a few for its state.

Tests: tests/peer/test_peer.py
"""

from typing import TYPE_CHECKING

from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.link.wire.messages import COUNT_MAX, RESTING, PeerRow

if TYPE_CHECKING:
    from kadcrawl.peer.peer import Peer

DISK_FULL = "paused: disk full"
CATCHING_UP = "catching up"
"""With cells that it owns and may not crawl yet, while it has nothing else to do."""
STATE_BY_PAUSE_REASON = {
    PauseReason.DISK: DISK_FULL,
    PauseReason.FILES: "paused: too many open files",
    PauseReason.PROXIES: "waiting for proxies",
}
"""By the crawler's reason to start nothing: what it waits for, and goes on by itself when it comes."""


def state_of(peer: "Peer") -> str:
    """Return the state for the status."""
    if not peer.begun:
        return "starting"
    holds = peer.components.crawler.pause_reasons
    if peer.leaving:
        return "leaving"
    for hold in (PauseReason.STOPPING, PauseReason.JOINING):
        if hold in holds:
            return hold.value
    if peer.paused:
        return "paused"
    if (by := peer.key_mismatches.count) > len(peer.overlay.contacts()):
        return f"refused by {by} known peer{'s' if by > 1 else ''}: key changed?"
    if peer.ended:
        return "done"
    if peer.activity.resting:
        return RESTING
    for hold, state in STATE_BY_PAUSE_REASON.items():
        if hold in holds:
            return state
    if not peer.activity.busy.is_set():
        return "idle"
    nothing = not peer.components.frontier.pending and not peer.components.crawler.in_flight
    return CATCHING_UP if nothing and peer.cells.sync.busy else "crawling"


def row_of(peer: "Peer") -> PeerRow:
    """Return the peer's row of the status."""
    budget = peer.components.budget
    return PeerRow(
        contact=peer.contact,
        state=peer.state,
        pending=min(peer.components.frontier.pending + peer.cells.pending_closed, COUNT_MAX),
        in_flight=peer.components.crawler.in_flight,
        uptime_s=int(peer.clock.now() - peer.started_at),
        counters=peer.counters.to_wire(),
        allowance=budget.allowance,
        granted=budget.granted,
        lent=peer.balancing.loans.lender.urls,
        borrowed=peer.balancing.loans.borrower.urls,
        due_s=peer.due_s,
        lag=peer.deliveries.lag,
        fingerprints=min(peer.store.expiring_filters.keys, COUNT_MAX) if peer.store.expiring_filters is not None else 0,
    )
