"""All peers come to one course, whoever a wave has missed: a heartbeat says by which each goes, and who differs asks.

What is answered is merged (see `course`); the other side, that hears this peer's heartbeats as well, does the same. So
it takes a few seconds, and without a difference costs nothing but four bytes of a heartbeat.

Until then nothing is thrown away that only an unheard seed makes part of the crawl. A link offered by a peer with
other seeds comes again (`may_know_more`), and a URL handed over by one is not judged yet (`is_settled`).
"""

import asyncio
import logging
from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Literal

from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.errors import ConfigError, RemoteError
from kadcrawl.link.client import Address
from kadcrawl.link.wire.messages import Contact, GetSwarmState, GotSwarmState, Order
from kadcrawl.peer.swarm_state import SwarmState, fingerprint_of_seeds

if TYPE_CHECKING:
    from kadcrawl.peer.peer import Peer

log = logging.getLogger(__name__)

STATE_DEADLINE_S = 5.0
STATE_REQUEST_INTERVAL_S = 1.0
"""Between two questions, and before the first: most that differ have heard the same by then."""
WAITING_MAX = 64
"""Peers to be asked; further ones are, when their next heartbeat comes."""
ANSWERED_MAX = 4096
"""More than there are contacts in the tables of a peer."""
NEWCOMER_TRIES = 3
"""Peers a newcomer asks."""
CONVERGE_S = 15.0
"""Since a heartbeat of another course: some heartbeats, and a question."""
INSIST_S = 60.0
"""How long a peer with other seeds may offer what is out of scope by those known here: then they cannot be merged."""
SEEDS_FINGERPRINTS_MAX = 64


