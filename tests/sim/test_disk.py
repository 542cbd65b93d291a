"""The simulated disk keeps synced bytes, loses a part of the others, and remembers page lines."""

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from kadcrawl.store.log_parts import log_lines, part_path
from sim.disk import Disk, DiskState


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path / "disk", Random(1))


def append(disk: Disk, text: bytes, *, sync: bool, name: str = "pages.jsonl") -> None:
    with open(disk.directory / name, "ab") as file:
        file.write(text)
        file.flush()
        if sync:
            disk.sync([file.fileno()])


def content(disk: Disk, name: str = "pages.jsonl") -> bytes:
    return (disk.directory / name).read_bytes()


def test_a_crash_keeps_what_was_synced_and_some_of_the_rest(tmp_path: Path) -> None:
    tail = b"-not synced"
    kept = set()
    for seed in range(40):
        disk = Disk(tmp_path / str(seed), Random(seed))
        disk.boot("none")
        append(disk, b"synced", sync=True)
        append(disk, tail, sync=False)
        disk.crash()
        disk.boot("same")
        text = content(disk)
        assert text.startswith(b"synced")
        assert (b"synced" + tail).startswith(text)
        kept.add(len(text) - len(b"synced"))
    assert {0, len(tail)} < kept, "nothing, all, and something in between"


def test_what_survived_one_crash_survives_the_next(disk: Disk) -> None:
    disk.boot("none")
    append(disk, b"synced", sync=True)
    for _ in range(5):
        disk.crash()
        disk.boot("same")
        assert content(disk) == b"synced"


def test_what_a_peer_left_that_ended_by_itself_is_all_there(disk: Disk) -> None:
    disk.boot("none")
    append(disk, b"not synced", sync=False)
    disk.close()
    disk.boot("same")
    assert content(disk) == b"not synced"


def test_a_crash_leaves_a_database_with_all_that_was_synced(disk: Disk) -> None:
    for seed in range(20):
        path = disk.boot("none") / "peer.sqlite"
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA wal_autocheckpoint=0")
            db.execute("CREATE TABLE t(n)")
            for number in range(20):
                db.execute("INSERT INTO t VALUES (?)", (number,))
                if number == 9:
                    with open(f"{path}-wal", "rb") as wal:
                        disk.sync([wal.fileno()])
                if number == seed:
                    db.execute("PRAGMA wal_checkpoint(PASSIVE)") if seed < 10 else None
            disk.crash()
        with closing(sqlite3.connect(disk.boot("same") / "peer.sqlite")) as db:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            count = db.execute("SELECT count(*) FROM t").fetchone()[0]
            assert 10 <= count <= 20
        disk.crash()


def test_a_crash_takes_unsynced_frames_of_a_wal_that_has_started_anew(disk: Disk) -> None:
    kept = set()
    for _ in range(40):
        path = disk.boot("none") / "peer.sqlite"
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA wal_autocheckpoint=0")
            db.execute("CREATE TABLE t(n)")
            for number in range(40):
                db.execute("INSERT INTO t VALUES (?)", (number,))
                if number in (9, 29):
                    with open(f"{path}-wal", "rb") as wal:
                        disk.sync([wal.fileno()])
                if number == 19:
                    db.execute("PRAGMA wal_checkpoint(RESTART)")
            disk.crash()
        with closing(sqlite3.connect(disk.boot("same") / "peer.sqlite")) as db:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            kept.add(db.execute("SELECT count(*) FROM t").fetchone()[0])
        disk.crash()
    assert {30, 40} < kept <= {*range(30, 41)}


def test_a_full_disk_says_so(disk: Disk) -> None:
    disk.boot("none")
    disk.full = True
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)) as raised:
        append(disk, b"x", sync=True)
    assert raised.value.errno == errno.ENOSPC
    disk.full = False
    append(disk, b"x", sync=True)


def test_the_old_disk_is_the_last_snapshot(disk: Disk) -> None:
    disk.boot("none")
    append(disk, b"old", sync=True)
    disk.snapshot()
    append(disk, b"-new", sync=True)
    disk.crash()
    disk.boot("old")
    assert content(disk) == b"old"


def test_without_a_snapshot_the_old_disk_is_that_of_the_crash_before(disk: Disk) -> None:
    disk.boot("none")
    append(disk, b"first", sync=True)
    disk.crash()
    disk.boot("old")
    assert content(disk) == b"first", "there is no older one yet"
    append(disk, b"-second", sync=True)
    disk.crash()
    disk.boot("same")
    append(disk, b"-third", sync=True)
    disk.crash()
    disk.boot("old")
    assert content(disk) == b"first-second"


def test_a_new_disk_is_empty_and_has_no_past(disk: Disk) -> None:
    disk.boot("none")
    append(disk, b"x", sync=True)
    disk.snapshot()
    disk.crash()
    assert list(disk.boot("none").iterdir()) == []
    disk.crash()
    assert list(disk.boot("old").iterdir()) == []


def test_a_line_that_is_not_shown_again_on_the_same_disk_never_was(disk: Disk) -> None:
    disk.boot("none")
    append(disk, b'{"n": 1}\n', sync=True)
    append(disk, b'{"n": 2}\n', sync=False)
    disk.crash()
    assert [{"n": 1}, {"n": 2}] == disk.lines(), "while the machine is down it may still come back with both"
    (disk.boot("same") / "pages.jsonl").write_bytes(b'{"n": 1}\n')
    assert [{"n": 1}] == disk.lines()


@pytest.mark.parametrize("state", ["old", "none"])
def test_a_line_shown_on_a_disk_that_is_used_no_more_stays_known(disk: Disk, state: DiskState) -> None:
    disk.boot("none")
    disk.snapshot()
    append(disk, b'{"n": 1}\n', sync=False)
    disk.crash()
    disk.boot(state)
    assert [{"n": 1}] == disk.lines()


def test_each_line_shown_counts_once_however_often_it_is_restored(disk: Disk) -> None:
    disk.boot("none")
    append(disk, b'{"n": 1}\n', sync=True)
    append(disk, b'{"n": 2}\n{"n": 3', sync=False)
    assert [{"n": 1}, {"n": 2}] == disk.lines(), "half a line is none"
    disk.crash()
    (disk.boot("same") / "pages.jsonl").write_bytes(b'{"n": 1}\n{"n": 2}\n{"n": 4}\n')
    assert [{"n": 1}, {"n": 2}, {"n": 4}] == disk.lines()
    disk.crash()
    disk.boot("none")
    append(disk, b'{"n": 1}\n', sync=True)
    disk.destroy()
    assert [{"n": 1}, {"n": 2}, {"n": 4}, {"n": 1}] == disk.lines(), "an empty disk has shown nothing yet"


def test_a_log_is_read_again_only_after_it_has_changed(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    disk.boot("none")
    reads: list[Path] = []

    def counted(path: Path) -> Iterator[bytes]:
        reads.append(path)
        return log_lines(path)

    monkeypatch.setattr("sim.disk.log_lines", counted)
    append(disk, b'{"n": 1}\n', sync=True)
    assert [{"n": 1}] == disk.lines() == disk.lines()
    assert 1 == len(reads)
    append(disk, b'{"n": 2}\n', sync=False)
    assert [{"n": 1}, {"n": 2}] == disk.lines() == disk.lines()
    assert 2 == len(reads)
    os.rename(disk.directory / "pages.jsonl", part_path(disk.directory / "pages.jsonl", 1))
    append(disk, b'{"n": 3}\n', sync=False)
    assert [{"n": 1}, {"n": 2}, {"n": 3}] == disk.lines()
    assert 3 == len(reads)
