"""Worlds in which the mutants of one topic show: plans of a seed with the settings that the topic needs.

In a world of lending every peer lends what it can, sites are down for a time, and a person orders retries meanwhile.
A mode is a setting of the job that changes how loans are counted, so their mutants are hunted in each mode. In a
crowded world sites have no delay, and many peers join and leave while pages are lent. In a world of orders a person
leaves sites out, once while some peers are cut off. In a slowed world a person slows large sites down, and in a
world of settings changes the delay and the limit of pages. In a world of leases all lenders die, and loans would go on
beyond their leases. In the other worlds the job has a limit, or a recrawl.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import Literal, get_args

from msgspec.structs import replace

from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits

from .draw import draw
from .draw_limits import AMPLE_PAGES, ending_early, recrawling
from .draw_overload import OVERLOADS, overloaded
from .plan import RECOVERY_S, UNDISTURBING, Event, Kind, Plan

Topic = Literal[
    "any",
    "lending",
    "crowded",
    "pages",
    "time",
    "recrawl",
    "calendar",
    "proxies",
    "domain",
    "shares",
    "overload",
    "orders",
    "slowed",
    "leases",
    "set",
]
"""The worlds in which a mutant is hunted: those of a campaign, or those of the topic."""
Mode = Literal["exact", "bloom", "depth", "pages", "recrawl"]
MODES: tuple[Mode, ...] = get_args(Mode)

SLOWED = (0, 1, 2)
"""The sites that a person slows down in a slowed world: the largest."""
SLOWED_S = (4.0, 7.0)
"""The instants of these orders, which nobody lifts."""
SLOWED_DELAY_S = 4.0
SLOWED_PEERS = 4
"""The machines of a slowed world: few, so that most own a slowed site."""
RESTARTED_S = 14.0
"""The instant from which its machines are restarted."""
SET_S = (5.0, 6.0)
"""The instants at which the delay and the limit of pages change in a world of settings."""
SET_PAGES = (float(AMPLE_PAGES), 60.0, 20.0)
"""The limits of pages that it gets, in turn."""
LENDING_PEERS = 8
"""The most machines of a world of lending. With few, each has something to lend."""
DOWN = (0, 1, 2, 3)
"""The sites that are down for a time, so that pages fail at borrowers."""
DOWN_S = (2.0, 14.0)
"""From when and until when they are down."""
ORDERS_S = (15.0, 24.0)
"""The instants of two orders to retry: soon after the sites work again, and later."""
JOINS_S = (6.0, 9.0, 12.0, 18.0)
"""The instants at which newcomers join, to which cells move whose pages are lent."""
NEWCOMER_FIRST = 100
"""The number of the first of them, above those of the plan."""
NEWCOMERS = 10
"""The newcomers of a crowded world."""
LENDERS_KILLED_S, LENDERS_DOWN_S = (8.0, 24.0, 40.0, 56.0), 5.0
"""The instants at which two machines die in worlds of leases, and the seconds for which they are down."""
LEASED_URLS, LEASED_DELAYS_S = 2, (2.0, 4.0)
"""The heavy block in worlds of leases, and the delays: the second page of a loan comes long after the lease."""
LEAVES_S = (6.0, 9.0, 12.0, 15.0)
"""The instants at which machines of a crowded world leave."""
PAGES = 40
"""The job's limit in worlds of a limit of pages: half of the URLs."""
BOUNDARY_S = 8.0
"""The second at which an hour begins, in worlds of the calendar."""
TIME_S = 12.0
"""The job's limit in worlds of a limit of time: less than most crawls take."""
ORDERS_FROM = 0
"""The machine that gives the orders in worlds of orders about sites."""
LEFT_OUT = (Kind.SCOPE, Kind.SITE_EXCLUDE, Kind.SITE_DROP)
"""The kinds of these orders."""
SCOPE_OUT_S = 8.0
"""Seconds for which a site is out of scope there."""
PARTED = (1, 2)
"""The machines that a partition cuts off there while an order is given."""
PROXIES_DOWN_S, PROXY_DOWN_S = (3.0, 4.0), 14.0
"""The instants from which proxies are down in worlds of proxies, and the seconds for which each is."""
RECRAWL_S, RECRAWL_TIME_S = 8.0, 30.0
"""The job's time between two visits to a page in worlds of a recrawl, and its limit of time."""


