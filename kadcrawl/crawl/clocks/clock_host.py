"""`ClockHost` answers questions about the shared clocks whose cells this peer owns.

A clock is leased only while its cell is open here. The lease is noted at the clock as the wait of a site, so it moves
with the cell: a next owner that this peer hands the cell to waits until the lease is over.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import Any, Protocol

from msgspec.structs import replace

from kadcrawl.crawl.clocks.clock_keeper import WAITING_MAX, ClockKeeper
from kadcrawl.crawl.clocks.clock_names import REST_S, host_clock, is_clock, is_of_host
from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.scope.partitioner import Partitioner
from kadcrawl.errors import KadcrawlError, RemoteError
from kadcrawl.keys import Cell
from kadcrawl.link.client import LinkClient
from kadcrawl.link.handler import Handler
from kadcrawl.link.peer_score import Misbehavior, MisbehaviorError
from kadcrawl.link.wire.basics import COUNT_MAX
from kadcrawl.link.wire.cell_messages import RobotsRecord
from kadcrawl.link.wire.clock_messages import (
    CLOCKS_MAX,
    ClockFree,
    ClockFreeNoted,
    ClockQuestion,
    ClocksLeased,
    ClockTurn,
    LeaseClocks,
)
from kadcrawl.link.wire.leaf_messages import is_leaf
from kadcrawl.link.wire.messages import Contact, Message
from kadcrawl.overlay.addresses import ip_version
from kadcrawl.system.event import Event
from kadcrawl.system.spaced_batches import SpacedBatches
from kadcrawl.urls import is_canonical, origin_of, site_of

OPEN_WAIT_S = 3.0
"""Longest wait for the cell of a clock to open."""
CLOSED_WAIT_S = 0.5
"""Seconds before a peer asks again about a clock whose cell is closed."""
RULES_WAIT_S = 1.0
"""Seconds before a peer asks again that waits until the owner of the clock has read a robots.txt, unless it is told."""
LEAF_WAIT_S = 1.0
"""Longest time for which the questions of a leaf wait here for their turn, as nobody can tell a leaf that it has come.
The lease is shorter by as much, as a holder counts it from its question."""
LEAF_AGAIN_S = 0.05
"""Seconds before a leaf asks again after such a wait. A turn that comes meanwhile keeps the clock from others."""
LEAF_QUESTIONS_MAX = 256
"""Limit on the questions of one leaf that wait here, as each call for a turn answers all of them again.

A leaf has 64 loans of a lender, and asks about each clock once at a time. Questions above the limit do not wait."""
TELL_DEADLINE_S = 2.0
HURRIED_S = 0.05
"""Least seconds between two messages to one peer about clocks with a delay that are free."""
TOLD_MAX = 10_000
"""Peers whose address is remembered while they wait."""

log = logging.getLogger(__name__)


class Waiters(Protocol):
    """The holder's side of this very peer (`clock_holder.ClockHolder`), which is told without a message."""

    def is_free(self, clock: str) -> None: ...


class RulesForPeers(Protocol):
    """The rules of hosts, which this peer reads for others (`kadcrawl.crawl.shared_rules`)."""

    def known(self, url: str) -> RobotsRecord | None: ...
    def connections(self, url: str, record: RobotsRecord) -> int: ...
    def may_read(self, url: str) -> bool: ...
    def begin(self, url: str) -> None: ...
    async def read(self, url: str) -> None: ...


