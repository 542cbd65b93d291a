"""The WAL of a journal stays small in a busy crawl, and a reader that holds it stops nobody."""

import logging
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from kadcrawl.store import wal
from tests.support.stores import accept, line, opened

BOUND = 64 * 1024
"""Size at which the WAL of these tests is moved into the database."""
COMMIT_BYTES = 200_000
"""More than one commit here writes."""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wal, "CHECKPOINT_BYTES", BOUND)


def size_in(directory: Path) -> int:
    return (directory / "peer.sqlite-wal").stat().st_size


async def test_the_wal_is_bounded_in_a_busy_crawl(tmp_path: Path) -> None:
    store = opened(tmp_path)
    sizes = []
    for number in range(400):
        for each in range(5):
            store.finish(accept(store, 5 * number + each), line(number))
        await store.journal.commit()
        sizes.append(size_in(tmp_path))
    store.close()
    assert max(sizes) <= BOUND + COMMIT_BYTES
    assert sum(after < before for before, after in pairwise(sizes)) > 5, "it starts anew"
    assert (tmp_path / "peer.sqlite").stat().st_size > 2 * BOUND


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
