"""As many peers as the job keeps copies, less one, may die at once: in a kept plan, and in a few seeds."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from sim.draw import draw
from sim.plan import Plan
from sim.trial import run

pytestmark = pytest.mark.worlds

FOUR_OF_FIVE = Plan.from_json((Path(__file__).parent / "copies/four_of_five_holders_die.json").read_bytes())
"""Four of eight machines lose their power at once and for good: all holders of cells with work but one."""


def test_four_of_five_holders_killed_together_lose_nothing() -> None:
    outcome = run(FOUR_OF_FIVE)
    assert {} == outcome.violations
    assert outcome.met["kill_all_holders_but_one"]
    assert 4 == outcome.kills


def test_the_same_deaths_take_urls_along_that_have_three_copies() -> None:
    assert run(replace(FOUR_OF_FIVE, copies=3)).found("nothing_lost") > 0


def test_peers_that_keep_fewer_copies_than_the_job_says_are_found() -> None:
    found = run(FOUR_OF_FIVE, mutant="copies_of_the_job_ignored").violations
    assert {"three_copies", "nothing_lost"} & found.keys()


@pytest.mark.parametrize(("copies", "seed"), [(2, 2), (2, 7), (4, 3), (5, 20), (5, 25), (5, 31)])
def test_drawn_faults_within_the_promise_lose_nothing(copies: int, seed: int) -> None:
    plan = draw(seed, 8, copies=copies)
    assert copies == plan.copies
    assert {} == run(plan).violations
