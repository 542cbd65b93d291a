"""Peers of one machine stand still, stall or jump together, and a plan with that keeps its promise."""

from random import Random

import pytest
from msgspec.structs import replace

from sim.draw import draw
from sim.draw_overload import OVERLOADS, Overload, overloaded
from sim.mutants import planted
from sim.plan import BRIEF_S, RECOVERY_S, Event, Kind, Plan
from sim.target_worlds import target_world
from sim.trial import run
from tests.support.cases import cases

FAULTS = (Event(4.0, Kind.KILL, (1,)), Event(9.0, Kind.RESTART, (1,)), Event(24.0, Kind.LEAVE, (2,)))
PLAN = Plan(1, 8, FAULTS)


@cases("overload", OVERLOADS)
@cases("seed", range(20))
def test_faults_that_follow_overload_come_no_sooner_after_each_other(overload: Overload, seed: int) -> None:
    plan = overloaded(Random(seed), PLAN, overload)
    assert sorted(plan.events, key=lambda event: event.at_s) == list(plan.events)
    kept = [one for one in plan.events if one.machines in ((1,), (2,)) and one.kind in {one.kind for one in FAULTS}]
    if not kept:
        assert plan.only_slows
        return
    kill, restart, leave = kept[-3:]
    awake_s = (
        leave.at_s
        - restart.at_s
        - sum(one.for_s for one in plan.events if one.kind is Kind.FREEZE and restart.at_s <= one.at_s < leave.at_s)
    )
    assert kill.at_s < restart.at_s
    assert FAULTS[2].at_s - FAULTS[1].at_s <= awake_s + 1e-2


@pytest.mark.parametrize("seed", range(20))
def test_those_that_joined_before_stand_still_with_all_others(seed: int) -> None:
    plan = replace(PLAN, events=(Event(1.0, Kind.JOIN, (8,)), *PLAN.events, Event(120.0, Kind.JOIN, (9,))))
    stopped = overloaded(Random(seed), plan, "stops")
    joins = {machine: one.at_s for one in stopped.events if one.kind is Kind.JOIN for machine in one.machines}
    for pause in (one for one in stopped.events if one.kind is Kind.FREEZE and set(range(8)) <= {*one.machines}):
        assert {*pause.machines} - {*range(8)} == {machine for machine, at_s in joins.items() if at_s <= pause.at_s}


def test_clocks_that_jump_together_are_those_of_machines_that_boot_together() -> None:
    for seed in range(20):
        plan = overloaded(Random(seed), PLAN, "clocks")
        kill, jump, restart = (next(one for one in plan.events if one.kind is kind) for kind in KINDS_OF_A_REBOOT)
        assert kill.machines == jump.machines == restart.machines
        assert 1 < len(kill.machines) <= plan.exposed_max
        assert min(one.at_s for one in plan.events if one.kind is Kind.LEAVE) >= restart.at_s + RECOVERY_S


KINDS_OF_A_REBOOT = (Kind.KILL, Kind.JUMP, Kind.RESTART)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ((), False),
        ((Event(3.0, Kind.FREEZE, (0, 1, 2), 30.0),), True),
        ((Event(3.0, Kind.FREEZE, (0,), BRIEF_S),), True),
        ((Event(3.0, Kind.FREEZE, (0,), BRIEF_S + 0.1),), False),
        ((Event(3.0, Kind.FREEZE, (0, 1, 2), 30.0), Event(4.0, Kind.KILL, (0,))), False),
    ],
)
def test_peers_are_only_slow_if_nobody_can_take_one_for_dead(events: tuple[Event, ...], *, expected: bool) -> None:
    assert expected == Plan(1, 3, events).only_slows


def test_plans_are_drawn_with_each_overload_and_in_any_partition() -> None:
    plans = [draw(seed, 16) for seed in range(1, 400)]
    stops = [
        one for one in plans if any(event.kind is Kind.FREEZE and len(event.machines) == 16 for event in one.events)
    ]
    clocks = [one for one in plans if any(event.kind is Kind.JUMP and len(event.machines) > 1 for event in one.events)]
    assert len(stops) > 15
    assert len(clocks) > 5
    assert {"host", "url"} <= {one.partition for one in stops}
    assert any(one.only_slows for one in plans)


@pytest.mark.worlds
@pytest.mark.parametrize("seed", [9, 10, 17])
def test_a_swarm_in_which_all_peers_stand_still_or_stall_fetches_nothing_twice(seed: int) -> None:
    outcome = run(target_world("overload", "exact", seed, 8))
    assert {} == outcome.violations
    assert 0 == outcome.duplicates


@pytest.mark.worlds
@pytest.mark.parametrize(
    ("mutant", "seed", "judge"),
    [
        ("answers_after_a_stop_dropped", 6, "slow_and_not_wrong"),
        ("doubts_without_end", 4, "nothing_lost"),
        ("clock_put_back_not_noticed", 5, "nothing_lost"),
    ],
)
def test_a_planted_bug_of_each_overload_is_found(mutant: str, seed: int, judge: str) -> None:
    with planted(mutant):
        outcome = run(target_world("overload", "exact", seed, 16))
    assert judge in outcome.violations
