"""The journal keeps the grants of a run, and the next run begins a later epoch."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Literal

import pytest

from kadcrawl.crawl.byte_budget import ByteBudget
from kadcrawl.crawl.grants_journal import read_grants, write_grant, write_known
from kadcrawl.crawl.page_budget import Budget
from kadcrawl.store.store import Store

NOW = 1_800_000_000.0
OTHER = bytes(20)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path, 0.0, lambda fds: None)) as store:
        yield store


def budget_of(unit: Literal["pages", "bytes"], granted: int, epoch: int) -> Budget | ByteBudget:
    if unit == "pages":
        return Budget(1_000, granted, 0, epoch=epoch)
    return ByteBudget(1_000, granted, lambda: (0, 0), epoch=epoch)


@pytest.mark.parametrize("unit", ["pages", "bytes"])
def test_the_next_run_knows_the_grants_and_begins_later_epochs(store: Store, unit: Literal["pages", "bytes"]) -> None:
    assert (0, {}, {}, NOW * 1000) == read_grants(store.meta, unit, NOW)
    budget = budget_of(unit, 40, epoch=int(NOW * 1000))
    budget.learn({OTHER: 30}, b"", spent=False, epochs={OTHER: 9})
    last = [budget.tell() for _ in range(100)][-1]
    write_grant(store.meta, budget)
    write_known(store.meta, budget)
    for now in (NOW, NOW - 86_400.0):  # The clock may have been put back.
        assert (40, {OTHER: 30}, {OTHER: 9}, last) == read_grants(store.meta, unit, now)
    assert (NOW + 60) * 1000 == read_grants(store.meta, unit, NOW + 60).epoch


def test_the_grants_of_two_budgets_are_kept_apart(store: Store) -> None:
    for unit, granted in (("pages", 3), ("bytes", 4)):
        budget = budget_of(unit, granted, epoch=granted)  # type: ignore[arg-type]
        budget.learn({OTHER: granted}, b"", spent=False, epochs={OTHER: granted})
        write_grant(store.meta, budget)
        write_known(store.meta, budget)
    for unit, granted in (("pages", 3), ("bytes", 4)):
        read = read_grants(store.meta, unit, 0.0)  # type: ignore[arg-type]
        assert (granted, {OTHER: granted}, {OTHER: granted}, granted) == read


def test_a_directory_of_an_earlier_release_has_totals_without_epochs(store: Store) -> None:
    store.meta.set("granted", b"7")
    store.meta.set("grants", b"\x81\xc4\x14" + OTHER + b"\x05")
    assert (7, {OTHER: 5}, {}) == read_grants(store.meta, "pages", NOW)[:3]
