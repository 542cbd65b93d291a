"""What a peer knows of its own pace before it has crawled, and writes down for those that learn (P2).

Its powers are declared by its owner, or measured when it starts, in a thread. With them a trained network predicts how
long it takes for a number of URLs. What it then measures goes to a file in its directory (balance/training_data.py),
from which `kadcrawl train` makes such a network: a swarm learns from its own crawls.

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
    """The powers of one peer, what they predict, and what is measured."""

    def __init__(self, directory: Path, powers: Mapping[str, float], network: NeuralNetwork | None) -> None:
        """`powers`: what is declared, checked; `network`: None if none was trained yet."""
        self.predicted: TimeModel | None = None
        """URLs -> seconds; None while the powers are not known, or without a network."""
        self._directory = directory
        self._declared = powers
        self._network = network
        self._profile: MachineProfile | None = None
        self._growing = GrowingBatch()

    async def run(self) -> None:
        """Find out about the powers."""
        loop = asyncio.get_running_loop()
        try:
            self._profile = await loop.run_in_executor(
                DaemonThreadExecutor(), measure_profile, self._directory, steady, self._declared
            )
        except (ValueError, OSError) as error:  # ConfigError is one.
            # The crawl goes on: without a prediction it takes a little longer until this peer knows its pace.
            log.warning("balance.no_powers why=%s", error)
            return
        log.info("balance.profile_measured profile=%s", self._profile)
        if self._network is not None:
            self.predicted = extrapolated(self._network.time(self._profile))

    def measured(self, urls: int, seconds: float) -> None:
        """Note that it took so many seconds, in which there was always something to do, to crawl so many URLs."""
        if self._profile is None or (grown := self._growing.measured(urls, seconds)) is None:
            return
        path = self._directory / BATCHES_FILE
        try:
            append_batch(BatchTiming(self._profile, *grown), path)
        except OSError as error:
            log.warning("balance.not_written file=%s why=%s", path, error)


def throughput_learning(config: Config) -> ThroughputLearning:
    """Return what a peer of this configuration learns with.

    Raises ConfigError for a network or powers that are none.
    """
    network = None if config.network is None else load_network(config.network)
    return ThroughputLearning(config.data, check_declared(dict(config.powers)), network)
