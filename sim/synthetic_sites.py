"""The sites of a synthetic web: their sizes, their robots.txt, and their place in the tree. No I/O.

Sizes follow Zipf's law. The sites form a tree: each site but the seeds hangs from a page of an earlier site. The
oddities of a site are drawn from the shares in `Mix`. Chance is a hash of a name (`draws`), the same in every process
and on every Python. `sim/synthetic_web.py` draws from it too.
"""

import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum, auto
from hashlib import shake_128
from itertools import accumulate, pairwise
from math import exp, log
from statistics import NormalDist
from typing import Final, TypeVar

from .site_treatment import USUAL_TREATMENT, SiteTreatment

SITES_BELOW_SITE: Final = 4
"""Sites that hang from one site at most."""
FANOUT_MIN: Final = 2
FANOUT_MAX: Final = 12
CALENDAR_MAX: Final = 16
"""Pages of the longest calendar. Only the page before links to each of them."""

Choice = TypeVar("Choice")


def draws(name: str, count: int) -> tuple[int, ...]:
    """Return `count` numbers below 2**64. The same name gives the same first numbers for any count."""
    return struct.unpack(f">{count}Q", shake_128(name.encode()).digest(8 * count))


def lognormal(median: float, sigma: float, most: float) -> tuple[float, ...]:
    """Return 64 equally likely values, so that six bits draw one of them."""
    normal = NormalDist(log(median), sigma)
    return tuple(min(exp(normal.inv_cdf((step + 0.5) / 64)), most) for step in range(64))


def cumulated(shares: Sequence[tuple[Choice, float]]) -> list[tuple[Choice, float]]:
    """Return each choice with the bound below which a number from 0 to 1 falls on it."""
    return list(zip([choice for choice, _ in shares], accumulate(share for _, share in shares), strict=True))


