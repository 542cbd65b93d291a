"""What costs no page a second fetch, in whole simulated worlds: the judges would let it pass."""

import pytest

from sim.plan import Event, Kind, Plan
from sim.trial import run


@pytest.mark.parametrize(
    ("seed", "at_s", "leavers"),
    [(7, 8.0, (0, 1, 4, 6, 8, 10, 11)), (16, 8.0, (0, 3, 4, 6, 7, 14, 15)), (19, 12.0, (1, 3, 6, 8, 12, 13, 15))],
)
def test_peers_that_leave_together_finish_what_they_have_in_hand(
    seed: int, at_s: float, leavers: tuple[int, ...]
) -> None:
    """Links of their last pages are for each other, so each takes them until it says goodbye."""
    plan = Plan(seed, 16, (Event(at_s, Kind.LEAVE, leavers),), delay_s=0.0, own_delay_s=1.0)
    outcome = run(plan)
    assert ({}, 0) == (outcome.violations, outcome.duplicates)
