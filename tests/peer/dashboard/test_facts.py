"""Test the document of a swarm, from the rows of its peers."""

from typing import Any

import msgspec
import pytest

from kadcrawl import Job
from kadcrawl.link.wire.messages import Contact, PeerCounters, PeerRow
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.peer.dashboard.facts import facts
from kadcrawl.peer.dashboard.swarm_view import SwarmView
from kadcrawl.peer.monitoring.verdict import CrawlVerdict


def row(number: int = 1, state: PeerState = PeerState.CRAWLING, **fields: Any) -> PeerRow:
    """Return the row of a peer."""
    contact = Contact(bytes([number]) * 20, "10.0.0.1", 4160)
    usual = PeerRow(contact, state, 0, 0, 60, PeerCounters(), 0, 0)
    return msgspec.structs.replace(usual, **fields)


def shown(*rows: PeerRow, own: CrawlVerdict = CrawlVerdict.FETCHING, **view: Any) -> dict[str, Any]:
    """Return the document of a swarm of these peers."""
    return facts(SwarmView(rows=rows, job=Job(), **view), own, b"\1" * 20, 1000.0)


def test_the_figures_of_all_peers_add_up() -> None:
    counters = PeerCounters(pages=5, bytes=100, urls=9, done=6, failed={"dns": 2}, retried={"dns": 1})
    document = shown(row(1, pending=2, counters=counters), row(2, pending=3, counters=counters))
    expected = {"pages": 10, "received_bytes": 200, "found": 18, "done": 10, "failed": 2, "pending": 5, "started": 940}
    assert expected == {name: document["crawl"][name] for name in expected}
    assert 2 == document["failures"]["dns"]["count"]
    assert "name" in document["failures"]["dns"]["meaning"]


def test_peers_that_left_count_and_are_not_shown() -> None:
    document = shown(row(1), row(2, PeerState.LEFT, counters=PeerCounters(pages=7)))
    assert (7, ["01" * 20]) == (document["crawl"]["pages"], list(document["peers"]))


def test_a_leaf_is_shown_as_one() -> None:
    document = shown(row(1), row(2, hosted_leaf=True))
    assert ["full", "leaf"] == [peer["kind"] for peer in document["peers"].values()]


@pytest.mark.parametrize(
    ("document", "state"),
    [
        (shown(row(1), row(2, PeerState.IDLE)), "crawling"),
        (shown(row(1, PeerState.DISK_FULL)), "paused: disk full"),
        (shown(row(1), paused=True), "paused"),
        (shown(row(1), ended=True), "done"),
        (shown(), "crawling"),
    ],
)
def test_the_state_is_that_of_the_status(document: dict[str, Any], state: str) -> None:
    assert state == document["crawl"]["state"]
