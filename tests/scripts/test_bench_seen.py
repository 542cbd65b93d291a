"""The benchmark of seen-sets measures sets that are full and right, and its claims can fail."""

from dataclasses import replace

import pytest

from kadcrawl.store.bloom.engines import ENGINES
from scripts.bench_seen import (
    BYTES_MOST,
    CHECK_MOST_US,
    FilterCost,
    cell_bytes,
    claims,
    of_a_set,
    of_ours,
    us_per_key,
)

FINE = FilterCost(
    name="pybloom", keys=10, add_us=1, new_us=1, known_us=2, bytes_per_key=2.4, wrong=1e-5, epoch_filters=1
)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_set_of_ours_is_measured_in_the_period_after_its_first(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts.bench_seen.ASKED_MOST", 5_000)
    grown, settled = (of_ours(engine, 4_096, epochs=2, days=days) for days in (2, 4))
    assert (2, True, 2, False) == (grown.epoch_filters, grown.grown, settled.epoch_filters, settled.grown)
    assert 2.4 < settled.bytes_per_key < grown.bytes_per_key
    assert settled.wrong <= 1e-3
    assert min(settled.add_us, settled.new_us, settled.known_us) > 0


def test_scrapys_set_is_counted_with_its_strings() -> None:
    by_digits, by_bytes = (of_a_set("set", 2_000, fingerprint) for fingerprint in (bytes.hex, bytes))
    assert pytest.approx(89 - 53, abs=1) == by_digits.bytes_per_key - by_bytes.bytes_per_key


def test_each_key_is_used_once() -> None:
    used: list[int] = []
    us_per_key(used.extend, range(13))
    assert [*range(13)] == used


def test_a_small_cell_takes_a_few_bytes_of_a_key() -> None:
    empty, one, few = cell_bytes(0), cell_bytes(1), cell_bytes(200)
    assert empty <= 200 < one <= 800
    assert (few - one) / 200 <= 12


def test_claims_can_fail() -> None:
    assert all(holds for _, holds in claims([FINE]))
    assert [] == [*claims([replace(FINE, grown=True, new_us=99), replace(FINE, epoch_filters=0, new_us=99)])]
    for wrong in (
        replace(FINE, known_us=CHECK_MOST_US + 0.01),
        replace(FINE, new_us=CHECK_MOST_US + 0.01),
        replace(FINE, bytes_per_key=BYTES_MOST + 0.01),
        replace(FINE, wrong=5e-4),
    ):
        assert 1 == sum(not holds for _, holds in claims([wrong]))
