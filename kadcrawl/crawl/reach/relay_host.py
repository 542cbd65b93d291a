"""`RelayHost` makes requests for other peers that cannot connect to a site of theirs.

Only the owner of a site may ask, and only for pages in scope and for what their robots.txt redirects to on the same
domain. The owner holds the clock of its site and its robots.txt, so this peer makes the request at once, or not at all:
`BEGIN_S` after the question it is too late, because the owner may have lost the site meanwhile. The number of requests,
and of bodies that wait for their owner, is bounded.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from random import Random

from kadcrawl.crawl.clocks.clock_holder import ClockHolder
from kadcrawl.crawl.fetch.fetcher import Fetching, always
from kadcrawl.crawl.fetch.memory_slots import MemorySlots
from kadcrawl.crawl.fetch.result import BY_PEER, UNASKED, FetchError, FetchResult
from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.crawl.reach.network_health import NetworkHealth
from kadcrawl.crawl.reach.network_proof import NetworkProof
from kadcrawl.crawl.scope.scope import Scope
from kadcrawl.link.handler import Handler
from kadcrawl.link.wire.messages import Contact, Message
from kadcrawl.link.wire.relay_messages import (
    RELAY_PART_BYTES_MAX,
    FetchedForPeer,
    FetchedPart,
    FetchForPeer,
    GetFetchedPart,
    ReceivedField,
    Unable,
)
from kadcrawl.urls import is_canonical, site_of

BEGIN_S = 1.5
"""Seconds within which the request goes out, so that it is over before another peer may crawl the site of a dead owner
(balance/leases.py)."""
REQUESTS_MAX = 32
"""Requests for all peers at a time."""
REQUESTS_PER_PEER_MAX = 16
"""Requests for one peer at a time."""
WAITING_BODIES_MAX = 4
"""Bodies that wait for their owner at a time. Beyond that the oldest is dropped."""
WAITING_BODY_S = 60.0
"""Seconds for which such a body waits."""
FRAMING = frozenset({"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect"})
"""Headers that a question must not have, since they change what a request is."""


class RelayHost:
    """The requests that one peer makes for others."""

    def __init__(
        self,
        fetching: Fetching,
        proof: NetworkProof,
        health: NetworkHealth,
        scope: Scope,
        *,
        owns: Callable[[Contact, str], bool],
        pause_reasons: set[PauseReason],
        random: Random,
        now: Callable[[], float],
        clocks: ClockHolder | None = None,
    ) -> None:
        """`owns` returns whether a peer owns the site of a canonical URL, as far as this peer knows.

        `clocks` has the leases of shared clocks, if the job has such.
        """
        self._clocks = clocks
        self._fetching = fetching
        self._health = health
        self._scope = scope
        self._proof = proof
        self._owns = owns
        self._pause_reasons = pause_reasons
        self._random = random
        self._now = now
        self._under_way: Counter[bytes] = Counter()
        """ID of an owner -> requests for it that are under way."""
        self._waiting: dict[bytes, tuple[bytes, float, bytes]] = {}
        """Ticket -> (ID of the owner, loop second until which the body waits, body)."""

    @property
    def under_way(self) -> int:
        """Requests for other peers that are under way."""
        return self._under_way.total()

    def handlers(self) -> Mapping[type[Message], Handler]:
        """Return the handlers of the messages about requests for other peers."""
        return {FetchForPeer: self.fetch, GetFetchedPart: self.part}

    async def fetch(self, question: FetchForPeer) -> FetchedForPeer:
        """Make one request for the owner of a site, and return what came of it."""
        if unable := self._why_not(question):
            return FetchedForPeer(unable)
        if question.connect_only:
            result = await self._proof.connect(question.url)
            return FetchedForPeer("busy") if self._proof.is_closed else self._answer(question, result, proven=False)
        begun_at, asked_at = asyncio.get_running_loop().time(), self._now()
        recoveries = self._health.recoveries
        memory_slots = MemorySlots()
        self._under_way[question.owner.id] += 1
        try:
            async with self._turn(question) as may_send:
                if may_send is None:
                    return FetchedForPeer("busy")
                result = await self._fetching.fetch(
                    question.url,
                    [(field.name, field.value) for field in question.fields],
                    lambda: may_send() and asyncio.get_running_loop().time() < begun_at + BEGIN_S,
                    memory_slots=memory_slots,
                )
            is_missed = result.status is None and result.error in BY_PEER
            proven = await self._proof.works(asked_at) if is_missed else None
            if proven is False:
                return FetchedForPeer("network")
            if is_missed and self._health.recoveries != recoveries:
                return FetchedForPeer("busy")  # The network works again, but perhaps did not when the host was missed.
            return self._answer(question, result, proven=bool(proven))
        finally:
            memory_slots.release()
            self._under_way[question.owner.id] -= 1
            if not self._under_way[question.owner.id]:
                del self._under_way[question.owner.id]

    async def part(self, question: GetFetchedPart) -> FetchedPart:
        """Return a further part of a body."""
        owner, _, body = self._waiting.get(question.ticket, (b"", 0.0, b""))
        if owner != question.owner.id:
            return FetchedPart(b"")
        part = body[question.offset : question.offset + RELAY_PART_BYTES_MAX]
        if question.offset + len(part) >= len(body):
            del self._waiting[question.ticket]
        return FetchedPart(part)

    @asynccontextmanager
    async def _turn(self, question: FetchForPeer) -> AsyncIterator[Callable[[], bool] | None]:
        """Wait for the turn of a request on a shared clock, and yield whether it may be sent, or None without a turn.

        The owner has leased the clock of the address that it names. It names none if it cannot look up the host.
        """
        if self._clocks is None or not self._clocks.is_by_address:
            yield always
        elif question.address:
            self._clocks.pin(question.url, question.address, None)
            yield always
        else:
            async with self._clocks.turn(question.url, self._scope.site_settings.delay_s(question.url), BEGIN_S) as use:
                yield use

    # --- inside --------------------------------------------------------------------------------------------------

    def _why_not(self, question: FetchForPeer) -> Unable:
        """Return the reason against a request, or an empty text."""
        page, url = question.page, question.url
        if not (is_canonical(page) and is_canonical(url)) or any(
            field.name.lower() in FRAMING for field in question.fields
        ):
            return "refused"
        if not self._owns(question.owner, page) or self._scope.why_not(page, 0) is not None:
            return "refused"
        if site_of(url, "domain") != site_of(page, "domain") and self._scope.why_not(url, 0) is not None:
            return "refused"
        if self._scope.site_settings.steering.is_paused(page) or self._proof.is_closed:
            return "busy"
        if self._health.is_failing:
            return "network"
        if self._pause_reasons - {PauseReason.COMMAND, PauseReason.SEEDING}:
            return "network" if PauseReason.PROXIES in self._pause_reasons else "busy"
        if self.under_way >= REQUESTS_MAX or self._under_way[question.owner.id] >= REQUESTS_PER_PEER_MAX:
            return "busy"
        return ""

    def _answer(self, question: FetchForPeer, result: FetchResult, *, proven: bool) -> FetchedForPeer:
        if question.connect_only and result.error is FetchError.NOT_SENT:
            return FetchedForPeer()
        if result.error in UNASKED:
            return FetchedForPeer("network" if result.error is FetchError.NO_PROXY else "busy")
        rest = None
        if len(result.body) > RELAY_PART_BYTES_MAX:
            rest = self._keep(question.owner.id, result.body)
        return FetchedForPeer(
            error=str(result.error or ""),
            detail=result.detail[:200],
            proven=proven,
            status=result.status,
            http_version="1.0" if result.http_version == "1.0" else "1.1",
            reason=result.reason.encode("utf-8", "surrogateescape")[:1000],
            headers=[ReceivedField(*header) for header in result.headers],
            address=result.address,
            body_bytes=len(result.body),
            body=result.body[:RELAY_PART_BYTES_MAX],
            ticket=rest,
        )

    def _keep(self, owner: bytes, body: bytes) -> bytes:
        """Keep a body for its owner, and return its ticket."""
        now = asyncio.get_running_loop().time()
        self._waiting = {ticket: one for ticket, one in self._waiting.items() if one[1] > now}
        while len(self._waiting) >= WAITING_BODIES_MAX:
            del self._waiting[next(iter(self._waiting))]
        ticket = self._random.getrandbits(64).to_bytes(8, "big")
        self._waiting[ticket] = owner, now + WAITING_BODY_S, body
        return ticket
