"""Test that the verdict names the first reason for which the crawl is not done."""

import pytest

from kadcrawl.link.wire.peer_state import BLOCKED, GONE, PeerState
from kadcrawl.peer.monitoring.verdict import BY_STATE, CrawlVerdict, WorkLeft, verdict_of


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        (WorkLeft(is_paused=True, is_active=True, pending=1), CrawlVerdict.PAUSED),
        (WorkLeft(is_active=True, pending=9, lent=9, unsettled=1, unacknowledged=1), CrawlVerdict.FETCHING),
        (WorkLeft(pending=9, lent=9, unsettled=1), CrawlVerdict.LENT),
        (WorkLeft(pending=9, lent=8, unsettled=1), CrawlVerdict.WAITING_FOR_SITES),
        (WorkLeft(unsettled=1, unacknowledged=1), CrawlVerdict.SYNCING),
        (WorkLeft(unacknowledged=1), CrawlVerdict.ACKNOWLEDGING),
        (WorkLeft(), CrawlVerdict.OTHER_PEERS),
        (WorkLeft(has_seeds=False), CrawlVerdict.NO_SEEDS),
    ],
)
def test_the_work_left_tells_why_the_crawl_is_not_done(work: WorkLeft, expected: CrawlVerdict) -> None:
    for state in (PeerState.CRAWLING, PeerState.IDLE, PeerState.CATCHING_UP, PeerState.NETWORK_FAILING):
        assert expected == verdict_of(state, work)


def test_the_state_of_the_peer_counts_before_its_work() -> None:
    work = WorkLeft(is_active=True, pending=1)
    assert CrawlVerdict.DONE == verdict_of(PeerState.DONE, work)
    assert CrawlVerdict.PAUSED == verdict_of(PeerState.PAUSED, work)
    assert {CrawlVerdict.BLOCKED} == {verdict_of(state, work) for state in BLOCKED - {PeerState.PAUSED}}


def test_every_state_of_a_running_peer_has_a_verdict() -> None:
    by_work = {PeerState.CRAWLING, PeerState.IDLE, PeerState.CATCHING_UP, PeerState.NETWORK_FAILING}
    assert set(PeerState) == BY_STATE.keys() | by_work | GONE | {PeerState.NOT_RUNNING}
