"""Test the order, the depths and the numbers of the frontier entries of a store."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kadcrawl.errors import StorageError
from kadcrawl.keys import Cell, cell_of, site_hash, url_key
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.frontier_table import SEQ_RESERVED
from kadcrawl.store.schema import DONE
from kadcrawl.store.store import Store
from tests.support.stores import opened

SITES = ("a.example", "b.example")


def add(store: Store, site: str, number: int, depth: int = 0) -> FrontierEntry:
    url = f"http://{site}/{number}"
    entry = store.accept(url_key(site_hash(site), url), site, url, depth, 0)
    assert entry is not None
    return entry


def test_windows_are_breadth_first_and_of_one_site(store: Store) -> None:
    deep, other, shallow = add(store, SITES[0], 1, depth=2), add(store, SITES[1], 2), add(store, SITES[0], 3, depth=1)
    assert [shallow, deep] == store.window(SITES[0], 10)
    assert [shallow] == store.window(SITES[0], 1)
    assert [other] == store.window(SITES[1], 10)


def test_a_shorter_path_moves_an_entry_forward(store: Store) -> None:
    first, second = add(store, SITES[0], 1, depth=1), add(store, SITES[0], 2, depth=5)
    assert store.shorten(second.key, 0)
    assert [second._replace(depth=0), first] == store.window(SITES[0], 10)
    store.postpone(second._replace(tries=2, due=7.0))
    assert (0, 2, 7.0) == tuple(getattr(store.latest(second), name) for name in ("depth", "tries", "due"))
    assert store.finish_elsewhere(second.key, None)
    assert [first] == store.window(SITES[0], 10)


def test_an_entry_is_finished_once_wherever_it_lies_now(store: Store) -> None:
    told: list[FrontierEntry] = []
    store.events.page_done.append(told.append)
    plain, moved, wrong = (add(store, SITES[0], number, depth=5) for number in range(3))
    other = add(store, SITES[1], 3)
    assert store.shorten(moved.key, 1)
    for entry in (plain, moved, wrong._replace(seq=other.seq)):
        assert store.finish_elsewhere(entry.key, None, 0, entry)
        assert not store.finish_elsewhere(entry.key, None, 0, entry)
    assert [plain, moved._replace(depth=1), wrong] == told, "the last entry of each"
    assert {DONE} == {store.state(entry.key) for entry in (plain, moved, wrong)}
    assert [] == store.window(SITES[0], 10)
    assert [other] == store.window(SITES[1], 10)
    cell = store.cell_of(plain.key)
    assert store.cells[cell] == store.scan.digest_between(cell, b"", None)


def test_the_retry_state_with_more_tries_counts(store: Store) -> None:
    entry = add(store, SITES[0], 1)
    assert store.merge_tries(entry.key, 2, 9.0)
    assert not store.merge_tries(entry.key, 1, 20.0)
    store.put_off(entry.key, 30.0)
    store.put_off(entry.key, 10.0)
    assert (2, 30.0) == (store.latest(entry).tries, store.latest(entry).due)


def test_a_url_that_is_a_site_of_its_own_is_kept_once(store: Store) -> None:
    url = "http://a.example/1"
    entry = store.accept(url_key(site_hash(url), url), url, url, 0, 0)
    assert entry is not None
    assert [entry] == store.window(url, 10)
    assert [(site_hash(url), url)] == store.pending_sites(cell_of(entry.key, 16), b"", 10)
    assert [("",)] == store.journal._db.execute("SELECT site FROM frontier").fetchall()


@pytest.mark.parametrize("finished", [False, True])
def test_only_sites_with_pending_urls_are_listed_each_once(store: Store, finished: bool) -> None:
    sites = [f"{number}.example" for number in range(2000)]
    cells: dict[Cell, list[str]] = {}
    for site in sites:
        cells.setdefault(cell_of(add(store, site, 1).key, 16), []).append(site)
        add(store, site, 2)
    cell, names = max(cells.items(), key=lambda item: len(item[1]))
    assert len(names) > 1
    if finished:
        for number in (1, 2):
            store.learn_done(url_key(site_hash(names[0]), f"http://{names[0]}/{number}"))
        names = names[1:]
    expected = sorted((site_hash(name), name) for name in names)
    assert expected == store.pending_sites(cell, b"", 10)
    assert expected[:1] == store.pending_sites(cell, b"", 1)
    assert expected[1:] == store.pending_sites(cell, expected[0][0], 10)


def test_forgotten_records_leave_the_entries_of_other_cells(store: Store) -> None:
    gone, kept = add(store, SITES[0], 1), add(store, SITES[1], 1)
    store.learn_done(add(store, SITES[0], 2).key)
    assert store.forget_cell(store.cell_of(gone.key), 10) == 0
    assert ([], [kept]) == (store.window(SITES[0], 10), store.window(SITES[1], 10))


async def test_the_numbers_go_on_above_all_of_an_earlier_run(tmp_path: Path) -> None:
    with closing(opened(tmp_path)) as first:
        for number in range(SEQ_RESERVED + 2):
            last = add(first, SITES[0], number)
        await first.journal.commit()
    with closing(opened(tmp_path)) as again:
        later = add(again, SITES[0], -1)
        assert later.seq > last.seq
        assert later == again.window(SITES[0], 2 * SEQ_RESERVED)[-1]


@pytest.mark.parametrize("value", ["'5'", "x'ff'", "x''"])
async def test_a_damaged_number_is_refused(tmp_path: Path, value: str) -> None:
    with closing(opened(tmp_path)) as first:
        add(first, SITES[0], 1)
        await first.journal.commit()
    with closing(sqlite3.connect(first.journal.path)) as db, db:
        db.execute(f"UPDATE meta SET value={value} WHERE name='frontier_seq'")
    with pytest.raises(StorageError):
        opened(tmp_path)
