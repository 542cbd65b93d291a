"""Test the memory of a dashboard: what is told several times counts once, and peers that come and go are named."""

from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.link.wire.watch_messages import FailedUrl, Watched, WatchedEvent, WatchedMove
from kadcrawl.peer.dashboard.watch_log import EVENTS_SHOWN_MAX, MOVES_SHOWN_MAX, WatchLog
from tests.peer.dashboard.test_facts import row

ONE, TWO = b"\1" * 20, b"\2" * 20


def kinds(log: WatchLog) -> list[str]:
    return [event["kind"] for event in log.members()["events"].values()]


def test_an_event_that_is_told_again_counts_once() -> None:
    log = WatchLog()
    event = WatchedEvent(5.0, ONE, "disk.full", "reserve_bytes=1")
    log.note(Watched([event]), 6.0)
    log.note(Watched([event, WatchedEvent(6.0, ONE, "disk.full", "reserve_bytes=1")]), 7.0)
    shown = list(log.members()["events"].values())
    assert [{"at": at, "kind": "disk.full", "text": "01010101: reserve_bytes=1"} for at in (5.0, 6.0)] == shown


def test_a_move_that_grows_stays_one() -> None:
    log = WatchLog()
    log.note(Watched(moves=[WatchedMove(5.0, "cells", ONE, TWO, 2, [7, 8])]), 6.0)
    log.note(Watched(moves=[WatchedMove(5.0, "cells", ONE, TWO, 9, [7, 8, 9])]), 7.0)
    (move,) = log.members()["moves"].values()
    assert (9, ONE.hex(), TWO.hex(), "cells", [7, 8, 9]) == tuple(
        move[name] for name in ("count", "from", "to", "kind", "cells")
    )
    assert ["cells.moved"] == kinds(log)


def test_the_numbers_of_events_rise_and_the_oldest_go() -> None:
    log = WatchLog()
    for second in range(EVENTS_SHOWN_MAX + 50):
        moves = [WatchedMove(float(second), "loan", ONE, TWO, 1)]
        log.note(Watched([WatchedEvent(float(second), ONE, "sink.up", "")], moves), float(second))
    members = log.members()
    assert (EVENTS_SHOWN_MAX, MOVES_SHOWN_MAX) == (len(members["events"]), len(members["moves"]))
    numbers = [int(number) for number in members["events"]]
    assert sorted(set(numbers)) == numbers


def test_a_clock_that_is_ahead_puts_nothing_into_the_future() -> None:
    log = WatchLog()
    log.note(Watched([WatchedEvent(99.0, ONE, "sink.up", "")], [WatchedMove(99.0, "loan", ONE, TWO, 1)]), 6.0)
    members = log.members()
    assert {6.0} == {one["at"] for part in members.values() for one in part.values()}


def test_peers_that_come_leave_and_fall_silent_are_named() -> None:
    log = WatchLog()
    log.note_rows([row(1), row(2), row(3)], 1.0)
    assert [] == kinds(log), "the first look finds them"
    log.note_rows([row(1), row(3, PeerState.LEFT), row(4), row(5, hosted_leaf=True)], 2.0)
    assert ["peer.joined", "leaf.joined", "peer.left"] == kinds(log)
    log.note_rows([row(1), row(4), row(5, hosted_leaf=True)], 3.0)
    assert ["peer.silent"] == kinds(log)[3:]
    log.note_rows([row(1), row(2), row(5, hosted_leaf=True)], 4.0)
    log.note_rows([row(1), row(2), row(4), row(5, hosted_leaf=True)], 5.0)
    assert ["peer.joined"] == kinds(log)[4:], "a wave that passes over a peer once says nothing of it"


def test_a_few_failed_urls_of_a_reason_are_remembered() -> None:
    log = WatchLog()
    for number in range(9):
        log.note(Watched(failed=[FailedUrl("dns", f"http://a/{number}"), FailedUrl("tls", "http://b/")]), 1.0)
    assert [f"http://a/{number}" for number in range(4, 9)] == log.samples("dns")
    assert (["http://b/"], []) == (log.samples("tls"), log.samples("none"))
