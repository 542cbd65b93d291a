"""Every bug the simulator found keeps the plan that showed it: the same faults, on the same web, end clean now.

docs/explanation/simulator-findings.md describes each bug, and `python -m sim replay tests/sim/plans/NAME.json --trace`
tells its story.
"""

import re
from pathlib import Path

import pytest

from sim import trial
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


def test_a_copy_that_is_never_made_is_found_in_a_world_that_forgets_its_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "REST_TIMEOUT_S", 60.0)
    plan = next(path for path in PLANS if path.stem == "forgotten_as_the_judge_looks")
    outcome = run(Plan.from_json(plan.read_bytes()), mutant="backup_skipped")
    assert outcome.found("three_copies") > 1
