"""Draws from the seed the orders by which a person leaves sites out of the crawl, or adds them."""

from collections.abc import Iterator, Sequence
from random import Random

from msgspec.structs import replace

from .plan import Event, Kind, Plan

SHARES = {Kind.SITE_EXCLUDE: 1 / 6, Kind.SITE_DROP: 1 / 8, Kind.SCOPE: 1 / 8}
"""Shares of the plans in which a person gives orders of each kind."""
ADDED = 1 / 8
"""Share of the plans without streamed seeds in which a person brings a site into scope that the job leaves out."""
SITES_ADDED = range(3, 9)
"""Numbers of the sites that the job may leave out. No seed is on them."""
SITES_LEFT_OUT = 8
"""The largest sites, of which some are left out."""
LEFT_OUT_S = (2.0, 12.0)
"""The instants of the orders: many pages of the sites are still to be fetched then."""
OUT_S = (3.0, 15.0)
"""The least and the most seconds for which a site is out of scope."""
AMID_FAULTS = 1 / 3
"""Share of the orders that are given while these faults keep peers from hearing them."""


def draw_left_out(seed: int, peers: int, faults: Sequence[Event]) -> Iterator[Event]:
    """Yield orders that leave sites out, early in the crawl, or while faults keep peers from hearing of them."""
    missed = [one for one in faults if one.kind in (Kind.PARTITION, Kind.ONE_WAY, Kind.FREEZE)]
    for kind, share in SHARES.items():
        random = Random(f"{kind} {seed} {peers}")
        if random.random() >= share:
            continue
        for site in random.sample(range(SITES_LEFT_OUT), random.choice((1, 1, 2))):
            at_s = random.uniform(*LEFT_OUT_S)
            if missed and random.random() < AMID_FAULTS:
                one = random.choice(missed)
                at_s = random.uniform(one.at_s, one.at_s + one.for_s)
            machine, for_s = random.randrange(peers), random.uniform(*OUT_S) if kind is Kind.SCOPE else 0.0
            yield Event(round(at_s, 3), kind, (machine,), round(for_s, 3), float(site))


def draw_added(seed: int, plan: Plan) -> Plan:
    """Return the plan with an order that brings a site into scope. Streamed seeds are in scope anyway."""
    random = Random(f"added {seed} {plan.peers}")
    if random.random() >= ADDED or plan.streamed or not plan.events:
        return plan
    at_s, site = round(random.uniform(*LEFT_OUT_S), 3), float(random.choice(SITES_ADDED))
    event = Event(at_s, Kind.SCOPE_ADD, (random.randrange(plan.peers),), amount=site)
    # Other orders about the scope of this site would be about a site that was never in scope.
    others = [one for one in plan.events if not (one.kind is Kind.SCOPE and one.amount == site)]
    return replace(plan, events=tuple(sorted([*others, event], key=lambda one: one.at_s)))
