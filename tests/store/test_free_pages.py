"""Free pages of a journal with a map of its pages go back to the disk, some at a time, and no row changes."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kadcrawl.store import free_pages
from kadcrawl.store.free_pages import PAGES_AT_ONCE, FreePages
from kadcrawl.store.store import Store
from kadcrawl.system.file_names import JOURNAL

KEPT = 10
ROWS = 300


@pytest.fixture(autouse=True)
def few_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_pages, "KEPT_LEAST", KEPT)


async def with_free_pages(directory: Path, *, has_map: bool = True) -> Store:
    """Return the store of a journal most of whose pages are free."""
    directory.mkdir(exist_ok=True)
    Store(directory, 0.0).close()
    if has_map:
        with closing(sqlite3.connect(directory / JOURNAL)) as db:
            db.execute("PRAGMA auto_vacuum=INCREMENTAL")
            db.execute("VACUUM")
    store = Store(directory, 0.0)
    for number in range(ROWS):
        store.meta.set(f"n{number}", bytes(4_000))
    store.meta.set("kept", bytes(9_000))
    await store.journal.commit()
    store.journal.write("DELETE FROM meta WHERE name<>'kept'", ())
    await store.journal.commit()
    return store


def pages(store: Store) -> tuple[int, int]:
    """Return the number of pages, and how many of them are free."""
    count, free = (store.journal.row((int,), f"PRAGMA {name}")[0] for name in ("page_count", "freelist_count"))
    return count, free


async def test_free_pages_go_in_small_turns_until_a_share_is_left(tmp_path: Path) -> None:
    store = await with_free_pages(tmp_path)
    free = FreePages(store.journal)
    assert free.may_go
    count, spare = pages(store)
    assert spare > 2 * PAGES_AT_ONCE
    assert PAGES_AT_ONCE == free.give_back()
    assert (count - PAGES_AT_ONCE, spare - PAGES_AT_ONCE) == pages(store)
    turns = 1
    while free.give_back():
        await store.journal.commit()
        turns += 1
    count, spare = pages(store)
    assert turns > 2
    assert max(KEPT, count // 4) == spare, "the rest is used again"
    assert bytes(9_000) == store.meta.get("kept")
    store.close()
    with closing(sqlite3.connect(tmp_path / JOURNAL)) as db:
        assert [("ok",)] == db.execute("PRAGMA integrity_check").fetchall()


async def test_pages_given_back_before_a_crash_are_there_again_with_all_rows(tmp_path: Path) -> None:
    store = await with_free_pages(tmp_path)
    before = pages(store)
    assert FreePages(store.journal).give_back()
    store.close()
    again = Store(tmp_path, 0.0)
    assert before == pages(again)
    assert bytes(9_000) == again.meta.get("kept")
    again.close()


async def test_a_journal_without_a_map_keeps_its_pages(tmp_path: Path) -> None:
    store = await with_free_pages(tmp_path, has_map=False)
    assert not FreePages(store.journal).may_go
    before = pages(store)
    FreePages(store.journal).give_back()
    assert before == pages(store)
    store.close()
