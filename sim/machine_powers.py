"""The powers of simulated machines, and a network that predicts by them, for jobs with balance "predictive".

The powers are drawn by the number of a machine, as a benchmark would read the clock of the machine that simulates. The
network was not trained on these peers. So its predictions are wrong, as they are for sites that it never saw.
"""

from collections.abc import Mapping
from random import Random

from kadcrawl.balance.machine_profile import MachineProfile
from kadcrawl.balance.predict import NeuralNetwork

NETWORK = NeuralNetwork(
    least=(1.0, 1.0, 1.0, 1.0, 1.0, 0.0),
    span=(7.0, 3.0, 15.0, 99.0, 99.0, 64.0),
    into_hidden=((0.005, -0.01, -0.005, -0.025, -0.01, 1.0, -0.45),),
    out_of_hidden=(1.0, 0.45),
    least_s=0.0,
    span_s=10.0,
)
"""Seconds that rise with the URLs, some tenths for each, and fall with the link, the clock, the memory and the disk."""


def profile_of(number: int, declared: Mapping[str, float]) -> MachineProfile:
    """Return the powers of a machine. Declared powers win."""
    random = Random(f"powers {number}")
    powers: dict[str, float] = {
        "cores": random.randint(1, 8),
        "clock_ghz": random.uniform(1, 4),
        "memory_gb": random.uniform(1, 16),
        "net_mbps": random.uniform(1, 100),
        "disk_mbps": random.uniform(1, 100),
    }
    return MachineProfile(**(powers | dict(declared)))  # type: ignore[arg-type]
