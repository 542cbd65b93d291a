"""`ThroughputLearning`: a peer's predicted throughput, and the measurements it writes down for training (P2).

The owner declares the machine's profile, or the peer measures it in a thread when it starts. From the profile a trained
network predicts the seconds for a number of URLs. The peer's own measurements go to a file in its directory
(balance/training_data.py), and `kadcrawl train` makes a network of such files. So a swarm learns from its own crawls
and needs no network to begin with.

Tests: tests/lending/test_drain_policy.py
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from kadcrawl.balance.batch_partition import TimeModel
from kadcrawl.balance.machine_profile import MachineProfile, check_declared, measure_profile
from kadcrawl.balance.predict import BatchTiming, NeuralNetwork, extrapolated
from kadcrawl.balance.training_data import BATCHES_FILE, GrowingBatch, append_batch, load_network
from kadcrawl.settings.config import Config
from kadcrawl.system.clock import steady
from kadcrawl.system.daemon_threads import DaemonThreadExecutor

log = logging.getLogger(__name__)


MeasureMachine = Callable[[Path, Mapping[str, float]], MachineProfile]
"""(directory on the disk to measure, declared powers) -> profile. Raises ConfigError, OSError."""


def measured_here(directory: Path, declared: Mapping[str, float]) -> MachineProfile:
    """Return the profile of this machine. Raises ConfigError, OSError."""
    return measure_profile(directory, steady, declared)


class ThroughputLearning:
    """The profile of one peer's machine, the prediction made from it, and the file of measurements."""

    def __init__(
        self,
        directory: Path,
        powers: Mapping[str, float],
        network: NeuralNetwork | None,
        measure: MeasureMachine | None = None,
    ) -> None:
        """Take the parts of the prediction.

        Args:
            powers: the checked declarations of the owner.
            network: None before the first training.
            measure: measures the profile. It runs in a thread. None measures this machine.
        """
        self.predicted: TimeModel | None = None
        """URLs -> predicted seconds, or None without a network and while the profile is not known."""
        self._directory = directory
        self._declared = powers
        self._network = network
        self._measure = measure or measured_here
        self._profile: MachineProfile | None = None
        self._growing = GrowingBatch()

    async def run(self) -> None:
        """Measure the profile, and predict from it if there is a network."""
        loop = asyncio.get_running_loop()
        try:
            self._profile = await loop.run_in_executor(
                DaemonThreadExecutor(), self._measure, self._directory, self._declared
            )
        except (ValueError, OSError) as error:  # ConfigError is a ValueError.
            # The crawl goes on: without a prediction it takes a little longer until the throughput is known.
            log.warning("balance.no_profile why=%s", error)
            return
        log.info("balance.profile_measured profile=%s", self._profile)
        self.predicted = self.model(self._profile)

    @property
    def profile(self) -> MachineProfile | None:
        """The profile of this machine, or None while it is not known."""
        return self._profile

    @property
    def can_predict(self) -> bool:
        """True if there is a network."""
        return self._network is not None

    def model(self, profile: MachineProfile | None) -> TimeModel | None:
        """Return URLs -> predicted seconds of a machine, or None without its profile or a network."""
        if profile is None or self._network is None:
            return None
        return extrapolated(self._network.time(profile))

    def predict(self, urls: float) -> float | None:
        """Return the predicted seconds for a number of URLs, or None while nothing can be predicted."""
        return self.predicted(urls) if self.predicted is not None else None

    def measured(self, urls: int, seconds: float) -> None:
        """Note that the peer crawled `urls` in `seconds`, in which it always had URLs to crawl."""
        if self._profile is None or (grown := self._growing.measured(urls, seconds)) is None:
            return
        path = self._directory / BATCHES_FILE
        try:
            append_batch(BatchTiming(self._profile, *grown), path)
        except OSError as error:
            log.warning("balance.not_written file=%s why=%s", path, error)


def throughput_learning(config: Config, measure: MeasureMachine = measured_here) -> ThroughputLearning:
    """Return the learning of a peer with this configuration, whose machine `measure` measures.

    Raises ConfigError for a file that is no network, or for declared powers that are out of range.
    """
    network = None if config.network is None else load_network(config.network)
    return ThroughputLearning(config.data, check_declared(dict(config.powers)), network, measure)
