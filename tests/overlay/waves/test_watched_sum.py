"""Test what peers tell a person who watches: joined at each level of a wave, within the limits of the wire."""

from kadcrawl.link.wire.basics import COUNT_MAX
from kadcrawl.link.wire.watch_messages import (
    EVENTS_TOLD_MAX,
    MOVES_TOLD_MAX,
    SAMPLES_OF_REASON_MAX,
    SINKS_TOLD_MAX,
    FailedUrl,
    Watched,
    WatchedEvent,
    WatchedMove,
    WatchedSink,
)
from kadcrawl.overlay.waves.watched_sum import joined

ONE, TWO = b"\1" * 20, b"\2" * 20


def test_the_latest_events_and_moves_stay() -> None:
    events = [WatchedEvent(float(at), ONE, "disk.full", "") for at in range(EVENTS_TOLD_MAX + 5)]
    moves = [WatchedMove(float(at), "cells", ONE, TWO, 1) for at in range(MOVES_TOLD_MAX + 5)]
    told = joined([Watched(events[::2], moves[::2]), Watched(events[1::2], moves[1::2])])
    assert events[5:] == told.events
    assert moves[5:] == told.moves


def test_a_few_failed_urls_of_each_reason_stay() -> None:
    many = Watched(failed=[FailedUrl("dns", f"http://a/{number}") for number in range(9)])
    other = Watched(failed=[FailedUrl("tls", "http://b/")])
    told = joined([many, other])
    assert [*many.failed[:SAMPLES_OF_REASON_MAX], *other.failed] == told.failed


def test_sinks_of_one_name_count_together() -> None:
    told = joined(
        [
            Watched(sinks=[WatchedSink("a", 5, 1), WatchedSink("b", 1, COUNT_MAX)]),
            Watched(sinks=[WatchedSink("a", 7, 2, "full"), WatchedSink("b", 1, COUNT_MAX)]),
        ]
    )
    assert [WatchedSink("a", 12, 3, "full"), WatchedSink("b", 2, COUNT_MAX)] == told.sinks
    many = [Watched(sinks=[WatchedSink(str(number), 1, 1)]) for number in range(SINKS_TOLD_MAX + 1)]
    assert SINKS_TOLD_MAX == len(joined(many).sinks)


def test_sinks_of_leaves_take_no_room_from_those_of_full_peers() -> None:
    of_leaves = [WatchedSink(f"leaf {number}", 1, 1, of_leaf=True) for number in range(SINKS_TOLD_MAX)]
    told = joined([Watched(sinks=of_leaves), Watched(sinks=[WatchedSink("pages.db", 5, 0)])]).sinks
    assert SINKS_TOLD_MAX == len(told)
    assert WatchedSink("pages.db", 5, 0) == told[0]
