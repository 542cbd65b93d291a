"""The overload of a plan: peers that stand still together, loops that stall, clocks that jump together.

Peers of one process or one machine share what they suffer: SIGSTOP, a processor that is busy with other work, a clock
set by hand. Nothing of the swarm goes on while all of it stands still. So what follows in the plan comes as much later,
and no machine is exposed for longer than the plan says.

Tests: tests/sim/test_overload.py
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Literal, get_args

from msgspec.structs import replace

from .plan import RECOVERY_S, Event, Kind, Plan

Overload = Literal["stops", "stalls", "clocks"]
OVERLOADS: tuple[Overload, ...] = get_args(Overload)
OVERLOADED = 1 / 6
"""Share of the plans with overload."""
ALONE = 1 / 2
"""Share of those plans in which peers that stand still are the only faults."""
BEGIN_S = (2.5, 16.0)
"""The first and the last second at which overload begins."""
STOPS = (1, 1, 2)
STOP_S = ((0.8, 2.5), (2.0, 8.0), (30.0, 30.0))
"""Lengths of the stops of all peers at once: as the longest, SIGSTOP for half a minute."""
STALL_S = (0.4, 2.4)
"""The shortest and the longest stall of an overloaded loop."""
TURN_S = (0.2, 1.2)
"""Time in which the loop runs between two stalls."""
STALLS = (4, 12)
JUMPS_S = (-7200.0, -30.0, 30.0, 7200.0)
DOWN_S = (0.5, 3.0)


def draw_overload(seed: int, plan: Plan) -> Plan:
    """Return the plan with overload, or the same plan. A plan that ends by the clock has none."""
    random = Random(f"overload {seed}")
    if random.random() >= OVERLOADED or plan.max_time_s is not None or not plan.events:
        return plan
    return overloaded(random, plan, random.choice(OVERLOADS))


def overloaded(random: Random, plan: Plan, overload: Overload) -> Plan:
    """Return the plan with this overload, mostly beside its other faults."""
    if overload == "clocks":
        return _with_clocks(random, plan)
    pauses = tuple((_stops if overload == "stops" else _stalls)(random, plan.peers))
    others = () if random.random() < ALONE else plan.events
    later = [replace(one, at_s=round(one.at_s + _stopped_s(pauses, one.at_s), 3)) for one in others]
    pauses = tuple(_with_newcomers(pause, plan.peers, later) for pause in pauses)
    return replace(plan, events=_in_order([*pauses, *later]))


def _with_newcomers(pause: Event, peers: int, later: Sequence[Event]) -> Event:
    """Return a pause of all peers with those that joined before.

    A newcomer left alone would take all others for dead, and they are more than the copies of a page.
    """
    if pause.machines != tuple(range(peers)):
        return pause
    newcomers = {number for one in later if one.kind is Kind.JOIN and one.at_s <= pause.at_s for number in one.machines}
    return replace(pause, machines=tuple(sorted({*pause.machines, *newcomers})))


def _stops(random: Random, peers: int) -> Iterator[Event]:
    """Yield stops of all peers at once, one after the other."""
    at_s = random.uniform(*BEGIN_S)
    for _ in range(random.choice(STOPS)):
        for_s = random.uniform(*random.choice(STOP_S))
        yield Event(round(at_s, 3), Kind.FREEZE, tuple(range(peers)), round(for_s, 3))
        at_s += for_s + random.uniform(0.1, 4.0)


def _stalls(random: Random, peers: int) -> Iterator[Event]:
    """Yield stalls of overloaded loops: of all peers, if they share a loop, or of some machines."""
    count = random.choice((peers, max(1, peers // 4)))
    machines = tuple(sorted(random.sample(range(peers), count)))
    at_s = random.uniform(*BEGIN_S)
    for _ in range(random.randint(*STALLS)):
        for_s = random.uniform(*STALL_S)
        yield Event(round(at_s, 3), Kind.FREEZE, machines, round(for_s, 3))
        at_s += for_s + random.uniform(*TURN_S)


def _with_clocks(random: Random, plan: Plan) -> Plan:
    """Return the plan with a reboot of some machines, whose wall clocks have jumped together."""
    at_s, down_s = BEGIN_S[0], random.uniform(*DOWN_S)
    together = tuple(sorted(random.sample(range(plan.peers), min(plan.exposed_max, plan.peers // 2))))
    back_s = round(at_s + down_s, 3)
    reboot = [
        Event(at_s, Kind.KILL, together),
        Event(at_s, Kind.JUMP, together, amount=random.choice(JUMPS_S)),
        Event(back_s, Kind.RESTART, together),
    ]
    first_s = min((one.at_s for one in plan.events), default=back_s)
    wait_s = max(0.0, back_s + RECOVERY_S - first_s)
    later = [replace(one, at_s=round(one.at_s + wait_s, 3)) for one in plan.events]
    return replace(plan, events=_in_order([*reboot, *later]))


def _stopped_s(pauses: Sequence[Event], at_s: float) -> float:
    """Return the seconds that the pauses take until a moment of a plan without them."""
    stopped_s = 0.0
    for pause in pauses:
        if pause.at_s <= at_s + stopped_s:
            stopped_s += pause.for_s
    return stopped_s


def _in_order(events: Sequence[Event]) -> tuple[Event, ...]:
    return tuple(sorted(events, key=lambda event: event.at_s))
