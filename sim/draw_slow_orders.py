"""The orders of a person that slow sites down or change settings, drawn from the seed beside all other events."""

from collections.abc import Iterator
from random import Random

from msgspec.structs import replace

from .draw_limits import AMPLE_PAGES
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

OTHER_DELAY = 1 / 8
"""Share of the plans without a recrawl or a limit of time in which a person makes the job's delay longer."""
LONGER_S = (0.5, 2.5)
"""The least and the most seconds by which it becomes longer."""
OTHER_PAGES = 3 / 4
"""Share of the plans with a limit of pages in which a person changes it."""
OTHER_PAGES_S = (4.0, 20.0)
"""The instants of these orders: some when the crawl has come to its limit."""
FURTHER_PAGES = (5, 40)
"""The least and the most pages by which a limit is raised that still ends the crawl early."""

PAUSED = 1 / 3
"""Share of the plans with a limit of pages in which a person pauses sites for a time."""


def draw_slow_orders(seed: int, plan: Plan, *, faults: bool) -> Plan:
    """Return the plan with orders that slow sites down, or change settings. Without `faults` there are none."""
    if not faults or plan.only_slows or plan.recrawl_after_s is not None or plan.max_time_s is not None:
        return plan
    slow = _slow_orders(Random(f"slowed {seed} {plan.peers}"), plan)
    events = [*plan.events, *slow, *_changes(Random(f"changed settings {seed} {plan.peers}"), plan)]
    return replace(plan, events=tuple(sorted(events, key=lambda event: event.at_s)))


def _changes(random: Random, plan: Plan) -> Iterator[Event]:
    """Yield orders that change the job's delay or its limit of pages."""
    machines = (random.randrange(plan.peers),)
    if random.random() < OTHER_DELAY:
        at_s, value = random.uniform(*FROM_S), plan.delay_s + random.uniform(*LONGER_S)
        for_s = random.choice((0.0, random.uniform(*SHORT_S), max(at_s, plan.over_s) + random.uniform(*AFTER_S) - at_s))
        yield Event(round(at_s, 3), Kind.SET_DELAY, machines, round(for_s, 3), value=round(value, 1))
    if plan.max_pages is None or plan.max_pages == AMPLE_PAGES:
        return
    if random.random() < PAUSED:
        at_s, for_s = random.uniform(*FROM_S), random.uniform(*SHORT_S)
        for site in random.sample(range(SITES), random.randint(1, 3)):
            yield Event(round(at_s, 3), Kind.SITE_PAUSE, machines, round(for_s, 3), float(site))
    if random.random() >= OTHER_PAGES:
        return
    pages = random.choice((AMPLE_PAGES, plan.max_pages + random.randint(*FURTHER_PAGES), max(1, plan.max_pages // 2)))
    yield Event(round(random.uniform(*OTHER_PAGES_S), 3), Kind.SET_PAGES, machines, value=float(pages))


def _slow_orders(random: Random, plan: Plan) -> Iterator[Event]:
    """Yield orders that slow sites down, early in the crawl or while faults keep peers from hearing.

    Some orders last until long after the last fault or are never lifted, so that all peers must have heard of them.
    A plan that ends at a limit has none.
    """
    if random.random() >= SLOWED or not plan.events or plan.max_pages is not None:
        return
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
