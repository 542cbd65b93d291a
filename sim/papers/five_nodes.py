"""The five nodes of P2, Table 1, and a model of their running time that agrees with the printed numbers.

The paper prints the powers, the balanced shares of 500 URLs with a run of 134 s, and 233 s for shares of 100. If the
balanced shares end together, a node that starts at once needs 134 s / share for a URL, and the slowest 134 / 36 * 100 =
372 s for a hundred: not 233. So a part of a run must not depend on the number of URLs. The simplest model that agrees:

    seconds = start + URLs * (a / net^p + b / disk + c / memory + d / clock + e * cores)

with one start for all nodes, which follows from the two runs, and a to e, which follow from the five shares. Only p is
free. Between about 0.716 and 0.726 all five are above 0, as the paper's findings (time falls with clock, memory, net
and disk, and rises with cores) demand. Beyond, at least one is below 0.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp, log
from random import Random
from statistics import fmean
from typing import Any

import numpy

from kadcrawl.balance.machine_profile import MachineProfile
from kadcrawl.balance.predict import BatchTiming

NODES = (
    MachineProfile(4, 2.4, 4.0, 18.0, 18.0),
    MachineProfile(4, 2.4, 4.0, 5.0, 18.0),
    MachineProfile(4, 2.4, 1.0, 12.0, 3.0),
    MachineProfile(4, 2.6, 3.0, 2.0, 1.5),
    MachineProfile(1, 2.4, 3.0, 12.0, 1.0),
)
SHARES = (164, 70, 120, 36, 110)
BALANCED_S = 134.0
EQUAL_S = 233.0
NET_EXPONENT = 0.72

RANGES = {
    "cores": (1, 4),
    "clock_ghz": (2.4, 2.6),
    "memory_gb": (0.5, 4.0),
    "net_mbps": (2.0, 30.0),
    "disk_mbps": (1.0, 18.0),
}
"""The ranges of the powers in the paper (3.1) and its nodes."""
URLS = (1, 200)
NOISE = 0.02
"""Standard deviation of the logarithm of a measured time: two in a hundred."""


@dataclass(frozen=True, slots=True)
class RunTime:
    """The model of the running time: seconds of a node by its powers and its number of URLs."""

    start_s: float
    weights: tuple[float, ...]
    """a to e."""

    def url_s(self, profile: MachineProfile) -> float:
        """Return how long it takes for one URL, once it has started."""
        return sum(weight * term for weight, term in zip(self.weights, _terms(profile), strict=True))

    def seconds(self, profile: MachineProfile, urls: float) -> float:
        return self.start_s + urls * self.url_s(profile)

    def time(self, profile: MachineProfile) -> Callable[[float], float]:
        """Return URLs -> seconds."""
        url_s = self.url_s(profile)
        return lambda urls: self.start_s + urls * url_s


def start_of_both_s() -> float:
    """Return the start for which the slowest node takes 134 s with balanced and 233 s with equal shares."""
    slowest, equal = min(SHARES), sum(SHARES) / len(SHARES)
    return (BALANCED_S * equal - EQUAL_S * slowest) / (equal - slowest)


def fitted(start: float) -> RunTime:
    """Return the model with this start in which the balanced shares all take 134 s."""
    url_s = [(BALANCED_S - start) / share for share in SHARES]
    weights = numpy.linalg.solve(numpy.array([_terms(powers) for powers in NODES]), numpy.array(url_s))
    return RunTime(start, tuple(float(weight) for weight in weights))


def random_profile(random: Random) -> MachineProfile:
    """Return random powers in the paper's ranges. A power with a wide range is uniform in its logarithm."""
    return MachineProfile(
        random.choice((1, 2, 4)),
        random.choice(RANGES["clock_ghz"]),
        *(exp(random.uniform(*map(log, RANGES[name]))) for name in ("memory_gb", "net_mbps", "disk_mbps")),
    )


def training_data(
    model: RunTime, random: Random, *, others: int, own: int = 0, noise: float = NOISE
) -> list[BatchTiming]:
    """Return measured times: `others` of nodes with random powers, and `own` of each of the five."""
    nodes = [random_profile(random) for _ in range(others)] + [node for node in NODES for _ in range(own)]
    batches = []
    for node in nodes:
        urls = random.randint(*URLS)
        batches.append(BatchTiming(node, urls, model.seconds(node, urls) * random.lognormvariate(0.0, noise)))
    return batches


def effect_s(seconds: Callable[[MachineProfile, float], float], name: str, random: Random, draws: int = 200) -> float:
    """Return the mean additional seconds of a run with the most of a power (or of "urls") over the least."""
    longer = []
    for _ in range(draws):
        node, urls = random_profile(random), random.randint(*URLS)
        if name == "urls":
            least_s, most_s = (seconds(node, end) for end in URLS)
        else:
            least_s, most_s = (seconds(_with(node, name, end), urls) for end in RANGES[name])
        longer.append(most_s - least_s)
    return fmean(longer)


def _with(profile: MachineProfile, name: str, power: float) -> MachineProfile:
    changes: dict[str, Any] = {name: power}
    return replace(profile, **changes)


def _terms(profile: MachineProfile) -> tuple[float, ...]:
    return (
        profile.net_mbps**-NET_EXPONENT,
        1 / profile.disk_mbps,
        1 / profile.memory_gb,
        1 / profile.clock_ghz,
        float(profile.cores),
    )
