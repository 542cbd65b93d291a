"""Measures of the three properties P3 wants of an assigner: balance, monotonicity, consistency.

Swarms of n peers alive out of 5n/4 possible ones, drawn by lot. Every assigner meets the same URLs, the same leavers
and joiners, and the same pairs of peers who do not know the same of who is alive.
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
"""How many are drawn of each size; small ones vary more."""
MOMENTS = {8: 400, COMPARED: 400, 1_000: 10}
"""At which views are compared, by the size of the swarm."""
PAIRS = 5
"""Of peers, compared at each moment."""
URLS = 200_000
URLS_MOVED = 50_000
URLS_ASKED = 20_000
"""Of them the moves are counted in, and two peers compare whom they would send each to."""
POINTS = 128
"""On the ring, for each peer, where it has several."""
SESSION_S = 3_600.0
"""A peer is there so long, in the mean; and away a quarter of that."""
LAG_S = 5.0
"""Until a peer has heard that another one has come or gone, in the mean."""
WARM_UP_S = 12 * LAG_S
"""What was before that, everybody has heard."""
ALIVE_OF = (100, 101, 111, 125, 160, 200)
"""Possible nodes of the two-level hash, of which `COMPARED` are alive."""


@dataclass(frozen=True)
class SwarmSetting:
    """A swarm, and the assigners set up for it."""

    possible: int
    alive: Peers
    assigners: Sequence[Assigner]


@dataclass(frozen=True)
class Balance:
    """How the URLs lie."""

    ratio: float
    """Of the busiest peer to the mean."""
    gini: float
    site_peers: float
    """How many peers crawl the largest site."""


View = tuple[Peers, Peers]
"""Who is alive, as each of two peers has it."""


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
    """Return the same for one of those alive that has been the last to join: needless is what it does not get."""
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
    """Return who is alive in the eyes of one who hears of each event late: the latest it has heard of counts."""
    seen = list(there)
    latest = dict.fromkeys((peer for _, peer in events), 0.0)
    for at, peer in events:
        if at + random.expovariate(1 / LAG_S) <= WARM_UP_S and at > latest[peer]:
            before = sum(1 for earlier, other in events if other == peer and earlier <= at)
            seen[peer] = there[peer] ^ (before % 2 == 1)
            latest[peer] = at
    return np.flatnonzero(np.array(seen)).astype(np.int64)


def disagreement(assigner: Assigner, urls: Urls, views: Sequence[View]) -> float:
    """Return the share of the URLs that two peers send to different ones."""

    def differ(one: Peers, other: Peers) -> float:
        if np.array_equal(one, other):
            return 0.0
        return float((assigner.address(urls, one) != assigner.address(urls, other)).mean())

    return fmean(differ(one, other) for one, other in views)


def least_disagreement(views: Sequence[View]) -> float:
    """Return what is left with shares all alike: a peer that only one of two knows has a share in that one's eyes."""
    return fmean(
        max(len(np.setdiff1d(one, other)) / len(one), len(np.setdiff1d(other, one)) / len(other))
        for one, other in views
    )


@dataclass(frozen=True)
class Measured:
    """What was measured, by assigner and number of peers."""

    sites: dict[int, dict[str, Balance]]
    """With the URLs of sites, and ..."""
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
    """By possible nodes: balance, and what moves needlessly when one leaves."""
    largest_site: float
    """Its share of the URLs."""


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
