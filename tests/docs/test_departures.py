"""The page of departures has each formula and step of the papers, and each departure has all that a reader asks for."""

from collections import Counter
from pathlib import Path

import pytest

from scripts.docs.departures import STEPS, rows

PAGE = (Path(__file__).parents[2] / "docs/explanation/departures.md").read_text(encoding="utf-8")
ROWS = list(rows(PAGE))


@pytest.mark.parametrize("paper", STEPS)
def test_each_formula_and_step_of_a_paper_has_a_row(paper: str) -> None:
    found = {label for row in ROWS if row.paper == paper for label in row.labels}
    assert [] == [label for label in STEPS[paper] if label not in found]


@pytest.mark.parametrize("paper", STEPS)
def test_each_row_names_something_that_the_paper_says(paper: str) -> None:
    found = [label for row in ROWS if row.paper == paper for label in row.labels]
    assert [] == [label for label in found if label not in STEPS[paper]]


def test_a_row_is_as_in_the_paper_or_a_departure_with_reason_and_measurement() -> None:
    assert {2, 4} == {len(row.cells) for row in ROWS}
    assert [] == [row for row in ROWS if not all(row.cells)]


@pytest.mark.parametrize("paper", STEPS)
def test_nothing_is_as_in_the_paper_twice(paper: str) -> None:
    same = Counter(label for row in ROWS if row.paper == paper and len(row.cells) == 2 for label in row.labels)
    assert {} == {label: count for label, count in same.items() if count > 1}


@pytest.mark.parametrize(
    "named",
    ["HBase", "Redis queues", "Hadoop", "by hand", "Two-level hash, for all nodes", "product", "one list", "apart"],
)
def test_the_departures_that_readers_ask_for_are_named(named: str) -> None:
    assert [row for row in ROWS if len(row.cells) == 4 and named in " ".join(row.cells)]
