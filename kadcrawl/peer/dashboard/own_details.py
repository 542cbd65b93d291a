"""What one peer or leaf tells dashboards of itself: its release, level and memory, and its sinks.

Tests: tests/peer/dashboard/test_source.py, tests/web/test_listener.py
"""

from contextlib import suppress

from kadcrawl.link.wire.basics import COUNT_MAX
from kadcrawl.link.wire.loan_messages import LEVEL_MAX
from kadcrawl.link.wire.peer_row import PeerDetails
from kadcrawl.link.wire.watch_messages import SINKS_TOLD_MAX, WatchedSink
from kadcrawl.peer.dashboard.event_watch import plain
from kadcrawl.sinks.deliveries import Deliveries
from kadcrawl.system.process_memory import resident_bytes
from kadcrawl.version import VERSION

NAME_CHARS_MAX = 100
"""Characters of the name of a sink."""


def details_of(level: float, cells_owned: int = 0) -> PeerDetails:
    """Return the details of the peer of this process."""
    return PeerDetails(
        version=VERSION[:20],
        level=max(-LEVEL_MAX, min(level, LEVEL_MAX)),
        memory_bytes=min(resident_bytes(), COUNT_MAX),
        cells_owned=cells_owned,
    )


def sinks_of(deliveries: Deliveries, most: int = SINKS_TOLD_MAX, *, of_leaf: bool = False) -> list[WatchedSink]:
    """Return the sinks of one peer, at most so many."""
    sinks = []
    for delivery in deliveries.each[:most]:
        work = delivery.work
        with suppress(OSError):  # The files may be gone.
            name, why = plain(work.name.shown)[:NAME_CHARS_MAX], plain(delivery.why or "")
            written, lag = min(work.moved, COUNT_MAX), min(work.lag, COUNT_MAX)
            sinks.append(WatchedSink(name, written, lag, why, of_leaf))
    return sinks
