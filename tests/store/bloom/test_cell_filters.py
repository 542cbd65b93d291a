"""A store that keeps fingerprints in place of keys: as exact as one with keys, within the period."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kadcrawl.keys import Cell, Key
from kadcrawl.link.wire.messages import EPOCH_FILTER_KEYS_MAX
from kadcrawl.store.bloom import cell_filters, epoch_filter
from kadcrawl.store.bloom.cell_filters import SLICE_TABLES, EncodedFilter, Label
from kadcrawl.store.bloom.encoding import from_bytes
from kadcrawl.store.bloom.epoch_filter import EXACT_MAX
from kadcrawl.store.bloom.expiring_filter import ExpiringFilter, Period
from kadcrawl.store.cell_digest import EMPTY, contribution
from kadcrawl.store.schema import DONE, PENDING
from kadcrawl.store.store import Store
from tests.support.stores import accept, key, line

HOUR = 3_600.0
PERIOD = Period(HOUR, 2)
CELL = Cell(0)
BITS = 16


class Clock:
    def __init__(self) -> None:
        self.now = 1_000 * HOUR

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def open_store(tmp_path: Path, clock: Clock) -> Iterator[Callable[[str], Store]]:
    """Opens the store of a name, again if it was opened before."""
    stores: dict[str, Store] = {}

    def opened(name: str, period: Period | None = PERIOD) -> Store:
        if name in stores:
            stores[name].close()
        (tmp_path / name).mkdir(exist_ok=True)
        store = stores[name] = Store(tmp_path / name, 0.0, lambda fds: None)
        store.begin(BITS, period, clock)
        return store

    yield opened
    for store in stores.values():
        store.close()


@pytest.fixture
def filter_store(open_store: Callable[[str], Store]) -> Store:
    return open_store("one")


def finish_urls(store: Store, *numbers: int) -> None:
    for number in numbers:
        assert store.finish(accept(store, number), line(number))


def table_counts(store: Store) -> list[int]:
    return [
        store.journal._db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("history", *SLICE_TABLES)
    ]


def encoded_filters(store: Store) -> list[EncodedFilter]:
    assert store.expiring_filters is not None
    slices = [store.expiring_filters.encoded(CELL, grain) for grain in store.expiring_filters.labels(CELL)]
    assert None not in slices
    return [one for one in slices if one is not None]


def test_what_is_done_leaves_no_key_and_is_known(filter_store: Store, open_store: Callable[..., Store]) -> None:
    exact = open_store("exact", None)
    for one in (filter_store, exact):
        finish_urls(one, 1, 2)
        accept(one, 3)
        assert one.learn_done(key(4))
        assert not one.learn_done(key(4))
    assert exact.cells == filter_store.cells
    assert [(key(3), PENDING)] == filter_store.scan.records(CELL, b"", 10)
    assert [DONE, DONE, PENDING, DONE, None] == [filter_store.state(key(number)) for number in range(1, 6)]
    assert filter_store.accept(key(1), "a.example", "http://a.example/1", 0, 0) is None
    assert not filter_store.finish(accept(open_store("exact", None), 7)._replace(key=key(1)), line(1)), (
        "it was done before"
    )
    assert 1 == table_counts(filter_store)[0]


async def test_a_crash_forgets_what_was_not_committed_and_no_more(open_store: Callable[[str], Store]) -> None:
    store = open_store("one")
    finish_urls(store, 1)
    await store.journal.commit()
    committed = store.cells[CELL]
    finish_urls(store, 2)
    store = open_store("one")
    assert [DONE, None] == [store.state(key(number)) for number in (1, 2)]
    assert {CELL: committed} == store.cells


@pytest.mark.parametrize("few", [3, 256])
async def test_many_are_read_again_as_they_were(
    few: int, open_store: Callable[[str], Store], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (cell_filters, epoch_filter):
        monkeypatch.setattr(module, "EXACT_MAX", few)
    store = open_store("one")
    finish_urls(store, *range(700))
    clock.now += HOUR
    finish_urls(store, *range(700, 760))
    await store.journal.commit()
    assert table_counts(store)[2] >= 1, "some were written down as bits"
    assert table_counts(store)[3] <= 300, "and not one by one any more"
    before, bits = store.cells, encoded_filters(store)
    store = open_store("one")
    assert before == store.cells
    assert all(store.state(key(number)) == DONE for number in range(760))
    assert sum(store.state(key(number)) is None for number in range(1_000, 3_000)) >= 1_998
    assert [one.label for one in bits] == [one.label for one in encoded_filters(store)]
    finish_urls(store, 800)
    assert store.state(key(800)) == DONE


async def test_what_was_done_before_the_period_is_unknown_again(
    open_store: Callable[[str], Store], clock: Clock
) -> None:
    store = open_store("one")
    finish_urls(store, 1)
    clock.now += HOUR
    finish_urls(store, 2)
    accept(store, 3)
    store.expire(CELL)
    assert 3 == store.cells[CELL].keys
    clock.now += HOUR
    assert [None, DONE] == [store.state(key(number)) for number in (1, 2)]
    store.expire(CELL)
    assert 2 == store.cells[CELL].keys
    assert contribution(key(2), DONE) ^ contribution(key(3), PENDING) == store.cells[CELL].digest
    await store.journal.commit()
    clock.now += HOUR
    store = open_store("one")
    assert (1, 1) == store.cells[CELL][:2], "what had its time while nobody ran"
    assert store.learn_done(key(3))
    clock.now += 2 * HOUR
    store.expire(CELL)
    assert {} == store.cells
    await store.journal.commit()
    assert [0, 0, 0, 0] == table_counts(store)


def test_a_page_is_done_again_in_a_later_epoch_filter(filter_store: Store, clock: Clock) -> None:
    finish_urls(filter_store, 1)
    clock.now += 2 * HOUR
    finish_urls(filter_store, 1)  # Its first slice is still counted: nobody has looked.
    filter_store.expire(CELL)
    assert contribution(key(1), DONE) == filter_store.cells[CELL].digest
    assert filter_store.state(key(1)) == DONE


def test_a_cell_that_others_hold_leaves_nothing(filter_store: Store) -> None:
    finish_urls(filter_store, 1, 2)
    accept(filter_store, 3)
    accept(filter_store, 4)
    assert 3 == filter_store.forget_cell(CELL, 1)
    assert 0 == filter_store.forget_cell(CELL, 10)
    assert {} == filter_store.cells
    assert [0, 0, 0, 0] == table_counts(filter_store)
    assert filter_store.state(key(1)) is None


# --- two of them -----------------------------------------------------------------------------------------------------


@pytest.fixture
def other(open_store: Callable[[str], Store]) -> Store:
    return open_store("other")


def test_those_who_heard_the_same_have_the_same_label_in_whatever_order(filter_store: Store, other: Store) -> None:
    finish_urls(filter_store, 1, 2, 3)
    accept(other, 2)
    for number in (3, 2, 1):
        other.learn_done(key(number))
    assert filter_store.cells == other.cells
    assert [] == other.join_epoch_filters(CELL, encoded_filters(filter_store), adopt=False)
    assert encoded_filters(filter_store) == encoded_filters(other)


def test_a_peer_adopts_the_keys_it_lacks_and_does_not_fetch_them(filter_store: Store, other: Store) -> None:
    finish_urls(filter_store, 1, 2, 3)
    accept(other, 2)
    accept(other, 9)
    (news,) = other.join_epoch_filters(CELL, encoded_filters(filter_store), adopt=False)
    assert [True, False] == [news.contains(key(number), 1_000 * HOUR) for number in (2, 9)]
    assert 2 == other.pending, "who joins them goes through what is pending, a little at a time"
    assert other.learn_done(key(2))
    assert [(key(9), PENDING)] == other.scan.records(CELL, b"", 10)
    accept(filter_store, 9)
    assert filter_store.cells == other.cells
    assert 1 == other.pending


def test_who_has_more_keeps_its_label(filter_store: Store, other: Store) -> None:
    finish_urls(filter_store, 1, 2, 3)
    finish_urls(other, 1, 2)
    before = filter_store.cells
    assert [] == filter_store.join_epoch_filters(CELL, encoded_filters(other), adopt=False)
    assert before == filter_store.cells
    other.join_epoch_filters(CELL, encoded_filters(filter_store), adopt=False)
    assert before == other.cells


def test_differing_epoch_filters_become_a_third_that_the_owner_names(
    filter_store: Store, other: Store, open_store: Callable[..., Store]
) -> None:
    finish_urls(filter_store, 1, 2)
    finish_urls(other, 2, 3)
    was = encoded_filters(filter_store)[0].label, encoded_filters(other)[0].label
    filter_store.join_epoch_filters(CELL, encoded_filters(other), adopt=False)
    named = encoded_filters(filter_store)[0].label
    assert named not in was
    assert all(filter_store.state(key(number)) == DONE for number in (1, 2, 3))
    other.join_epoch_filters(CELL, encoded_filters(filter_store), adopt=True)
    assert filter_store.cells == other.cells
    third = open_store("third")
    finish_urls(third, 1, 2)
    third.join_epoch_filters(CELL, encoded_filters(open_store("fourth")), adopt=True)
    assert was[0] == encoded_filters(third)[0].label


def test_a_key_that_follows_its_epoch_filter_changes_nothing_more(filter_store: Store, other: Store) -> None:
    finish_urls(filter_store, 1)
    entry = accept(other, 2)
    other.join_epoch_filters(CELL, encoded_filters(filter_store), adopt=True)
    finish_urls(filter_store, 2)
    other.join_epoch_filters(
        CELL, encoded_filters(filter_store), adopt=True
    )  # In which 2 is, and then comes the word that it is done:
    assert other.learn_done(entry.key)
    assert not other.learn_done(entry.key)
    assert filter_store.cells == other.cells


def test_a_copy_is_kept_although_it_seems_to_be_done(filter_store: Store) -> None:
    finish_urls(filter_store, 1)
    url = "http://a.example/1"
    assert filter_store.accept(key(1), "a.example", url, 0, 0) is None
    entry = filter_store.accept(key(1), "a.example", url, 0, 0, even_seen=True)
    assert entry is not None
    assert (filter_store.state(key(1)), filter_store.pending, filter_store.cells[CELL].keys) == (PENDING, 1, 2)
    assert filter_store.learn_done(key(1))
    assert (filter_store.state(key(1)), filter_store.pending, filter_store.cells[CELL].keys) == (DONE, 0, 1)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda one: one._replace(bits=one.bits[:-1]),
        lambda one: one._replace(bits=b""),
        lambda one: one._replace(epoch=one.epoch + 1),
        lambda one: one._replace(epoch=one.epoch + 9),
        lambda one: one._replace(bits=b"x" * len(one.bits)),
    ],
)
def test_epoch_filters_that_cannot_be_are_left_out(
    spoil: Callable[[EncodedFilter], EncodedFilter], filter_store: Store, open_store: Callable[..., Store]
) -> None:
    finish_urls(filter_store, 1)
    liar = open_store("liar")
    finish_urls(liar, 2)
    (one,) = encoded_filters(liar)
    before = filter_store.cells
    assert [] == filter_store.join_epoch_filters(CELL, [spoil(one)], adopt=True)
    assert before == filter_store.cells
    assert filter_store.state(key(2)) is None


def test_an_epoch_filter_of_another_period_is_left_out(filter_store: Store, open_store: Callable[..., Store]) -> None:
    liar = open_store("liar", Period(HOUR, 3))
    finish_urls(liar, 2)
    filter_store.join_epoch_filters(CELL, encoded_filters(liar), adopt=True)
    assert EMPTY == filter_store.cells.get(CELL, EMPTY)


def test_a_forged_label_costs_nothing_but_a_comparison(filter_store: Store, other: Store) -> None:
    finish_urls(filter_store, 1)
    finish_urls(other, 2)
    (one,) = encoded_filters(other)
    filter_store.join_epoch_filters(CELL, [one._replace(label=Label(5, 7))], adopt=True)
    assert all(filter_store.state(key(number)) == DONE for number in (1, 2))
    assert (5, 0, 7) != filter_store.cells[CELL]
    assert 0 == filter_store.forget_cell(CELL, 10)
    assert {} == filter_store.cells


def test_a_label_that_claims_too_much_costs_no_memory_and_still_travels(open_store: Callable[[str], Store]) -> None:
    store, liar = open_store("one"), open_store("liar")
    finish_urls(liar, 1)
    (one,) = encoded_filters(liar)
    store.join_epoch_filters(CELL, [one._replace(label=Label(EPOCH_FILTER_KEYS_MAX, 7))], adopt=True)
    finish_urls(store, *range(2, 300))
    assert EPOCH_FILTER_KEYS_MAX == encoded_filters(store)[0].label.keys
    assert len(encoded_filters(store)[0].bits) < 10_000


async def test_an_unreadable_epoch_filter_is_forgotten_and_the_store_starts(
    open_store: Callable[[str], Store],
) -> None:
    store = open_store("one")
    finish_urls(store, 1)
    await store.journal.commit()
    store.journal._db.execute("INSERT INTO slice_bits VALUES (?, ?, ?)", (CELL, 1_000, b"no slice"))
    store.journal._db.execute("DELETE FROM slice_place")
    await store.journal.commit()
    store.journal._db.execute("COMMIT")
    store.journal._db.execute("BEGIN")
    store = open_store("one")
    assert store.state(key(1)) is None
    finish_urls(store, 2)
    assert store.state(key(2)) == DONE


def test_one_epoch_filter_told_again_and_again_is_joined_once(
    filter_store: Store, other: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish_urls(other, 1)
    (one,) = encoded_filters(other)
    read: list[bytes] = []

    def noted(bits: bytes, period: Period, now: float) -> ExpiringFilter:
        read.append(bits)
        return from_bytes(bits, period, now)

    monkeypatch.setattr(cell_filters, "from_bytes", noted)
    filter_store.join_epoch_filters(
        CELL, [one._replace(label=Label(number, number)) for number in range(1, 50)], adopt=True
    )
    assert [one.bits] == read


async def test_epoch_filters_of_ever_more_cells_stay_on_disk_and_are_all_kept(
    open_store: Callable[[str], Store],
) -> None:
    store = open_store("one")
    assert store.expiring_filters is not None
    store.expiring_filters._bytes_max = 20_000
    for number in range(40):
        other = open_store("other")
        for place in range(EXACT_MAX + 10):
            other.learn_done(key_in_cell(number, place))
        assert other.expiring_filters is not None
        (grain,) = other.expiring_filters.labels(Cell(number))
        one = other.expiring_filters.encoded(Cell(number), grain)
        assert one is not None
        store.join_epoch_filters(Cell(number), [one], adopt=True)
        assert filter_bytes(store) <= 20_000
    for number in (*range(40), *range(39, -1, -1)):
        assert DONE == store.state(key_in_cell(number, 3))
        store.learn_done(key_in_cell(number, EXACT_MAX + 20))
        assert filter_bytes(store) <= 20_000
    assert all(DONE == store.state(key_in_cell(number, EXACT_MAX + 20)) for number in range(40))
    for number in range(40):
        store.forget_cell(Cell(number), 1_000)
    assert (0, 0, {}) == (filter_bytes(store), store.expiring_filters._bytes_all, store.expiring_filters._bytes)


def test_one_cell_may_take_more_than_there_is_room_for(filter_store: Store) -> None:
    assert filter_store.expiring_filters is not None
    filter_store.expiring_filters._bytes_max = 1_000
    finish_urls(filter_store, *range(700))
    assert filter_bytes(filter_store) > 1_000
    assert all(filter_store.state(key(number)) == DONE for number in range(700))


def key_in_cell(cell: int, number: int) -> Key:
    return Key(cell.to_bytes(2, "big") + number.to_bytes(18, "big"))


def filter_bytes(store: Store) -> int:
    """Return the bytes of all epoch filters in memory."""
    assert store.expiring_filters is not None
    return sum(one.size_bytes for seen in store.expiring_filters._cells.values() for one in seen.epoch_filters)
