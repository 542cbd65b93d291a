"""Events that cost no page a second fetch in whole simulated worlds, although the judges would excuse the fetch."""

import pytest

from sim.plan import Event, Kind, Plan
from sim.trial import Size, Trial, run

pytestmark = pytest.mark.worlds


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


def test_an_owner_whose_backups_are_cut_off_fetches_nothing_for_a_while() -> None:
    """If the owner were killed before it notices, five seconds of uncopied pages would be lost with it."""
    cut = Event(6.0, Kind.PARTITION, (1,), for_s=5.0)
    plan = Plan(8, 6, (cut,), delay_s=0.25)
    trials: set[Trial] = set()
    assert {} == run(plan, Size(pages=120, sites=6), watch=trials.add).violations
    (trial,) = trials
    address = trial.machines.machines[1].host.ip
    asked = [request.time for request in trial.server.log if request.peer == address]
    assert 10 < sum(4.0 <= at_s < cut.at_s for at_s in asked)
    # Until it takes them for dead, and new backups, as far as it can see, have taken their places.
    assert [] == [at_s for at_s in asked if cut.at_s + 2.0 <= at_s < cut.at_s + 3.5]
