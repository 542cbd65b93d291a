"""Somebody looks at a dashboard while faults happen: what it says is true, and bugs of it are found."""

import pytest
from msgspec.structs import replace

from sim.draw import draw
from sim.plan import Plan
from sim.trial import Size, TrialOutcome, run

pytestmark = pytest.mark.worlds


def watched(seed: int, *, mutant: str | None = None) -> TrialOutcome:
    """Run a small world with faults, in which somebody looks at the dashboard of the first machine."""
    return run(replace(draw(seed, 8), watched=0), Size(pages=60, sites=8), mutant=mutant)


def test_a_dashboard_tells_the_truth_while_faults_happen() -> None:
    outcome = watched(6)
    assert {} == outcome.violations
    assert outcome.trace == watched(6).trace, "what it tells is the same in each run"


@pytest.mark.parametrize(
    ("mutant", "judge"),
    [
        ("dashboard_done_when_its_peer_is_idle", "dashboard_says_the_end"),
        ("dashboard_shows_urls_as_pages", "dashboard_shows_the_swarm"),
        ("dashboard_leaves_a_peer_out", "dashboard_shows_the_swarm"),
    ],
)
def test_a_planted_bug_of_the_dashboard_is_found(mutant: str, judge: str) -> None:
    assert [judge] == list(watched(6, mutant=mutant).violations)


def test_some_plans_have_a_viewer() -> None:
    plans: list[Plan] = [draw(seed, 8) for seed in range(60)]
    watching = [plan.watched for plan in plans if plan.watched is not None]
    assert 3 < len(watching) < 25
    assert all(0 <= number < 8 for number in watching)