class StateGossip:
    """The course of one peer, and what keeps it that of all."""

    def __init__(self, peer: "Peer") -> None:
        self._peer = peer
        self.state = SwarmState()
        self.fingerprint = 0
        """Of the course and the job's seeds; 0 while the job is not known."""
        self.asked = 0
        """Questions to peers that differed."""
        self._seeds: Sequence[str] | None = None
        self.seeds_fingerprint = 0
        """Of the job's seeds."""
        self._waiting: dict[bytes, tuple[Contact, int]] = {}
        """By ID: who differs, and what it said."""
        self._answered: dict[bytes, tuple[int, int]] = {}
        """By ID: what it said before it answered, and what this peer said then. The same again is no news."""
        self._differed_at = -inf
        self._others: dict[tuple[int, int], float] = {}
        """By the mark of another's seeds, and that of ours: since when links come with it that are out of scope."""
        self._stirred = asyncio.Event()

    def restore(self) -> None:
        """Take up the course of an earlier run in this directory."""
        store = self._peer.store
        self.state = SwarmState(store.meta.read("stamp", int) or 0, paused=store.meta.get("paused") == b"1")

    def adopt(self, stamp: int, *, paused: bool) -> None:
        """Enter the swarm: what was told an earlier run counts no more."""
        self.state = SwarmState()
        self.state.hear(stamp, self._peer.clock.now(), paused=paused)
        self._differed_at = asyncio.get_running_loop().time()

    async def catch_up(self, bootstrap: Sequence[Address]) -> None:
        """Hear what was said while this peer was on its way in; best from these (host, port), if they still live."""
        contacts = sorted(self._peer.overlay.contacts(), key=lambda contact: contact.address not in bootstrap)
        for contact in contacts[:NEWCOMER_TRIES]:
            if await self._ask(contact):
                return
        log.warning("concord.late: no peer says by what the swarm goes just now; heartbeats will")

    def obey(self, stamp: int, *, paused: bool) -> None:
        """Pause or go on, if that was said later than what is known here."""
        self.state.hear(stamp, self._peer.clock.now(), paused=paused)
        self.follow()

    def follow(self) -> None:
        """Do as the course says, journal it, and say with each heartbeat by which course this is."""
        peer, course = self._peer, self.state
        if self._seeds is not peer.job.seeds:
            self._seeds = peer.job.seeds
            self.seeds_fingerprint = peer.components.forwarder.seeds_fingerprint = fingerprint_of_seeds(self._seeds)
        peer.store.meta.set("paused", b"1" if course.paused else b"0")
        peer.store.meta.set("stamp", str(course.stamp).encode())
        self.fingerprint = course.fingerprint(self.seeds_fingerprint)
        peer.overlay.set_state_fingerprint(self.fingerprint)
        holds = peer.components.crawler.pause_reasons
        (holds.add if course.paused else holds.discard)(PauseReason.COMMAND)
        peer.components.crawler.wake()

    async def order(self, verb: Literal["pause", "resume", "stop"]) -> None:
        """Give the whole swarm an order. Raises RemoteError when part of it cannot be told."""
        await self._peer.waves.reach_all(self.say(verb))

    def say(self, verb: Literal["pause", "resume", "stop"]) -> Order:
        """Return that order, later than all that is known here, for the whole swarm."""
        return self.state.order(verb, self._peer.clock.now())

    def heard(self, contact: Contact, state_fingerprint: int) -> None:
        """Note the fingerprint in a heartbeat of a live peer."""
        own = self.fingerprint
        if state_fingerprint == own:
            self._waiting.pop(contact.id, None)
        elif state_fingerprint and own and self._answered.get(contact.id) != (state_fingerprint, own):
            self._differed_at = asyncio.get_running_loop().time()
            if len(self._waiting) < WAITING_MAX:
                self._waiting[contact.id] = (contact, state_fingerprint)
                self._stirred.set()

    async def run(self) -> None:
        """Ask those that differ, one after the other; until cancelled."""
        while True:
            await self._stirred.wait()
            await asyncio.sleep(STATE_REQUEST_INTERVAL_S)
            if self._waiting:
                contact, said = self._waiting.pop(next(iter(self._waiting)))
                if said != self.fingerprint:
                    self.asked += 1
                    if await self._ask(contact):
                        self._note(contact.id, said)
            if not self._waiting:
                self._stirred.clear()

    # --- what others have heard, and this peer may have not --------------------------------------------------------

    @property
    def converged(self) -> bool:
        """Whether no peer is known to go by another course, but those whose answer changed nothing."""
        return asyncio.get_running_loop().time() >= self._differed_at + CONVERGE_S

    def may_know_more(self, seeds_fingerprint: int) -> bool:
        """Whether what a peer offers that says this mark of its seeds may be in scope by one still on its way here.

        Not for ever: the seeds of both may be too many together.
        """
        now = asyncio.get_running_loop().time()
        while (
            len(self._others) >= SEEDS_FINGERPRINTS_MAX
            and (seeds_fingerprint, self.seeds_fingerprint) not in self._others
        ):
            del self._others[next(iter(self._others))]
        return now < self._others.setdefault((seeds_fingerprint, self.seeds_fingerprint), now) + INSIST_S

    # --- inside --------------------------------------------------------------------------------------------------

    async def _ask(self, contact: Contact) -> bool:
        """Ask one peer and merge what it says; return whether it answered."""
        peer = self._peer
        try:
            got = await peer.client.ask(contact, GetSwarmState(), GotSwarmState, STATE_DEADLINE_S)
        except RemoteError as error:
            log.info("state.sync_failed with=%s why=%s", contact, error)
            return False
        self.obey(got.stamp, paused=got.paused)
        if not {*got.seeds} <= {*peer.job.seeds}:
            try:
                peer.add_seeds(got.seeds)
            except ConfigError as error:
                log.warning("state.sync_failed with=%s why=%s", contact, error)
        log.info("state.synced of=%s %r seeds=%d", contact, self.state, len(peer.job.seeds))
        return True

    def _note(self, asked: bytes, said: int) -> None:
        while len(self._answered) >= ANSWERED_MAX and asked not in self._answered:
            del self._answered[next(iter(self._answered))]
        self._answered[asked] = (said, self.fingerprint)
