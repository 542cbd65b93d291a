"""Reads of many records give what reads of each record give, with a statement for each chunk."""

from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from kadcrawl.keys import Key
from kadcrawl.store.record_reads import CHUNKS, RecordReads
from kadcrawl.store.schema import DONE, PENDING
from kadcrawl.store.store import Store

SITE = "http://a.example"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path, 0.05)
    store.begin(8)
    yield store
    store.close()


def filled(store: Store, count: int) -> list[Key]:
    """Accept so many URLs, and finish every third. Return their keys, and the key of an unknown URL."""
    keys = [Key(b"%012d%08d" % (number % 3, number)) for number in range(count)]
    for number, key in enumerate(keys):
        entry = store.accept(key, SITE, f"{SITE}/{number}", number % 5, 0, trail=b"t")
        assert entry is not None
        if number % 3 == 0:
            store.finish(entry, b"{}\n")
    return [*keys, Key(b"x" * 20)]


@pytest.mark.parametrize("count", [0, 1, CHUNKS[0] - 1, CHUNKS[0], CHUNKS[-1] - 1, CHUNKS[-1], 2 * CHUNKS[-1] + 3])
def test_many_records_are_read_as_each_of_them_is(store: Store, count: int) -> None:
    keys = filled(store, count)
    assert RecordReads(store.journal).states(keys) == {
        key: state for key in keys if (state := store.state(key)) is not None
    }
    assert RecordReads(store.journal).entries(keys) == {
        key: entry for key in keys if (entry := store.entry(key)) is not None
    }


def test_states_and_entries_are_those_of_the_open_transaction(store: Store) -> None:
    first, second, unknown = filled(store, 2)
    assert RecordReads(store.journal).states([first, second, unknown]) == {first: DONE, second: PENDING}
    assert list(RecordReads(store.journal).entries([first, second, unknown])) == [second]


def test_nothing_is_read_for_no_keys(store: Store) -> None:
    assert (RecordReads(store.journal).states([]), RecordReads(store.journal).entries([])) == ({}, {})


def test_a_chunk_takes_one_statement(store: Store) -> None:
    keys = filled(store, CHUNKS[-1])[:-1]
    with mock.patch.object(store.journal, "rows", wraps=store.journal.rows) as rows:
        RecordReads(store.journal).states(keys)
        RecordReads(store.journal).entries(keys)
    assert rows.call_count == 2
