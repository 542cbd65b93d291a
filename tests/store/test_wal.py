"""The WAL of a journal stays small in a busy crawl, and a reader that holds it stops nobody."""

import logging
import shutil
import sqlite3
from contextlib import closing
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from kadcrawl.store import wal
from kadcrawl.store.schema import DONE
from tests.support.stores import accept, key, line, opened

BOUND = 64 * 1024
"""Size at which the WAL of these tests is moved into the database."""
COMMIT_BYTES = 200_000
"""More than one commit here writes."""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wal, "CHECKPOINT_BYTES", BOUND)


def salts_in(directory: Path) -> bytes:
    """Return the salts of the WAL, which change when it starts anew."""
    return (directory / "peer.sqlite-wal").read_bytes()[wal.SALTS]


def size_in(directory: Path) -> int:
    return (directory / "peer.sqlite-wal").stat().st_size


async def test_the_wal_is_bounded_in_a_busy_crawl(tmp_path: Path) -> None:
    store = opened(tmp_path)
    sizes, salts = [], []
    for number in range(400):
        for each in range(5):
            store.finish(accept(store, 5 * number + each), line(number))
        await store.journal.commit()
        sizes.append(size_in(tmp_path))
        salts.append(salts_in(tmp_path))
    assert max(sizes) <= BOUND + COMMIT_BYTES
    assert sum(after != before for before, after in pairwise(salts)) > 5, "it starts anew"
    assert (tmp_path / "peer.sqlite").stat().st_size > 2 * BOUND
    store.close()
    again = opened(tmp_path)
    assert {DONE} == {again.state(key(number)) for number in range(2000)}
    again.close()


async def test_the_wal_is_used_anew_without_being_cut(tmp_path: Path) -> None:
    store = opened(tmp_path)
    sizes, salts = [], []
    for number in range(200):
        store.finish(accept(store, number), line(number))
        await store.journal.commit()
        sizes.append(size_in(tmp_path))
        salts.append(salts_in(tmp_path))
    assert sizes == sorted(sizes)
    runs = [len([*run]) for _, run in groupby(salts)]
    assert len(runs) > 3, "it starts anew"
    assert min(runs[1:-1]) > 3, "no run ends before it is large"
    store.close()


async def test_what_is_durable_is_found_behind_old_frames(tmp_path: Path) -> None:
    (tmp_path / "peer").mkdir()
    store = opened(tmp_path / "peer")
    for number in range(150):
        store.finish(accept(store, number), line(number))
        await store.journal.commit()
        left = tmp_path / f"{number}"
        shutil.copytree(tmp_path / "peer", left)  # As a machine leaves the files that stops here.
        (left / "peer.sqlite-shm").unlink()
        again = opened(left)
        assert [DONE] * (number + 1) + [None] == [again.state(key(n)) for n in range(number + 2)]
        again.close()
        shutil.rmtree(left)
    assert size_in(tmp_path / "peer") > BOUND
    store.close()


async def test_a_large_wal_that_has_started_anew_by_itself_is_cut(tmp_path: Path) -> None:
    """A long reader ends just before a checkpoint, so that a commit starts the WAL anew before `restart` does."""
    store = opened(tmp_path)
    own = store.journal._wal
    with closing(sqlite3.connect(tmp_path / "peer.sqlite", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM history").fetchone()
        for number in range(100):
            store.finish(accept(store, number), line(number))
            await store.journal.commit()
    assert size_in(tmp_path) > wal.KEPT_FACTOR * BOUND
    before = salts_in(tmp_path)
    own.checkpoint()
    store.journal._db.execute("INSERT OR REPLACE INTO meta VALUES ('test', x'00')")
    store.journal._db.commit()
    assert before != salts_in(tmp_path)
    own.restart(store.journal._db)
    assert size_in(tmp_path) < BOUND
    store.close()


async def test_a_reader_that_holds_the_wal_is_named_and_waited_for_by_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = opened(tmp_path)
    number = 0

    async def crawl(commits: int) -> None:
        nonlocal number
        for _ in range(commits):
            number += 1
            store.finish(accept(store, number), line(number))
            await store.journal.commit()

    await crawl(5)
    with closing(sqlite3.connect(tmp_path / "peer.sqlite", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM history").fetchone()
        with caplog.at_level(logging.WARNING):
            await crawl(100)
        held = size_in(tmp_path)
    assert held > wal.HELD_FACTOR * BOUND
    said = [record.getMessage() for record in caplog.records]
    assert 1 <= len(said) <= 4, "once for each doubling"
    assert all(one.startswith("disk.wal_held file=") for one in said)
    assert (5000,) == store.journal._db.execute("PRAGMA busy_timeout").fetchone(), "other waits are as before"
    await crawl(3)
    assert size_in(tmp_path) < BOUND
    store.close()
