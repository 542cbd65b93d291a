"""Test that a peer holds exactly the cells it names, and reads and drops cells in bounded steps."""

import asyncio
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kadcrawl.keys import Cell, Key, anchor, cell_of, id_bytes, site_hash, url_key
from kadcrawl.store.cell_digest import EMPTY, CellDigest, digest_records
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.store import DONE, PENDING, Store

BITS = 2
"""Four cells: most sites share one, and the first and the last are met."""
SITES = [f"site{number}.example" for number in range(12)]


def url_of(site: str, number: int) -> str:
    return f"http://{site}/{number}"


def key_of(site: str, number: int) -> Key:
    return url_key(site_hash(site), url_of(site, number))


def accept(store: Store, site: str, number: int, depth: int = 0) -> FrontierEntry | None:
    return store.accept(key_of(site, number), site, url_of(site, number), depth, 0)


def open_cells_store(directory: Path) -> Store:
    store = Store(directory, 0.0)
    store.begin(BITS)
    return store


def scanned(store: Store) -> dict[Cell, CellDigest]:
    """Return the cells by a scan of the history."""
    rows = store.journal._db.execute("SELECT key, state FROM history ORDER BY key")
    return {cell: digest_records(cell_rows) for cell, cell_rows in groupby(rows, lambda row: cell_of(row[0], BITS))}


def rows_by_key(store: Store) -> dict[Key, tuple[object, ...]]:
    """Return the columns of each URL whose change must be sent: state, tries, due time and depth."""
    rows = store.journal._db.execute(
        "SELECT key, state, tries, due, f.depth FROM history h LEFT JOIN frontier f "
        "ON f.site_hash=substr(key, 1, 12) AND f.depth=h.depth AND f.seq=h.seq ORDER BY key"
    )
    return {key: rest for key, *rest in rows}


class Changes(RuleBasedStateMachine):
    """Any sequence of changes, commits, crashes and restarts."""

    keys = st.tuples(st.sampled_from(SITES), st.integers(0, 3))
    small = st.integers(0, 3)

    def __init__(self) -> None:
        super().__init__()
        self._directory = tempfile.TemporaryDirectory()
        self._runner = asyncio.Runner()
        self._open()

    def _open(self) -> None:
        self.store = open_cells_store(Path(self._directory.name))
        self.known = rows_by_key(self.store)
        self.told: set[Key] = set()
        self.store.events.record_changed.append(self._changed)

    def _changed(self, cell: Cell, key: Key) -> None:
        assert cell == cell_of(key, BITS)
        assert self.store.cells == scanned(self.store), "told before the tally is right"
        self.told.add(key)

    def teardown(self) -> None:
        self.store.close()
        self._runner.close()
        self._directory.cleanup()

    @rule(key=keys, depth=small)
    def accept(self, key: tuple[str, int], depth: int) -> None:
        known = self.store.state(key_of(*key))
        assert (known is None) == (accept(self.store, *key, depth) is not None)

    @rule(key=keys)
    def finish(self, key: tuple[str, int]) -> None:
        """Also of a key that was forgotten, or finished elsewhere, while it was fetched."""
        site, number = key
        known = self.store.state(key_of(*key))
        entry = FrontierEntry(0, 1, key_of(*key), site, url_of(site, number), 0, 0, 0.0)
        assert (known != DONE) == self.store.finish(entry, b"{}\n")

    @rule(key=keys)
    def learn_done(self, key: tuple[str, int]) -> None:
        known = self.store.state(key_of(*key))
        assert (known != DONE) == self.store.learn_done(key_of(*key))

    @rule(key=keys, depth=small)
    def shorten(self, key: tuple[str, int], depth: int) -> None:
        assert self.store.shorten(key_of(*key), depth) == bool(self.told)

    @rule(key=keys, tries=small, due=small)
    def merge_tries(self, key: tuple[str, int], tries: int, due: int) -> None:
        assert self.store.merge_tries(key_of(*key), tries, due) == bool(self.told)

    @rule(key=keys, due=small)
    def postpone(self, key: tuple[str, int], due: int) -> None:
        entry = self.store.entry(key_of(*key))
        if entry is not None:
            self.store.postpone(entry._replace(tries=entry.tries + 1, due=due))

    @rule(cell=st.integers(0, 2**BITS - 1), count=st.integers(1, 8))
    def forget_cell(self, cell: int, count: int) -> None:
        before = self.store.cells.get(Cell(cell), EMPTY).keys
        assert max(0, before - count) == self.store.forget_cell(Cell(cell), count)
        self.known = rows_by_key(self.store)  # Of this, nobody is told.

    @rule(key=keys)
    def forget(self, key: tuple[str, int]) -> None:
        self.store.forget(key_of(*key))
        assert self.store.state(key_of(*key)) is None
        assert self.store.entry(key_of(*key)) is None
        self.known = rows_by_key(self.store)

    @rule()
    def commit(self) -> None:
        self._runner.run(self.store.journal.commit())

    @rule()
    def crash(self) -> None:
        self.store.close()
        self._open()

    @rule()
    def stop_and_start(self) -> None:
        before = self.store.cells, self.store.pending, rows_by_key(self.store)
        self._runner.run(self.store.journal.commit())
        self.store.close()
        self._open()
        assert before == (self.store.cells, self.store.pending, rows_by_key(self.store))

    @invariant()
    def tallies_are_what_a_scan_gives(self) -> None:
        assert scanned(self.store) == self.store.cells
        assert sum(tally.pending for tally in self.store.cells.values()) == self.store.pending

    @invariant()
    def the_frontier_is_what_is_pending(self) -> None:
        pending = "SELECT substr(key, 1, 12), substr(key, 13), depth, seq FROM history WHERE state=? ORDER BY key"
        frontier = "SELECT site_hash, url_hash, depth, seq FROM frontier ORDER BY site_hash, url_hash"
        execute = self.store.journal._db.execute
        assert execute(pending, (PENDING,)).fetchall() == execute(frontier).fetchall()

    @invariant()
    def exactly_what_changed_is_told(self) -> None:
        now = rows_by_key(self.store)
        changed = {key for key in now.keys() | self.known.keys() if now.get(key) != self.known.get(key)}
        assert changed == self.told
        self.known, self.told = now, set()


