"""Test that a journal in a process of many peers keeps no memory of a small commit."""

import gc
import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from kadcrawl.store.journal import PAGE_BYTES, SMALL_PAGE_BYTES
from kadcrawl.store.lean_commits import FEW_WRITES
from kadcrawl.store.store import Store
from kadcrawl.system.file_names import JOURNAL
from kadcrawl.system.start_up_memory import shared_index


def index_bytes(directory: Path) -> int:
    """Return the size of the part of the WAL's index that is in the memory of this process."""
    mapped = Path("/proc/self/smaps").read_text().partition(f"{directory / JOURNAL}-shm\n")[2]
    found = re.search(r"^Rss: +(\d+) kB$", mapped, re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


def kept_statements(store: Store) -> int:
    """Return the number of statements that the connection of a journal keeps."""
    (cache,) = (part for part in gc.get_referents(store.journal._db) if hasattr(part, "cache_info"))
    return int(cache.cache_info().currsize)


async def commit(store: Store, writes: int, value: bytes = b"") -> None:
    for number in range(writes):
        store.meta.set(f"name {number}", value)
    await store.journal.commit()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what is in memory")
@pytest.mark.parametrize(
    ("page_bytes", "writes", "freed"),
    [
        (SMALL_PAGE_BYTES, FEW_WRITES, True),
        (SMALL_PAGE_BYTES, FEW_WRITES + 1, False),
        (PAGE_BYTES, FEW_WRITES, False),
    ],
    ids=["few writes", "many writes", "a process for one peer"],
)
async def test_a_commit_of_few_writes_leaves_nothing_in_memory(
    page_bytes: int, writes: int, freed: bool, tmp_path: Path
) -> None:
    with closing(Store(tmp_path, 0.0, page_bytes=page_bytes)) as store:
        await commit(store, FEW_WRITES + 1)
        await commit(store, writes, b"second")
        assert (freed, freed) == (kept_statements(store) <= 1, not index_bytes(tmp_path)), "BEGIN is kept"
        with closing(sqlite3.connect(tmp_path / JOURNAL)) as reader:
            read = reader.execute("SELECT value FROM meta WHERE name=?", (f"name {writes - 1}",)).fetchone()
        assert (b"second",) == read
        await commit(store, 1, b"third")
    with closing(Store(tmp_path, 0.0)) as store:
        assert (b"third", b"second") == (store.meta.get("name 0"), store.meta.get(f"name {writes - 1}"))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what is in memory")
async def test_a_journal_drops_its_own_index_alone(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("peer-1", "peer-10", "deeper/peer-1")]
    for path in paths:
        path.mkdir(parents=True)
    stores = [Store(path, 0.0, page_bytes=SMALL_PAGE_BYTES) for path in paths]
    for store in stores:
        await commit(store, FEW_WRITES + 1)
    await commit(stores[0], 1, b"second")
    assert [True, False, False] == [index_bytes(path) == 0 for path in paths]
    assert not shared_index(tmp_path / JOURNAL)
    for store in stores:
        store.close()
