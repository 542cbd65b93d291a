"""`joined` merges the news for a watching person, as a wave does at each level on its way back. A decision.

Of events and moves the latest stay, of failed URLs a few of each reason. Sinks of one name count together, and those
of leaves alone are left out first.
"""

from collections import Counter
from collections.abc import Iterable

import msgspec

from kadcrawl.link.wire.basics import COUNT_MAX
from kadcrawl.link.wire.watch_messages import (
    EVENTS_TOLD_MAX,
    MOVES_TOLD_MAX,
    SAMPLES_OF_REASON_MAX,
    SAMPLES_TOLD_MAX,
    SINKS_TOLD_MAX,
    FailedUrl,
    Watched,
    WatchedSink,
)


def joined(parts: Iterable[Watched]) -> Watched:
    """Return what these peers tell, as one, within the limits of the wire."""
    parts = list(parts)
    events = sorted((event for part in parts for event in part.events), key=lambda event: event.at)
    moves = sorted((move for part in parts for move in part.moves), key=lambda move: move.at)
    failed: list[FailedUrl] = []
    of_reason: Counter[str] = Counter()
    for one in (sample for part in parts for sample in part.failed):
        if of_reason[one.reason] < SAMPLES_OF_REASON_MAX and len(failed) < SAMPLES_TOLD_MAX:
            of_reason[one.reason] += 1
            failed.append(one)
    sinks: dict[str, WatchedSink] = {}
    for sink in sorted((sink for part in parts for sink in part.sinks), key=lambda sink: sink.of_leaf):
        known = sinks.get(sink.name)
        if known is None and len(sinks) < SINKS_TOLD_MAX:
            sinks[sink.name] = sink
        elif known is not None:
            sinks[sink.name] = msgspec.structs.replace(
                known,
                written=min(known.written + sink.written, COUNT_MAX),
                lag=min(known.lag + sink.lag, COUNT_MAX),
                why=known.why or sink.why,
            )
    return Watched(events[-EVENTS_TOLD_MAX:], moves[-MOVES_TOLD_MAX:], failed, list(sinks.values()))
