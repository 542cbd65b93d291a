"""The fewest events of a plan that still do it: delta debugging (Zeller, Hildebrandt 2002, ddmin) over its events.

Events stand for themselves, so a plan less some of them is a plan, and no structure needs minding: thirty lines do what
Hypothesis' shrinker would, whose machinery wants to draw the plan itself. Pure.
"""

from collections.abc import Callable
from itertools import pairwise

from .plan import Plan


def shrink(plan: Plan, fails: Callable[[Plan], bool]) -> Plan:
    """Return a plan that still `fails` and no longer does so less any one of its events.

    `plan` fails, and `fails` gives the same answer whenever asked.
    """
    parts = 2
    while plan.events:
        parts = min(parts, len(plan.events))
        shorter = next((one for one in _shorter(plan, parts) if fails(one)), None)
        if shorter is not None:
            plan, parts = shorter, max(2, parts - 1)
        elif parts == len(plan.events):
            break
        else:
            parts *= 2
    return plan


def _shorter(plan: Plan, parts: int) -> list[Plan]:
    """Return the plan less each of `parts` parts of its events."""
    count = len(plan.events)
    bounds = [count * part // parts for part in range(parts + 1)]
    return [plan.without(frozenset(range(*pair))) for pair in pairwise(bounds)]
