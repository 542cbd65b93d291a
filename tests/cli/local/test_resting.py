"""The figures of a directory at rest, from journals of which some are out of date."""

from dataclasses import replace
from pathlib import Path

import pytest

from kadcrawl.cli.local.resting import RestingPeer, status_of
from kadcrawl.keys import Cell, anchor, id_bytes
from kadcrawl.link.wire.messages import Contact, PeerCounters
from kadcrawl.settings.job import Job

JOB = Job(seeds=("http://a.example/",))
CELL = Cell(7)
NEAR, FAR = (anchor(CELL, JOB.bits) ^ distance for distance in (1, 1 << 159))


def resting_peer(number: int, *, known: int, pending: int) -> RestingPeer:
    return RestingPeer(
        directory=Path("peer"),
        job=JOB,
        contact=Contact(id_bytes(number), "10.0.0.1", 1),
        counters=PeerCounters(),
        pending={CELL: pending},
        known={CELL: known},
        due=None,
        departed=(),
        orders=(),
        begun=0,
        grants={},
        limit=b"",
        refusing=(),
    )


def told_pending(job: Job, *peers: RestingPeer) -> list[int]:
    return [row.pending for row in status_of(peers, job, 0.0).answer.rows]


@pytest.mark.parametrize(("known", "pending"), [(1307, 707), (1000, 707)])
def test_a_peer_that_died_earlier_does_not_say_what_is_pending_in_a_cell_that_it_owned(
    known: int, pending: int
) -> None:
    died, alive = resting_peer(NEAR, known=1000, pending=800), resting_peer(FAR, known=known, pending=pending)
    assert [0, pending] == told_pending(JOB, died, alive)
    assert [pending, 0] == told_pending(JOB, alive, died)


def test_the_owner_says_it_among_equal_journals() -> None:
    owner, backup = resting_peer(NEAR, known=9, pending=4), resting_peer(FAR, known=9, pending=4)
    assert [4, 0] == told_pending(JOB, owner, backup)


@pytest.mark.parametrize("job", [replace(JOB, history="bloom"), replace(JOB, recrawl_after_s=60.0)])
def test_the_owner_says_it_where_known_urls_are_no_measure(job: Job) -> None:
    owner, backup = resting_peer(NEAR, known=4, pending=4), resting_peer(FAR, known=9, pending=3)
    assert [4, 0] == told_pending(job, owner, backup)
