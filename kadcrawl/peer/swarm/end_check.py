"""`EndCheck` asks a peer that was not known before whether the crawl is over for it as well.

After a partition the end of the crawl may have been the end on this side only, and a peer that joins may bring URLs.
But a peer of a large swarm does not know all others, and meets some of them long after the end. Each would reopen the
question whether all is over, which costs a wave over the whole swarm.

Tests: tests/peer/swarm/test_end_check.py
"""

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


class EndCheck:
    """The check of one peer."""

    def __init__(
        self, activity: Activity, client: LinkClient, spawn: Callable[[Coroutine[Any, Any, None], str], object]
    ) -> None:
        """`spawn` runs a coroutine as a task of this peer, and raises NotRunningError if the peer does not run."""
        self._activity = activity
        self._client = client
        self._spawn = spawn
        self._asked: set[Contact] = set()
        """The peers that are being asked."""

    def joined(self, newcomer: Contact) -> None:
        """Ask a peer that was not known before, if the crawl is over here or rests.

        A peer that comes again while it is asked reopens the question: it may have started again since its answer.
        """
        if not (self._activity.over.is_set() or self._activity.resting):
            return
        if newcomer in self._asked or len(self._asked) >= ASKED_MAX:
            self._activity.doubt()
            return
        self._asked.add(newcomer)
        try:
            self._spawn(self._ask(newcomer), f"ask whether all is over at {newcomer}")
        except NotRunningError:
            self._asked.discard(newcomer)

    async def _ask(self, newcomer: Contact) -> None:
        """Reopen the question whether all is over, unless it is settled in the same way at that peer."""
        try:
            await self._compare(newcomer)
        finally:
            self._asked.discard(newcomer)

    async def _compare(self, newcomer: Contact) -> None:
        try:
            answer = await self._client.ask(newcomer, Wave(NO_BUCKET, ASK_S, Census()), Answer, ASK_S)
        except RemoteError:
            states = []
        else:
            states = [row.state for row in await read_rows(answer.rows) if row.contact.id == newcomer.id]
        here = PeerState.DONE if self._activity.over.is_set() else PeerState.RESTING
        if states != [here]:
            self._activity.doubt()