TestChanges = Changes.TestCase
TestChanges.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@pytest.fixture
def cells_store(tmp_path: Path) -> Iterator[Store]:
    store = open_cells_store(tmp_path)
    yield store
    store.close()


@pytest.fixture
def filled_store(cells_store: Store) -> Store:
    """Give a store with URLs in every cell, several of them DONE. All of site 0 is DONE."""
    for site in SITES:
        for number in range(5):
            accept(cells_store, site, number)
            if number == 4 or site == SITES[0]:
                cells_store.learn_done(key_of(site, number))
    assert 2**BITS == len(cells_store.cells)
    return cells_store


EVERY_CELL = pytest.mark.parametrize("cell", [Cell(number) for number in range(2**BITS)])


def contents(store: Store, cell: Cell) -> list[tuple[Key, int]]:
    return [
        row
        for row in store.journal._db.execute("SELECT key, state FROM history ORDER BY key")
        if cell_of(row[0], BITS) == cell
    ]


@EVERY_CELL
def test_a_cell_is_read_in_key_order_and_in_bounded_steps(filled_store: Store, cell: Cell) -> None:
    found: list[tuple[Key, int]] = []
    while rows := filled_store.scan.records(cell, found[-1][0] + b"\0" if found else b"", 3):
        assert len(rows) <= 3
        found += rows
    assert contents(filled_store, cell) == found


