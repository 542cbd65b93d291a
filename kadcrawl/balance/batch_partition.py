"""The partition of a batch of URLs among peers so that all end together: a particle swarm and an exact solver (P2 2.4).

Both solvers take one function per peer, URLs -> seconds, and return whole shares of a total. The swarm follows the
paper as printed, for comparison. The exact solver is the solver to use. It needs functions that never fall, which a
trained network does not promise: `monotone` makes such a function of any function.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil, floor
from random import Random

TimeModel = Callable[[float], float]
"""A function from URLs (0 and fractions included) to the seconds until they are crawled."""

PARTICLES = 30
INERTIA = 0.8
ACCELERATION = 2.0
"""Acceleration towards the particle's own best position, and as much towards the best of all (c1 = c2)."""
HALVINGS = 200
"""Steps of a bisection at most, more than a double has digits. It ends before, when its ends are neighbors."""


@dataclass(frozen=True, slots=True)
class BatchPartition:
    """The partition that a solver found."""

    urls: tuple[int, ...]
    """The URLs of each peer."""
    evaluations: int
    """The number of calls of the peers' functions."""


def makespan_s(times: Sequence[TimeModel], urls: Sequence[int]) -> float:
    """Return when the last peer ends. A peer without URLs does not start."""
    return max((time(count) for time, count in zip(times, urls, strict=True) if count), default=0.0)


def equal_shares(peers: int, total: int) -> tuple[int, ...]:
    """Return `total` in equal shares, the remainder to the first."""
    share, left = divmod(total, peers)
    return tuple(share + (index < left) for index in range(peers))


def monotone(time: TimeModel, most: int) -> TimeModel:
    """Return the least function on 0 to `most` that never falls and is never below `time` on whole numbers.

    Between whole numbers it is a straight line. `time` is called `most` + 1 times, at once.
    """
    seconds = list(accumulate((time(count) for count in range(most + 1)), max))

    def risen(urls: float) -> float:
        whole = floor(urls)
        if whole >= most:
            return seconds[most]
        return seconds[whole] + (urls - whole) * (seconds[whole + 1] - seconds[whole])

    return risen


def exact_partition(times: Sequence[TimeModel], total: int) -> BatchPartition:
    """Return shares of `total` whose last end is as early as possible, for `times` that never fall.

    Bisection on the common end gives fractions of URLs, and the largest remainders get the URLs that are left. Then
    single URLs move from the peer that ends last to the peer that ends them first, while that end is earlier. Single
    moves are enough. In a better partition the last peer would have fewer URLs and another peer more, so one more URL
    of that peer would end earlier.

    Raises:
        ValueError: there is no peer, or `total` is below 0.
    """
    _check(times, total)
    models = _CountedModels(times)
    urls = _settled(models, _rounded(_parts(models, total), total))
    return BatchPartition(tuple(urls), models.count)


def settled_partition(times: Sequence[TimeModel], urls: Sequence[int], total: int) -> BatchPartition:
    """Return the best shares of `total` that single moves reach from these shares, for `times` that never fall."""
    _check(times, total)
    models = _CountedModels(times)
    return BatchPartition(tuple(_settled(models, [*normalized(urls, total)])), models.count)


def swarm_partition(times: Sequence[TimeModel], total: int, chance: Random, *, rounds: int = 300) -> BatchPartition:
    """Return the best shares that a swarm of particles found in `rounds` moves (P2 2.4, formulas 11 to 13).

    The paper does not say when the swarm stops. It lets shares through that do not sum to `total` or are below zero,
    at a price: the squares of both are added to the variance of the ends. `normalized` mends such shares. The "greater"
    fitness that the paper keeps must mean a better fitness, thus a smaller one.

    Raises:
        ValueError: there is no peer, or `total` is below 0.
    """
    _check(times, total)
    models = _CountedModels(times)

    def fitness(position: Sequence[int]) -> float:
        # A function of URLs has no meaning below 0. The third term is the price of going there.
        ends = [models(peer, max(0, position[peer])) for peer in models.peers]
        mean = sum(ends) / len(ends)
        variance = sum((end - mean) ** 2 for end in ends) / len(ends)
        return variance + float(sum(position) - total) ** 2 + float(sum(abs(n) - n for n in position)) ** 2

    positions = [[total // len(times) for _ in models.peers] for _ in range(PARTICLES)]
    speeds = [[chance.random() for _ in models.peers] for _ in range(PARTICLES)]
    own = [(fitness(position), tuple(position)) for position in positions]
    best = min(own)
    for _ in range(rounds):
        for index, (position, speed) in enumerate(zip(positions, speeds, strict=True)):
            for peer in models.peers:
                to_own = ACCELERATION * chance.random() * (own[index][1][peer] - position[peer])
                to_best = ACCELERATION * chance.random() * (best[1][peer] - position[peer])
                speed[peer] = INERTIA * speed[peer] + to_own + to_best
                position[peer] += ceil(speed[peer])
            own[index] = min(own[index], (fitness(position), tuple(position)))
        best = min(best, *own)
    return BatchPartition(best[1], models.count)


def normalized(urls: Sequence[int], total: int) -> tuple[int, ...]:
    """Return shares near `urls` that are at least 0 and sum to `total`, each in its proportion."""
    kept = [max(0, count) for count in urls]
    whole = sum(kept)
    if not whole:
        return equal_shares(len(urls), total)
    return tuple(_rounded([count * total / whole for count in kept], total))


class _CountedModels:
    """The functions of the peers, and the number of their calls."""

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


def _settled(models: _CountedModels, urls: list[int]) -> list[int]:
    """Move single URLs from the peer that ends last to the peer that ends them first, while that end is earlier."""
    for _ in range(sum(urls)):
        last_s, last = max((models(peer, urls[peer]), peer) for peer in models.peers if urls[peer])
        first_s, first = min((models(peer, urls[peer] + 1), peer) for peer in models.peers)
        if first_s >= last_s:
            break
        urls[last] -= 1
        urls[first] += 1
    return urls


def _parts(models: _CountedModels, total: int) -> list[float]:
    """Return shares of `total` in fractions of URLs that end together, except for peers that cannot end so early."""
    early, late = 0.0, min(models(peer, total) for peer in models.peers)
    low, high = [0.0 for _ in models.peers], [_reached(models, peer, total, late) for peer in models.peers]
    for _ in range(HALVINGS):
        middle = (early + late) / 2
        if not early < middle < late:
            break
        reached = [_reached(models, peer, total, middle) for peer in models.peers]
        if sum(reached) < total:
            early, low = middle, reached
        else:
            late, high = middle, reached
    # The ends are neighbors now. URLs between them take no time, and can be divided in any way.
    between = sum(high) - sum(low)
    share = (total - sum(low)) / between if between > 0 else 0.0
    return [less + share * (more - less) for less, more in zip(low, high, strict=True)]


def _reached(models: "_CountedModels", peer: int, total: int, end_s: float) -> float:
    """Return how many of `total` URLs `peer` has crawled by `end_s`: bisection on whole URLs, then a straight line."""
    whole, beyond = 0, total + 1
    before_s = models(peer, 0)
    if before_s > end_s:
        return 0.0
    after_s = before_s
    while beyond - whole > 1:
        middle = (whole + beyond) // 2
        seconds = models(peer, middle)
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
