"""What one full peer tells the dashboards of its swarm: its details, and what happened in the last seconds.

Tests: tests/peer/dashboard/test_source.py
"""

from contextlib import suppress

import msgspec

from kadcrawl.link.wire.basics import COUNT_MAX
from kadcrawl.link.wire.loan_messages import LEVEL_MAX
from kadcrawl.link.wire.peer_row import PeerDetails, PeerRow
from kadcrawl.link.wire.watch_messages import SINKS_TOLD_MAX, Watched, WatchedSink
from kadcrawl.peer.dashboard.event_watch import EventWatch, plain
from kadcrawl.peer.runtime import Runtime
from kadcrawl.sinks.deliveries import Deliveries
from kadcrawl.system.process_memory import resident_bytes
from kadcrawl.version import VERSION

NAME_CHARS_MAX = 100
"""Characters of the name of a sink."""


class WatchTeller:
    """The answers of one full peer to the looks of dashboards."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._events = EventWatch(lambda: runtime.contact.id, runtime.resources.clock.now)

    def told(self, since_s: float) -> Watched:
        """Return what happened at this peer in the last `since_s` seconds, and its sinks."""
        told = self._events.told(since_s)
        return msgspec.structs.replace(told, sinks=sinks_of(self._runtime.resources.deliveries))

    def with_details(self, row: PeerRow) -> PeerRow:
        """Return the row of this peer with its details."""
        level = self._runtime.balancing.policy.level
        details = PeerDetails(
            version=VERSION[:20],
            level=max(-LEVEL_MAX, min(level, LEVEL_MAX)),
            memory_bytes=min(resident_bytes(), COUNT_MAX),
            cells_owned=len(self._runtime.cells.holdings.owned),
        )
        return msgspec.structs.replace(row, details=details)

    def close(self) -> None:
        """Watch no more."""
        self._events.close()


def sinks_of(deliveries: Deliveries) -> list[WatchedSink]:
    """Return the sinks of one peer."""
    sinks = []
    for delivery in deliveries.each[:SINKS_TOLD_MAX]:
        work = delivery.work
        with suppress(OSError):  # The files may be gone.
            written, lag = min(work.moved, COUNT_MAX), min(work.lag, COUNT_MAX)
            sinks.append(WatchedSink(plain(work.name.shown)[:NAME_CHARS_MAX], written, lag, plain(delivery.why or "")))
    return sinks
