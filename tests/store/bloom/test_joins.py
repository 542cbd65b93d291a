"""Test that holders converge to the same epoch filters from any state, hide no known key, and keep errors bounded."""

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kadcrawl.keys import Cell, id_bytes
from kadcrawl.link.wire.messages import Contact
from kadcrawl.replication.epoch_filter_transfer import EpochFilterSync, encoded_filters, packed
from kadcrawl.store.bloom import cell_filters, epoch_filter
from kadcrawl.store.bloom.cell_filters import EncodedFilter
from kadcrawl.store.bloom.encoding import RATE_FACTOR_MAX, from_bytes, to_bytes
from kadcrawl.store.bloom.engines import ENGINES, engine
from kadcrawl.store.bloom.epoch_filter import JOINED_RATE_FACTOR_MAX, EpochFilter
from kadcrawl.store.bloom.expiring_filter import ExpiringFilter, Period
from kadcrawl.store.store import DONE, Store
from tests.support.stores import key

HOUR = 3_600.0
CELL = Cell(0)
NOW = 1_000 * HOUR


class Holder:
    """One of those who hold a cell."""

    def __init__(self, directory: Path, period: Period, number: int, others: "list[Holder]") -> None:
        directory.mkdir()
        self.contact = Contact(id_bytes(number), f"10.0.0.{number}", 4160)
        self.store = Store(directory, 0.0, lambda fds: None)
        self.store.begin(16, period, lambda: NOW)
        self.others = others
        self.messages = 0
        self.put: list[tuple[Contact, int]] = []
        client: Any = self
        self.exchange = EpochFilterSync(
            client, self.store, self.join, lambda to, cell, grains: self.put.extend((to, one) for one in grains)
        )

    def learn(self, numbers: Any) -> None:
        for number in numbers:
            self.store.learn_done(key(number))

    def knows(self, number: int) -> bool:
        return self.store.state(key(number)) == DONE

    @property
    def told(self) -> list[EncodedFilter | None]:
        assert self.store.expiring_filters is not None
        return [
            self.store.expiring_filters.encoded(CELL, grain)
            for grain in sorted(self.store.expiring_filters.labels(CELL))
        ]

    async def join(self, cell: Cell, told: Any) -> None:
        self.store.join_epoch_filters(cell, told, adopt=False)

    async def ask(self, to: Contact, message: Any, expected: Any, deadline_s: float) -> Any:
        self.messages += 1
        (other,) = [one for one in self.others if one.contact == to]
        return await other.exchange.answer(message)

    def is_like(self, other: "Holder") -> bool:
        return self.store.cells.get(CELL) == other.store.cells.get(CELL)

    async def sync(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Exchange epoch filters as `CatchUp` and then the replication stream do. `meanwhile` happens in between."""
        for push in (False, True):
            for other in self.others:
                if not self.is_like(other):
                    await self.exchange.reconcile(other.contact, CELL, push=push)
        meanwhile()
        for other in self.others:
            grains = sorted({grain for to, grain in self.put if to == other.contact})
            for message in packed(self.store, {CELL: grains})[0]:
                self.messages += 1
                other.store.join_epoch_filters(CELL, encoded_filters(message.epoch_filters), adopt=True)
        self.put.clear()


Make = Callable[..., Holder]


@pytest.fixture
def make_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Makes an owner with backups."""
    made: list[Holder] = []

    def owner(backups: int, period: Period) -> Holder:
        for module in (cell_filters, epoch_filter):
            monkeypatch.setattr(module, "EXACT_MAX", 8)
        monkeypatch.setattr(epoch_filter, "CAPACITY_LEAST", 32)
        others: list[Holder] = []
        one = Holder(tmp_path / "1", period, 1, others)
        others += [Holder(tmp_path / f"{number}", period, number, []) for number in range(2, 2 + backups)]
        made.extend([one, *others])
        for holder in made:
            holder.store.journal.durable = _nothing  # type: ignore[method-assign,assignment]
        return one

    yield owner
    for holder in made:
        holder.store.close()


async def _nothing() -> None:
    pass


async def test_an_owner_hides_nothing_that_a_backup_alone_knows(make_owner: Make) -> None:
    """A page finished late at the backup comes between the question and the answer."""
    owner = make_owner(1, Period(HOUR, 3))
    (backup,) = owner.others
    owner.learn([1, 2])
    backup.learn([2, 3])
    await owner.sync(lambda: backup.learn([4]))
    assert not owner.knows(4)
    assert not owner.is_like(backup), "so that the owner asks once more"
    await owner.sync()
    assert all(holder.knows(number) for holder in (owner, backup) for number in range(1, 5))
    assert owner.told == backup.told


@pytest.mark.parametrize("filters", list(ENGINES))
@pytest.mark.parametrize("seed", range(12))
async def test_an_owner_and_two_backups_converge_and_then_send_nothing(
    seed: int, filters: str, make_owner: Make
) -> None:
    random = Random(seed)
    owner = make_owner(2, Period(HOUR, 1, error=0.01, filters=filters))
    holders = [owner, *owner.others]
    known: set[int] = set()

    def learn(least: int, most: int) -> None:
        for holder in holders:
            some = random.sample(range(2_000), random.randint(least, most))
            holder.learn(some)
            known.update(some)

    learn(0, random.choice([4, 12, 60, 300]))
    await owner.sync(lambda: learn(0, random.choice([0, 1, 5])))
    rounds = 0
    while not all(map(owner.is_like, owner.others)):
        await owner.sync()
        rounds += 1
        assert rounds <= 2
    assert all(holder.knows(number) for holder in holders for number in known)
    assert owner.told == owner.others[0].told == owner.others[1].told
    before = owner.messages
    await owner.sync()
    assert before == owner.messages


async def test_who_has_the_same_under_other_names_takes_the_owners(make_owner: Make) -> None:
    owner = make_owner(2, Period(HOUR, 3))
    owner.learn([1, 2])
    for number, backup in enumerate(owner.others, 1):
        (told,) = owner.told
        assert told is not None
        label = told.label._replace(digest=number)
        backup.store.join_epoch_filters(CELL, [told._replace(label=label)], adopt=True)
    before = owner.told
    await owner.sync()
    assert before == owner.told == owner.others[0].told == owner.others[1].told


async def test_what_would_err_too_much_is_left_out_and_all_are_alike(
    make_owner: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """Five peers that have not met, each with full filters, meet in turn."""
    period = Period(HOUR, 1, error=0.01)
    owner = make_owner(4, period)
    for number, holder in enumerate([owner, *owner.others]):
        holder.learn(range(1_000 * number, 1_000 * number + 32))
    for _ in range(2):
        await owner.sync()
    assert all(map(owner.is_like, owner.others))
    assert all(owner.knows(number) for number in range(32)), "what is the owner's own is kept"
    (told,) = owner.told
    assert told is not None
    assert all(holder.told == [told] for holder in owner.others)
    errs = from_bytes(told.bits, period, NOW).false_positive_rate(NOW)
    assert 0.01 < errs <= JOINED_RATE_FACTOR_MAX * 0.01
    assert "epoch_filter.not_joined" in caplog.text
    before = owner.messages
    await owner.sync()
    assert before == owner.messages


# --- the errors of a union -------------------------------------------------------------------------------------------


def full(name: object, count: int, error: float, filters: str = "pybloom") -> EpochFilter:
    """A slice whose filters are as full as they may be."""
    random = Random(str(name))
    one = EpochFilter(0, engine(filters), error)
    while one.count < count:
        one.add(random.getrandbits(64))
    return one


def false_positive_share(one: EpochFilter, asked: int = 40_000) -> float:
    random = Random("new")
    return sum(random.getrandbits(64) in one for _ in range(asked)) / asked


@pytest.mark.parametrize("filters", list(ENGINES))
@pytest.mark.parametrize("count", [1_024, 4_096], ids=["one filter", "two"])
def test_joins_of_full_filters_err_as_much_as_they_say_and_are_allowed(filters: str, count: int) -> None:
    error = 0.01
    union = full(0, count, error, filters)
    assert false_positive_share(union) <= error
    for number in (1, 2):
        union = union.joined(full(number, count, error, filters))
        assert pytest.approx(false_positive_share(union), rel=0.15) == union.false_positive_rate
    assert 2 * error < union.false_positive_rate <= JOINED_RATE_FACTOR_MAX * error < RATE_FACTOR_MAX * error
    assert union.false_positive_rate <= union.false_positive_rate_when_full
    with pytest.raises(ValueError, match="joined they would have a false positive rate"):
        union.joined(full(3, count, error, filters))


def test_half_full_filters_join_while_the_result_errs_no_more_than_two() -> None:
    error = 0.01
    union = full(0, 500, error)
    for number in range(1, 6):
        union = union.joined(full(number, 500, error))
        assert all(filter.ones / filter.shape.bits < 0.57 for _, filter in union.filters)
    assert [3] == [len(union.filters)]
    assert pytest.approx(false_positive_share(union), rel=0.15) == union.false_positive_rate
    assert union.false_positive_rate <= JOINED_RATE_FACTOR_MAX * error


def test_what_is_added_after_a_join_leaves_it_fit_to_travel() -> None:
    period = Period(HOUR, 1, error=0.01)
    random = Random("after")
    union = full(0, 1_020, 0.01)
    for number in (1, 2):
        union = union.joined(full(number, 1_020, 0.01))
    for _ in range(20_000):
        union.add(random.getrandbits(64))
    seen = ExpiringFilter(period)
    seen.put(union)
    assert from_bytes(to_bytes(seen, 0.0), period, 0.0).false_positive_rate(0.0) <= RATE_FACTOR_MAX * 0.01


def test_a_join_of_equal_shaped_filters_needs_little_extra_memory() -> None:
    """A value for the bits of each filter sorts the filters once, however many pairs exist."""
    alone = [full(number, 20_000, 1e-2) for number in range(5)]
    one, other = EpochFilter(0, engine("pybloom"), 1e-2), EpochFilter(0, engine("pybloom"), 1e-2)
    for slice, parts in ((one, alone[:3]), (other, alone[3:])):
        for part in parts:
            for rung, filter in part.filters:
                slice.put(rung, filter)
    largest = max(filter.shape.size_bytes for _, filter in one.filters)
    tracemalloc.start()
    union = one._joined(other)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < sum(filter.shape.size_bytes for _, filter in union.filters) + 4 * largest
