"""Who asks whether the crawl is over, and when: any peer that has become idle, without a leader.

An idle peer waits a moment, chosen at random, so that usually one asks and the others hear it. It asks a few peers
first, as in the middle of a crawl one of them is busy; only if none is it sends a wave. If everybody was idle it sends
the second at once, and if that proves quiescence it tells the swarm, which is at its end then; or it rests, if pages
are due again some time. A peer that has just become idle asks soon; one that asked in vain waits longer each time,
since whoever is still busy will ask when it stops being so.

Tests: tests/peer/test_swarm.py, tests/peer/test_coming_and_going.py
"""

import asyncio
from random import Random

from kadcrawl.link.wire.messages import Order, Survey, Tally
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.overlay.waves.quiescence import Quiescence
from kadcrawl.overlay.waves.wave import Waves

FIRST_WAIT_S = 0.3
QUIESCENCE_POLL_MAX_S = 10.0
PEERS_PER_SECOND = 50
"""The wait is spread over one second per this many peers, so that few ask at once however many are idle."""
WAVES_IN_A_ROW_MAX = 4
ROUNDS_DEFERRED_MAX = 5
"""How often in a row a peer leaves the asking to others."""
SAMPLE_PEERS = 3
"""Peers asked before a wave is sent to all."""
SAMPLE_S = 2.0
"""How long their answers are waited for."""


class Termination:
    """Watches for the end of the crawl."""

    def __init__(self, waves: Waves, random: Random, activity: Activity) -> None:
        self._waves = waves
        self._random = random
        self._activity = activity
        self._members = 1
        self._others_busy = False
        """Somebody had something to do when last asked, and will ask when it has not."""

    async def run(self) -> None:
        """Ask, and announce the end each time it comes; until cancelled."""
        wait_s = FIRST_WAIT_S
        passed_over = 0
        while True:
            await self._activity.idle.wait()
            heard = self._waves.surveys
            if await self._busy_within(
                wait_s + self._random.uniform(0, FIRST_WAIT_S + self._members / PEERS_PER_SECOND)
            ):
                wait_s = FIRST_WAIT_S
                continue
            # Others may ask again and again and not see what we would; but not all are to ask at once.
            passed_over = passed_over + 1 if self._waves.surveys != heard else 0
            proof = await self._proof() if passed_over % (ROUNDS_DEFERRED_MAX + 1) == 0 else None
            if proof is not None:
                await self._waves.ask_all(Order("ended" if proof.due_s is None else "rest"))
                wait_s = FIRST_WAIT_S  # If somebody comes now, all soon know whether that changes anything.
            else:
                wait_s = QUIESCENCE_POLL_MAX_S if self._others_busy else min(2 * wait_s, QUIESCENCE_POLL_MAX_S)

    async def _busy_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._activity.busy.wait()
        except TimeoutError:
            return False
        return True

    async def _proof(self) -> Tally | None:
        """Return the tally that proves that the swarm is quiescent, with the next visit due; None if it is not."""
        heard = self._waves.surveys
        sample = await self._waves.ask_some(Survey(), SAMPLE_PEERS, self._random, SAMPLE_S)
        self._others_busy = any(tally.pending or tally.unacknowledged for tally in sample)
        if self._others_busy or not self._activity.idle.is_set() or self._waves.surveys != heard:
            return None
        quiescence = Quiescence()
        for _ in range(WAVES_IN_A_ROW_MAX):
            tally = (await self._waves.ask_all(Survey())).tally
            self._members = max(1, tally.members)
            self._others_busy = bool(tally.pending or tally.unacknowledged)
            if quiescence.observe(tally):
                return tally
            if not quiescence.hopeful or not self._activity.idle.is_set():
                return None
        return None
