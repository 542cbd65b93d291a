"""Who gets how many of a batch of URLs, so that all end together: the paper's particle swarm, and an exact solver.

Both take one function for each peer, URLs -> seconds, and return whole shares of a total. The swarm (P2 2.4) is here as
it was printed, to be compared; the exact solver is the one to use. It needs functions that never fall, which a trained
network does not promise: `rising` makes one of any function.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil, floor
from random import Random

TimeModel = Callable[[float], float]
"""URLs (none and parts of one included) -> seconds until they are crawled."""

PARTICLES = 30
INERTIA = 0.8
ACCELERATION = 2.0
"""Towards the particle's own best place, and as much towards the best of all (c1 = c2)."""
HALVINGS = 200
"""More than a double has digits: a bisection ends before that, when its ends are neighbors."""


@dataclass(frozen=True, slots=True)
class BatchPartition:
    """What a solver found."""

    urls: tuple[int, ...]
    """For each peer."""
    evaluations: int
    """How often a function was asked."""


def makespan_s(times: Sequence[TimeModel], urls: Sequence[int]) -> float:
    """Return when the last one ends; who gets nothing need not start."""
    return max((time(count) for time, count in zip(times, urls, strict=True) if count), default=0.0)


def equal_shares(peers: int, total: int) -> tuple[int, ...]:
    """Return `total` in equal shares, the remainder to the first."""
    share, left = divmod(total, peers)
    return tuple(share + (index < left) for index in range(peers))


def monotone(time: TimeModel, most: int) -> TimeModel:
    """Return the least function on 0 to `most` that never falls and is never below `time` on whole numbers.

    Between whole numbers it is a straight line. `time` is asked `most` + 1 times, at once.
    """
    seconds = list(accumulate((time(count) for count in range(most + 1)), max))

    def risen(urls: float) -> float:
        whole = floor(urls)
        if whole >= most:
            return seconds[most]
        return seconds[whole] + (urls - whole) * (seconds[whole + 1] - seconds[whole])

    return risen


def exact_partition(times: Sequence[TimeModel], total: int) -> BatchPartition:
    """Return shares of `total` whose last end is as early as can be; `times` must never fall.

    Bisection on the common end gives parts of URLs, the largest remainders get the URLs that are left. What rounding
    spoiled is mended by moving one URL at a time from the last to end to whoever ends it first, while that is earlier.
    Nothing is lost by looking at single moves: were a better division possible, the last to end would have fewer URLs
    in it and somebody else more, so one more of his ends by then.

    Raises:
        ValueError: nobody to share among, or less than nothing to share.
    """
    _check(times, total)
    asked = _CountedModels(times)
    urls = _rounded(_parts(asked, total), total)
    for _ in range(total):
        last_s, last = max((asked(peer, urls[peer]), peer) for peer in asked.peers if urls[peer])
        first_s, first = min((asked(peer, urls[peer] + 1), peer) for peer in asked.peers)
        if first_s >= last_s:
            break
        urls[last] -= 1
        urls[first] += 1
    return BatchPartition(tuple(urls), asked.count)


