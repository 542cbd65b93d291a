"""Test when a peer counts as ready."""

from dataclasses import replace

from kadcrawl.peer.monitoring.readiness import Readiness, ReadinessFacts

READY = ReadinessFacts(begun=True, joining=False, leaving=False, in_doubt=False, unsettled=0)


def test_a_peer_is_ready_once_it_has_joined_and_its_cells_are_synced() -> None:
    readiness = Readiness()
    assert "the peer has not entered its swarm yet" == readiness.why_not(replace(READY, begun=False))
    assert "the peer is joining its swarm" == readiness.why_not(replace(READY, joining=True))
    assert "3 cells are between two owners" == readiness.why_not(replace(READY, unsettled=3))
    assert "" == readiness.why_not(READY)


def test_a_ready_peer_stays_ready_while_it_opens_new_cells() -> None:
    readiness = Readiness()
    readiness.why_not(READY)
    assert "" == readiness.why_not(replace(READY, unsettled=1))


def test_a_peer_that_leaves_is_not_ready() -> None:
    readiness = Readiness()
    readiness.why_not(READY)
    assert "the peer leaves or stops" == readiness.why_not(replace(READY, leaving=True))


def test_a_peer_that_was_away_is_ready_again_only_after_its_syncs() -> None:
    readiness = Readiness()
    readiness.why_not(READY)
    assert "was away" in readiness.why_not(replace(READY, in_doubt=True))
    assert "1 cells are between two owners" == readiness.why_not(replace(READY, unsettled=1))
    assert "" == readiness.why_not(READY)
