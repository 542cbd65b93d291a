"""Test that a journal of the last release opens with every record it had."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kadcrawl.errors import StartError
from kadcrawl.keys import Key, site_hash, url_key
from kadcrawl.store.migration import bring_up_to_date
from kadcrawl.store.schema import DONE, PENDING
from tests.support.stores import line, opened

BY_ROWID = """
CREATE TABLE meta(name TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;
CREATE TABLE history(key BLOB PRIMARY KEY, state INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE frontier(
    seq INTEGER PRIMARY KEY, key BLOB NOT NULL, site TEXT NOT NULL, url TEXT NOT NULL,
    depth INTEGER NOT NULL, hops INTEGER NOT NULL, tries INTEGER NOT NULL, due REAL NOT NULL);
CREATE INDEX frontier_by_site ON frontier(site, depth, seq);
CREATE UNIQUE INDEX frontier_by_key ON frontier(key);
CREATE TABLE visit(
    key BLOB PRIMARY KEY, cell INTEGER NOT NULL, site TEXT NOT NULL, url TEXT NOT NULL, depth INTEGER NOT NULL,
    due REAL, period_s REAL NOT NULL, etag TEXT NOT NULL, last_modified TEXT NOT NULL, digest TEXT NOT NULL,
    captured TEXT NOT NULL, gone INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX visit_by_due ON visit(cell, due);
CREATE TABLE cell(
    cell INTEGER PRIMARY KEY, keys INTEGER NOT NULL, pending INTEGER NOT NULL, digest BLOB NOT NULL);
CREATE TABLE site(site TEXT PRIMARY KEY, not_before REAL NOT NULL, delay_s REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE robots(origin TEXT PRIMARY KEY, rules BLOB NOT NULL, fetched_at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE outbox(place INTEGER PRIMARY KEY, line BLOB NOT NULL);
PRAGMA user_version = 3;
"""
"""The tables of the last release, in a new directory."""

SITE, OTHER = "a.example", "http://b.example/4"
URLS = [f"http://{SITE}/{number}" for number in range(4)]
KEYS = [url_key(site_hash(SITE), url) for url in URLS]


async def fill(path: Path) -> None:
    """Make the journal by this release, and write its records as the last release did."""
    with closing(opened(path)) as store:
        for depth, (url, key) in enumerate(zip(URLS, KEYS, strict=True)):
            store.accept(key, SITE, url, 9 - depth, 0, trail=b"12345678" if depth == 1 else b"")
        store.accept(url_key(site_hash(OTHER), OTHER), OTHER, OTHER, 0, 1, 2, 7.5)
        first = store.entry(KEYS[0])
        assert first is not None
        store.finish(first, line(0))
        await store.journal.commit()
        database = store.journal.path
    with closing(sqlite3.connect(database, isolation_level=None)) as db:
        rows = db.execute("SELECT * FROM frontier").fetchall()
        tables = {
            table: db.execute(f"SELECT * FROM {table}").fetchall() for table in ("meta", "history", "cell", "outbox")
        }
    for file in path.glob("peer.sqlite*"):
        file.unlink()
    with closing(sqlite3.connect(database, isolation_level=None)) as db:
        db.executescript(BY_ROWID)
        db.executemany("INSERT INTO meta VALUES (?, ?)", [row for row in tables["meta"] if row[0] != "frontier_seq"])
        db.executemany("INSERT INTO history VALUES (?, ?)", [row[:2] for row in tables["history"]])
        db.executemany("INSERT INTO cell VALUES (?, ?, ?, ?)", tables["cell"])
        db.executemany("INSERT INTO outbox VALUES (?, ?)", tables["outbox"])
        db.execute("ALTER TABLE frontier ADD COLUMN trail BLOB NOT NULL DEFAULT x''")
        db.executemany(
            "INSERT INTO frontier(depth, seq, key, site, url, hops, tries, due, trail) VALUES (?,?,?,?,?,?,?,?,?)",
            [(row[1], row[2], row[0] + row[3], row[4] or row[5], *row[5:10]) for row in rows],
        )


async def test_a_journal_of_the_last_release_keeps_its_records(tmp_path: Path) -> None:
    await fill(tmp_path)
    for _ in range(2):  # The second time it is a journal of this release.
        with closing(opened(tmp_path)) as store:
            assert [DONE, PENDING, PENDING, PENDING] == [store.state(key) for key in KEYS]
            window = store.window(SITE, 10)
            assert [URLS[3], URLS[2], URLS[1]] == [entry.url for entry in window]
            assert [b"", b"", b"12345678"] == [entry.trail for entry in window]
            (other,) = store.window(OTHER, 10)
            assert (OTHER, 0, 1, 2, 7.5) == (other.site, other.depth, other.hops, other.tries, other.due)
            assert store.entry(other.key) == other
            assert store.pending == 4
            added = store.accept(Key(KEYS[0][:-1] + b"x"), SITE, f"{URLS[0]}x", 0, 0)
            assert added is not None
            assert added.seq > max(entry.seq for entry in window)


async def test_a_directory_of_the_first_release_opens_with_empty_trails(tmp_path: Path) -> None:
    await fill(tmp_path)
    with closing(sqlite3.connect(tmp_path / "peer.sqlite")) as database:
        database.execute("ALTER TABLE frontier DROP COLUMN trail")
        database.commit()
    with closing(opened(tmp_path)) as store:
        assert [b"", b"", b""] == [entry.trail for entry in store.window(SITE, 10)]


async def test_a_journal_whose_change_fails_stays_as_it_was(tmp_path: Path) -> None:
    await fill(tmp_path)
    with closing(sqlite3.connect(tmp_path / "peer.sqlite")) as database, database:
        database.execute("CREATE TABLE frontier_by_rowid(x)")
    with pytest.raises(StartError, match="cannot open the journal"):
        opened(tmp_path)
    with closing(sqlite3.connect(tmp_path / "peer.sqlite")) as database, database:
        database.execute("DROP TABLE frontier_by_rowid")
    with closing(opened(tmp_path)) as store:
        assert store.pending == 4


def test_a_new_journal_has_all_of_its_tables_or_none() -> None:
    def deny_the_last(action: int, name: str | None, *_: str | None) -> int:
        is_last = action == sqlite3.SQLITE_CREATE_INDEX and name == "visit_by_failure"
        return sqlite3.SQLITE_DENY if is_last else sqlite3.SQLITE_OK

    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.set_authorizer(deny_the_last)
        with pytest.raises(sqlite3.DatabaseError):
            bring_up_to_date(db, 0)
        db.set_authorizer(None)
        assert db.in_transaction
        db.rollback()
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == []
        bring_up_to_date(db, 0)
        assert ("visit_by_failure",) in db.execute("SELECT name FROM sqlite_master").fetchall()
