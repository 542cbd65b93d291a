"""Test the sentence that says whether the crawl is done, or why not yet."""

from typing import Any

import pytest

from kadcrawl.link.wire.messages import PeerRow
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.peer.dashboard.swarm_verdict import swarm_verdict
from kadcrawl.peer.dashboard.swarm_view import SwarmView
from kadcrawl.peer.monitoring.verdict import CrawlVerdict
from tests.peer.dashboard.test_facts import row


def told(own: CrawlVerdict, *rows: PeerRow, **view: Any) -> str:
    return swarm_verdict(SwarmView(rows=rows, **view), own).sentence


@pytest.mark.parametrize("own", CrawlVerdict)
def test_every_verdict_has_a_sentence(own: CrawlVerdict) -> None:
    for rows in ((), (row(1, pending=3),), (row(1, in_flight=2),), (row(1, PeerState.DISK_FULL),)):
        verdict = swarm_verdict(SwarmView(rows=rows), own)
        assert verdict.sentence.endswith(".")
        assert verdict.done == verdict.sentence.startswith(("Done", "Ending"))


def test_requests_of_another_peer_keep_the_crawl_from_its_end() -> None:
    rows = row(1), row(2, pending=1200, in_flight=1)
    assert "Not done: 1,200 URLs pending, 1 request under way." == told(CrawlVerdict.OTHER_PEERS, *rows)


def test_urls_of_another_peer_that_wait_keep_the_crawl_from_its_end() -> None:
    assert "wait for the pace" in told(CrawlVerdict.OTHER_PEERS, row(1), row(2, pending=1))


def test_a_swarm_whose_peers_are_all_blocked_says_by_what() -> None:
    rows = row(1, PeerState.DISK_FULL, pending=2), row(2, PeerState.NO_PROXY)
    expected = "Not done: 2 URLs pending, and no peer may fetch: 1 peer paused: disk full, 1 peer waiting for proxies."
    assert expected == told(CrawlVerdict.BLOCKED, *rows)


def test_a_swarm_with_one_blocked_peer_is_not_blocked() -> None:
    assert "1 request under way" in told(CrawlVerdict.BLOCKED, row(1, PeerState.DISK_FULL), row(2, in_flight=1))


def test_messages_on_their_way_are_told() -> None:
    assert "3 messages" in told(CrawlVerdict.OTHER_PEERS, row(1), unacknowledged=3)


def test_a_part_that_did_not_answer_is_told() -> None:
    assert told(CrawlVerdict.DONE, row(1), missing=1).endswith("1 part of the swarm did not answer.")


def test_the_time_of_the_next_page_is_told() -> None:
    assert "in 2 h" in told(CrawlVerdict.RESTING, row(1, due_s=7200.0), row(2, due_s=9000.0))
