"""Every bug the simulator found keeps the plan that showed it: the same faults, on the same web, end clean now.

docs/explanation/simulator-findings.md describes each bug, and `python -m sim replay tests/sim/plans/NAME.json --trace`
tells its story.
"""

import re
from pathlib import Path

import pytest

from sim.plan import Plan
from sim.trial import run

pytestmark = pytest.mark.worlds

FINDINGS = Path(__file__).parents[2] / "docs/explanation/simulator-findings.md"
PLANS = sorted((Path(__file__).parent / "plans").glob("*.json"))


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in PLANS])
def test_what_once_went_wrong_does_not_again(path: Path) -> None:
    outcome = run(Plan.from_json(path.read_bytes()))
    assert outcome.violations == {}


def test_each_plan_is_explained_by_a_row_of_the_findings() -> None:
    rows = re.findall(r"^\|[^|]*\| `(\w+)` \|[^|]*\|$", FINDINGS.read_text(encoding="utf-8"), re.MULTILINE)
    assert [path.stem for path in PLANS] == sorted(rows)
