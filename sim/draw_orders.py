"""The orders by which a person leaves sites out of the running crawl, drawn from the seed beside all other settings."""

from collections.abc import Iterator, Sequence
from random import Random

from .plan import Event, Kind

EXCLUDED = 1 / 6
"""Share of the plans in which a person excludes sites."""
SITES_EXCLUDED = 8
"""The largest sites, of which some are excluded."""
EXCLUDED_S = (2.0, 12.0)
"""The instants at which sites are excluded: many of their pages are still to be fetched then."""
AMID_FAULTS = 1 / 3
"""Share of the orders that are given while these faults keep peers from hearing them."""


def draw_exclusions(seed: int, peers: int, faults: Sequence[Event]) -> Iterator[Event]:
    """Yield orders to exclude sites, early in the crawl, or while faults keep peers from hearing of them."""
    random = Random(f"exclusions {seed} {peers}")
    if random.random() >= EXCLUDED:
        return
    missed = [one for one in faults if one.kind in (Kind.PARTITION, Kind.ONE_WAY, Kind.FREEZE)]
    for site in random.sample(range(SITES_EXCLUDED), random.choice((1, 1, 2))):
        at_s = random.uniform(*EXCLUDED_S)
        if missed and random.random() < AMID_FAULTS:
            one = random.choice(missed)
            at_s = random.uniform(one.at_s, one.at_s + one.for_s)
        yield Event(round(at_s, 3), Kind.SITE_EXCLUDE, (random.randrange(peers),), amount=float(site))
