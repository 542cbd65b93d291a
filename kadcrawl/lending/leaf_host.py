"""`LeafHost`: the leaves of a full peer, which lends them pages (link/wire/leaf_messages.py) and shows them.

A full peer does not trust a leaf. A leaf has no place in the routing table, holds no copy and owns no cell, and its
figures about itself are only shown. It can fetch the pages it was lent, on a lease like any borrower. The number of
leaves, and the number of URLs of each leaf, are bounded. Every answer names other full peers that the leaf may ask.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Set
from itertools import islice
from math import inf
from random import Random
from typing import Protocol

from msgspec.structs import replace

from kadcrawl.balance.leaf_allotment import leaf_allotment
from kadcrawl.balance.leaf_sites import LeafSites
from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.errors import KadcrawlError
from kadcrawl.lending.lender import Lender
from kadcrawl.link.handler import Handler
from kadcrawl.link.wire.leaf_messages import (
    GRANT_LOANS_MAX,
    SwarmActivity,
    WorkGrant,
    WorkRequest,
    is_leaf,
    leaf_contact,
)
from kadcrawl.link.wire.leave_messages import Departed
from kadcrawl.link.wire.messages import LOANS_MAX, Contact, Lend, Message, PeerRow
from kadcrawl.link.wire.order_messages import StandingOrder
from kadcrawl.link.wire.watch_messages import SINKS_OF_LEAF_MAX, WatchedSink
from kadcrawl.settings.job import Job
from kadcrawl.settings.leaf_jobs import why_no_leaf

LEAVES_MAX = 32
"""Leaves of one peer: each poll for a waiting leaf costs up to a millisecond, without a look at all sites."""
URLS_PER_LEAF_MAX = 1_000
"""URLs of one peer that one leaf has on loan."""
OTHER_PEERS_NAMED = 8
"""Peers named in one answer. They are drawn anew each time, so a leaf soon knows all peers of a small swarm."""
WAITING_LEAF_POLL_S = 0.2
"""Seconds between two polls for a leaf that waits for work."""
REASONS_SHOWN = 8
"""The most frequent reasons of failures shown of one leaf: a leaf may name as many and as long reasons as it likes."""
WATCHED_S = 20.0
"""Time after a look of a dashboard for which the leaves tell their details."""
TOLD_POLL_S = 0.05
"""Seconds between two looks at whether all leaves have heard of the end."""
LEAF_FORGOTTEN_S = 10.0
"""A leaf that is silent for so long is not shown, and its place is free."""


class NoLeafError(KadcrawlError):
    """A leaf cannot have work from this peer."""


class HostOverlay(Protocol):
    """The part of the overlay that a leaf's host needs."""

    def contacts(self) -> list[Contact]: ...
    def is_live(self, peer: bytes) -> bool: ...


class HostState(Protocol):
    """The state of the full peer that a leaf's host needs."""

    @property
    def contact(self) -> Contact: ...
    @property
    def job(self) -> Job: ...
    @property
    def seeds_fingerprint(self) -> int: ...
    @property
    def ended(self) -> bool: ...
    @property
    def leaving(self) -> bool: ...
    @property
    def paused(self) -> bool: ...
    @property
    def crawl_ms(self) -> int: ...
    def settings_beyond(self, fingerprint: int) -> list[StandingOrder] | None: ...


