"""The sites that a person slows down, drawn from the seed beside all other events of a plan."""

from collections.abc import Iterator
from random import Random

from msgspec.structs import replace

from .plan import Event, Kind, Plan

SLOWED = 1 / 4
"""Share of the plans in which a person slows sites down."""
SITES = 6
"""The largest sites, of which some are slowed down."""
FROM_S = (2.0, 12.0)
"""The instants at which sites are slowed down: most of their pages are still to be fetched then."""
SHORT_S = (4.0, 15.0)
"""The least and the most seconds for which an order stands that is lifted soon."""
AFTER_S = (18.0, 30.0)
"""The least and the most seconds for which another order outlasts the last fault."""
BEARABLE_S = (1.5, 4.0)
"""The shortest and the longest delay of an order that nobody lifts, beyond that of the job: few enough seconds for all
pages of a site."""
LONG_S = (30.0, 90.0)
"""The shortest and the longest delay that keeps a site from its end until the order is lifted."""


def draw_slow_orders(seed: int, plan: Plan) -> Plan:
    """Return the plan with orders that slow sites down, early in the crawl or while faults keep peers from hearing.

    Some orders last until long after the last fault or are never lifted, so that all peers must have heard of them.
    A plan that ends at a limit, and one of overload alone, have none.
    """
    random = Random(f"slowed {seed} {plan.peers}")
    is_limited = plan.recrawl_after_s is not None or plan.max_time_s is not None or plan.max_pages is not None
    if random.random() >= SLOWED or not plan.events or plan.only_slows or is_limited:
        return plan
    events = sorted([*plan.events, *_orders(random, plan)], key=lambda event: event.at_s)
    return replace(plan, events=tuple(events))


def _orders(random: Random, plan: Plan) -> Iterator[Event]:
    missed = [one for one in plan.events if one.kind in (Kind.PARTITION, Kind.ONE_WAY, Kind.FREEZE)]
    for site in random.sample(range(SITES), random.randint(1, 2)):
        at_s = random.uniform(*FROM_S)
        if missed and random.random() < 1 / 3:
            one = random.choice(missed)
            at_s = random.uniform(one.at_s, one.at_s + one.for_s)
        delay_s, until_s = plan.delay_s + random.uniform(*BEARABLE_S), at_s
        if random.random() < 2 / 3:
            until_s = random.choice((at_s + random.uniform(*SHORT_S), plan.over_s + random.uniform(*AFTER_S)))
            delay_s = random.choice((delay_s, random.uniform(*LONG_S)))
        machine = random.randrange(plan.peers)
        for_s = round(max(0.0, until_s - at_s), 3)
        yield Event(round(at_s, 3), Kind.SITE_SLOW, (machine,), for_s, float(site), value=round(delay_s, 1))
