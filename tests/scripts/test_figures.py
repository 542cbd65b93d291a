import json
import re
from pathlib import Path
from typing import Any

import pytest

from scripts.figures.__main__ import FiguresError, renewed
from scripts.figures.campaigns import SUMMED, total
from scripts.figures.measurements import FILE, MEASUREMENTS
from sim.campaign import Totals

ROOT = Path(__file__).parents[2]


def report(**figures: Any) -> dict[str, Any]:
    return Totals().report() | figures


def test_the_totals_of_blocks_add_up() -> None:
    first = report(seeds=2, urls=10, duplicates=1, repair_seconds={"p50": 0.2, "p99": 3.0}, failing_seeds=[2])
    second = report(seeds=3, urls=30, duplicates=3, repair_seconds={"p50": 0.4, "p99": 1.0}, failing_seeds=[])
    found = total([first, second])
    assert (5, 40, 4, 0.1) == (found["seeds"], found["urls"], found["duplicates"], found["duplicate_ratio"])
    assert {"p50": 0.4, "p99": 3.0} == found["repair_seconds"]
    assert [2] == found["failing_seeds"]


def test_no_count_of_a_campaign_is_forgotten() -> None:
    counts = {name for name, figure in Totals().report().items() if isinstance(figure, int | float)}
    assert counts - {"duplicate_ratio"} == set(SUMMED)


def test_an_empty_campaign_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one block"):
        total([])


def test_single_experiments_are_renewed_and_the_others_stay() -> None:
    kept = {"output": {"seed": 1}, "table2": {"seed": 2}, "levels": {"seed": 3}}
    found = renewed(kept, {"table2": {"seed": 4}})
    assert {"output": {"seed": 1}, "table2": {"seed": 4}, "levels": {"seed": 3}} == found
    assert list(kept) == list(found)
    with pytest.raises(FiguresError, match="nothing is kept of joining"):
        renewed(kept, {"joining": {}})


def test_each_measurement_writes_where_it_is_told() -> None:
    assert all(measurement.command.count(FILE) == 1 for measurement in MEASUREMENTS.values())


@pytest.mark.parametrize("path", sorted((ROOT / "docs/figures").glob("*.json")), ids=lambda path: path.stem)
def test_each_kept_file_says_how_it_was_measured(path: Path) -> None:
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert path.stem in MEASUREMENTS
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", kept["date"])
    assert {"command", "version", "python", "cores", "figures"} < kept.keys()
