"""Test the rounds of pages that are visited again, the merge of two histories, and the state after a crash."""

from pathlib import Path

import pytest

from kadcrawl.keys import Cell, Key
from kadcrawl.store.cell_digest import contribution, digest_records
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.schema import DONE, PENDING, finished, is_pending, round_of
from kadcrawl.store.store import Store
from kadcrawl.store.visit import Visit
from tests.support.stores import accept, key, line, opened, written

DAY_S = 86_400.0
NOW = 1e9
CELL = Cell(0)


def visit(number: int, due: float | None = NOW + DAY_S, etag: str = '"e"') -> Visit:
    url = f"http://a.example/{number}"
    return Visit(key(number), "a.example", url, 3, due, DAY_S, etag, "", "sha1:A", "2026-11-21T10:00:00Z", 0)


def finish_visit(store: Store, number: int, due: float | None = NOW + DAY_S) -> None:
    assert store.finish(accept(store, number), line(number), visit=visit(number, due))


def consistent(store: Store) -> None:
    records = store.scan.records(CELL, b"", 1000)
    assert digest_records(records) == store.cells.get(CELL, digest_records([]))
    pending = [key for key, state in records if is_pending(state)]
    assert len(pending) == store.pending
    assert all(store.entry(key) is not None for key in pending)
    assert len(pending) == store.journal._db.execute("SELECT count(*) FROM frontier").fetchone()[0]


def test_the_states_of_a_key_alternate_and_grow() -> None:
    assert [True, False, True, False] == [is_pending(state) for state in (1, 2, 3, 4)]
    assert [2, 2, 4, 4] == [finished(state) for state in (1, 2, 3, 4)]
    assert [0, 0, 1, 1, 2] == [round_of(state) for state in (1, 2, 3, 4, 5)]


def test_no_two_states_of_a_key_nor_two_keys_in_a_state_contribute_alike() -> None:
    contributions = [contribution(key(number), state) for number in range(50) for state in range(1, 9)]
    assert len(contributions) == len(set(contributions))


def test_a_page_comes_round_when_it_is_due_and_not_before(store: Store) -> None:
    finish_visit(store, 1)
    finish_visit(store, 2, due=NOW)
    assert [] == store.visits.due_keys(CELL, NOW - 1, 10)
    assert NOW == store.visits.next_due(CELL)
    assert [key(2)] == store.visits.due_keys(CELL, NOW, 10)
    entry = store.begin_round(key(2))
    assert entry is not None
    assert ("http://a.example/2", 3, 0, 0) == (entry.url, entry.depth, entry.tries, entry.hops)
    assert store.state(key(2)) == 3
    assert entry == store.entry(key(2))
    assert NOW + DAY_S == store.visits.next_due(CELL)
    assert store.begin_round(key(2)) is None, "it is on its way already"
    consistent(store)
    assert store.finish(entry, line(2), visit=visit(2, NOW + 9 * DAY_S))
    assert store.state(key(2)) == 4
    assert [key(1), key(2)] == store.visits.due_keys(CELL, NOW + 9 * DAY_S, 10)
    consistent(store)


def test_a_page_never_due_again_does_not_come(store: Store) -> None:
    finish_visit(store, 1, due=None)
    assert store.visits.next_due(CELL) is None
    assert store.begin_round(key(1)) is None


def test_a_page_finished_by_two_is_finished_once_and_keeps_the_first_visit(store: Store) -> None:
    entry = accept(store, 1)
    assert store.finish(entry, line(1), visit=visit(1))
    assert not store.finish(entry, line(1), visit=visit(1, None))
    assert NOW + DAY_S == store.visits.next_due(CELL)


def test_to_be_done_in_the_first_round_is_no_news_of_a_later_one(store: Store) -> None:
    finish_visit(store, 1, due=NOW)
    store.begin_round(key(1))
    assert not store.learn_done(key(1))
    assert store.state(key(1)) == 3


@pytest.mark.parametrize("before", [None, 1, 2, 3, 4])
@pytest.mark.parametrize("state", [2, 3, 4])
def test_of_two_states_the_later_wins_whoever_brings_it(store: Store, before: int | None, state: int) -> None:
    """Histories merge as sets do: any order gives the same result."""
    if before is not None:
        entry = accept(store, 1)
        if before > PENDING:
            store.finish(entry, line(1), visit=visit(1, NOW, etag='"mine"'))
        if before > DONE:
            again = store.begin_round(key(1))
            if before > 3:
                assert again is not None
                store.finish(again, line(1), visit=visit(1, NOW, etag='"mine"'))
    learned = store.learn_visit(visit(1, NOW + 5, etag='"theirs"'), state, 2, NOW + 7)
    after = max(before or 0, state)
    assert after == store.state(key(1))
    won = (before or 0) < state
    assert (learned is not None) == (won and is_pending(state))
    if isinstance(learned, FrontierEntry):
        assert (2, NOW + 7) == (learned.tries, learned.due)
        assert store.visits.next_due(CELL) is None
    kept = store.visits.get(key(1))
    assert (kept is not None and kept.etag == '"theirs"') == won
    consistent(store)


