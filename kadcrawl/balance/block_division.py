"""The division of a heavy peer's blocks among itself and light peers, so that all end together (P2 2.4).

The paper has N URLs, and predicts the time f(w, n) of each node for n of them from its powers w. It chooses the shares
that bring all predicted ends together. Here N is the blocks that a heavy peer may lend, the nodes are that peer and the
light peers of a bucket, and each has work ahead already. A `Solver` is the exact one or the paper's particle swarm.

A network knows a machine, and not the sites. So where a peer has measured its seconds per URL, the prediction says how
its time grows with the URLs, and the measurement how long a block takes (`block_time`). A peer without a prediction
takes as long as it tells, and a cold peer without one is lent its trial, as ever (drain.py). Decisions only.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import NamedTuple

from kadcrawl.balance.batch_partition import (
    BatchPartition,
    TimeModel,
    exact_partition,
    monotone,
    settled_partition,
    swarm_partition,
)
from kadcrawl.balance.drain import BLOCKS_PER_UPDATE_MAX, DRAIN_MARGIN, Backlog, block_offers, common_end_s

Solver = Callable[[Sequence[TimeModel], int], BatchPartition]
"""A function from the seconds of each peer, for a number of blocks, and the blocks of all, to the blocks of each."""
URL_S_LEAST = 1e-9
"""Seconds per URL of a peer that is predicted to need none."""
REFUSED_S = 1e9
"""Seconds in which a cold peer ends with more blocks than it would try: it refuses them. No prediction is longer."""
SWARM_ROUNDS = 100
"""Moves of the particle swarm, for which the paper has no number: a tenth of a second for a bucket of peers."""


class Candidate(NamedTuple):
    """A peer that may be lent blocks."""

    load: Backlog | int
    """Its backlog, or for a cold peer the number of blocks that it would try."""
    predicted: TimeModel | None
    """URLs -> seconds, as predicted from the powers of its machine, or None."""


def swarm_solver(random: Random, rounds: int = SWARM_ROUNDS) -> Solver:
    """Return the paper's particle swarm as a solver.

    Its shares miss their sum, and with more than a few peers it does not settle. So single blocks move at the end, as
    the exact solver moves them.
    """

    def solve(times: Sequence[TimeModel], total: int) -> BatchPartition:
        found = swarm_partition(times, total, random, rounds=rounds)
        settled = settled_partition(times, found.urls, total)
        return BatchPartition(settled.urls, found.evaluations + settled.evaluations)

    return solve


def divided_blocks(
    own: Candidate,
    others: Sequence[Candidate],
    block_urls: int,
    hand_over_s: float,
    target_s: float,
    solve: Solver = exact_partition,
) -> list[int]:
    """Return how many blocks to offer each of the `others`.

    No peer is offered a block before which it would be busy beyond `target_s`, as it would refuse the block. The peer
    itself must have a backlog.
    """
    assert isinstance(own.load, Backlog), "a heavy peer knows its backlog"
    blocks = [0] * len(others)
    total = min(own.load.pending // block_urls, BLOCKS_PER_UPDATE_MAX)
    times = {
        index: time
        for index, other in enumerate(others)
        if (time := _lent_time(other, block_urls, hand_over_s, total)) is not None
    }
    cold = [other.load if index not in times else 0 for index, other in enumerate(others)]
    trials = block_offers(own.load, cold, block_urls, hand_over_s, target_s)
    total -= sum(trials)
    own = Candidate(replace(own.load, pending=own.load.pending - block_urls * sum(trials)), own.predicted)
    able = _able(own, times, block_urls)
    if able and total > 0:
        kept = _kept_time(own, total, block_urls)
        shares = solve([kept, *(times[index] for index in able)], total).urls
        for index, share in zip(able, shares[1:], strict=True):
            most = share
            while most and times[index](most - 1) > max(target_s, hand_over_s):
                most -= 1
            blocks[index] = most
    return [trial + count for trial, count in zip(trials, blocks, strict=True)]


def block_time(candidate: Candidate, block_urls: int) -> TimeModel | None:
    """Return URLs -> seconds of a peer, without the work ahead of it, or None if nothing is known."""
    load, predicted = candidate
    if predicted is None:
        return None if isinstance(load, int) else lambda urls: urls * load.url_s
    if isinstance(load, int):
        return lambda urls: min(predicted(urls), REFUSED_S)
    block_s = predicted(block_urls)
    if not URL_S_LEAST <= block_s <= REFUSED_S:
        return lambda urls: urls * load.url_s
    told = load.url_s * block_urls / block_s
    return lambda urls: told * min(predicted(urls), REFUSED_S)


def _lent_time(candidate: Candidate, block_urls: int, hand_over_s: float, total: int) -> TimeModel | None:
    """Return lent blocks -> the end of a borrower."""
    time = block_time(candidate, block_urls)
    if time is None:
        return None
    load = candidate.load
    busy_s, most = (load.drain_s, total) if isinstance(load, Backlog) else (0.0, load)
    begins_s = max(busy_s, hand_over_s)

    def lent_s(blocks: float) -> float:
        if blocks > most:
            return REFUSED_S
        return begins_s + time(blocks * block_urls) if blocks else busy_s

    return monotone(lent_s, max(1, total))


def _kept_time(own: Candidate, total: int, block_urls: int) -> TimeModel:
    """Return kept blocks, of those that may be lent, -> the end of the lender."""
    assert isinstance(own.load, Backlog)
    time, rest, busy_s = block_time(own, block_urls), own.load.pending - total * block_urls, own.load.busy_s
    assert time is not None
    return monotone(lambda blocks: busy_s + time(rest + blocks * block_urls), total)


def _able(own: Candidate, times: Mapping[int, TimeModel], block_urls: int) -> list[int]:
    """Return the peers that could end together with the lender.

    A peer that is busy for longer would take no block, and no share could bring its end nearer to the others'.
    """
    assert isinstance(own.load, Backlog)
    longest_s = (1 - DRAIN_MARGIN) * own.load.drain_s
    able = {
        index: Backlog(0, max(URL_S_LEAST, (time(1) - time(0)) / block_urls), time(0))
        for index, time in times.items()
        if time(1) < longest_s
    }
    while True:
        end_s = common_end_s([own.load, *able.values()])
        left = {index: backlog for index, backlog in able.items() if times[index](1) <= end_s}
        if len(left) == len(able):
            return [*left]
        able = left
