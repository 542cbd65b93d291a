"""Anti-entropy for the swarm state: all peers come to one state, also a peer that a wave has missed.

The state is whether the swarm is paused, the seeds of its job, the orders to retry (retry_orders.py), and the standing
orders about sites (standing_orders.py).

Each heartbeat carries the fingerprint of its sender's state (swarm_state.py). A peer that hears another fingerprint
asks the sender for its state and merges the answer. The other side hears this peer's heartbeats and does the same. That
takes a few seconds, and while all agree it costs four bytes in each heartbeat.

Until then this peer discards nothing that a seed it has not heard of may bring into scope. A link offered by a peer
with other seeds is to be offered again (`may_know_more`), and a URL handed over by such a peer is not judged yet
(`converged`).
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Literal

from kadcrawl.errors import RemoteError
from kadcrawl.link.client import Address
from kadcrawl.link.handler import Handler
from kadcrawl.link.wire.messages import Contact, GetReach, GetSwarmState, GotReach, GotSwarmState, Message, Order
from kadcrawl.link.wire.order_messages import StandingOrder
from kadcrawl.peer.runtime import Runtime
from kadcrawl.peer.swarm.reach_sync import fetch_segments
from kadcrawl.system.event import Event

log = logging.getLogger(__name__)

STATE_DEADLINE_S = 5.0
STATE_REQUEST_INTERVAL_S = 1.0
"""Seconds before each question. A wave reaches most peers that differ within this time."""
WAITING_MAX = 64
"""Peers waiting to be asked. Any others are asked after a later heartbeat."""
ANSWERED_MAX = 4096
"""Answers remembered: more than there are contacts in the tables of a peer."""
NEWCOMER_TRIES = 3
"""Peers that a newcomer asks until one answers."""
CONVERGE_S = 15.0
"""Seconds without a heartbeat of another state until the state counts as converged: some heartbeats and a question."""
INSIST_S = 60.0
"""Seconds a peer with other seeds may offer links that are out of scope here. Any merge takes less."""
SEEDS_FINGERPRINTS_MAX = 64
"""Pairs of seeds fingerprints for which `INSIST_S` is measured."""


class StateGossip:
    """Keeps the swarm state of one peer the same as that of all others."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.asked = 0
        """Questions to peers that differed."""
        self._waiting: dict[bytes, tuple[Contact, int]] = {}
        """Peer ID -> the contact of a peer that differs, and its fingerprint."""
        self._answered: dict[bytes, tuple[int, int]] = {}
        """Peer ID -> the peer's fingerprint before it answered, and this peer's after that.

        A peer whose answer changed nothing is not asked again for the same pair."""
        self._differed_at = -inf
        """The loop second of the last heartbeat that differed."""
        self._others: dict[tuple[int, int], float] = {}
        """(seeds fingerprint of a sender, of this peer) -> when links out of scope first came with it."""
        self._stirred = Event()

    def handlers(self) -> Mapping[type[Message], Handler]:
        """Return the handler of each message type."""
        return {GetSwarmState: self._answer, GetReach: self._reach}

    def adopt(self, stamp: int, *, paused: bool, orders: Iterable[StandingOrder] = ()) -> None:
        """Take the state of the swarm to enter, which may be about to change."""
        self._runtime.adopt(stamp, paused=paused, orders=orders)
        self._differed_at = asyncio.get_running_loop().time()

    async def catch_up(self, bootstrap: Sequence[Address]) -> None:
        """Ask a few peers for changes while this peer joined. The peers at these (host, port) come first."""
        contacts = sorted(self._runtime.overlay.contacts(), key=lambda contact: contact.address not in bootstrap)
        for contact in contacts[:NEWCOMER_TRIES]:
            if await self._ask(contact):
                return
        log.warning("state.sync_deferred reason=no_answer")

    async def order(self, verb: Literal["pause", "resume", "stop"]) -> None:
        """Give the whole swarm an order. Raises RemoteError when a part of the swarm does not answer."""
        assert self._runtime.begun, "the peer has not begun: call begin, join or crawl"  # Before the state changes.
        await self._runtime.waves.reach_all(self.say(verb))

    def say(self, verb: Literal["pause", "resume", "stop"]) -> Order:
        """Return this order with a stamp that is later than all orders known here."""
        return self._runtime.swarm_state.order(verb, self._runtime.resources.clock.now())

    def heard(self, contact: Contact, state_fingerprint: int, crawl_ms: int) -> None:
        """Note the fingerprint, and the time of the crawl, in a heartbeat of a live peer."""
        self._runtime.hear_time(crawl_ms)
        own = self._runtime.state_fingerprint
        if state_fingerprint == own:
            self._waiting.pop(contact.id, None)
        elif state_fingerprint and own and self._answered.get(contact.id) != (state_fingerprint, own):
            self._differed_at = asyncio.get_running_loop().time()
            if len(self._waiting) < WAITING_MAX:
                self._waiting[contact.id] = (contact, state_fingerprint)
                self._stirred.set()

    async def run(self) -> None:
        """Ask the peers that differ, in turn, until cancelled."""
        while True:
            await self._stirred.wait()
            await asyncio.sleep(STATE_REQUEST_INTERVAL_S)
            if self._waiting:
                contact, state_fingerprint = self._waiting.pop(next(iter(self._waiting)))
                if state_fingerprint != self._runtime.state_fingerprint:
                    self.asked += 1
                    if await self._ask(contact):
                        self._note(contact.id, state_fingerprint)
            if not self._waiting:
                self._stirred.clear()

    # --- what this peer may not have heard yet ---------------------------------------------------------------------

    @property
    def converged(self) -> bool:
        """True if no peer is known to have another state, except peers whose answer changed nothing."""
        return asyncio.get_running_loop().time() >= self._differed_at + CONVERGE_S

    def may_know_more(self, seeds_fingerprint: int) -> bool:
        """Return whether a sender with this seeds fingerprint may know seeds that are still on their way here.

        The answer becomes False after `INSIST_S`: the seeds of both may be too many for one job.
        """
        now = asyncio.get_running_loop().time()
        pair = seeds_fingerprint, self._runtime.seeds_fingerprint
        while len(self._others) >= SEEDS_FINGERPRINTS_MAX and pair not in self._others:
            del self._others[next(iter(self._others))]
        return now < self._others.setdefault(pair, now) + INSIST_S

    # --- inside ----------------------------------------------------------------------------------------------------

    async def _answer(self, asked: GetSwarmState) -> GotSwarmState:
        runtime, state = self._runtime, self._runtime.swarm_state
        seeds = [] if asked.known_seeds == runtime.named_fingerprint else list(runtime.job.seeds)
        reach, retries = runtime.components.scope.reach.ids, runtime.retry_orders.to_wire()
        limits = runtime.components.crawl_limits
        return GotSwarmState(
            state.stamp,
            state.paused,
            seeds,
            reach,
            retries,
            runtime.standing_orders.to_wire(),
            runtime.crawl_ms,
            pages_granted=limits.pages.known,
            bytes_granted=limits.bytes.known,
            pages_epochs=limits.pages.epochs,
            bytes_epochs=limits.bytes.epochs,
        )

    async def _reach(self, asked: GetReach) -> GotReach:
        return GotReach(self._runtime.resources.store.reach.get(asked.ids))

    async def _ask(self, contact: Contact) -> bool:
        """Ask one peer and merge its state, and return whether it answered."""
        runtime, client = self._runtime, self._runtime.resources.client
        reach = runtime.components.scope.reach
        try:
            question = GetSwarmState(runtime.named_fingerprint)
            got = await client.ask(contact, question, GotSwarmState, STATE_DEADLINE_S)
            runtime.hear(got.stamp, paused=got.paused)
            runtime.hear_retries(got.retries)
            runtime.hear_orders(got.orders)
            runtime.hear_time(got.crawl_ms)
            if not {*got.seeds} <= {*runtime.job.seeds}:
                runtime.add_seeds(got.seeds)
            async for segments in fetch_segments(client, contact, reach.lacking(got.reach)):
                runtime.add_reach(segments)
        except RemoteError as error:
            log.info("state.sync_failed with=%s why=%s", contact, error)
            return False
        seeds = len(runtime.job.seeds)
        log.info("state.synced of=%s %r seeds=%d reach=%d", contact, runtime.swarm_state, seeds, len(reach))
        return True

    def _note(self, asked: bytes, state_fingerprint: int) -> None:
        while len(self._answered) >= ANSWERED_MAX and asked not in self._answered:
            del self._answered[next(iter(self._answered))]
        self._answered[asked] = (state_fingerprint, self._runtime.state_fingerprint)
