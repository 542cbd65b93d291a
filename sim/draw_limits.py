"""The limits of a plan's job, its recrawl and its proxies, drawn from the seed beside all other settings.

A crawl ends at a limit with URLs left, or long before a limit that is too large to matter. A recrawl never ends by
itself, so it has a limit.
"""

from random import Random
from typing import get_args

from msgspec.structs import replace

from kadcrawl.settings.job import Job
from kadcrawl.settings.recrawl_checks import CalendarGrain

from .plan import SITE_ORDERS, Kind, Plan

LIMITED = 1 / 4
"""Share of the plans with a limit."""
AMPLE_PAGES = 5_000
"""Pages that no crawl here needs, whatever the grants of dead peers take with them."""
FEW_PAGES = (15, 60)
"""The least and the most pages of a crawl that ends early, if the delay is at most one second."""
TIME_S = (8.0, 20.0)
"""The shortest and the longest time of a crawl that ends early."""
GRAINS: tuple[CalendarGrain, ...] = get_args(CalendarGrain)
BOUNDARY_S = (3.0, 20.0)
"""The first and the last second at which a unit of the calendar begins, amid the crawl."""
RECRAWL_S = (6.0, 14.0)
"""The shortest and the longest time between two visits to a page."""
RECRAWL_PAGES = (100, 150)
"""The least and the most visits of a recrawl that ends so, if the delay is at most one second: more than the URLs."""
RECRAWL_TIME_S = (25.0, 40.0)
"""The shortest and the longest time of a recrawl that ends so: twice its period, and more."""


PROXIED = 1 / 8
"""Share of the plans in which all peers fetch through proxies."""
PROXIES, DEAD_PROXIES = (1, 2, 3), (0, 1, 2)
ROLLED = 1 / 8
"""Share of the plans in which page logs roll."""
PART_BYTES = (1_000, 4_000, 20_000)
"""Sizes of parts in bytes: from three lines to a hundred."""


def draw_proxies(seed: int, plan: Plan) -> Plan:
    """Return the plan with the proxies of its job. A job with a delay of addresses cannot have any."""
    random = Random(f"proxies {seed}")
    if random.random() >= PROXIED or plan.per_ip:
        return plan
    return replace(plan, proxies=random.choice(PROXIES), dead_proxies=random.choice(DEAD_PROXIES))


def draw_parts(seed: int, plan: Plan) -> Plan:
    """Return the plan with the size of the parts of page logs."""
    random = Random(f"parts {seed}")
    return plan if random.random() >= ROLLED else replace(plan, pages_bytes_max=random.choice(PART_BYTES))


def draw_limits(seed: int, plan: Plan) -> Plan:
    """Return the plan with the limits of its job."""
    random = Random(f"limits {seed}")
    if random.random() >= LIMITED:
        return plan
    kind = random.choice(("ample", "pages", "pages", "time", "recrawl", "recrawl"))
    if kind == "ample":
        return replace(plan, max_pages=AMPLE_PAGES)
    if kind == "pages":
        few = round(random.randint(*FEW_PAGES) / max(1.0, plan.delay_s))
        plan = ending_early(replace(plan, max_pages=few))
        return replace(plan, calendar=random.choice(GRAINS), boundary_s=round(random.uniform(*BOUNDARY_S), 3))
    if kind == "time":
        return ending_early(replace(plan, max_time_s=round(random.uniform(*TIME_S), 1)))
    after_s, max_time_s = round(random.uniform(*RECRAWL_S), 1), round(random.uniform(*RECRAWL_TIME_S), 1)
    plan = recrawling(plan, after_s)
    if random.random() < 1 / 2:
        return replace(plan, max_time_s=max_time_s)
    return replace(plan, max_pages=round(random.randint(*RECRAWL_PAGES) / max(1.0, plan.delay_s)))


def ending_early(plan: Plan) -> Plan:
    """Return the plan without what needs a crawl to its end: outages, orders to retry, and orders about sites."""
    left_out = SITE_ORDERS | {Kind.OUTAGE, Kind.RETRY}
    events = tuple(one for one in plan.events if one.kind not in left_out)
    return replace(plan, events=events)


def recrawling(plan: Plan, after_s: float) -> Plan:
    """Return the plan of a job that fetches each page again after so many seconds.

    A site that refuses everything would be asked again in each round, and a limit on its URLs counts them once.
    """
    treatments = tuple(one for one in plan.treatments if one.pages_max is None and not one.refuses)
    plan = replace(ending_early(plan), treatments=treatments, refusals_max=Job().refusals_max)
    return replace(plan, recrawl_after_s=after_s)
