"""`ThroughputLearning`: a peer's predicted throughput, and the measurements it writes down for training (P2).

The owner declares the machine's profile, or the peer measures it in a thread when it starts. From the profile a trained
network predicts the seconds for a number of URLs. The peer's own measurements go to a file in its directory
(balance/training_data.py), and `kadcrawl train` makes a network of such files. So a swarm learns from its own crawls
and needs no network to begin with.

Tests: tests/lending/test_drain_policy.py
"""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path

from kadcrawl.balance.batch_partition import TimeModel
from kadcrawl.balance.machine_profile import MachineProfile, check_declared, measure_profile
from kadcrawl.balance.predict import BatchTiming, NeuralNetwork, extrapolated
from kadcrawl.balance.training_data import BATCHES_FILE, GrowingBatch, append_batch, load_network
from kadcrawl.settings.config import Config
from kadcrawl.system.clock import steady
from kadcrawl.system.daemon_threads import DaemonThreadExecutor

log = logging.getLogger(__name__)


class ThroughputLearning:
    """The profile of one peer's machine, the prediction made from it, and the file of measurements."""

    def __init__(self, directory: Path, powers: Mapping[str, float], network: NeuralNetwork | None) -> None:
        """`powers` are the checked declarations of the owner. `network` is None before the first training."""
        self.predicted: TimeModel | None = None
        """URLs -> predicted seconds, or None without a network and while the profile is not known."""
        self._directory = directory
        self._declared = powers
        self._network = network
        self._profile: MachineProfile | None = None
        self._growing = GrowingBatch()

    async def run(self) -> None:
        """Measure the profile, and predict from it if there is a network."""
        loop = asyncio.get_running_loop()
        try:
            self._profile = await loop.run_in_executor(
                DaemonThreadExecutor(), measure_profile, self._directory, steady, self._declared
            )
        except (ValueError, OSError) as error:  # ConfigError is a ValueError.
            # The crawl goes on: without a prediction it takes a little longer until the throughput is known.
            log.warning("balance.no_profile why=%s", error)
            return
        log.info("balance.profile_measured profile=%s", self._profile)
        if self._network is not None:
            self.predicted = extrapolated(self._network.time(self._profile))

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


def throughput_learning(config: Config) -> ThroughputLearning:
    """Return the learning of a peer with this configuration.

    Raises ConfigError for a file that is no network, or for declared powers that are out of range.
    """
    network = None if config.network is None else load_network(config.network)
    return ThroughputLearning(config.data, check_declared(dict(config.powers)), network)
