"""The sites of a synthetic web: how large each is, what its robots.txt says, and where it hangs. No I/O.

Sizes follow Zipf's law. The sites form a tree: each but the seeds hangs from a page of an earlier one. What is odd
about a site is drawn from the shares in `Mix`. Chance is a hash of a name (`draws`), the same in every process and on
every Python; `sim.synthetic_web` draws from it too.
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

SITES_BELOW_SITE: Final = 4
"""Sites that hang from one site at most."""
FANOUT_MIN: Final = 2
FANOUT_MAX: Final = 12
CALENDAR_MAX: Final = 16
"""Pages of the longest calendar, each of which only the one before leads to."""

Choice = TypeVar("Choice")


def draws(name: str, count: int) -> tuple[int, ...]:
    """Return `count` numbers below 2**64; one name gives the same ones first, however many are drawn."""
    return struct.unpack(f">{count}Q", shake_128(name.encode()).digest(8 * count))


def lognormal(median: float, sigma: float, most: float) -> tuple[float, ...]:
    """Return 64 values, each as likely as the others, so that six bits draw one."""
    normal = NormalDist(log(median), sigma)
    return tuple(min(exp(normal.inv_cdf((step + 0.5) / 64)), most) for step in range(64))


def cumulated(shares: Sequence[tuple[Choice, float]]) -> list[tuple[Choice, float]]:
    """Return each choice with the bound below which a number from 0 to 1 falls on it."""
    return list(zip([choice for choice, _ in shares], accumulate(share for _, share in shares), strict=True))


_LATENCIES_S: Final = lognormal(0.08, 0.7, 1.0)
_RATES_BYTES_S: Final = lognormal(200_000, 1.0, 10_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """How common each oddity is, from 0 to 1; the rest are plain pages and plain sites. Raises ValueError."""

    busy: float = 0.01
    """Of all pages: 503 at the first request, then HTML."""
    slow: float = 0.01
    """Of all pages."""
    moved: float = 0.03
    """Of all pages: only a redirect, ``/old/n``, leads to them."""
    missing: float = 0.03
    """Of the leaves: 404."""
    broken: float = 0.005
    """Of the leaves: always 500."""
    file: float = 0.03
    """Of the leaves: no HTML, though something in it looks like a link."""
    elsewhere: float = 0.01
    """Of the leaves: a redirect to another site."""
    no_robots: float = 0.3
    """Of the sites: no robots.txt."""
    flaky_robots: float = 0.1
    """Of the sites: robots.txt is out of order when first asked for."""
    closed: float = 0.05
    """Of the sites from which none hangs: robots.txt forbids everything."""
    dead_robots: float = 0.03
    """Of the same: robots.txt is out of order for good, so nothing may be fetched."""
    maze: float = 0.2
    """Of the sites whose robots.txt can be had: an endless part, which it forbids."""
    crawl_delay: float = 0.1
    """Of the same, if never out of order and not above average in size: it asks for `crawl_delay_s`."""
    crawl_delay_s: float = 2.0
    """Seconds between two requests."""
    calendar: float = 0.1
    """Of the sites: one long chain of pages."""

    def __post_init__(self) -> None:
        shares = [getattr(self, entry.name) for entry in fields(self) if entry.name != "crawl_delay_s"]
        if not all(0 <= share <= 1 for share in shares) or self.crawl_delay_s < 0:
            raise ValueError("shares are from 0 to 1, and crawl_delay_s is 0 or more")


PLAIN: Final = Mix(**{entry.name: 0.0 for entry in fields(Mix)})
"""Nothing but pages."""


class Robots(Enum):
    """What a site's robots.txt is like."""

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
    """What chance on this site is drawn from."""
    pages: int
    """Numbered pages, the home page (0) among them."""
    fanout: int
    """Children of a page in the site's tree: page n hangs below page (n - 1) // fanout."""
    robots: Robots
    crawl_delay_s: float
    """Asked for in robots.txt; 0 asks for nothing."""
    maze: bool
    calendar: int
    """Pages of its calendar; 0 for none."""
    latency_s: float
    bytes_per_s: float
    phase: int
    """Where the even spread of its moved pages begins."""
    exits: Mapping[int, tuple[str, ...]]
    """Page -> origins of the sites that hang from it."""

    @property
    def origin(self) -> str:
        return f"http://{self.host}"

    @property
    def open(self) -> bool:
        """Whether anything beside robots.txt may be fetched."""
        return self.robots not in (Robots.CLOSED, Robots.DEAD)

    @property
    def inner(self) -> int:
        """Pages that have children in the tree, or may have: 0 to `inner` - 1."""
        return _inner(self.pages, self.fanout)


def make_sites(seed: int, sites: int, pages: int, seeds: int, zipf: float, mix: Mix) -> Iterator[SyntheticSite]:
    """Yield the sites, the largest first; the first `seeds` hang from nowhere."""
    sizes = _sizes(sites, pages, zipf)
    names = [f"{seed}/{number}" for number in range(sites)]
    hosts = [f"site{number}-{seed}.test" for number in range(sites)]
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
        speaks = robots in (Robots.OPEN, Robots.FLAKY)
        # Behind a robots.txt out of order nobody could know that the second request for it has to wait so long.
        patient = robots is Robots.OPEN and sizes[number] * sites <= pages and delay_chance < mix.crawl_delay
        yield SyntheticSite(
            host=hosts[number],
            name=names[number],
            pages=sizes[number],
            fanout=fanouts[number],
            robots=robots,
            crawl_delay_s=mix.crawl_delay_s if patient else 0.0,
            maze=speaks and maze_chance < mix.maze,
            calendar=1 + word[6] % CALENDAR_MAX if calendar_chance < mix.calendar else 0,
            latency_s=_LATENCIES_S[word[6] >> 32 & 63],
            bytes_per_s=_RATES_BYTES_S[word[6] >> 38 & 63],
            phase=word[7] & 0xFFFFFFFF,
            exits={page: tuple(origins) for page, origins in exits.get(number, {}).items()},
        )


def _sizes(sites: int, pages: int, zipf: float) -> list[int]:
    """Share out the pages, one at least for each site and the others by Zipf's law."""
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