def target_world(topic: Topic, mode: Mode, seed: int, peers: int) -> Plan:
    """Return the plan of a seed for mutants of a topic, in a job of this mode."""
    few = min(peers, LENDING_PEERS)
    return _SETTINGS[mode](draw(seed, peers) if topic == "any" else _WORLDS[topic](draw(seed, few)))


def _lending(plan: Plan) -> Plan:
    random = Random(f"lending {plan.seed}")
    events = [Event(DOWN_S[0], Kind.OUTAGE, (), DOWN_S[1] - DOWN_S[0], float(site)) for site in DOWN]
    events += [Event(at_s, Kind.RETRY, (random.randrange(plan.peers),), 1.0) for at_s in ORDERS_S]
    newcomers = range(NEWCOMER_FIRST, NEWCOMER_FIRST + len(JOINS_S))
    events += [Event(at_s, Kind.JOIN, (number,), disk="none") for number, at_s in zip(newcomers, JOINS_S, strict=True)]
    faults = [one for one in plan.events if one.kind not in (Kind.OUTAGE, Kind.RETRY)]
    return _unlimited(
        replace(
            plan,
            balance=random.choice(("level", "drain")),
            solver="exact",
            block_urls=random.choice((1, 2)),
            update_s=1.0,
            fetches_max=random.choice((1, 2, 64)),
            delay_s=random.choice((0.0, 0.25)),
            own_delay_s=1.0,
            delay_factor=0.0,
            refusing=random.choice((0.0, 0.15)),
            treatments=(),
            refusals_max=Job().refusals_max,
            events=tuple(sorted([*faults, *events], key=lambda event: event.at_s)),
        )
    )


def _crowded(plan: Plan) -> Plan:
    numbers = range(NEWCOMER_FIRST, NEWCOMER_FIRST + NEWCOMERS)
    joins = [Event(4.0 + 1.5 * at, Kind.JOIN, (number,), disk="none") for at, number in enumerate(numbers)]
    leaves = [Event(at_s, Kind.LEAVE, (machine,)) for machine, at_s in enumerate(LEAVES_S)]
    return replace(
        _lending(plan),
        balance="level",
        solver="exact",
        partition="host",
        per_ip=0,
        delay_s=0.0,
        fetches_max=Limits().fetches_max,
        events=tuple(sorted([*joins, *leaves], key=lambda event: event.at_s)),
    )


def _unlimited(plan: Plan) -> Plan:
    return replace(plan, max_pages=None, max_time_s=None, recrawl_after_s=None, calendar=None)


def _leasing(plan: Plan) -> Plan:
    """Return a plan of loans that outlast their lenders, in which all machines die, two at a time."""
    events = []
    for number, at_s in enumerate(LENDERS_KILLED_S):
        two = tuple(machine for machine in (2 * number, 2 * number + 1) if machine < plan.peers)
        events += [Event(at_s, Kind.KILL, two), Event(at_s + LENDERS_DOWN_S, Kind.RESTART, two)]
    delay_s, own_delay_s = LEASED_DELAYS_S
    return replace(
        _lending(plan),
        balance="level",
        solver="exact",
        block_urls=LEASED_URLS,
        delay_s=delay_s,
        own_delay_s=own_delay_s,
        refusing=0.0,
        copies=Job().copies,
        events=tuple(events),
    )


def _few_pages(plan: Plan) -> Plan:
    """Return a plan with a limit of pages. In every second seed no event takes a grant of pages away."""
    plan = ending_early(replace(_unlimited(plan), max_pages=PAGES))
    return replace(plan, events=tuple(one for one in plan.events if plan.seed % 2 or one.kind in UNDISTURBING))


def _recrawling(plan: Plan) -> Plan:
    return replace(recrawling(_unlimited(plan), RECRAWL_S), max_time_s=RECRAWL_TIME_S)


def _proxied(plan: Plan) -> Plan:
    down = [Event(at_s, Kind.PROXY_DOWN, (), PROXY_DOWN_S, number) for number, at_s in enumerate(PROXIES_DOWN_S)]
    events = tuple(sorted([*plan.events, *down], key=lambda event: event.at_s))
    return replace(_unlimited(plan), per_ip=0, proxies=2, dead_proxies=1, events=events)


def _calendar(plan: Plan) -> Plan:
    few = round(PAGES / max(1.0, plan.delay_s))
    plan = replace(_unlimited(plan), max_pages=few, calendar="hour", boundary_s=BOUNDARY_S)
    return ending_early(plan).kept_by("bloom")


