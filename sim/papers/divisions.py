"""The cost of both solvers for a heavy peer of a crawl, which divides its blocks among itself and a bucket of peers."""

from functools import partial
from operator import mul
from random import Random
from statistics import fmean

from kadcrawl.balance.batch_partition import (
    exact_partition,
    makespan_s,
    normalized,
    settled_partition,
    swarm_partition,
)
from kadcrawl.balance.block_division import SWARM_ROUNDS

from .experiment import Table

OTHERS = (1, 4, 8, 16)
"""Light peers of a bucket, 1 to 10 s a block each."""
HEAVY_BLOCKS = 50
DRAWS = 20


def divisions(seed: int) -> Table:
    """Return a table of what both solvers cost a heavy peer, which divides its blocks among itself and others."""
    rows = []
    for others in OTHERS:
        random, exact, swarm, apart, ratios = Random(f"{seed} {others}"), [], [], [], []
        for _ in range(DRAWS):
            times = [partial(mul, random.uniform(1, 10)) for _ in range(others + 1)]
            best = exact_partition(times, HEAVY_BLOCKS)
            found = swarm_partition(times, HEAVY_BLOCKS, random, rounds=SWARM_ROUNDS)
            shares = normalized(found.urls, HEAVY_BLOCKS)
            exact.append(best.evaluations)
            swarm.append(found.evaluations + settled_partition(times, shares, HEAVY_BLOCKS).evaluations)
            apart.append(max(abs(mine - other) for mine, other in zip(best.urls, shares, strict=True)))
            ratios.append(makespan_s(times, shares) / makespan_s(times, best.urls))
        rows.append((others, round(fmean(exact)), round(fmean(swarm)), fmean(apart), fmean(ratios)))
    return Table(
        title=f"What the division of {HEAVY_BLOCKS} blocks costs a peer of a crawl, mean of {DRAWS} draws",
        heading=(
            "other peers",
            "exact: times worked out",
            f"swarm, {SWARM_ROUNDS} rounds: times worked out",
            "swarm before it is settled: most blocks apart",
            "makespan to exact, ratio",
        ),
        rows=rows,
    )
