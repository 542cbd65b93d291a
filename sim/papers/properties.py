"""Measures of the three properties that P3 wants of an assigner: balance, monotonicity, consistency.

Swarms have n peers alive out of 5n/4 possible ones, drawn by lot. Every assigner gets the same URLs, the same leaving
and joining peers, and the same pairs of peers with different views of the alive.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean

import numpy as np

from .assigners import Assigner, HashMod, Peers, Ring, TwoLevelHash, Xor, XorShedding
from .experiment import Progress
from .joining import CHOICES, IdSwarm, by_range, gini, grow
from .workload import Urls, alone, of_sites

COMPARED = 100
"""Peers in the table of the three properties."""
SWARMS = {8: 40, COMPARED: 10, 1_000: 3}
"""Size of a swarm -> number of swarms drawn. Small swarms vary more."""
MOMENTS = {8: 400, COMPARED: 400, 1_000: 10}
"""Size of a swarm -> number of instants at which views are compared."""
PAIRS = 5
"""Of peers, compared at each moment."""
URLS = 200_000
URLS_MOVED = 50_000
URLS_ASKED = 20_000
"""The URLs for which two peers compare their owners. Moves are counted in `URLS_MOVED` URLs."""
POINTS = 128
"""Points per peer on the ring that has several."""
SESSION_S = 3_600.0
"""The mean seconds that a peer is up. It is away a quarter of that."""
LAG_S = 5.0
"""The mean seconds until a peer learns that another has come or gone."""
WARM_UP_S = 12 * LAG_S
"""Seconds after which every peer has learned of an event."""
ALIVE_OF = (100, 101, 111, 125, 160, 200)
"""Numbers of possible nodes of the two-level hash. `COMPARED` of them are alive."""


@dataclass(frozen=True)
class SwarmSetting:
    """A swarm, and the assigners set up for it."""

    possible: int
    alive: Peers
    assigners: Sequence[Assigner]


@dataclass(frozen=True)
class Balance:
    """The distribution of the URLs."""

    ratio: float
    """The ratio of the busiest peer to the mean."""
    gini: float
    site_peers: float
    """The number of peers that crawl the largest site."""


View = tuple[Peers, Peers]
"""The peers alive, in the views of two peers."""


def make_setting(random: Random, alive: int) -> SwarmSetting:
    """Draw who is alive, and the IDs."""
    possible = alive * 5 // 4
    numbers = random.sample(range(possible), possible)
    blind = Xor([random.getrandbits(160) for _ in range(possible)])
    grown = grow(IdSwarm(possible), possible, by_range(max(CHOICES)), random).node_ids
    # Those alive have joined first, one after another.
    ids = [node_id for _, node_id in sorted(zip(numbers, grown, strict=True))]
    chosen = Xor(ids, f"XOR owner, d = {max(CHOICES)}")
    return SwarmSetting(
        possible=possible,
        alive=np.array(sorted(numbers[:alive]), dtype=np.int64),
        assigners=(
            HashMod(),
            TwoLevelHash(possible),
            Ring(possible, 1, salt := random.getrandbits(64)),
            Ring(possible, POINTS, salt),
            blind,
            chosen,
            XorShedding(blind),
        ),
    )


def balance(assigner: Assigner, urls: Urls, alive: Peers) -> Balance:
    """Measure how evenly the URLs are shared out."""
    owners = assigner.assign(urls, alive)
    loads = np.bincount(owners, minlength=int(alive.max()) + 1)[alive]
    return Balance(
        ratio=float(loads.max() / loads.mean()),
        gini=gini(loads),
        site_peers=len(np.unique(owners[urls.largest_site])),
    )


def moves(assigner: Assigner, urls: Urls, alive: Peers, peer: int) -> tuple[float, float]:
    """Return the share of the URLs that changes hands when a peer leaves, and the share not its own: needlessly."""
    before = assigner.assign(urls, alive)
    moved = before != assigner.assign(urls, alive[alive != peer], alive)
    return float(moved.mean()), float((moved & (before != peer)).mean())


def arrivals(assigner: Assigner, urls: Urls, alive: Peers, peer: int) -> tuple[float, float]:
    """Return the share of the URLs that moves when `peer` joins as the last, and the share that moves elsewhere.

    A move to another peer than the joiner is needless (compare `moves`).
    """
    before = alive[alive != peer]
    after = assigner.assign(urls, alive, before)
    moved = after != assigner.assign(urls, before)
    return float(moved.mean()), float((moved & (after != peer)).mean())


def churned(random: Random, possible: int, moments: int) -> Iterator[View]:
    """Yield pairs of views. Each peer comes and goes, but the first; each observer hears of it in its own time."""
    for _ in range(moments):
        there = [peer == 0 or random.random() < 0.8 for peer in range(possible)]
        events: list[tuple[float, int]] = []
        for peer in range(1, possible):
            now, up = 0.0, there[peer]
            while (now := now + random.expovariate(1 / (SESSION_S if up else SESSION_S / 4))) < WARM_UP_S:
                events.append((now, peer))
                up = not up
        for _ in range(PAIRS):
            yield _view(random, there, events), _view(random, there, events)


def _view(random: Random, there: Sequence[bool], events: Sequence[tuple[float, int]]) -> Peers:
    """Return the alive peers in the view of an observer that learns of each event late. The latest known event
    counts."""
    seen = list(there)
    latest = dict.fromkeys((peer for _, peer in events), 0.0)
    for at, peer in events:
        if at + random.expovariate(1 / LAG_S) <= WARM_UP_S and at > latest[peer]:
            before = sum(1 for earlier, other in events if other == peer and earlier <= at)
            seen[peer] = there[peer] ^ (before % 2 == 1)
            latest[peer] = at
    return np.flatnonzero(np.array(seen)).astype(np.int64)


def disagreement(assigner: Assigner, urls: Urls, views: Sequence[View]) -> float:
    """Return the share of the URLs for which two peers disagree on the owner."""

    def differ(one: Peers, other: Peers) -> float:
        if np.array_equal(one, other):
            return 0.0
        return float((assigner.address(urls, one) != assigner.address(urls, other)).mean())

    return fmean(differ(one, other) for one, other in views)


def least_disagreement(views: Sequence[View]) -> float:
    """Return the least possible disagreement with equal shares: a peer known to one observer has a share in its view
    only."""
    return fmean(
        max(len(np.setdiff1d(one, other)) / len(one), len(np.setdiff1d(other, one)) / len(other))
        for one, other in views
    )


@dataclass(frozen=True)
class Measured:
    """The measurements, by assigner and number of peers."""

    sites: dict[int, dict[str, Balance]]
    """The balance with the URLs of sites, and ..."""
    uniform: dict[int, dict[str, Balance]]
    """... with uniform keys; the mean of all swarms."""
    left: dict[str, tuple[float, float]]
    """Shares that move when one of `COMPARED` leaves, and that need not (`moves`): the mean over all leavers, ..."""
    joined: dict[str, tuple[float, float]]
    """... and joiners."""
    disagreed: dict[int, dict[str, float]]
    least: dict[int, float]
    """See `least_disagreement`."""
    two_level: list[tuple[int, Balance, float]]
    """Rows of possible nodes, balance, and the share that moves needlessly when a peer leaves."""
    largest_site: float
    """The share of the URLs on the largest site."""


def measure(seed: int, progress: Progress) -> Measured:
    """Do all of it."""
    steps = sum(SWARMS.values()) / max(SWARMS.values()) + len(MOMENTS) + 7 + len(ALIVE_OF)
    done = 0.0

    def advance(by: float = 1) -> None:
        nonlocal done
        done += by
        progress(min(1.0, done / steps))

    urls, uniform = of_sites(seed, URLS), alone(seed, URLS)
    balances: dict[int, tuple[dict[str, Balance], dict[str, Balance]]] = {}
    for alive, swarms in SWARMS.items():
        drawn = [make_setting(Random(f"assignment {seed} {alive} {number}"), alive) for number in range(swarms)]
        balances[alive] = _balances(drawn, urls), _balances(drawn, uniform)
        advance(swarms / max(SWARMS.values()))
    moving, left, joined = urls.some(URLS_MOVED), {}, {}
    setting = make_setting(Random(f"assignment {seed} moves"), COMPARED)
    for one in setting.assigners:
        left[one.name] = _mean([moves(one, moving, setting.alive, peer) for peer in setting.alive.tolist()])
        joined[one.name] = _mean([arrivals(one, moving, setting.alive, peer) for peer in setting.alive.tolist()])
        advance()
    two_level = []
    for possible in ALIVE_OF:
        alive_then = np.array(sorted(Random(f"{seed} {possible}").sample(range(possible), COMPARED)), dtype=np.int64)
        hashed = TwoLevelHash(possible)
        needless = fmean(moves(hashed, moving, alive_then, peer)[1] for peer in alive_then.tolist())
        two_level.append((possible, balance(hashed, urls, alive_then), needless))
        advance()
    disagreed, least = {}, {}
    asked = urls.some(URLS_ASKED)
    for alive, moments in MOMENTS.items():
        setting = make_setting(Random(f"assignment {seed} churn {alive}"), alive)
        views = list(churned(Random(f"churn {seed} {alive}"), setting.possible, moments))
        disagreed[alive] = {one.name: disagreement(one, asked, views) for one in setting.assigners}
        least[alive] = least_disagreement(views)
        advance()
    return Measured(
        sites={alive: both[0] for alive, both in balances.items()},
        uniform={alive: both[1] for alive, both in balances.items()},
        left=left,
        joined=joined,
        disagreed=disagreed,
        least=least,
        two_level=two_level,
        largest_site=float(urls.largest_site.mean()),
    )


def _mean(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return fmean(one for one, _ in pairs), fmean(other for _, other in pairs)


def _balances(drawn: Sequence[SwarmSetting], urls: Urls) -> dict[str, Balance]:
    """Return the mean of several swarms, by assigner."""
    by_name: dict[str, list[Balance]] = {}
    for setting in drawn:
        for one in setting.assigners:
            by_name.setdefault(one.name, []).append(balance(one, urls, setting.alive))
    return {
        name: Balance(*(fmean(getattr(one, part) for one in found) for part in ("ratio", "gini", "site_peers")))
        for name, found in by_name.items()
    }