class LeafHost:
    """The leaves of one full peer."""

    def __init__(
        self,
        *,
        state: HostState,
        lender: Lender,
        overlay: HostOverlay,
        random: Random,
        pause_reasons: Callable[[], Set[str]],
    ) -> None:
        """`pause_reasons` returns the reasons for which this peer's crawler starts no pages at this moment."""
        self._state = state
        self._lender = lender
        self._overlay = overlay
        self._random = random
        self._pause_reasons = pause_reasons
        self._sites = LeafSites()
        self._looked_at, self._ready = -inf, 0
        """The loop second of the last look at all sites, and their ready URLs then."""
        self._requests: dict[bytes, tuple[float, WorkRequest]] = {}
        """ID of a leaf -> (loop second, its last request)."""
        self._told: dict[bytes, SwarmActivity] = {}
        """ID of a leaf -> what this peer last told the leaf that the swarm does."""
        self._watched_at = -inf
        """The loop second of the last look of a dashboard."""
        self._stopped = False
        """Every peer of the swarm was told to stop."""
        self._ended = False
        """This peer exits as the crawl has ended."""

    def handlers(self) -> Mapping[type[Message], Handler]:
        """Return the handlers of the messages of leaves."""
        return {WorkRequest: self.grant}

    def stop(self) -> None:
        """Tell the leaves from now on that every peer of the swarm stops."""
        self._stopped = True

    def end(self) -> None:
        """Tell the leaves from now on that the crawl has ended, as this peer exits.

        It may meet a peer meanwhile that reopens the question. No other peer may be left to tell the leaves.
        """
        self._ended = True

    async def grant(self, request: WorkRequest) -> WorkGrant:
        """Return loans for a leaf once there are any, or when there is news or its wait is over.

        Raises NoLeafError if the leaf cannot have work from this peer.
        """
        time = asyncio.get_running_loop().time
        if (why := why_no_leaf(self._state.job)) is not None:
            raise NoLeafError(why)
        self._note_request(request, time())
        until = time() + request.wait_s
        while True:
            doing = self._doing()
            lends = await self._lend(request) if doing == "crawling" else []
            if lends or doing != request.known_activity or time() >= until:
                if request.leaf in self._requests:
                    self._told[request.leaf] = doing
                state, others = self._state, self._other_peers()
                news = state.settings_beyond(request.known_settings)
                seeds, is_watched = state.seeds_fingerprint, self._is_watched(time())
                return WorkGrant(state.contact, lends, doing, seeds, others, state.crawl_ms, news, is_watched)
            await asyncio.sleep(WAITING_LEAF_POLL_S)

    def note_watched(self) -> None:
        """Have the leaves tell their details for some time, as somebody watches the swarm."""
        self._watched_at = asyncio.get_running_loop().time()

    def sinks(self) -> list[WatchedSink]:
        """Return some sinks of the leaves, as they tell them."""
        told = (request.details.sinks for _, request in self._requests.values() if request.details is not None)
        first = islice((sink for sinks in told for sink in sinks), SINKS_OF_LEAF_MAX)
        return [replace(sink, of_leaf=True) for sink in first]

    def rows(self) -> list[PeerRow]:
        """Describe the leaves, each at the address of this peer."""
        self._forget_silent(asyncio.get_running_loop().time())
        me = self._state.contact
        lent = Counter[bytes]()
        for loan in self._lender.loans():
            lent[loan.borrower.id] += len(loan.entries)
        return [
            PeerRow(
                contact=Contact(leaf, me.host, me.port),
                state=request.state,
                pending=0,  # Its loans are pending here.
                in_flight=request.in_flight,
                uptime_s=request.uptime_s,
                counters=replace(
                    request.counters,
                    failed=_most_frequent(request.counters.failed),
                    left_out=_most_frequent(request.counters.left_out),
                    retried=_most_frequent(request.counters.retried),
                ),
                allowance=0,
                granted=0,
                borrowed=lent[leaf],
                hosted_leaf=True,
                details=None if request.details is None else replace(request.details.row, cells_owned=0),
            )
            for leaf, (_, request) in self._requests.items()
        ]

    def last_figures(self) -> list[Departed]:
        """Return the counters of each leaf as it last told them, for the time after this peer's end."""
        return [Departed(leaf_contact(row.contact.id), row.counters) for row in self.rows()]

    async def heard_of_end(self, seconds: float) -> bool:
        """Wait until all leaves have heard that the crawl has ended, at most so many seconds. Return whether they have.

        A leaf without a peer that tells it so would look for one for ever.
        """
        time = asyncio.get_running_loop().time
        until = time() + seconds
        while unaware := self._has_unaware(time()):
            if time() >= until:
                break
            await asyncio.sleep(TOLD_POLL_S)
        return not unaware

    # --- inside --------------------------------------------------------------------------------------------------

    def _has_unaware(self, now: float) -> bool:
        """Return whether a leaf that asked lately was last told of something else than the end."""
        self._forget_silent(now)
        return any(self._told.get(leaf) != "ended" for leaf in self._requests)

    def _is_watched(self, now: float) -> bool:
        return now < self._watched_at + WATCHED_S

    def _doing(self) -> SwarmActivity:
        if self._stopped:
            return "stopped"
        if self._ended or self._state.ended:
            return "ended"
        if self._state.leaving or PauseReason.STOPPING in self._pause_reasons():
            raise NoLeafError("this peer is leaving; ask another peer for work")
        return "paused" if self._state.paused else "crawling"

    async def _lend(self, request: WorkRequest) -> list[Lend]:
        if not request.urls_max or self._pause_reasons() or request.leaf not in self._requests:
            return []
        leaf = leaf_contact(request.leaf)
        if not self._lender.may_lend_to(leaf):
            return []
        lent = [loan for loan in self._lender.loans() if is_leaf(loan.borrower)]
        holders: defaultdict[str, set[bytes]] = defaultdict(set)
        for loan in lent:
            holders[loan.site].add(loan.borrower.id)
        own = [len(loan.entries) for loan in lent if loan.borrower == leaf]
        in_hand, loans = sum(own), min(GRANT_LOANS_MAX, LOANS_MAX - len(own))
        room = min(request.urls_max, URLS_PER_LEAF_MAX - in_hand)
        if loans <= 0 or room <= 0:
            return []
        lent_urls, now = sum(len(loan.entries) for loan in lent), asyncio.get_running_loop().time()
        has_share = in_hand >= (self._ready + lent_urls) // (len(self._requests) + 1)
        if (has_share or not self._ready) and now < self._looked_at + WAITING_LEAF_POLL_S:
            return []  # A look at thousands of sites takes milliseconds, and many leaves may wait.
        all_spare = self._lender.sites_with_spare_connections(to_leaf=True)
        self._looked_at, self._ready = now, sum(ready for _, ready in all_spare)
        self._sites.note_ready((site for site, _ in all_spare), now)
        # A leaf takes no second loan of a site.
        spare = [(site, ready) for site, ready in all_spare if request.leaf not in holders[site]]
        for sites in self._sites.sites_for(request.leaf, spare, now):
            allotment = leaf_allotment(
                sites,
                ready=sum(ready for _, ready in spare),
                leaves=len(self._requests),
                in_hand=in_hand,
                lent=lent_urls,
                room=room,
                block_urls=self._state.job.block_urls,
                loans=loans,
            )
            if allotment:
                for site, _ in allotment:
                    self._sites.note_lent(request.leaf, site, holders[site])
                return await self._lender.offers(leaf, allotment)
        return []

    def _other_peers(self) -> list[Contact]:
        contacts = self._overlay.contacts()
        return self._random.sample(contacts, min(OTHER_PEERS_NAMED, len(contacts)))

    def _note_request(self, request: WorkRequest, now: float) -> None:
        self._forget_silent(now)
        if request.leaf == self._state.contact.id or self._overlay.is_live(request.leaf):
            raise NoLeafError("this ID is a full peer's")
        if request.leaf not in self._requests and len(self._requests) >= LEAVES_MAX:
            raise NoLeafError(f"this peer has {LEAVES_MAX} leaves already; ask another peer for work")
        self._sites.arrive(request.leaf)
        self._requests[request.leaf] = now, request

    def _forget_silent(self, now: float) -> None:
        gone = [leaf for leaf, (heard_at, _) in self._requests.items() if heard_at + LEAF_FORGOTTEN_S <= now]
        for leaf in gone:
            del self._requests[leaf]
            self._told.pop(leaf, None)
            self._sites.depart(leaf)


def _most_frequent(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(Counter(counts).most_common(REASONS_SHOWN))
