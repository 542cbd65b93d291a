"""The model of losses: its closed forms, a simulation of its deaths, and its table in the documentation."""

from pathlib import Path
from random import Random

import pytest

from scripts.docs.figures import Kept
from scripts.docs.loss_odds import LIVES, NOTICED_S, copies_shown, loss_probability, loss_rows, mean_time_to_loss_s
from scripts.docs.loss_table import losses

ROOT = Path(__file__).parents[2]


def test_one_copy_lasts_as_long_as_its_peer() -> None:
    assert 3600.0 == pytest.approx(mean_time_to_loss_s(1, 3600.0, 10.0))


@pytest.mark.parametrize(("mttf_s", "repair_s"), [(3600.0, 10.0), (100.0, 50.0), (1e8, 1.0)])
def test_two_copies_last_as_the_known_formula_of_mirrored_disks_says(mttf_s: float, repair_s: float) -> None:
    """(3 l + m) / (2 l^2), for failures at the rate l and repairs at the rate m."""
    failing, repaired = 1 / mttf_s, 1 / repair_s
    expected = (3 * failing + repaired) / (2 * failing**2)
    assert expected == pytest.approx(mean_time_to_loss_s(2, mttf_s, repair_s))


@pytest.mark.parametrize("copies", [3, 4, 5])
def test_deaths_drawn_one_by_one_come_to_the_same_time(copies: int) -> None:
    random, mttf_s, repair_s = Random(copies), 10.0, 5.0
    total, lives = 0.0, 4_000
    for _ in range(lives):
        left = copies
        while left:
            dies_s = random.expovariate(left / mttf_s)
            repaired_s = random.expovariate(1 / repair_s) if left < copies else dies_s + 1.0
            total += min(dies_s, repaired_s)
            left = left - 1 if dies_s < repaired_s else copies
    assert total / lives == pytest.approx(mean_time_to_loss_s(copies, mttf_s, repair_s), rel=0.06)


@pytest.mark.parametrize("repair_s", [13.0, 600.0])
@pytest.mark.parametrize("mttf_s", [seconds for _, seconds in LIVES])
def test_each_copy_more_and_each_longer_life_makes_a_loss_rarer(mttf_s: float, repair_s: float) -> None:
    odds = [loss_probability(copies, mttf_s, repair_s, 86_400.0) for copies in copies_shown()]
    assert odds == sorted(odds, reverse=True)
    assert len(set(odds)) == len(odds)
    assert loss_probability(3, 2 * mttf_s, repair_s, 86_400.0) < loss_probability(3, mttf_s, repair_s, 86_400.0)


def test_the_table_of_the_page_is_the_one_of_the_model() -> None:
    kept = Kept(ROOT / "docs/figures")
    table = losses(kept)
    rows = loss_rows(NOTICED_S + kept["campaign"]["repair_seconds"]["p99"])
    assert len(rows) == 2 * len(LIVES)
    assert all(" | ".join(row) in table for row in rows)
    assert table in (ROOT / "docs/how-to/operate.md").read_text(encoding="utf-8")
