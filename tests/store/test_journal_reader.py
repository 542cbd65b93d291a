"""Test that a journal at rest can be read where nothing can be written."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from kadcrawl.store.journal_reader import open_at_rest, open_unchanged


def journal_of(path: Path) -> sqlite3.Connection:
    journal = sqlite3.connect(path, isolation_level=None)
    journal.execute("PRAGMA journal_mode=WAL")
    journal.execute("CREATE TABLE meta (name, value)")
    journal.execute("INSERT INTO meta VALUES ('job', 1)")
    return journal


def not_writable(path: object, mode: int) -> bool:
    return mode != os.W_OK


@pytest.mark.parametrize("access", [os.access, not_writable], ids=["writable", "not writable"])
@pytest.mark.parametrize("is_closed", [True, False])
def test_a_journal_is_read_whether_it_was_closed_or_its_peer_was_killed(
    access: Callable[..., bool], is_closed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "peer.sqlite"
    with closing(journal_of(path)) as written:
        if is_closed:
            written.close()
        monkeypatch.setattr(os, "access", access)
        with closing(open_at_rest(path)) as journal:
            assert journal.execute("SELECT * FROM meta").fetchall() == [("job", 1)]


def test_where_nothing_can_be_written_nothing_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "peer.sqlite"
    journal_of(path).close()
    before = path.read_bytes()
    monkeypatch.setattr(os, "access", not_writable)
    with closing(open_at_rest(path)) as journal:
        journal.execute("SELECT * FROM meta").fetchall()
        assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            journal.execute("DELETE FROM meta")
    assert path.read_bytes() == before


@pytest.mark.parametrize("absent", ["", "-shm"])
def test_a_journal_is_read_with_its_wal_and_both_stay_as_they_are(absent: str, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    path = tmp_path / "peer.sqlite"
    with closing(journal_of(path)):
        for suffix in {"", "-wal", "-shm"} - {absent or None}:
            (tmp_path / "copy" / f"{path.name}{suffix}").write_bytes(
                path.with_name(f"{path.name}{suffix}").read_bytes()
            )
        with closing(open_unchanged(path)) as journal:
            assert journal.execute("SELECT * FROM meta").fetchall() == [("job", 1)], "its peer runs"
    copy = tmp_path / "copy" / path.name
    wal = copy.with_name(f"{copy.name}-wal")
    before = copy.read_bytes(), wal.read_bytes()
    with closing(open_unchanged(copy)) as journal:
        assert journal.execute("SELECT * FROM meta").fetchall() == [("job", 1)]
    assert before == (copy.read_bytes(), wal.read_bytes())
