"""`EndCheck` asks a peer that was not known before whether the crawl is over for it as well.

After a partition the end of the crawl may have been the end on this side only, and a peer that joins may bring URLs.
But a peer of a large swarm does not know all others, and meets some of them long after the end. Each would reopen the
question whether all is over, which costs a wave over the whole swarm.

A peer that comes while the swarm proves its end may be in none of the waves of the proof. It is asked a moment after
the end, when it has heard of the end as well.

An idle peer may not have heard of the end yet. Or it doubts the end for a reason of its own, and asks the swarm itself.
So it is asked again before its answer counts. Else doubt would spread from peer to peer: in a swarm of thousands some
peers meet all the time, and not all would ever be certain at once.

Tests: tests/peer/swarm/test_end_check.py
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from kadcrawl.errors import RemoteError
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.census_rows import read_rows
from kadcrawl.link.wire.messages import Answer, Census, Contact, Wave
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.overlay.waves.wave import NO_BUCKET
from kadcrawl.replication.peer_tasks import NotRunningError

ASK_S = 5.0
"""Seconds for the answer. A peer without an answer reopens the question."""
ASKED_MAX = 32
"""Limit on the peers that are asked at a time. A member may come and go as often as it likes, and answer at length."""
WAVES_OF_A_PROOF = 2
"""Waves of the proof that the swarm is quiescent."""
MET_ASK_DELAY_S = 1.0
"""Seconds from the end to the question to a peer that came during the proof."""
ASK_AGAIN_AFTER_S = (1.0, 3.0, 9.0)
"""Seconds from each answer of an idle peer to the next question. Its last answer counts."""


class EndCheck:
    """The check of one peer."""

    def __init__(
        self,
        activity: Activity,
        client: LinkClient,
        spawn: Callable[[Coroutine[Any, Any, None], str], object],
        surveys: Callable[[], int],
    ) -> None:
        """`spawn` runs a coroutine as a task of this peer, and raises NotRunningError if the peer does not run.

        `surveys` returns the number of waves so far that asked this peer whether all is over.
        """
        self._activity = activity
        self._client = client
        self._spawn = spawn
        self._asked: set[Contact] = set()
        """The peers that are being asked."""
        self._surveys = surveys
        self._met: dict[Contact, int] = {}
        """The peers that came before the end, with the number of surveys at that moment: those of the last waves."""

    def joined(self, newcomer: Contact) -> None:
        """Ask a peer that was not known before, if the crawl is over here or rests.

        A peer that comes again while it is asked reopens the question: it may have started again since its answer.
        """
        if not (self._activity.over.is_set() or self._activity.resting):
            self._met = self._met_during_proof()
            if len(self._met) < ASKED_MAX:
                self._met[newcomer] = self._surveys()
            return
        if newcomer in self._asked or len(self._asked) >= ASKED_MAX:
            self._activity.doubt()
            return
        self._begin(newcomer, 0.0)

    def ended(self) -> None:
        """Ask the peers that came during the proof of the end, as no wave of the proof may have reached them."""
        met, self._met = self._met_during_proof(), {}
        for newcomer in met:
            if newcomer not in self._asked and len(self._asked) < ASKED_MAX:
                self._begin(newcomer, MET_ASK_DELAY_S)

    def _met_during_proof(self) -> dict[Contact, int]:
        before = self._surveys() - WAVES_OF_A_PROOF
        return {newcomer: surveys for newcomer, surveys in self._met.items() if surveys > before}

    def _begin(self, newcomer: Contact, delay_s: float) -> None:
        self._asked.add(newcomer)
        try:
            self._spawn(self._ask(newcomer, delay_s), f"ask whether all is over at {newcomer}")
        except NotRunningError:
            self._asked.discard(newcomer)

    async def _ask(self, newcomer: Contact, delay_s: float) -> None:
        """Reopen the question whether all is over, unless it is settled in the same way at that peer."""
        try:
            for wait_s in (delay_s, *ASK_AGAIN_AFTER_S):
                await asyncio.sleep(wait_s)
                state = await self._state_of(newcomer)
                if state != PeerState.IDLE:
                    break
            here = PeerState.DONE if self._activity.over.is_set() else PeerState.RESTING
            if state != here:
                self._activity.doubt()
        finally:
            self._asked.discard(newcomer)

    async def _state_of(self, newcomer: Contact) -> PeerState | None:
        """Return the state of this peer as it says itself, or None without a clear answer."""
        try:
            answer = await self._client.ask(newcomer, Wave(NO_BUCKET, ASK_S, Census()), Answer, ASK_S)
        except RemoteError:
            return None
        states = [row.state for row in await read_rows(answer.rows) if row.contact.id == newcomer.id]
        return states[0] if len(states) == 1 else None