_LATENCIES_S: Final = lognormal(0.08, 0.7, 1.0)
_RATES_BYTES_S: Final = lognormal(200_000, 1.0, 10_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """Shares of the oddities, from 0 to 1. The rest are plain pages and plain sites. Raises ValueError."""

    busy: float = 0.01
    """Share of all pages: the first request gets 503, the next HTML."""
    refusing: float = 0.0
    """Share of all pages: the first one or two requests get 429 without Retry-After, the next HTML."""
    slow: float = 0.01
    """Share of all pages that are slow."""
    moved: float = 0.03
    """Share of all pages: only a redirect, ``/old/n``, leads to them."""
    missing: float = 0.03
    """Share of the leaves that answer 404."""
    broken: float = 0.005
    """Share of the leaves that always answer 500."""
    file: float = 0.03
    """Share of the leaves: no HTML, though a part of the body looks like a link."""
    elsewhere: float = 0.01
    """Share of the leaves: a redirect to another site."""
    no_robots: float = 0.3
    """Share of the sites that have no robots.txt."""
    flaky_robots: float = 0.1
    """Share of the sites: robots.txt fails at the first request."""
    closed: float = 0.05
    """Share of the sites without child sites: robots.txt forbids all URLs."""
    dead_robots: float = 0.03
    """Share of the sites without child sites: robots.txt always fails, so no URL may be fetched."""
    maze: float = 0.2
    """Share of the sites with a readable robots.txt: an endless part, which robots.txt forbids."""
    crawl_delay: float = 0.1
    """Share of the sites with a robots.txt that never fails and of average size at most: it asks for
    `crawl_delay_s`."""
    crawl_delay_s: float = 2.0
    """Seconds between two requests."""
    calendar: float = 0.1
    """Share of the sites: a long chain of pages."""

    def __post_init__(self) -> None:
        shares = [getattr(self, entry.name) for entry in fields(self) if entry.name != "crawl_delay_s"]
        if not all(0 <= share <= 1 for share in shares) or self.crawl_delay_s < 0:
            raise ValueError("shares are from 0 to 1, and crawl_delay_s is 0 or more")


PLAIN: Final = Mix(**{entry.name: 0.0 for entry in fields(Mix)})
"""Nothing but pages."""


class Robots(Enum):
    """The kind of a site's robots.txt."""

    OPEN = auto()
    MISSING = auto()
    FLAKY = auto()
    CLOSED = auto()
    DEAD = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticSite:
    """One host."""

    host: str
    name: str
    """The name from which the chance of this site is drawn."""
    pages: int
    """Numbered pages, the home page (0) among them."""
    fanout: int
    """Children of a page in the site's tree: page n hangs below page (n - 1) // fanout."""
    robots: Robots
    crawl_delay_s: float
    """Seconds that robots.txt asks for, or 0."""
    maze: bool
    calendar: int
    """The number of pages of its calendar, or 0."""
    latency_s: float
    bytes_per_s: float
    phase: int
    """The first of the evenly spread moved pages."""
    exits: Mapping[int, tuple[str, ...]]
    """Page -> origins of the sites that hang from it."""
    treatment: SiteTreatment = USUAL_TREATMENT
    """The rule of the job for the site."""

    @property
    def origin(self) -> str:
        return f"http://{self.host}"

    @property
    def open(self) -> bool:
        """True if a correct crawl fetches pages of the site."""
        return self.allowed and not self.treatment.refuses

    @property
    def allowed(self) -> bool:
        """True if robots.txt and the rules of the job allow any URL of the site."""
        is_shut = self.robots in (Robots.CLOSED, Robots.DEAD) and not self.treatment.ignores_robots
        return not (is_shut or self.treatment.off)

    def delay_s(self, delay_s: float) -> float:
        """Return the seconds between two requests in a crawl with a job's delay of `delay_s`."""
        own_s = delay_s if self.treatment.delay_s is None else self.treatment.delay_s
        return own_s if self.treatment.ignores_robots else max(own_s, self.crawl_delay_s)

    @property
    def inner(self) -> int:
        """Pages that have children in the tree, or may have: 0 to `inner` - 1."""
        return _inner(self.pages, self.fanout)


def make_sites(
    seed: int,
    sites: int,
    pages: int,
    seeds: int,
    zipf: float,
    mix: Mix,
    treatments: Sequence[SiteTreatment] = (),
    domains: int = 0,
) -> Iterator[SyntheticSite]:
    """Yield the sites, the largest first. The first `seeds` sites have no parent.

    `treatments` are those of all sites, or none for no rules. A site whose robots.txt is ignored has one that forbids
    everything. With `domains` the sites are hosts of so many registered domains in turn, else each has its own.
    """
    treatments = treatments or [USUAL_TREATMENT] * sites
    sizes = _sizes(sites, pages, zipf)
    names = [f"{seed}/{number}" for number in range(sites)]
    hosts = [
        f"site{number}.domain{number % domains}-{seed}.test" if domains else f"site{number}-{seed}.test"
        for number in range(sites)
    ]
    words = [draws(name, 8) for name in names]
    fanouts = [FANOUT_MIN + word[0] % (FANOUT_MAX - FANOUT_MIN + 1) for word in words]
    exits: defaultdict[int, defaultdict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for child in range(seeds, sites):
        parent = (child - seeds) // SITES_BELOW_SITE
        page = words[child][1] % _inner(sizes[parent], fanouts[parent])
        exits[parent][page].append(f"http://{hosts[child]}")
    for number, word in enumerate(words):
        robots_chance, delay_chance, maze_chance, calendar_chance = (draw / 2**64 for draw in word[2:6])
        robots = _robots(robots_chance, mix, may_be_shut=number >= seeds and number not in exits)
        if treatments[number].ignores_robots:
            robots = Robots.CLOSED
        speaks = robots in (Robots.OPEN, Robots.FLAKY)
        # If robots.txt fails at first, no crawler can know that the second request for it has to wait so long.
        patient = robots is Robots.OPEN and sizes[number] * sites <= pages and delay_chance < mix.crawl_delay
        yield SyntheticSite(
            host=hosts[number],
            name=names[number],
            pages=sizes[number],
            fanout=fanouts[number],
            robots=robots,
            crawl_delay_s=mix.crawl_delay_s if patient else 0.0,
            maze=speaks and maze_chance < mix.maze and treatments[number].pages_max is None,
            calendar=1 + word[6] % CALENDAR_MAX if calendar_chance < mix.calendar else 0,
            latency_s=_LATENCIES_S[word[6] >> 32 & 63],
            bytes_per_s=_RATES_BYTES_S[word[6] >> 38 & 63],
            phase=word[7] & 0xFFFFFFFF,
            exits={page: tuple(origins) for page, origins in exits.get(number, {}).items()},
            treatment=treatments[number],
        )


def _sizes(sites: int, pages: int, zipf: float) -> list[int]:
    """Divide the pages among the sites by Zipf's law, at least one page for each."""
    weights = [(rank + 1) ** -zipf for rank in range(sites)]
    scale = (pages - sites) / sum(weights)
    edges = [0, *(round(edge * scale) for edge in accumulate(weights))]
    return [1 + end - begin for begin, end in pairwise(edges)]


def _robots(chance: float, mix: Mix, *, may_be_shut: bool) -> Robots:
    kinds = [(Robots.CLOSED, mix.closed), (Robots.DEAD, mix.dead_robots)] if may_be_shut else []
    kinds += [(Robots.MISSING, mix.no_robots), (Robots.FLAKY, mix.flaky_robots)]
    return next((kind for kind, below in cumulated(kinds) if chance < below), Robots.OPEN)


def _inner(pages: int, fanout: int) -> int:
    return max(1, -((1 - pages) // fanout))
