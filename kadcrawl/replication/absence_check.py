"""`AbsenceCheck` asks the siblings of a peer that was away whether they have noticed.

While it asks, the peer starts no request. If no sibling has taken it for dead and no peer has come, its cells are still
its own, and it goes on. That is so whenever all peers stop together: the processes of one machine, or the peers of one
process. If a sibling has noticed, or does not answer, the peer closes all its cells and syncs them again. Closing is
safe, and dear: a swarm that closes all cells because it is overloaded has still more to do.
"""

import asyncio
import logging
from collections.abc import Callable

from kadcrawl.errors import RemoteError
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.absence_messages import AbsenceSeen, WasAway
from kadcrawl.link.wire.messages import Contact
from kadcrawl.replication.overlay_port import SyncOverlay
from kadcrawl.replication.peer_tasks import NotRunningError, Spawn
from kadcrawl.system.event import Event

WAS_AWAY_DEADLINE_S = 5.0
WAS_AWAY_RETRY_S = 0.5
DOUBT_MAX_S = 20.0
"""Longest time without an answer of a sibling that lives. Dead siblings are found sooner, and not asked."""

log = logging.getLogger(__name__)


class AbsenceCheck:
    """The doubts of one peer about its own cells."""

    def __init__(
        self,
        overlay: SyncOverlay,
        client: LinkClient,
        spawn: Spawn,
        away_s: Callable[[float], float],
        stall_s: Callable[[], float],
        close_all: Callable[[], None],
        go_on: Callable[[], None],
    ) -> None:
        """Ask nobody yet.

        Args:
            overlay: the siblings, and the contact of this peer.
            client: asks them.
            spawn: starts a task that ends with the peer.
            away_s: returns the seconds since this peer last knew that it runs, at a second of the loop.
            stall_s: returns the seconds without a sign of life that are an absence.
            close_all: closes all cells until they are synced again.
            go_on: wakes the crawler after an absence that nobody has noticed.
        """
        self._overlay = overlay
        self._client = client
        self._spawn = spawn
        self._away_s = away_s
        self._stall_s = stall_s
        self._close_all = close_all
        self._go_on = go_on
        self._since: float | None = None
        """Second at which the absence in doubt began, or None without doubt."""
        self._absences = 0
        """Absences so far."""
        self._over = Event()

    @property
    def in_doubt(self) -> bool:
        """True while this peer does not know whether its cells are its own."""
        return self._since is not None

    async def over(self) -> None:
        """Return when this peer is not in doubt any more."""
        if self.in_doubt:
            await self._over.wait()

    def begin(self, since: float) -> None:
        """Note an absence that began at a second of the loop. A further absence voids the answers so far."""
        self._absences += 1
        if self._since is None:
            self._since = since
            self._over.clear()
            try:
                self._spawn(self._run(), "absence check")
            except NotRunningError:
                self._end(noticed=True)

    async def _run(self) -> None:
        """Ask until all siblings have answered after the latest absence, or a sibling has noticed it."""
        loop = asyncio.get_running_loop()
        until = loop.time() + DOUBT_MAX_S
        unasked_since = -1
        answered: set[bytes] = set()
        while loop.time() < until:
            if self._absences != unasked_since:
                unasked_since, answered = self._absences, set()
            siblings = self._overlay.siblings()
            unasked = [one for one in siblings if one.id not in answered]
            if not siblings:
                break  # Cut off, or the last of the swarm.
            seen = await asyncio.gather(*map(self._ask, unasked))
            if True in seen:
                break
            answered |= {one.id for one, noticed in zip(unasked, seen, strict=True) if noticed is False}
            now = loop.time()
            if self._absences != unasked_since or self._away_s(now) >= self._stall_s():
                until = now + DOUBT_MAX_S  # Away again: what was answered before counts no more.
                await asyncio.sleep(0)  # The beat notes that absence.
            elif not {one.id for one in self._overlay.siblings()} - answered:
                self._end(noticed=False)
                return
            elif None in seen:
                await asyncio.sleep(WAS_AWAY_RETRY_S)
        self._end(noticed=True)

    async def _ask(self, sibling: Contact) -> bool | None:
        """Return whether a sibling has noticed the absence, or None if it does not answer."""
        since = self._since
        assert since is not None, "only a peer in doubt asks"
        away_s = asyncio.get_running_loop().time() - since
        try:
            answer = await self._client.ask(
                sibling, WasAway(self._overlay.me, away_s), AbsenceSeen, WAS_AWAY_DEADLINE_S
            )
        except RemoteError as error:
            log.info("absence.silent sibling=%s why=%s", sibling, error.why)
            self._overlay.suspect(sibling)
            return None
        return answer.noticed

    def _end(self, *, noticed: bool) -> None:
        self._since = None
        self._over.set()
        log.info("absence.over noticed=%s", noticed)
        if noticed:
            self._close_all()
        else:
            self._go_on()
