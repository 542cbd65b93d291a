"""A program sees the figures of a peer and of its swarm, without types of the wire."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from kadcrawl import Config, CrawlStatus, Job, PeerStatus
from kadcrawl.link.wire.messages import PeerRow, SwarmStatus
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.overlay.waves.quiescence import MISSING
from kadcrawl.peer import Peer
from kadcrawl.peer.crawl_status import state_of_swarm


@pytest.fixture
async def row(tmp_path: Path) -> PeerRow:
    async with Peer(Config(data=tmp_path / "a", port=0), Job(contact="a@b.example")) as peer:
        await peer.begin()
        return peer.row()


async def test_a_program_sees_the_figures_of_its_swarm(tmp_path: Path) -> None:
    async with Peer(Config(data=tmp_path / "a", port=0), Job(contact="a@b.example")) as peer:
        await peer.begin()
        await peer.pause_site("a.example", user="ann")
        await peer.pause()
        await peer.crawl(["http://a.example/", "http://b.example/"])
        status = await peer.status()
        assert ("paused", 2, 2, {}, True, False) == (
            *(status.state, status.urls, status.pending, status.failed),
            *(status.paused, status.ended),
        )
        assert [("pause", "a.example", "ann")] == [(order.kind, order.about, order.user) for order in status.orders]
        [figures] = status.peers
        assert figures == replace(peer.figures(), uptime_s=figures.uptime_s)
        assert (peer.id, peer.listens_at, "paused", 2) == (
            *(figures.id, figures.address),
            *(figures.state, figures.pending),
        )
        assert peer.id.startswith(peer.short_id)


def test_peers_that_left_count_and_stand_apart(row: PeerRow) -> None:
    left = msgspec.structs.replace(row, state=PeerState.LEFT, pending=0, due_s=None)
    there = msgspec.structs.replace(row, pending=7, due_s=3.0, limit="pages")
    status = CrawlStatus.of(SwarmStatus(MISSING, [there, left]), [], paused=False, ended=False)
    assert (7, 3.0, "pages", 1) == (status.pending, status.next_due_s, status.limit_reached, status.unanswered)
    assert ((PeerStatus.of(there),), (PeerStatus.of(left),)) == (status.peers, status.left)


@pytest.mark.parametrize(
    ("states", "paused", "ended", "said"),
    [
        ([PeerState.CRAWLING], False, False, "crawling"),
        ([PeerState.CRAWLING], True, False, "paused"),
        ([PeerState.DONE], False, True, "done"),
        ([PeerState.DISK_FULL], False, False, "paused: disk full"),
        ([PeerState.DISK_FULL, PeerState.CRAWLING], False, False, "crawling"),
        ([PeerState.RESTING, PeerState.LEFT], True, False, "resting"),
    ],
)
def test_the_state_of_a_swarm_is_in_words(
    row: PeerRow, states: list[PeerState], paused: bool, ended: bool, said: str
) -> None:
    rows = [msgspec.structs.replace(row, state=state) for state in states]
    assert said == state_of_swarm(rows, paused=paused, ended=ended)


@pytest.mark.parametrize(("others", "said"), [([], "not running"), ([PeerState.CRAWLING], "crawling")])
def test_a_leaf_tells_the_state_only_of_its_own_directory(row: PeerRow, others: list[PeerState], said: str) -> None:
    leaf = msgspec.structs.replace(row, state=PeerState.NOT_RUNNING, hosted_leaf=True)
    rows = [leaf, *(msgspec.structs.replace(row, state=state) for state in others)]
    assert said == state_of_swarm(rows, paused=False, ended=False)
