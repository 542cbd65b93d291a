"""P2's shares of 500 URLs by predicted times: networks learn the times of the nodes, and solvers divide by them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from kadcrawl.balance.batch_partition import (
    BatchPartition,
    TimeModel,
    exact_partition,
    makespan_s,
    monotone,
    normalized,
    swarm_partition,
)
from kadcrawl.balance.predict import NeuralNetwork, train_network

from .five_nodes import BALANCED_S, NODES, SHARES, RunTime, training_data

TOTAL = sum(SHARES)
BATCHES = 1000
"""Measured at other nodes, to learn from."""
OWN = {"cold": 0, "warm": 20}
"""The number of batches measured at each of the five nodes."""


@dataclass(frozen=True, slots=True)
class Method:
    """A method to divide the URLs, and its result."""

    name: str
    urls: tuple[int, ...]
    ends_s: tuple[float, ...]
    theirs_s: float | None = None
    asked: bool = True
    """True if the method must come near the bound."""
    worst_s: float | None = None
    """The worst result of all networks."""

    @property
    def makespan_s(self) -> float:
        return max(self.ends_s)


@dataclass(slots=True)
class Meter:
    """Counts the evaluations of a solver."""

    evaluations: int = 0
    times: int = 0

    def solve(
        self, solver: Callable[[Sequence[TimeModel]], BatchPartition], times: Sequence[TimeModel]
    ) -> tuple[int, ...]:
        shares = solver(times)
        urls = normalized(shares.urls, TOTAL)
        self.evaluations += shares.evaluations
        self.times += 1
        return urls

    @property
    def each(self) -> int:
        """Evaluations of a time, for one solution."""
        return round(self.evaluations / self.times)


def train(model: RunTime, own: int, seed: str, *, logarithmic: bool = True) -> NeuralNetwork:
    random = Random(seed)
    batches = training_data(model, random, others=BATCHES, own=own)
    return train_network(batches, seed=random.getrandbits(32), logarithmic=logarithmic)


def ends_s(times: Sequence[TimeModel], urls: Sequence[int]) -> tuple[float, ...]:
    return tuple(time(count) for time, count in zip(times, urls, strict=True))


def predicted(
    name: str,
    times: Sequence[TimeModel],
    networks: Sequence[NeuralNetwork],
    seed: int,
    rounds: int,
    meters: dict[str, Meter],
) -> list[Method]:
    """Return, for each solver, the predicted shares and their true times."""
    by_network = [_times(network) for network in networks]
    solvers: dict[str, Callable[[Sequence[TimeModel]], BatchPartition]] = {
        "swarm": lambda each: swarm_partition(each, TOTAL, Random(seed), rounds=rounds),
        "exact": lambda each: exact_partition(each, TOTAL),
    }
    methods = []
    for solver, solve in solvers.items():
        found = [meters[solver].solve(solve, each) for each in by_network]
        theirs_s = BALANCED_S if solver == "swarm" else None
        methods.append(_median(f"BP + {solver}, {name}", times, found, theirs_s=theirs_s))
    return methods


def predicted_by_plain_powers(
    name: str, model: RunTime, times: Sequence[TimeModel], seed: int, trainings: int
) -> Method:
    """Return the exact solver's shares by networks that learned from the powers themselves, as in the paper."""
    plain = [train(model, OWN[name], f"{seed} {name} {each}", logarithmic=False) for each in range(trainings)]
    found = [normalized(exact_partition(_times(network), TOTAL).urls, TOTAL) for network in plain]
    return _median(f"BP + exact, {name}, powers as printed", times, found, asked=False)


def _times(network: NeuralNetwork) -> list[TimeModel]:
    return [monotone(network.time(node), TOTAL) for node in NODES]


def _median(
    name: str,
    times: Sequence[TimeModel],
    found: Sequence[tuple[int, ...]],
    theirs_s: float | None = None,
    *,
    asked: bool = True,
) -> Method:
    """Return the median of the shares by their true makespan."""
    by_makespan = sorted(found, key=lambda urls: makespan_s(times, urls))
    middle, worst_s = by_makespan[len(found) // 2], makespan_s(times, by_makespan[-1])
    return Method(name, middle, ends_s(times, middle), theirs_s=theirs_s, asked=asked, worst_s=worst_s)