@EVERY_CELL
def test_windows_of_a_cell_have_tallies_that_add_up(filled_store: Store, cell: Cell) -> None:
    keys = [key for key, _ in contents(filled_store, cell)]
    middle, later = keys[len(keys) // 3], keys[len(keys) // 2]
    windows = [
        filled_store.scan.digest_between(cell, b"", middle),
        filled_store.scan.digest_between(cell, middle, later),
        filled_store.scan.digest_between(cell, later, None),
    ]
    assert [keys.index(middle), keys.index(later) - keys.index(middle)] == [one.keys for one in windows[:2]]
    assert EMPTY == filled_store.cells[cell].minus(windows[0]).minus(windows[1]).minus(windows[2])


@EVERY_CELL
def test_a_window_reaches_into_no_other_cell(filled_store: Store, cell: Cell) -> None:
    assert filled_store.cells[cell] == filled_store.scan.digest_between(cell, bytes(20), b"\xff" * 20)


@EVERY_CELL
def test_the_first_and_the_last_key_of_a_cell_belong_to_it(cells_store: Store, cell: Cell) -> None:
    ends = [Key(id_bytes(anchor(cell, BITS))), Key(id_bytes(anchor(Cell(cell + 1), BITS) - 1))]
    for key in ends:
        cells_store.learn_done(key)
    assert [(key, DONE) for key in ends] == cells_store.scan.records(cell, b"", 10)
    assert {cell: digest_records((key, DONE) for key in ends)} == cells_store.cells
    assert cells_store.cells[cell] == cells_store.scan.digest_between(cell, b"", None)
    assert 0 == cells_store.forget_cell(cell, 2)


async def test_a_commit_journals_only_the_tallies_that_changed(filled_store: Store) -> None:
    await filled_store.journal.commit()
    filled_store.learn_done(key_of(SITES[1], 0))
    statements: list[str] = []
    filled_store.journal._db.set_trace_callback(statements.append)
    await filled_store.journal.commit()
    assert 1 == sum("INTO cell " in statement for statement in statements)


def test_an_empty_cell_has_nothing(cells_store: Store) -> None:
    assert ([], EMPTY, [], 0) == (
        cells_store.scan.records(Cell(1), b"", 10),
        cells_store.scan.digest_between(Cell(1), b"", None),
        cells_store.pending_sites(Cell(1), b"", 10),
        cells_store.forget_cell(Cell(1), 10),
    )


@pytest.mark.parametrize("count", [1, 2, 100])
def test_the_sites_of_all_cells_are_those_with_pending_urls(filled_store: Store, count: int) -> None:
    found: list[tuple[bytes, str]] = []
    for cell in sorted(filled_store.cells):
        after = b""
        while sites := filled_store.pending_sites(cell, after, count):
            assert len(sites) <= count
            found += sites
            after = sites[-1][0]
    assert sorted((site_hash(site), site) for site in SITES[1:]) == found


def test_a_cell_is_forgotten_in_bounded_steps_and_the_others_stay(filled_store: Store) -> None:
    cell = cell_of(key_of(SITES[1], 0), BITS)
    others = {other: tally for other, tally in filled_store.cells.items() if other != cell}
    left = [filled_store.cells[cell].keys]
    while left[-1]:
        left.append(filled_store.forget_cell(cell, 4))
        assert max(0, left[-2] - 4) == left[-1]
    assert others == filled_store.cells == scanned(filled_store)
    assert (None, None, []) == (
        filled_store.state(key_of(SITES[1], 0)),
        filled_store.entry(key_of(SITES[1], 0)),
        filled_store.window(SITES[1], 10),
    )


def test_a_forgotten_url_may_come_again(filled_store: Store) -> None:
    cell = cell_of(key_of(SITES[1], 0), BITS)
    filled_store.forget_cell(cell, 1000)
    assert accept(filled_store, SITES[1], 0) is not None
    assert 1 == filled_store.cells[cell].pending


def test_a_site_is_told_when_its_clock_is_journaled(cells_store: Store) -> None:
    told: list[str] = []
    cells_store.events.site_changed.append(told.append)
    cells_store.sites.set_clock("a.example", 100.0, 2.0)
    assert (["a.example"], (100.0, 2.0)) == (told, cells_store.sites.clock("a.example"))


def test_the_retry_state_with_more_tries_wins(cells_store: Store) -> None:
    key = key_of(SITES[0], 0)
    accept(cells_store, SITES[0], 0)
    assert [True, False, False, True] == [
        cells_store.merge_tries(key, *state) for state in ((2, 50.0), (1, 90.0), (2, 90.0), (3, 10.0))
    ]
    entry = cells_store.entry(key)
    assert entry is not None
    assert (3, 10.0) == (entry.tries, entry.due)


def test_a_retry_state_of_what_is_done_or_unknown_changes_nothing(cells_store: Store) -> None:
    cells_store.learn_done(key_of(SITES[0], 0))
    assert not cells_store.merge_tries(key_of(SITES[0], 0), 5, 0.0)
    assert not cells_store.merge_tries(key_of(SITES[0], 1), 5, 0.0)
