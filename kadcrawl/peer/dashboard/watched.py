"""What one full peer tells the dashboards of its swarm: its details, and what happened in the last seconds.

Tests: tests/peer/dashboard/test_source.py
"""

import msgspec

from kadcrawl.link.wire.peer_row import PeerRow
from kadcrawl.link.wire.watch_messages import Watched
from kadcrawl.overlay.waves.watched_sum import joined
from kadcrawl.peer.dashboard.event_watch import EventWatch
from kadcrawl.peer.dashboard.own_details import details_of, sinks_of
from kadcrawl.peer.runtime import Runtime


class WatchTeller:
    """The answers of one full peer to the looks of dashboards."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._events = EventWatch(lambda: runtime.contact.id, runtime.resources.clock.now)

    def told(self, since_s: float) -> Watched:
        """Return what happened at this peer in the last `since_s` seconds, and its sinks and those of its leaves."""
        told, runtime = self._events.told(since_s), self._runtime
        sinks = [*sinks_of(runtime.resources.deliveries), *runtime.parts.leaves.sinks()]
        return joined([told, Watched(sinks=sinks)])

    def with_details(self, row: PeerRow) -> PeerRow:
        """Return the row of this peer with its details."""
        runtime = self._runtime
        details = details_of(runtime.balancing.policy.level, len(runtime.cells.holdings.owned))
        return msgspec.structs.replace(row, details=details)

    def close(self) -> None:
        """Watch no more."""
        self._events.close()