class ClockHost:
    """The clocks of one peer."""

    def __init__(
        self,
        frontier: Frontier,
        partitioner: Partitioner,
        client: LinkClient,
        *,
        me: Callable[[], Contact],
        owner: Callable[[Cell], Contact],
        opened: Callable[[Iterable[Cell], float], Awaitable[set[Cell]]],
        may_lease: Callable[[], bool],
        spawn: Callable[[Coroutine[Any, Any, None], str], object],
        wait_max_s: Callable[[], float],
        now: Callable[[], float],
        random: Random,
    ) -> None:
        """Take the parts of the peer.

        `owner` returns the owner of a cell as far as known, `opened` waits until cells are open, `may_lease` says
        whether this peer was awake lately, and `now` is the world's clock.
        """
        self._frontier = frontier
        self._partitioner = partitioner
        self._client = client
        self._me = me
        self._owner = owner
        self._opened = opened
        self._may_lease = may_lease
        self._spawn = spawn
        self._now = now
        self._keeper = ClockKeeper(random.randrange(1, COUNT_MAX), wait_max_s)
        self._contacts: dict[bytes, Contact] = {}
        """Peer -> its contact, of the peers that asked last."""
        self._leaves: dict[bytes, dict[Event, int]] = {}
        """Leaf -> the calls of its messages that wait, each with the number of its questions."""
        self._waiters: Waiters | None = None
        self._rules: RulesForPeers | None = None
        self._wait_for_rules: dict[str, dict[bytes, str]] = {}
        """Origin -> the peers that wait until its robots.txt is read here, each with the clock that it asked for."""
        self._free: SpacedBatches[Contact, str] = SpacedBatches(HURRIED_S, self._begin_to_tell)

    def __len__(self) -> int:
        """Return the number of clocks of which this peer knows leases or rests."""
        return len(self._keeper)

    def tell_also(self, waiters: Waiters) -> None:
        """Tell the holder's side of this peer that a clock is free."""
        self._waiters = waiters

    def give_rules(self, rules: RulesForPeers) -> None:
        """Read the robots.txt of hosts for all peers that ask for their clocks."""
        self._rules = rules

    def handlers(self) -> Mapping[type[Message], Handler]:
        """Return the handlers of the messages about shared clocks."""
        return {LeaseClocks: self.lease, ClockFree: self._hear_free}

    async def lease(self, message: LeaseClocks) -> ClocksLeased:
        """Answer the questions of a peer about clocks."""
        cells = [self._partitioner.cell(question.clock) for question in message.questions]
        closed = {cell for cell in cells if not self._frontier.is_open(cell)}
        if closed:
            await self._opened(closed, OPEN_WAIT_S)
        self._remember(message.holder)
        questions = list(zip(message.questions, cells, strict=True))
        turns = [self._turn(message.holder.id, *question) for question in questions]
        if is_leaf(message.holder):
            turns = await self._turns_of_leaf(message.holder.id, questions, turns)
        return ClocksLeased(turns)

    async def _turns_of_leaf(
        self, leaf: bytes, questions: Sequence[tuple[ClockQuestion, Cell]], turns: list[ClockTurn]
    ) -> list[ClockTurn]:
        """Return the turns of a leaf: while it has none of its clocks, wait for one. It asks again soon for the others.

        A turn that has come keeps the clock from all others for a moment, so the leaf is to hear of it at once.
        If too many of its questions wait already, it gets its turns as they are, with the seconds to wait.
        """
        calls = self._leaves.get(leaf, {})
        if sum(calls.values()) + len(questions) > LEAF_QUESTIONS_MAX:
            log.debug("clock.leaf_waits_not leaf=%s questions=%d", leaf.hex()[:16], len(questions))
            return turns
        until, called = asyncio.get_running_loop().time() + LEAF_WAIT_S, Event()
        self._leaves.setdefault(leaf, calls)[called] = len(questions)
        is_over = False
        try:
            while not is_over and all(_waits(*pair) for pair in zip(questions, turns, strict=True)):
                try:
                    async with asyncio.timeout_at(until):
                        await called.wait()
                except TimeoutError:
                    is_over = True
                called.clear()
                turns = [self._turn(leaf, *question, is_called=not is_over) for question in questions]
        finally:
            del calls[called]
            if not calls:
                del self._leaves[leaf]
        return [
            replace(turn, wait_s=min(turn.wait_s, LEAF_AGAIN_S)) if _is_put_off(question, turn) else turn
            for (question, _), turn in zip(questions, turns, strict=True)
        ]

    def _turn(self, peer: bytes, question: ClockQuestion, cell: Cell, *, is_called: bool = False) -> ClockTurn:
        """Return the turn of a peer. `is_called` says that its question waits here and was called for this or another
        clock."""
        if not is_clock(question.clock):
            raise MisbehaviorError(Misbehavior.MALFORMED, f"there is no shared clock {question.clock[:40]!r}")
        opening = self._frontier.opening(cell)
        if opening is None or not self._may_lease():
            owner = self._owner(cell)
            return ClockTurn(0, CLOSED_WAIT_S, owner=owner if owner.id != self._me().id else None)
        clock, now = question.clock, asyncio.get_running_loop().time()
        record = None
        if question.page and self._rules is not None and _is_on(clock, question.page):
            record = self._rules.known(question.page)
            if record is None and self._waits_for_rules(peer, question, self._rules):
                return ClockTurn(0, RULES_WAIT_S)
            if record is not None and not question.most:
                question = replace(question, most=self._rules.connections(question.page, record))
        rest_s = 0.0
        if not self._keeper.knows(clock, opening):
            rest_s = self._frontier.shared_rest_s(clock, self._now())
        answer = self._keeper.answer(peer, question, opening, rest_s, now)
        if question.ends:
            self._frontier.learn_clock(clock, question.wait_s, question.delay_s, self._now())
        if answer.turn.lease:
            delay_s = question.delay_s
            wait_s = answer.turn.wait_s + REST_S + delay_s
            self._frontier.learn_clock(clock, wait_s, delay_s, self._now())
        for other in answer.next_peers:
            if other in self._leaves and (is_called or other == peer):
                continue  # It has just been answered, and two leaves would call each other without end.
            self._tell(other, clock, hurries=question.delay_s > 0)
        return answer.turn if record is None else replace(answer.turn, robots=record)

    def _waits_for_rules(self, peer: bytes, question: ClockQuestion, rules: RulesForPeers) -> bool:
        """Return whether a peer is to wait until this peer has read the robots.txt of a URL, and begin to read it."""
        page, clock = question.page, question.clock
        is_for_lease = question.wants and not question.lease and peer != self._me().id
        if not is_for_lease or not rules.may_read(page):
            return False
        origin = origin_of(page)
        waiting = self._wait_for_rules.get(origin)
        if waiting is None:
            rules.begin(page)
            waiting = self._wait_for_rules[origin] = {}
            self._spawn(self._read_rules(origin, page, rules), "read robots.txt")
        if len(waiting) < WAITING_MAX:
            waiting[peer] = clock
        return True

    async def _read_rules(self, origin: str, page: str, rules: RulesForPeers) -> None:
        waiting = self._wait_for_rules[origin]
        try:
            await rules.read(page)
        finally:
            del self._wait_for_rules[origin]
        for peer, clock in waiting.items():
            self._tell(peer, clock, hurries=True)

    def _remember(self, contact: Contact) -> None:
        self._contacts.pop(contact.id, None)
        self._contacts[contact.id] = contact
        if len(self._contacts) > TOLD_MAX:
            del self._contacts[next(iter(self._contacts))]

    def _tell(self, peer: bytes, clock: str, *, hurries: bool) -> None:
        contact = self._contacts.get(peer)
        if peer == self._me().id:
            if self._waiters is not None:
                self._waiters.is_free(clock)
        elif peer in self._leaves:
            for called in self._leaves[peer]:
                called.set()
        elif contact is not None and not is_leaf(contact) and ip_version(contact.host) is not None:
            self._free.put(contact, [clock], hurries=hurries)

    def _begin_to_tell(self, contact: Contact, clocks: list[str]) -> None:
        with suppress(KadcrawlError):  # This peer ends, and the peers that wait ask again.
            self._spawn(self._send_free(contact, clocks), "clocks free")

    async def _send_free(self, contact: Contact, clocks: list[str]) -> None:
        for start in range(0, len(clocks), CLOCKS_MAX):
            with suppress(RemoteError):
                some = ClockFree(clocks[start : start + CLOCKS_MAX])
                await self._client.ask(contact, some, ClockFreeNoted, TELL_DEADLINE_S)

    async def _hear_free(self, message: ClockFree) -> ClockFreeNoted:
        if self._waiters is not None:
            for clock in message.clocks:
                self._waiters.is_free(clock)
        return ClockFreeNoted()


def _waits(asked: tuple[ClockQuestion, Cell], turn: ClockTurn) -> bool:
    """Return whether the peer of a question has nothing yet and waits for its turn."""
    question, _ = asked
    return not question.lease and _is_put_off(question, turn)


def _is_put_off(question: ClockQuestion, turn: ClockTurn) -> bool:
    """Return whether a peer has no lease, and is to ask again for one."""
    return question.wants and (not question.lease or question.ends) and not turn.lease and turn.owner is None


def _is_on(clock: str, page: str) -> bool:
    """Return whether a text is a canonical URL whose site may have this clock."""
    return is_canonical(page) and (not is_of_host(clock) or clock == host_clock(site_of(page, "host")))
