"""Test that spaced misses in a row make a peer suspect and then dead, and that nothing else does."""

from random import Random

import pytest

from kadcrawl.overlay.liveness import Liveness, LivenessVerdict
from kadcrawl.overlay.settings import OverlaySettings

LIVE, SUSPECT, DEAD = LivenessVerdict.LIVE, LivenessVerdict.SUSPECT, LivenessVerdict.DEAD
PEER = b"p" * 20


def liveness(**settings: float) -> Liveness:
    found = Liveness(OverlaySettings(miss_spacing_s=(0.5, 2.0), **settings), Random(1))  # type: ignore[arg-type]
    found.admit(PEER)
    return found


@pytest.mark.parametrize(
    ("events", "verdict"),
    [
        ([("missed", 0)], LIVE),
        ([("missed", 0), ("missed", 0.4)], LIVE),  # too close together: one miss
        ([("missed", 0), ("missed", 0.5)], SUSPECT),
        ([("missed", 0), ("missed", 0.5), ("missed", 2.4)], SUSPECT),
        ([("missed", 0), ("missed", 0.5), ("missed", 2.5)], DEAD),
        ([("missed", 0), ("missed", 0.5), ("heard", 1), ("missed", 9)], LIVE),
        ([("missed", 0), ("heard", 1), ("missed", 2), ("heard", 3), ("missed", 4)], LIVE),
        ([("missed", 0.01 * n) for n in range(40)], LIVE),  # many lookups fail at one moment
    ],
)
def test_verdict(events: list[tuple[str, float]], verdict: LivenessVerdict) -> None:
    peers = liveness()
    found = None
    for event, at in events:
        found = getattr(peers, event)(PEER, at)
    assert verdict is found
    assert (verdict is not LIVE) == peers.suspected(PEER, events[-1][1])


@pytest.mark.parametrize(
    ("sibling", "silent_s", "due"),
    [(True, 1.8, False), (True, 3.2, True), (False, 3.2, False), (False, 33, False), (False, 57, True)],
)
def test_silent_members_are_due_siblings_sooner(sibling: bool, silent_s: float, due: bool) -> None:
    peers = liveness(heartbeat_s=2.5, check_s=45.0)
    peers.heard(PEER, 100)
    assert ([PEER] if due else []) == peers.due(100 + silent_s, {PEER} if sibling else ())


def test_a_member_is_not_due_twice_while_it_is_being_asked() -> None:
    peers = liveness()
    peers.heard(PEER, 0)
    assert peers.due(10, {PEER}) == [PEER]
    assert peers.due(10.5, {PEER}) == []


def test_one_miss_is_followed_up_soon() -> None:
    peers = liveness()
    peers.heard(PEER, 0)
    peers.missed(PEER, 10)
    assert peers.due(10.4, ()) == []
    assert peers.due(10.5, ()) == [PEER]


def test_non_members_are_remembered_for_a_while_and_never_due() -> None:
    peers = Liveness(OverlaySettings(non_member_miss_s=30), Random(1))
    peers.missed(PEER, 0)
    peers.missed(PEER, 1)
    assert peers.suspected(PEER, 30.9)
    assert not peers.suspected(PEER, 31)
    assert peers.due(1000, {PEER}) == []
    assert LIVE is peers.missed(PEER, 1000), "an old miss is forgiven"


def test_non_members_are_bounded() -> None:
    peers = Liveness(OverlaySettings(non_members_max=10), Random(1))
    for number in range(11):
        for at in (0, 1):
            peers.missed(bytes([number]) * 20, at)
    suspected = [number for number in range(11) if peers.suspected(bytes([number]) * 20, 1)]
    assert list(range(1, 11)) == suspected


def test_heard_lately() -> None:
    peers = liveness()
    assert not peers.heard_within(PEER, 0, 5)
    peers.heard(PEER, 0)
    assert peers.heard_within(PEER, 5, 5)
    assert not peers.heard_within(PEER, 5.1, 5)
    peers.missed(PEER, 1)
    assert not peers.heard_within(PEER, 1, 5)
