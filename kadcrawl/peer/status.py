"""This peer as it describes itself to a person: its state, and its row of the status.

Tests: tests/peer/test_disk_full.py, tests/peer/test_swarm.py, tests/peer/membership/test_key_refusals.py
"""

from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.link.wire.messages import COUNT_MAX, RESTING, PeerRow
from kadcrawl.peer.runtime import Runtime

DISK_FULL = "paused: disk full"
CATCHING_UP = "catching up"
"""With cells that it owns and may not crawl yet, while it has nothing else to do."""
STATE_BY_PAUSE_REASON = {
    PauseReason.DISK: DISK_FULL,
    PauseReason.FILES: "paused: too many open files",
    PauseReason.PROXIES: "waiting for proxies",
}
"""By the crawler's reason to start nothing: what it waits for, and goes on by itself when it comes."""


def state_of(runtime: Runtime) -> str:
    """Return the state for the status."""
    if not runtime.begun:
        return "starting"
    crawler, activity = runtime.components.crawler, runtime.resources.activity
    holds = crawler.pause_reasons
    if runtime.leaving:
        return "leaving"
    for hold in (PauseReason.STOPPING, PauseReason.JOINING):
        if hold in holds:
            return hold.value
    if runtime.paused:
        return "paused"
    if (by := runtime.key_mismatches.count) > len(runtime.overlay.contacts()):
        return f"refused by {by} known peer{'s' if by > 1 else ''}: key changed?"
    if runtime.ended:
        return "done"
    if activity.resting:
        return RESTING
    for hold, state in STATE_BY_PAUSE_REASON.items():
        if hold in holds:
            return state
    if not activity.busy.is_set():
        return "idle"
    nothing = not runtime.components.frontier.pending and not crawler.in_flight
    return CATCHING_UP if nothing and runtime.cells.sync.busy else "crawling"


def row_of(runtime: Runtime) -> PeerRow:
    """Return the peer's row of the status."""
    resources, components, loans = runtime.resources, runtime.components, runtime.balancing.loans
    filters = resources.store.expiring_filters
    return PeerRow(
        contact=runtime.contact,
        state=state_of(runtime),
        pending=min(components.frontier.pending + runtime.cells.pending_closed, COUNT_MAX),
        in_flight=components.crawler.in_flight,
        uptime_s=int(resources.clock.now() - resources.started_at),
        counters=resources.counters.to_wire(),
        allowance=components.budget.allowance,
        granted=components.budget.granted,
        lent=loans.lender.urls,
        borrowed=loans.borrower.urls,
        due_s=runtime.due_s,
        lag=resources.deliveries.lag,
        fingerprints=min(filters.keys, COUNT_MAX) if filters is not None else 0,
    )
