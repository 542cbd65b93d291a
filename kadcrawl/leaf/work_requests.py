"""`WorkRequester`: how a leaf asks full peers for work and learns the state of the swarm.

`FullPeers` (peer_selection.py) chooses the peer to ask. The requester asks it, checks that it is of the same swarm,
accepts its loans, and returns at once the loans that the leaf cannot take. A request of a leaf without work waits at
the full peer, so the leaf hears of new pages, and of the end of the crawl, as soon as they come.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from math import inf
from typing import Protocol

from msgspec.structs import replace

from kadcrawl.crawl.scope.seed_reach import digest_of_ids
from kadcrawl.errors import RemoteError
from kadcrawl.leaf.peer_selection import FullPeer, FullPeers
from kadcrawl.lending.loan import CONNECTION_WAIT_S
from kadcrawl.link.client import LinkClient
from kadcrawl.link.peer_score import LogLimiter, left_out_note
from kadcrawl.link.wire.leaf_messages import (
    GRANT_URLS_MAX,
    WORK_WAIT_S_MAX,
    LeafDetails,
    SwarmActivity,
    WorkGrant,
    WorkRequest,
)
from kadcrawl.link.wire.messages import (
    WIRE_VERSION,
    Contact,
    GetSwarmState,
    GotSwarmState,
    Hello,
    LeaseRenewed,
    Lend,
    LoanReport,
    PeerRow,
    RenewLease,
    Welcome,
)
from kadcrawl.link.wire.order_messages import StandingOrder
from kadcrawl.peer.membership.endpoints import HELLO_DEADLINE_S
from kadcrawl.peer.membership.key_refusals import is_refused
from kadcrawl.peer.membership.known_peers import is_same
from kadcrawl.peer.swarm.reach_sync import fetch_segments
from kadcrawl.peer.swarm.standing_orders import fingerprint_of
from kadcrawl.peer.swarm.swarm_state import fingerprint_of_seeds
from kadcrawl.settings.job import Job

WORK_REQUEST_DEADLINE_S = WORK_WAIT_S_MAX + CONNECTION_WAIT_S + 5.0
HAND_BACK_S = 5.0
WORK_REQUEST_INTERVAL_S = 0.05
"""Seconds between two requests."""
BUSY_RETRY_S = 0.25
"""Extra seconds after a request in vain, while the leaf has pages to fetch."""
SHORT_WAIT_S = 0.2
"""Seconds a patient leaf waits at each of several peers."""
NO_PEER_S = 5.0
"""A leaf without an answer for so long calls itself lost."""
NEWS_INTERVAL_S = 0.5
"""Seconds for which a leaf that wants no pages sends no request."""
WORK_POLL_S = 0.05

log = logging.getLogger(__name__)


class LeafReach(Protocol):
    """The reach of streamed seeds at a leaf (crawl/scope/seed_reach.py)."""

    def lacking(self, ids: bytes) -> Sequence[bytes]: ...
    def add(self, segments: Sequence[bytes]) -> bool: ...


class LeafSettings(Protocol):
    """The changed settings of the job at a leaf (leaf/leaf_settings.py)."""

    @property
    def fingerprint(self) -> int: ...
    def hear(self, orders: Sequence[StandingOrder]) -> None: ...


class WorkRequester:
    """The requests of one leaf for work."""

    def __init__(
        self,
        *,
        me: Contact,
        client: LinkClient,
        peers: FullPeers,
        take: Callable[[Lend], bool],
        row: Callable[[], PeerRow],
        room: Callable[[], int],
        job: Callable[[], Job],
        on_seeds: Callable[[Sequence[str]], None],
        reach: "LeafReach",
        on_activity: Callable[[SwarmActivity], None],
        on_time: Callable[[int], None],
        settings: "LeafSettings",
        details: Callable[[], LeafDetails],
    ) -> None:
        """Take the parts of the leaf.

        Args:
            take: takes up a loan, and returns whether the leaf has it.
            row: describes the leaf.
            room: returns how many URLs more the leaf wants.
            job: returns the leaf's job.
            on_seeds: is called with all seeds of the job as a full peer tells it.
            reach: keeps the reach of streamed seeds.
            on_activity: is called with the activity of the swarm in each answer.
            on_time: is called with the milliseconds for which the swarm has crawled, in each answer.
            settings: keeps the settings of the job that a person has changed.
            details: returns the details of the leaf for dashboards.
        """
        self._me = me
        self._client = client
        self._peers = peers
        self._take = take
        self._row = row
        self._room = room
        self._job = job
        self._on_seeds = on_seeds
        self._reach = reach
        self._on_activity = on_activity
        self._on_time = on_time
        self._settings = settings
        self._details = details
        self._is_watched = False
        """The last answer said that somebody watches the swarm on a dashboard."""
        self._activity: SwarmActivity = "crawling"
        self.home: Contact | None = None
        """The full peer that last answered: the leaf's home."""
        self._heard_at = -inf
        self._refused_at = -inf
        self._lines = LogLimiter()

    @property
    def is_lost(self) -> bool:
        """True if no full peer has answered lately."""
        return asyncio.get_running_loop().time() > self._heard_at + NO_PEER_S

    @property
    def is_refused(self) -> bool:
        """True if all recent answers refuse the leaf's key."""
        return self.is_lost and self._refused_at > self._heard_at

    @property
    def known_home(self) -> Contact:
        """The full peer that last answered, for callers that have its answer."""
        assert self.home is not None, "no full peer has answered yet"
        return self.home

    async def run(self) -> None:
        """Ask for work whenever there is room, until cancelled."""
        time = asyncio.get_running_loop().time
        while True:
            peer = self._peers.next(time())
            if peer is None:
                await asyncio.sleep(max(WORK_REQUEST_INTERVAL_S, self._peers.next_due() - time()))
                continue
            try:
                await self._request_work(peer)
            except RemoteError as error:
                self._note(error, time())
                self._peers.note_failed(peer, time())
                if self._activity == "ended":
                    self._on_activity("ended")  # A leaf with loans did not end by it, and may have none any more.
            await asyncio.sleep(WORK_REQUEST_INTERVAL_S)

    def _note(self, error: RemoteError, now: float) -> None:
        if not is_refused(error):
            log.info("leaf.unheard why=%s", error)
            return
        self._refused_at = now
        if (left_out := self._lines.count("refused", now)) is not None:
            log.warning("leaf.refused why=%s%s", error, left_out_note(left_out))

    async def _request_work(self, peer: FullPeer) -> None:
        """Ask one peer. Raises RemoteError."""
        if peer.seeds is None:
            await self._fetch_job(peer)
        room = min(self._room(), GRANT_URLS_MAX)
        row = self._row()
        request = WorkRequest(
            leaf=self._me.id,
            urls_max=room,
            wait_s=self._patience_s() if room else 0.0,
            # A leaf ends once it has no pages: it is to hear of the end at once then, not when its wait is over.
            known_activity="crawling" if self._activity == "ended" and row.borrowed else self._activity,
            state=row.state,
            in_flight=row.in_flight,
            uptime_s=row.uptime_s,
            counters=row.counters,
            known_settings=self._settings.fingerprint,
            details=self._details() if self._is_watched else None,
        )
        grant = await self._client.ask(peer.address, request, WorkGrant, WORK_REQUEST_DEADLINE_S)
        # Not the address that the peer gives itself: this address has answered.
        home = self.home = Contact(grant.lender.id, *peer.address)
        self._heard_at = asyncio.get_running_loop().time()
        self._peers.note_answered(peer, grant.lender.id)
        self._peers.learn(grant.others)
        if grant.seeds_fingerprint != peer.seeds:
            await self._fetch_job(peer)  # The lent pages may be in scope only by new seeds.
        if grant.settings:
            self._settings.hear(grant.settings)
        self._is_watched = grant.is_watched
        self._on_time(grant.crawl_ms)
        self._activity = grant.activity
        self._on_activity(grant.activity)
        log.debug("leaf.granted from=%s room=%d loans=%d", home, room, len(grant.loans))
        lends = [replace(lend, lender=home) for lend in grant.loans]
        not_taken = [lend for lend in lends if not self._take(lend)]
        if not_taken:
            await self._hand_back(home, not_taken)
        if lends:
            self._peers.note_lent(peer)
        elif room:
            self._peers.note_empty(peer)
            await asyncio.sleep(BUSY_RETRY_S if row.pending else 0.0)
        else:
            await self._rest()

    def _patience_s(self) -> float:
        """Return the seconds to wait at one peer, as other peers may have pages meanwhile."""
        if not self._peers.patient:
            return 0.0
        return WORK_WAIT_S_MAX if len(self._peers) == 1 or self._activity != "crawling" else SHORT_WAIT_S

    async def _fetch_job(self, peer: FullPeer) -> None:
        """Ask for the job. Raises RemoteError, also if the job is not of the leaf's swarm."""
        welcome = await self._client.ask(peer.address, Hello(WIRE_VERSION), Welcome, HELLO_DEADLINE_S)
        if not is_same(self._job(), welcome.job):
            raise RemoteError("{}:{}".format(*peer.address), "is of another swarm")
        self._on_seeds(welcome.job.seeds)
        named = fingerprint_of_seeds(welcome.job.seeds)
        state = await self._client.ask(peer.address, GetSwarmState(named), GotSwarmState, HELLO_DEADLINE_S)
        async for segments in fetch_segments(self._client, peer.address, self._reach.lacking(state.reach)):
            self._reach.add(segments)
        scope = [order for order in state.orders if order.kind == "scope"]
        if scope:
            self._settings.hear(scope)
        peer.note_job((named ^ digest_of_ids(state.reach) ^ fingerprint_of(scope)) or 1)

    async def _hand_back(self, lender: Contact, lends: Sequence[Lend]) -> None:
        reports = [LoanReport(lend.loan, lend.clock, [], [], over=True) for lend in lends]
        await self._client.ask(lender, RenewLease(self._me, reports), LeaseRenewed, HAND_BACK_S)

    async def _rest(self) -> None:
        until = asyncio.get_running_loop().time() + NEWS_INTERVAL_S
        while not self._room() and asyncio.get_running_loop().time() < until:  # noqa: ASYNC110 -- changes in many places
            await asyncio.sleep(WORK_POLL_S)
