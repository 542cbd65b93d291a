"""Every bug the simulator found keeps the plan that showed it: the same faults, on the same web, end clean now.

What each was is in RELIABILITY.md. `python -m sim replay tests/sim/plans/NAME.json --trace` tells the story.
"""

from pathlib import Path

import pytest

from sim.plan import Plan
from sim.trial import run

PLANS = sorted((Path(__file__).parent / "plans").glob("*.json"))


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in PLANS])
def test_what_once_went_wrong_does_not_again(path: Path) -> None:
    outcome = run(Plan.from_json(path.read_bytes()))
    assert outcome.violations == {}
