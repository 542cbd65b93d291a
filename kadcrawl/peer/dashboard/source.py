"""What the dashboard of one peer or leaf asks: its swarm, by the census that `kadcrawl status` uses too.

Tests: tests/peer/dashboard/test_source.py
"""

import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from kadcrawl.peer.dashboard.facts import facts
from kadcrawl.peer.dashboard.swarm_view import SwarmView
from kadcrawl.peer.monitoring.monitored_peer import MonitoredPeer
from kadcrawl.peer.monitoring.readings import verdict
from kadcrawl.peer.resources import Resources
from kadcrawl.web.source import DashboardSource


def dashboard_source(peer: MonitoredPeer, look: Callable[[], Awaitable[SwarmView]]) -> DashboardSource:
    """Return what the dashboard asks of this peer. `look` asks the swarm, and raises RemoteError."""

    async def gather() -> dict[str, Any]:
        view = await look()
        return facts(view, verdict(peer), peer.peer_id(), peer.resources.clock.now())

    return DashboardSource(
        data=peer.resources.config.data,
        now=peer.resources.clock.now,
        session_key=_session_key(peer.resources),
        gather=gather,
    )


def _session_key(resources: Resources) -> Callable[[], bytes]:
    """Return a function that returns the key of the sessions: of the swarm's key, so that another key ends them."""
    of_process = secrets.token_bytes(32)

    def key() -> bytes:
        credentials = resources.credentials
        return of_process if credentials is None else credentials.keyring.key.derive(b"dashboard sessions")

    return key
