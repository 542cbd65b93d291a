"""All peers come to one course, whoever a wave has missed: a heartbeat says by which each goes, and who differs asks.

What is asked is a newcomer's question, and the answer is merged (see `course`); the other side, that hears this peer's
heartbeats as well, does the same. So it takes a few seconds, and without a difference costs nothing but four bytes of
a heartbeat.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Literal

from kadcrawl.errors import ConfigError, RemoteError
from kadcrawl.link.messages import VERSION, Contact, Hello, Welcome
from kadcrawl.peer.course import Course
from kadcrawl.peer.ends import HELLO_DEADLINE_S

if TYPE_CHECKING:
    from kadcrawl.peer.peer import Peer

log = logging.getLogger(__name__)

SPACING_S = 1.0
"""Between two questions, and before the first: most that differ have heard the same by then."""
WAITING_MAX = 64
"""Peers to be asked; further ones are, when their next heartbeat comes."""
HOLD = "paused"


class Concord:
    """The course of one peer, and what keeps it that of all."""

    def __init__(self, peer: "Peer") -> None:
        self._peer = peer
        self.course = Course()
        self.fingerprint = 0
        """Of the course and the job's seeds; 0 while the job is not known."""
        self.asked = 0
        """Questions to peers that differed."""
        self._waiting: dict[bytes, tuple[Contact, int]] = {}
        """By ID: who differs, and what it said."""
        self._answered: dict[bytes, tuple[int, int]] = {}
        """By ID: what it said when it was asked, and what this peer said then. The same again is no news."""
        self._stirred = asyncio.Event()

    def restore(self) -> None:
        """Take up the course of an earlier run in this directory."""
        store = self._peer.store
        self.course = Course(store.read_meta("serial", int) or 0, paused=store.meta("paused") == b"1")

    def adopt(self, welcome: Welcome) -> None:
        """Enter the swarm: what was told an earlier run counts no more."""
        self.course = Course(welcome.serial, paused=welcome.paused)

    def hear(self, welcome: Welcome) -> None:
        """Merge what another peer of the swarm goes by. Raises ConfigError if the job would have too many seeds."""
        self.obey(welcome.serial, paused=welcome.paused)
        if not {*welcome.job.seeds} <= {*self._peer.job.seeds}:
            self._peer.add_seeds(welcome.job.seeds)

    def obey(self, serial: int, *, paused: bool) -> None:
        """Pause or go on, if that was said later than what is known here."""
        self.course.hear(serial, paused=paused)
        self.follow()

    def follow(self) -> None:
        """Do as the course says, journal it, and say with each heartbeat by which course this is."""
        peer, course = self._peer, self.course
        peer.store.set_meta("paused", b"1" if course.paused else b"0")
        peer.store.set_meta("serial", str(course.serial).encode())
        self.fingerprint = course.fingerprint(peer.job.seeds)
        peer.overlay.say_course(self.fingerprint)
        holds = peer.parts.crawler.holds
        (holds.add if course.paused else holds.discard)(HOLD)
        peer.parts.crawler.wake()

    async def order(self, verb: Literal["pause", "resume", "stop"]) -> None:
        """Give the whole swarm an order. Raises RemoteError when part of it cannot be told."""
        await self._peer.waves.tell_all(self.course.order(verb))

    def heard(self, contact: Contact, course: int) -> None:
        """Note the fingerprint in a heartbeat of a live peer."""
        own = self.fingerprint
        if course == own:
            self._waiting.pop(contact.id, None)
        elif course and own and self._answered.get(contact.id) != (course, own) and len(self._waiting) < WAITING_MAX:
            self._waiting[contact.id] = (contact, course)
            self._stirred.set()

    async def run(self) -> None:
        """Ask those that differ, one after the other; until cancelled."""
        while True:
            await self._stirred.wait()
            await asyncio.sleep(SPACING_S)
            if self._waiting:
                await self._ask(*self._waiting.pop(next(iter(self._waiting))))
            if not self._waiting:
                self._stirred.clear()

    # --- inside --------------------------------------------------------------------------------------------------

    async def _ask(self, contact: Contact, said: int) -> None:
        peer = self._peer
        self.asked += 1
        try:
            self.hear(await peer.client.ask(contact, Hello(VERSION), Welcome, HELLO_DEADLINE_S))
        except (RemoteError, ConfigError) as error:
            log.warning("concord.failed with=%s why=%s", contact, error)
        while len(self._answered) >= WAITING_MAX:
            del self._answered[next(iter(self._answered))]
        self._answered[contact.id] = (said, self.fingerprint)
        log.info("concord.asked of=%s %r seeds=%d", contact, self.course, len(peer.job.seeds))
