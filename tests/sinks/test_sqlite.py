"""Test that the failures of an SQLite file that a person can mend say how."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from kadcrawl.cli.app import main
from kadcrawl.cli.commands import export
from kadcrawl.sinks import sqlite
from kadcrawl.sinks.batch import DocumentBatch
from kadcrawl.sinks.sink import SinkError
from kadcrawl.sinks.sqlite import SqliteSink
from tests.support.sinks.peer_directory import Directory

WRITE_VERSION_AT = 18
"""Place of the write version in the header of a database. SQLite opens a file with a version above 2 read-only."""


@contextmanager
def read_only(path: Path) -> Iterator[None]:
    made(path)
    content = bytearray(path.read_bytes())
    content[WRITE_VERSION_AT] = 3
    path.write_bytes(content)
    yield


@contextmanager
def a_directory(path: Path) -> Iterator[None]:
    path.mkdir()
    yield


@contextmanager
def text(path: Path) -> Iterator[None]:
    path.write_text("this is no database, and long enough to be read as one" * 100)
    yield


@contextmanager
def damaged(path: Path) -> Iterator[None]:
    made(path)
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"\xff" * (len(content) - 100))
    yield


@contextmanager
def locked(path: Path) -> Iterator[None]:
    made(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def made(path: Path) -> None:
    sink = SqliteSink(path)
    sink.open()
    sink.close()


def fill(sink: SqliteSink) -> None:
    sink.open()
    sink.put(DocumentBatch("pages", "source", 0, 1, []))


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (read_only, "its file is read-only: let this user write to it and to its directory, or name another file"),
        (a_directory, "its file cannot be opened: name a file that this user may write to"),
        (text, "its file is no SQLite file: name another file"),
        (damaged, "its file is damaged: restore it from a backup, or name a new file"),
        (locked, "its file is locked by another program: end that program's transaction"),
    ],
)
def test_a_failure_says_what_to_do(
    broken: Callable[[Path], AbstractContextManager[None]], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_S", 0.01)
    with broken(tmp_path / "file.db"):
        sink = SqliteSink(tmp_path / "file.db")
        with pytest.raises(SinkError) as error:
            fill(sink)
        sink.close()
    assert str(error.value).startswith(says)


def test_a_disk_that_is_full_as_the_tables_are_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill_up(sink: SqliteSink, db: sqlite3.Connection) -> None:
        db.execute("ROLLBACK")  # As SQLite does by itself if the pages of a transaction find no room.
        full = sqlite3.OperationalError("database or disk is full")
        full.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise full

    monkeypatch.setattr(SqliteSink, "_make_tables", fill_up)
    sink = SqliteSink(tmp_path / "file.db")
    with pytest.raises(SinkError, match="its file has no room to grow: free space on its disk"):
        sink.open()
    sink.close()


def test_an_export_to_a_read_only_file_says_it_in_plain_words(
    directory: Directory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "EXPORT_STALL_S", 0.01)
    directory.write(2)
    with read_only(tmp_path / "file.db"):
        done = CliRunner().invoke(main, ["export", str(directory.path), "--to", f"sqlite:{tmp_path}/file.db"])
    assert 4 == done.exit_code, done.output
    assert f"the sink sqlite:{tmp_path}/file.db lacks 2 pages: its file is read-only: let this user" in done.output
    assert "Error" not in done.output
