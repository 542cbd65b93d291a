"""Settings of a plan that meet, drawn after each was drawn by itself.

Two limits, a limit that a calm crawl must use up, fingerprints of the calendar in a job with a limit of time, and
proxies that are down for a time.

Tests: tests/sim/test_plan.py
"""

from collections.abc import Iterator
from random import Random

from msgspec.structs import replace

from .draw_limits import AMPLE_PAGES, BOUNDARY_S, GRAINS, RECRAWL_PAGES, RECRAWL_TIME_S
from .plan import UNDISTURBING, Event, Kind, Plan

CALM = 1 / 3
"""Share of the plans with a limit of pages in which no event takes a grant of pages away."""
BOTH = 1 / 3
"""Share of the recrawls that have both limits."""
DATED = 1 / 2
"""Share of the plans with a limit of time whose fingerprints may have epochs of the calendar."""
DOWN = 2 / 3
"""Share of the plans with proxies in which proxies are down for a time."""
DOWN_FROM_S, DOWN_S = (2.0, 16.0), (4.0, 14.0)
"""The first and the last instant at which a proxy goes down, and the least and the most seconds for which it is."""


def draw_pairs(seed: int, plan: Plan, *, faults: bool) -> Plan:
    """Return the plan with further settings beside those that it has. Without `faults` no proxy is down."""
    random = Random(f"pairs {seed}")
    has_pages = plan.max_pages is not None and plan.max_pages != AMPLE_PAGES
    if has_pages and random.random() < CALM:
        events = tuple(event for event in plan.events if event.kind in UNDISTURBING)
        plan = replace(plan, events=events)
    if plan.recrawl_after_s is not None and random.random() < BOTH:
        if plan.max_time_s is None:
            plan = replace(plan, max_time_s=round(random.uniform(*RECRAWL_TIME_S), 1))
        else:
            plan = replace(plan, max_pages=round(random.randint(*RECRAWL_PAGES) / max(1.0, plan.delay_s)))
    if plan.max_time_s is not None and plan.recrawl_after_s is None and random.random() < DATED:
        plan = replace(plan, calendar=random.choice(GRAINS), boundary_s=round(random.uniform(*BOUNDARY_S), 3))
    # A crawl that waits for a proxy may count no time, and so end later than the judge of the time can know.
    if faults and plan.proxies and plan.max_time_s is None and random.random() < DOWN:
        events = tuple(sorted([*plan.events, *_proxies_down(random, plan.proxies)], key=lambda event: event.at_s))
        plan = replace(plan, events=events)
    return plan


def _proxies_down(random: Random, proxies: int) -> Iterator[Event]:
    """Yield the failures of some proxies, or of all."""
    for number in random.sample(range(proxies), random.randint(1, proxies)):
        at_s, for_s = random.uniform(*DOWN_FROM_S), random.uniform(*DOWN_S)
        yield Event(round(at_s, 3), Kind.PROXY_DOWN, (), round(for_s, 3), number)