def test_what_is_forgotten_takes_its_visit_along(store: Store) -> None:
    finish_visit(store, 1)
    finish_visit(store, 2)
    store.forget(key(1))
    assert store.visits.get(key(1)) is None
    assert not store.forget_cell(CELL, 10)
    assert store.visits.next_due(CELL) is None
    consistent(store)


async def test_a_round_survives_a_crash_and_the_page_is_written_once_for_each(tmp_path: Path) -> None:
    store = opened(tmp_path)
    finish_visit(store, 1, due=NOW)
    await store.journal.commit()
    entry = store.begin_round(key(1))
    assert entry is not None
    await store.journal.commit()
    store.finish(entry, line(1), visit=visit(1))
    store.close()  # As a crash: nothing since the last commit is kept.
    store = opened(tmp_path)
    assert store.visits.used
    assert store.state(key(1)) == 3
    entry = store.entry(key(1))
    assert entry is not None
    store.finish(entry, line(1), visit=visit(1))
    await store.journal.commit()
    store.close()
    opened(tmp_path).close()
    assert [1, 1] == written(tmp_path)


async def test_a_clock_put_back_brings_the_next_visit_along(tmp_path: Path) -> None:
    store = opened(tmp_path)
    finish_visit(store, 1)
    store.saved_time.save(NOW)
    await store.journal.commit()
    store.close()
    store = opened(tmp_path)
    store.saved_time.restore(NOW - 7200)
    assert NOW + DAY_S - 7200 == store.visits.next_due(CELL)
    store.close()


def test_keys_of_other_cells_are_not_due_in_this_one(store: Store) -> None:
    finish_visit(store, 1)
    far = Key(b"\xff" * 20)
    entry = store.accept(far, "b.example", "http://b.example/", 0, 0)
    assert entry is not None
    store.finish(entry, line(2), visit=visit(2)._replace(key=far, due=NOW))
    assert [] == store.visits.due_keys(CELL, NOW, 10)
    assert [far] == store.visits.due_keys(Cell(0xFFFF), NOW, 10)


def test_a_key_forgotten_in_the_middle_of_a_round_is_done_in_that_round(store: Store) -> None:
    finish_visit(store, 1, due=NOW)
    entry = store.begin_round(key(1))
    assert entry is not None
    assert not store.forget_cell(CELL, 10)
    assert store.finish(entry, line(1), visit=visit(1), rounds=1)
    assert store.state(key(1)) == 4
    consistent(store)


def test_a_shorter_path_lets_links_be_followed_at_the_next_visit(store: Store) -> None:
    finish_visit(store, 1)
    store.shorten(key(1), 3)
    kept = store.visits.get(key(1))
    assert kept is not None
    assert (3, "sha1:A") == (kept.depth, kept.digest), "it is no shorter"
    store.shorten(key(1), 1)
    kept = store.visits.get(key(1))
    assert kept is not None
    assert (1, "", "") == (kept.depth, kept.digest, kept.etag)


def test_a_page_is_hastened_but_never_put_off(store: Store) -> None:
    finish_visit(store, 1)
    told: list[Key] = []
    store.events.record_changed.append(lambda cell, key: told.append(key))
    state, tallies = store.state(key(1)), dict(store.cells)
    assert store.hasten(key(1), NOW + 5)
    assert NOW + 5 == store.visits.next_due(CELL)
    assert not store.hasten(key(1), NOW + 5)
    assert not store.hasten(key(1), NOW + 6)
    assert NOW + 5 == store.visits.next_due(CELL)
    kept = store.visits.get(key(1))
    assert visit(1, NOW + 5) == kept
    assert (state, tallies, []) == (store.state(key(1)), store.cells, told), "other holders have it as it was"
    assert store.begin_round(key(1)) is not None
    consistent(store)


def test_a_page_never_due_again_comes_if_it_is_hastened(store: Store) -> None:
    finish_visit(store, 1, due=None)
    assert store.hasten(key(1), NOW)
    assert [key(1)] == store.visits.due_keys(CELL, NOW, 10)


def test_what_is_pending_or_not_to_be_fetched_again_is_not_hastened(store: Store) -> None:
    assert not store.hasten(key(1), NOW), "never met"
    accept(store, 2)
    assert not store.hasten(key(2), NOW)
    entry = accept(store, 3)
    store.finish(entry, line(3))
    assert not store.hasten(key(3), NOW), "it has no visit"
    finish_visit(store, 1, due=NOW)
    store.begin_round(key(1))
    assert not store.hasten(key(1), NOW)
    assert store.visits.next_due(CELL) is None
    consistent(store)
