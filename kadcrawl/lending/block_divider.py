"""`BlockDivider`: the blocks that a heavy peer offers in a bucket, by the times it predicts for each peer there (P2).

For a job with balance `predictive`. The heavy peer knows the backlogs of a bucket's peers from its walk. It asks each
of them once for the powers of its machine, predicts with its own network, and divides all its blocks in one go
(balance/block_division.py). The solver runs in a thread, as the paper's particle swarm takes a tenth of a second.

Powers come from other people's machines. `MachineProfile` checks them, and a peer that lies about them costs balance,
never a URL: the borrower still decides, and a loan is taken back if it makes no progress.

Tests: tests/lending/test_drain_policy.py
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import astuple
from random import Random

from msgspec import structs

from kadcrawl.balance.batch_partition import TimeModel, exact_partition
from kadcrawl.balance.block_division import Candidate, Solver, divided_blocks, swarm_solver
from kadcrawl.balance.bucket_walk import BucketWalk
from kadcrawl.balance.machine_profile import MachineProfile
from kadcrawl.balance.shedding import BlockOffer
from kadcrawl.lending.throughput_learning import ThroughputLearning
from kadcrawl.link.wire.loan_messages import PowersRecord
from kadcrawl.link.wire.messages import Contact, Load
from kadcrawl.settings.job import Job
from kadcrawl.system.daemon_threads import DaemonThreadExecutor

PROFILES_MAX = 1_000
"""Peers whose powers are remembered."""
ASKED_AGAIN_S = 60.0
"""A peer that told no powers is asked for them again after so long: it may have been measuring them."""


class BlockDivider:
    """The division of one peer's blocks."""

    def __init__(self, job: Job, learning: ThroughputLearning, random: Random, hand_over_s: float) -> None:
        self._job = job
        self._learning = learning
        self._solve: Solver = swarm_solver(Random(random.getrandbits(64))) if job.solver == "pso" else exact_partition
        self._hand_over_s = hand_over_s
        self._models: OrderedDict[bytes, tuple[float, TimeModel | None]] = OrderedDict()
        """ID of a peer -> (loop second, its predicted times), None if it told no powers."""

    @property
    def powers(self) -> PowersRecord | None:
        """The powers of this machine, to tell other peers, or None while they are not known."""
        profile = self._learning.profile
        return None if profile is None else PowersRecord(*astuple(profile))

    def note(self, peer: bytes, answer: Load) -> None:
        """Remember the powers in an answer of a peer."""
        model = self._learning.model(_profile(answer.powers))
        self._models[peer] = asyncio.get_running_loop().time(), model
        self._models.move_to_end(peer)
        if len(self._models) > PROFILES_MAX:
            self._models.popitem(last=False)

    async def offers(
        self, walk: BucketWalk[Contact], ask: Callable[[Contact], Awaitable[Load | None]]
    ) -> Sequence[BlockOffer[Contact]]:
        """Return the blocks to offer to the peers of the present bucket. `ask` asks a peer for its load."""
        if not walk.has_blocks:
            return []
        if self._learning.can_predict:
            unknown = [peer for peer, _ in walk.region if self._is_unknown(peer.id)]
            for peer, answer in zip(unknown, await asyncio.gather(*map(ask, unknown)), strict=True):
                if answer is not None:
                    self.note(peer.id, answer)
        region, own = walk.region, Candidate(walk.own, self._learning.predicted)
        others = [Candidate(load, self._models.get(peer.id, (0.0, None))[1]) for peer, load in region]
        counts = await asyncio.get_running_loop().run_in_executor(
            DaemonThreadExecutor(),
            divided_blocks,
            *(own, others, self._job.block_urls, self._hand_over_s, walk.target_s, self._solve),
        )
        return walk.fair_offers(region, counts)

    def _is_unknown(self, peer: bytes) -> bool:
        at, model = self._models.get(peer, (-ASKED_AGAIN_S, None))
        return model is None and asyncio.get_running_loop().time() >= at + ASKED_AGAIN_S


def _profile(record: PowersRecord | None) -> MachineProfile | None:
    """Return the powers that a peer told, or None if it told none or no machine has them."""
    if record is None:
        return None
    try:
        return MachineProfile(*structs.astuple(record))
    except ValueError:  # ConfigError is a ValueError.
        return None
