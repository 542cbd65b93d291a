"""Detection of the crawl's end: any peer that has become idle asks, without a leader.

An idle peer waits a moment, drawn at random, so that usually one peer asks and the others hear it. It asks a few peers
first, as in the middle of a crawl one of them is busy, and in a large swarm some more. Only if none is busy it sends a
wave. If every peer was idle it sends the second wave at once. If that proves quiescence it tells the swarm, which then
has ended, or rests if pages are due again. A peer that has just become idle asks soon. A peer that asked in vain waits
longer each time, since a peer with URLs to fetch will ask when it has none. But nobody else may ask once messages on
their way have arrived: they only make the next round come a little later.

Tests: tests/overlay/waves/test_termination.py, tests/peer/test_swarm.py, tests/peer/test_coming_and_going.py
"""

import asyncio
from random import Random

from kadcrawl.link.wire.messages import Order, Survey, Tally
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.overlay.waves.quiescence import Quiescence
from kadcrawl.overlay.waves.wave import Waves

FIRST_WAIT_S = 0.3
QUIESCENCE_POLL_MAX_S = 10.0
"""Longest wait before the next round of the question whether the swarm is quiescent, in seconds."""
PEERS_PER_SECOND = 50
"""The wait is spread over one second per this many peers. So few ask at once however many are idle."""
WAVES_IN_A_ROW_MAX = 4
"""Limit on the waves of one round, which ask whether the swarm is quiescent."""
ROUNDS_DEFERRED_MAX = 5
"""Rounds in a row in which a peer leaves the question to others."""
SAMPLE_PEERS = 3
"""Peers asked first, before a wave is sent to all."""
PEERS_PER_SAMPLED = 16
"""In a large swarm one peer of so many is asked before a wave is sent to all, in samples that double while they find no
busy peer. So the samples cost at most a sixteenth of a wave, and spare most waves while some peers are busy."""
SAMPLE_S = 2.0
"""Time limit for the answers of these peers."""


def sample_sizes(members: int) -> list[int]:
    """Return the numbers of peers to ask one after another before a wave, in a swarm of so many members."""
    sizes = [SAMPLE_PEERS]
    while (left := members // PEERS_PER_SAMPLED - sum(sizes)) > 0:
        sizes.append(min(2 * sizes[-1], left))
    return sizes


class Termination:
    """The watch of one peer for the end of the crawl."""

    def __init__(self, waves: Waves, random: Random, activity: Activity) -> None:
        self._waves = waves
        self._random = random
        self._activity = activity
        self._others_will_ask = False
        """Another peer had URLs to fetch when last asked, and so will ask when it has none."""

    async def run(self) -> None:
        """Ask whenever this peer is idle, and announce each end, until cancelled."""
        wait_s = FIRST_WAIT_S
        passed_over = 0
        while True:
            if not self._activity.idle.is_set():
                await self._activity.idle.wait()
                wait_s = FIRST_WAIT_S  # If all was over until now, a peer that was met waits for the result.
            heard = self._waves.surveys
            # By the contacts: a swarm begins with all peers idle but a few, and none of them has asked a wave before.
            spread_s = FIRST_WAIT_S + self._waves.members / PEERS_PER_SECOND
            if await self._busy_within(wait_s + self._random.uniform(0, spread_s)):
                wait_s = FIRST_WAIT_S
                continue
            # Others may ask repeatedly without the proof that this peer would find, but not all may ask at once.
            passed_over = passed_over + 1 if self._waves.surveys != heard else 0
            proof = await self._proof() if passed_over % (ROUNDS_DEFERRED_MAX + 1) == 0 else None
            if proof is not None:
                # Several peers find the proof at once. A peer that has heard of the end tells none.
                if self._activity.idle.is_set():
                    await self._waves.ask_all(Order("ended" if proof.due_s is None else "rest"))
                wait_s = FIRST_WAIT_S  # If a peer comes now, all soon know whether that changes the result.
            else:
                wait_s = QUIESCENCE_POLL_MAX_S if self._others_will_ask else min(2 * wait_s, QUIESCENCE_POLL_MAX_S)

    async def _busy_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._activity.busy.wait()
        except TimeoutError:
            return False
        return True

    async def _proof(self) -> Tally | None:
        """Return the tally that proves quiescence, with the next visit due, or None without proof."""
        heard = self._waves.surveys
        for count in sample_sizes(self._waves.members):
            sample = await self._waves.ask_some(Survey(), count, self._random, SAMPLE_S)
            self._others_will_ask = any(tally.pending for tally in sample)
            is_busy = self._others_will_ask or any(tally.unacknowledged for tally in sample)
            if is_busy or not self._activity.idle.is_set() or self._waves.surveys != heard:
                return None
        quiescence = Quiescence()
        for _ in range(WAVES_IN_A_ROW_MAX):
            tally = (await self._waves.ask_all(Survey())).tally
            self._others_will_ask = bool(tally.pending)
            if quiescence.observe(tally):
                return tally
            if not quiescence.hopeful or not self._activity.idle.is_set():
                return None
        return None
