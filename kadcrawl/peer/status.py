"""This peer as it describes itself: its state, and its row of the status.

Tests: tests/peer/test_peer.py, tests/peer/test_disk_full.py, tests/peer/membership/test_key_refusals.py
"""

from typing import TYPE_CHECKING

from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.crawl.reach.network_health import NetworkState
from kadcrawl.link.wire.messages import COUNT_MAX, REFUSING_MAX, SITE_SHOWN_MAX, PeerRow, RefusingSite
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.replication.record_codec import WAIT_MAX_S

if TYPE_CHECKING:  # A leaf does without the rooms of a full peer.
    from kadcrawl.peer.runtime import Runtime

STATE_BY_PAUSE_REASON = {
    PauseReason.DISK: PeerState.DISK_FULL,
    PauseReason.FILES: PeerState.NO_FILES,
    PauseReason.PROXIES: PeerState.NO_PROXY,
    PauseReason.NETWORK: PeerState.NO_NETWORK,
    PauseReason.LIMIT: PeerState.LIMIT_REACHED,
}
"""The state of a peer whose crawler pauses for a reason that passes without a command."""


def state_of(runtime: "Runtime") -> PeerState:
    """Return the state of a full peer. If several apply, the first of them in this order counts."""
    if not runtime.begun:
        return PeerState.STARTING
    crawler, activity = runtime.components.crawler, runtime.resources.activity
    if runtime.leaving:
        return PeerState.LEAVING
    if PauseReason.STOPPING in crawler.pause_reasons:
        return PeerState.STOPPING
    if PauseReason.JOINING in crawler.pause_reasons:
        return PeerState.JOINING
    if runtime.paused:
        return PeerState.PAUSED
    if runtime.key_mismatches.count > len(runtime.overlay.contacts()):
        return PeerState.REFUSED
    if runtime.ended:
        return PeerState.DONE
    if activity.resting:
        return PeerState.RESTING
    for reason, state in STATE_BY_PAUSE_REASON.items():
        if reason in crawler.pause_reasons:
            return state
    if runtime.components.reach.health.state is NetworkState.FAILING:
        return PeerState.NETWORK_FAILING
    if not activity.busy.is_set():
        return PeerState.IDLE
    has_own_work = runtime.components.frontier.pending or crawler.in_flight
    return PeerState.CATCHING_UP if not has_own_work and runtime.cells.sync.busy else PeerState.CRAWLING


def row_of(runtime: "Runtime") -> PeerRow:
    """Return the row of a full peer that has begun."""
    resources, components, loans = runtime.resources, runtime.components, runtime.balancing.loans
    filters, pages = resources.store.expiring_filters, components.crawl_limits.pages
    refusing = components.frontier.refusing(resources.clock.now())
    return PeerRow(
        contact=runtime.contact,
        state=state_of(runtime),
        pending=min(components.frontier.pending + runtime.cells.pending_closed, COUNT_MAX),
        in_flight=components.crawler.in_flight,
        uptime_s=int(resources.clock.now() - resources.started_at),
        counters=resources.counters.to_wire(),
        allowance=max(0, pages.told - pages.begun),
        granted=pages.told,
        lent=loans.lender.urls,
        borrowed=loans.borrower.urls,
        due_s=runtime.due_s,
        lag=resources.deliveries.lag,
        fingerprints=min(filters.keys, COUNT_MAX) if filters is not None else 0,
        refusing=[
            RefusingSite(site[:SITE_SHOWN_MAX], back_off.status, back_off.refusals, min(wait_s, WAIT_MAX_S))
            for site, back_off, wait_s in refusing[:REFUSING_MAX]
        ],
        refusing_count=len(refusing),
        refused_by=runtime.key_mismatches.count,
        limit=components.crawl_limits.reached,
        bytes_granted=min(components.crawl_limits.bytes.told, COUNT_MAX),
        paused_sites=sum(value > 0 for value in runtime.standing_orders.values("pause").values()),
    )