def swarm_partition(times: Sequence[TimeModel], total: int, chance: Random, *, rounds: int = 300) -> BatchPartition:
    """Return the best shares a swarm of particles came by in `rounds` moves (P2 2.4, formulas 11 to 13).

    The paper does not say when it stops, and lets shares through that do not sum to `total` or are below zero, if at a
    price (the squares of both are added to the variance of the ends): `settled` mends them. Its "greater"
    fitness, which is kept, must mean a better one, thus smaller.

    Raises:
        ValueError: nobody to share among, or less than nothing to share.
    """
    _check(times, total)
    asked = _CountedModels(times)

    def fitness(place: Sequence[int]) -> float:
        # A function of URLs has no meaning below none; the third term is the price of going there.
        ends = [asked(peer, max(0, place[peer])) for peer in asked.peers]
        mean = sum(ends) / len(ends)
        variance = sum((end - mean) ** 2 for end in ends) / len(ends)
        return variance + float(sum(place) - total) ** 2 + float(sum(abs(n) - n for n in place)) ** 2

    places = [[total // len(times) for _ in asked.peers] for _ in range(PARTICLES)]
    speeds = [[chance.random() for _ in asked.peers] for _ in range(PARTICLES)]
    own = [(fitness(place), tuple(place)) for place in places]
    best = min(own)
    for _ in range(rounds):
        for index, (place, speed) in enumerate(zip(places, speeds, strict=True)):
            for peer in asked.peers:
                to_own = ACCELERATION * chance.random() * (own[index][1][peer] - place[peer])
                to_best = ACCELERATION * chance.random() * (best[1][peer] - place[peer])
                speed[peer] = INERTIA * speed[peer] + to_own + to_best
                place[peer] += ceil(speed[peer])
            own[index] = min(own[index], (fitness(place), tuple(place)))
        best = min(best, *own)
    return BatchPartition(best[1], asked.count)


def normalized(urls: Sequence[int], total: int) -> tuple[int, ...]:
    """Return shares near `urls` that are none below zero and sum to `total`: each in its proportion."""
    kept = [max(0, count) for count in urls]
    whole = sum(kept)
    if not whole:
        return equal_shares(len(urls), total)
    return tuple(_rounded([count * total / whole for count in kept], total))


class _CountedModels:
    """The functions, and how often they were asked."""

    def __init__(self, times: Sequence[TimeModel]) -> None:
        self.peers = range(len(times))
        self.count = 0
        self._times = times

    def __call__(self, peer: int, urls: float) -> float:
        self.count += 1
        return self._times[peer](urls)


def _check(times: Sequence[TimeModel], total: int) -> None:
    if not times or total < 0:
        raise ValueError(f"{total} URLs among {len(times)} peers: there must be a peer, and no fewer URLs than none")


def _parts(asked: _CountedModels, total: int) -> list[float]:
    """Return shares of `total`, parts of URLs allowed, that end together but for who cannot end so early."""
    early, late = 0.0, min(asked(peer, total) for peer in asked.peers)
    few, many = [0.0 for _ in asked.peers], [_reached(asked, peer, total, late) for peer in asked.peers]
    for _ in range(HALVINGS):
        middle = (early + late) / 2
        if not early < middle < late:
            break
        reached = [_reached(asked, peer, total, middle) for peer in asked.peers]
        if sum(reached) < total:
            early, few = middle, reached
        else:
            late, many = middle, reached
    # The ends are neighbors now; what lies between is crawled in no time, and can be divided in any way.
    between = sum(many) - sum(few)
    share = (total - sum(few)) / between if between > 0 else 0.0
    return [less + share * (more - less) for less, more in zip(few, many, strict=True)]


def _reached(asked: "_CountedModels", peer: int, total: int, end_s: float) -> float:
    """Return how many of `total` URLs `peer` has crawled by `end_s`: bisection on whole ones, then a straight line."""
    whole, beyond = 0, total + 1
    before_s = asked(peer, 0)
    if before_s > end_s:
        return 0.0
    after_s = before_s
    while beyond - whole > 1:
        middle = (whole + beyond) // 2
        seconds = asked(peer, middle)
        if seconds <= end_s:
            whole, before_s = middle, seconds
        else:
            beyond, after_s = middle, seconds
    return float(total) if whole == total else whole + (end_s - before_s) / (after_s - before_s)


def _rounded(parts: Sequence[float], total: int) -> list[int]:
    """Return whole numbers that sum to `total`: each rounded down, one more to the largest remainders."""
    urls = [floor(part) for part in parts]
    by_remainder = sorted(range(len(parts)), key=lambda peer: urls[peer] - parts[peer])
    for peer in by_remainder[: total - sum(urls)]:
        urls[peer] += 1
    return urls
