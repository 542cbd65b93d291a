"""`kadcrawl vacuum` makes a journal as small as its rows, and changes no row."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

from fuzz.data_directories import make
from kadcrawl.cli.app import main
from kadcrawl.peer.directory import Directory


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["vacuum", *map(str, arguments)])


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """The journal of a peer with many free pages."""
    make(tmp_path, is_finished=True)
    path = tmp_path / "peer-1" / "peer.sqlite"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO meta VALUES ('large', zeroblob(1000000))")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM meta WHERE name='large'")
    return path


def rows(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as db:
        return list(db.iterdump())


def test_free_pages_go_back_and_all_rows_stay(tmp_path: Path, journal: Path) -> None:
    before, size = rows(journal), journal.stat().st_size
    result = run(tmp_path)
    assert result.exit_code == 0, result
    assert before == rows(journal)
    assert size - journal.stat().st_size > 900_000
    with closing(sqlite3.connect(journal)) as db:
        assert (2,) == db.execute("PRAGMA auto_vacuum").fetchone(), "its peer gives free pages back from now on"
    assert f"{journal}: {size:,} bytes before, {journal.stat().st_size:,} now" in result.output


def test_a_journal_that_becomes_no_smaller_is_explained(tmp_path: Path) -> None:
    make(tmp_path, is_finished=True)
    journal = tmp_path / "peer-1" / "peer.sqlite"
    size = journal.stat().st_size
    larger, same = run(journal.parent).output, run(journal.parent).output
    now = journal.stat().st_size
    assert now > size, "the map of its pages takes a page"
    assert f"{size:,} bytes before, {now:,} now; there was nothing to give back. Its new map of pages takes" in larger
    assert f"{now:,} bytes before, {now:,} now; there was nothing to give back\n" in same


def test_bytes_in_the_wal_count_for_the_size_before(tmp_path: Path, journal: Path) -> None:
    copy = tmp_path / "killed" / journal.name
    with closing(sqlite3.connect(journal)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("INSERT INTO meta VALUES ('large', zeroblob(3000000))")
        db.commit()
        shutil.copytree(journal.parent, copy.parent)
    assert copy.stat().st_size < 3_000_000
    said = run(copy.parent).output
    assert int(said.partition(" bytes")[0].rpartition(" ")[2].replace(",", "")) > 3_000_000


def test_the_journal_of_a_leaf_is_made_smaller_too(tmp_path: Path, journal: Path) -> None:
    journal.parent.rename(tmp_path / "leaf")
    size = (leaf := tmp_path / "leaf" / journal.name).stat().st_size
    assert 0 == run(tmp_path).exit_code
    assert size - leaf.stat().st_size > 900_000


@pytest.mark.parametrize("name", ["copy", "peer-1.bak"])
def test_a_copy_beside_the_peers_is_left_alone_unless_it_is_named(tmp_path: Path, journal: Path, name: str) -> None:
    copy = tmp_path / name / journal.name
    with closing(sqlite3.connect(journal)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("INSERT INTO meta(name, value) VALUES ('only in the WAL', '')")
        db.commit()
        shutil.copytree(journal.parent, copy.parent)  # As after a crash: with a WAL that is not in the journal.
    wal = copy.with_name(f"{copy.name}-wal")
    before = copy.read_bytes()
    for command in (["vacuum"], ["check-data", "--repair"]):
        assert CliRunner().invoke(main, [*command, str(tmp_path)]).exit_code == 0
    assert before == copy.read_bytes()
    assert wal.stat().st_size > 0
    assert run(copy.parent).exit_code == 0
    assert copy.stat().st_size < len(before) - 900_000


def test_a_running_peer_a_full_disk_and_no_journal_are_refused(
    tmp_path: Path, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = journal.stat().st_size
    with closing(Directory(journal.parent)):
        result = run(tmp_path)
        assert (2, True) == (result.exit_code, "a peer is running in" in result.output + result.stderr)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
        result = run(tmp_path)
        assert (2, True) == (result.exit_code, "make room first" in result.output + result.stderr)
    assert size == journal.stat().st_size
    result = run(journal.parent / "warc")
    assert (2, True) == (result.exit_code, "has no journal" in result.output + result.stderr)
