"""The experiment on history that expires: its formulas, its hours, and that the same seed gives the same findings."""

from itertools import combinations
from math import isclose
from random import Random

import pytest

from sim.papers import expiring as experiment
from sim.papers.expiring import (
    ERROR,
    HOURS,
    by_formula,
    expiring,
    hours,
    least_bytes,
    least_shift,
    scrapy_bytes,
    with_ours,
    with_six_hashes,
)


@pytest.mark.parametrize(("keys", "shift"), [(10_000, 18), (40_000, 20), (100_000, 22), (10**8, 32), (2 * 10**8, 33)])
def test_the_least_power_of_two_below_one_in_ten_thousand(keys: int, shift: int) -> None:
    assert shift == least_shift(keys)
    assert by_formula(keys, 1 << shift) < ERROR <= by_formula(keys, 1 << shift - 1)


def test_what_any_bloom_filter_needs() -> None:
    assert isclose(19.17 / 8, least_bytes(1e-4), rel_tol=1e-3)
    assert isclose(23.22 / 8, least_bytes(1e-4 / 7), rel_tol=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_consecutive_hours_share_nothing_and_all_others_something(seed: int) -> None:
    fetched = hours(Random(seed))
    for one, other in combinations(range(HOURS), 2):
        assert (other - one > 1) == bool(fetched[one] & fetched[other])


def test_filters_err_by_the_formula_and_ours_within_the_bound() -> None:
    six, ours = with_six_hashes(5_000, Random(1)), with_ours(5_000, Random(1))
    assert pytest.approx(by_formula(5_000, 1 << six.shift), rel=0.1) == six.one
    assert six.all_days <= 3 * 2 * ERROR
    assert ours.false_positive_rate <= ERROR
    assert ours.wrong <= 2 * ERROR
    assert least_bytes(ERROR / 3) <= ours.key_bytes <= 1.1 * least_bytes(ERROR / 3)


def test_a_fingerprint_of_scrapy_takes_what_python_takes() -> None:
    assert 89 + 16 < scrapy_bytes(10_000, Random(1)) < 89 + 4 * 16


def test_the_same_seed_gives_the_same_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "ASKED", 5_000)
    shares: list[float] = []
    first = expiring(5, shares.append, sizes=(1_024, 2_048))
    assert first == expiring(5, lambda share: None, sizes=(1_024, 2_048))
    assert shares == sorted(shares)
    assert 1.0 == shares[-1]
    assert [] == [one.what for one in first.findings if not one.reached]
    for table in first.tables:
        assert {len(table.heading)} == {len(row) for row in table.rows}
