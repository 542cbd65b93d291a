"""The figures of a directory at rest, from journals of which some are out of date."""

import json
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from fuzz import data_directories
from kadcrawl.cli.app import main
from kadcrawl.cli.local import resting
from kadcrawl.cli.local.resting import RestingPeer, crawl_directories, granted_elsewhere, journals_at_rest, status_of
from kadcrawl.cli.local.stores_at_rest import commit
from kadcrawl.keys import Cell, anchor, id_bytes
from kadcrawl.link.wire.leaf_messages import leaf_contact
from kadcrawl.link.wire.messages import Contact, Departed, PeerCounters
from kadcrawl.members.peer_key import PeerKey
from kadcrawl.peer.job_store import JobRecord
from kadcrawl.peer.membership.key_store import KeyStore
from kadcrawl.settings.job import Job
from kadcrawl.store.store import Store
from kadcrawl.system.file_names import JOURNAL

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


def test_pages_of_a_departed_peer_count_once_whether_or_not_it_had_a_grant() -> None:
    gone, before, dead = id_bytes(3), id_bytes(4), id_bytes(5)
    left = [Departed(Contact(one, "10.0.0.1", 1), PeerCounters(), 30) for one in (gone, before)]
    keepers = [
        replace(resting_peer(number, known=0, pending=0), departed=left, grants={gone: 30, dead: 20})
        for number in (NEAR, FAR)
    ]
    rows = status_of(keepers, JOB, 0.0).answer.rows
    assert 60 + 20 == sum(row.granted for row in rows) + granted_elsewhere(keepers)


@pytest.mark.parametrize("job", [replace(JOB, history="bloom"), replace(JOB, recrawl_after_s=60.0)])
def test_the_owner_says_it_where_known_urls_are_no_measure(job: Job) -> None:
    owner, backup = resting_peer(NEAR, known=4, pending=4), resting_peer(FAR, known=9, pending=3)
    assert [4, 0] == told_pending(job, owner, backup)


def make_peer(directory: Path, meta: Mapping[str, bytes], job: Job = JOB) -> None:
    """Make the directory of a peer of this job at rest, with these journaled values."""
    directory.mkdir()
    store = Store(directory, 0.0)
    JobRecord(store).keep(job)
    for name, value in meta.items():
        store.meta.set(name, value)
    commit([store])
    store.close()


@pytest.mark.parametrize("has_key", [True, False], ids=["key", "insecure"])
def test_a_leaf_has_its_row_in_the_figures(has_key: bool, tmp_path: Path) -> None:
    directory, key = tmp_path / "peer-2", PeerKey.generate()
    make_peer(directory, {} if has_key else {"leaf_id": key.id})
    if has_key:
        KeyStore(directory).keep_peer_key(key)
    peers, unreadable = journals_at_rest(tmp_path)
    assert [] == unreadable
    assert [leaf_contact(key.id)] == [peer.contact for peer in peers]
    assert ["leaf: not running"] == [row.state_text for row in status_of(peers, JOB, 0.0).answer.rows]


@pytest.mark.parametrize("command", ["status", "summary"])
def test_the_directory_of_a_leaf_is_at_rest_and_names_no_command_of_a_full_peer(command: str, tmp_path: Path) -> None:
    directory = tmp_path / "leaf"
    totals = json.dumps({"urls": 2, "done": 2, "pages": 2, "failed": {"http_404": 1}}).encode()
    make_peer(directory, {"leaf_id": id_bytes(7), "totals": totals})
    done = CliRunner().invoke(main, [command, "--data", str(directory)])
    assert done.exit_code == 0, done
    figures = "not running: 2 pages, 0 pending, 1 failed\n" if command == "status" else "2 of 2 URLs done (1 failed"
    assert figures in done.stdout
    source = f"kadcrawl: no peer runs in {directory}, whose journals have these figures"
    assert done.stderr == f"{source}; the same kadcrawl join --leaf goes on\n"
    assert "kadcrawl retry" not in done.stdout


def test_a_leaf_of_the_crawl_counts_whatever_its_directory_is_called(tmp_path: Path) -> None:
    make_peer(tmp_path / "peer-1", {"node_id": id_bytes(NEAR)})
    make_peer(tmp_path / "leaf", {"leaf_id": id_bytes(7)})
    make_peer(tmp_path / "of another crawl", {"leaf_id": id_bytes(8)}, Job(seeds=("http://b.example/",)))
    make_peer(tmp_path / "full", {"node_id": id_bytes(FAR)})
    assert [id_bytes(NEAR), id_bytes(7)] == [peer.contact.id for peer in journals_at_rest(tmp_path)[0]]


def test_copies_and_other_crawls_beside_the_peers_do_not_count(tmp_path: Path) -> None:
    def summary() -> str:
        done = CliRunner().invoke(main, ["summary", "--data", str(tmp_path), "--json"])
        assert done.exit_code == 0, done
        return done.stdout

    data_directories.make(tmp_path, is_finished=True)
    (tmp_path / "peer-2").rename(tmp_path / "other")
    before = summary()
    assert json.loads(before)["duplicates"] == 0
    peer, unrelated = tmp_path / "peer-1", tmp_path / "unrelated"
    for copy in ("copy", "peer-1.bak"):
        shutil.copytree(peer, tmp_path / copy)
    shutil.copytree(peer, unrelated)
    with closing(sqlite3.connect(unrelated / JOURNAL)) as journal, journal:
        job = msgspec.json.encode(Job(seeds=("http://elsewhere.example/",)))
        journal.execute("UPDATE meta SET value=? WHERE name='job'", (job,))
        journal.execute("UPDATE meta SET value=? WHERE name='node_id'", (bytes(20),))
    assert crawl_directories(tmp_path, data_directories.JOB) == [tmp_path, peer, tmp_path / "other"]
    assert before == summary()


def test_a_directory_moved_aside_for_an_older_copy_of_it_counts_with_its_own_lines(tmp_path: Path) -> None:
    def found() -> list[Path]:
        found = crawl_directories(tmp_path, data_directories.JOB)
        assert found == resting.directories_without_copies(tmp_path)
        return found

    data_directories.make(tmp_path, is_finished=True)
    own, aside = [tmp_path, *(tmp_path / name for name in ("peer-1", "peer-2"))], tmp_path / "peer-1.damaged"
    shutil.copytree(tmp_path / "peer-1", aside)
    assert own == found()
    with (aside / "pages.jsonl").open("ab") as log:
        log.write(b'{"url":"http://a.example/after"}\n')
    assert [*own, aside] == found()


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (sqlite3.SQLITE_READONLY, "journal cannot be read"),
        (sqlite3.SQLITE_CANTOPEN, "journal cannot be read"),
        (sqlite3.SQLITE_CORRUPT, "journal is damaged"),
        (sqlite3.SQLITE_NOTADB, "journal is damaged"),
    ],
)
def test_a_journal_that_may_not_be_read_is_not_called_damaged(
    code: int, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_peer(tmp_path / "peer-1", {"node_id": id_bytes(NEAR)})

    def failing(path: Path) -> sqlite3.Connection:
        error = sqlite3.DatabaseError("a reason")
        error.sqlite_errorcode = code
        raise error

    monkeypatch.setattr(resting, "open_at_rest", failing)
    peers, (unreadable,) = journals_at_rest(tmp_path)
    assert peers == []
    said = unreadable.lacking(tmp_path)
    assert f"{expected}: a reason" in said
    assert ("move this directory away" in said) == (expected == "journal is damaged")