def _slowed(plan: Plan) -> Plan:
    """Return a plan in which a person slows large sites down for good.

    Few peers lend to leaves, or in every second seed are restarted one after the other.
    """
    random = Random(f"slowed world {plan.seed}")
    events = [
        Event(at_s, Kind.SITE_SLOW, (random.randrange(SLOWED_PEERS),), 0.0, float(site), value=SLOWED_DELAY_S)
        for site in SLOWED
        for at_s in [random.uniform(*SLOWED_S)]
    ]
    restarted = () if plan.seed % 2 else range(SLOWED_PEERS)
    for place, machine in enumerate(restarted):
        at_s = RESTARTED_S + place * RECOVERY_S
        events += [Event(at_s, Kind.KILL, (machine,)), Event(at_s + 1.0, Kind.RESTART, (machine,))]
    events.sort(key=lambda event: event.at_s)
    leaves = 0 if restarted else SLOWED_PEERS // 2
    plan = replace(_unlimited(plan), peers=SLOWED_PEERS, leaves=leaves, events=tuple(events), copies=Job().copies)
    plan = replace(plan, balance="off", solver="exact", treatments=(), refusals_max=Job().refusals_max)
    return replace(plan, delay_s=1.0, own_delay_s=2.0, partition="host", per_ip=0, delay_factor=0.0)


def _set(plan: Plan) -> Plan:
    """Return a plan without faults in which the job's delay becomes longer, and its limit of pages changes.

    The limit is raised twice, and lowered in every third seed.
    """
    pages = SET_PAGES[plan.seed % len(SET_PAGES)]
    events = (
        Event(SET_S[0], Kind.SET_DELAY, (1,), value=SLOWED_DELAY_S),
        Event(SET_S[1], Kind.SET_PAGES, (2,), value=pages),
    )
    plan = replace(_unlimited(plan), max_pages=PAGES, delay_s=1.0, own_delay_s=2.0, treatments=(), events=events)
    return replace(plan, refusals_max=Job().refusals_max)


def _overloaded(plan: Plan) -> Plan:
    """Return a plan of overload alone: a seed has one kind, and the next seed has the next."""
    plan = replace(_unlimited(plan), events=(), copies=Job().copies)
    return overloaded(Random(f"overloaded {plan.seed}"), plan, OVERLOADS[plan.seed % len(OVERLOADS)])


def _ordering(plan: Plan) -> Plan:
    """Return a plan in which large sites are left out: a seed has one kind of orders, and the next seed has the next.

    All machines hear the first orders, and some miss the last.
    """
    kind = LEFT_OUT[plan.seed % len(LEFT_OUT)]
    for_s = SCOPE_OUT_S if kind is Kind.SCOPE else 0.0
    events = (
        *(Event(4.0 + site, kind, (ORDERS_FROM,), for_s, float(site)) for site in range(2)),
        Event(15.0, Kind.PARTITION, PARTED, 20.0),
        Event(16.0, kind, (ORDERS_FROM,), for_s, 2.0),
        Event(19.0, Kind.JOIN, (NEWCOMER_FIRST,), disk="none"),
    )
    plan = replace(_unlimited(plan), treatments=(), refusals_max=Job().refusals_max, events=events)
    return replace(plan, delay_s=1.0, own_delay_s=2.0, delay_factor=0.0, trails=3)


def _by_url(plan: Plan) -> Plan:
    return replace(_unlimited(plan), partition="url", per_ip=0, treatments=(), delay_factor=0.0)


_WORLDS: Mapping[Topic, Callable[[Plan], Plan]] = {
    "lending": _lending,
    "crowded": _crowded,
    "leases": _leasing,
    "pages": _few_pages,
    "time": lambda plan: ending_early(replace(_unlimited(plan), max_time_s=TIME_S)),
    "recrawl": _recrawling,
    "calendar": _calendar,
    "domain": lambda plan: replace(_unlimited(plan), partition="domain", per_ip=0, treatments=()),
    "shares": lambda plan: replace(_by_url(plan), delay_s=0.0, own_delay_s=0.0),
    "proxies": _proxied,
    "overload": _overloaded,
    "orders": _ordering,
    "slowed": _slowed,
    "set": _set,
}
_SETTINGS: Mapping[Mode, Callable[[Plan], Plan]] = {
    "exact": lambda plan: plan,
    "bloom": lambda plan: plan.kept_by("bloom"),
    "depth": lambda plan: replace(plan, max_depth=1_000),
    "pages": lambda plan: replace(plan, max_pages=AMPLE_PAGES),
    "recrawl": _recrawling,
}
