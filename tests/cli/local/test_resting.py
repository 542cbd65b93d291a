"""The figures of a directory at rest, from journals of which some are out of date."""

from dataclasses import replace
from pathlib import Path

import pytest

from kadcrawl.cli.local.resting import RestingPeer, journals_at_rest, status_of
from kadcrawl.cli.local.stores_at_rest import commit
from kadcrawl.keys import Cell, anchor, id_bytes
from kadcrawl.link.wire.leaf_messages import leaf_contact
from kadcrawl.link.wire.messages import Contact, PeerCounters
from kadcrawl.members.peer_key import PeerKey
from kadcrawl.peer.job_store import JobRecord
from kadcrawl.peer.membership.key_store import KeyStore
from kadcrawl.settings.job import Job
from kadcrawl.store.store import Store

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


@pytest.mark.parametrize("has_key", [True, False], ids=["key", "insecure"])
def test_a_leaf_has_its_row_in_the_figures(has_key: bool, tmp_path: Path) -> None:
    directory = tmp_path / "peer-2"
    directory.mkdir()
    store, key = Store(directory, 0.0), PeerKey.generate()
    JobRecord(store).keep(JOB)
    if has_key:
        KeyStore(directory).keep_peer_key(key)
    else:
        store.meta.set("leaf_id", key.id)
    commit([store])
    store.close()
    peers, unreadable = journals_at_rest(tmp_path)
    assert [] == unreadable
    assert [leaf_contact(key.id)] == [peer.contact for peer in peers]
    assert ["leaf: not running"] == [row.state_text for row in status_of(peers, JOB, 0.0).answer.rows]
