"""`Runtime`: the built parts of one full peer, its job, the swarm state it knows, and its stage of life.

The helpers of this room (handlers, status, shutdown, gossip, seeds, budget ...) take a Runtime, and `Peer` is the
facade over all of them. A Runtime imports none of them, so imports go down only. `Peer` owns the Runtime: it makes one
when the peer listens, and adds the parts of the crawl (`BuiltParts`) when the peer begins.

Stages: the peer listens, has begun, and has joined. A peer that joins has begun and is still `joining`. Any stage may
also be `leaving`.

Tests: tests/peer/test_peer.py, tests/peer/test_coming_and_going.py, tests/peer/swarm/test_state_gossip.py
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from kadcrawl.crawl.build import CrawlComponents
from kadcrawl.crawl.clocks.clock_host import ClockHost
from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.crawl.reach.relay_host import RelayHost
from kadcrawl.crawl.recrawl.expiry import Expiring
from kadcrawl.crawl.recrawl.scheduler import Recrawling
from kadcrawl.crawl.scope.journaled_reach import JournaledReach
from kadcrawl.crawl.time_count import milliseconds
from kadcrawl.errors import KadcrawlError
from kadcrawl.lending.balancer import Balancer
from kadcrawl.lending.leaf_host import LeafHost
from kadcrawl.link.server import LinkServer
from kadcrawl.link.wire.joining_messages import STARTING
from kadcrawl.link.wire.messages import LONG_S_MAX, Contact
from kadcrawl.link.wire.order_messages import StandingOrder
from kadcrawl.link.wire.retry_messages import RetryOrder
from kadcrawl.overlay import Overlay
from kadcrawl.overlay.waves.wave import Waves
from kadcrawl.peer.membership.departed import DepartedPeers
from kadcrawl.peer.membership.key_refusals import KeyMismatchMonitor
from kadcrawl.peer.membership.known_peers import KnownPeers
from kadcrawl.peer.resources import Resources
from kadcrawl.peer.swarm.dropping import Dropping
from kadcrawl.peer.swarm.queue_counter import QueueCounter
from kadcrawl.peer.swarm.retry_orders import RetryOrders, read_orders, write_orders
from kadcrawl.peer.swarm.retrying import Retrying
from kadcrawl.peer.swarm.standing_orders import (
    StandingOrders,
    fingerprint_of,
    read_standing_orders,
    write_standing_orders,
)
from kadcrawl.peer.swarm.swarm_state import SwarmState, fingerprint_of_seeds, nameable
from kadcrawl.replication.cells import Cells
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_changes import changed
from kadcrawl.urls import is_canonical

log = logging.getLogger(__name__)


class NotReadyError(KadcrawlError):
    """This peer cannot answer yet, or no longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltParts:
    """The parts that depend on the job."""

    components: CrawlComponents
    cells: Cells
    balancing: Balancer
    leaves: LeafHost
    recrawling: Recrawling | None
    """None unless the job fetches pages again and keeps their keys."""
    expiring: Expiring | None
    """None unless the job fetches pages again and keeps fingerprints instead of keys."""
    relay_host: RelayHost
    """Makes requests for other peers."""
    retrying: Retrying
    dropping: Dropping
    queue_counter: QueueCounter
    clock_host: ClockHost
    """Leases the shared clocks of this peer's cells."""


class Runtime:
    """One full peer from the moment it listens. All methods belong to the peer's loop."""

    def __init__(
        self, resources: Resources, overlay: Overlay, server: LinkServer, waves: Waves, incarnation: bytes
    ) -> None:
        """Restore the swarm state of an earlier run in this directory."""
        store = resources.store
        self.resources = resources
        self.overlay = overlay
        self.server = server
        self.waves = waves
        self.incarnation = incarnation
        """A random name of this run, for the view of the swarm's members (overlay/waves/quiescence.py)."""
        self.known = KnownPeers(store, overlay.siblings, resources.client)
        self.departed = DepartedPeers(store)
        self.key_mismatches = KeyMismatchMonitor()
        self.swarm_state = SwarmState(store.meta.read("stamp", int) or 0, paused=store.meta.get("paused") == b"1")
        """The swarm state as far as this peer knows it."""
        self.retry_orders = RetryOrders()
        """The orders to retry as far as this peer knows them."""
        self.retry_orders.hear(read_orders(store), resources.clock.now())
        store.visits.know_order(self.retry_orders.latest)
        self.standing_orders = StandingOrders()
        """The standing orders about sites as far as this peer knows them."""
        self.standing_orders.hear(read_standing_orders(store), resources.clock.now())
        store.frontier.know_order(self.standing_orders.latest_of("drop"))
        self.state_fingerprint = 0
        """The fingerprint of the swarm state, with seeds and orders, or 0 while the job is not known."""
        self.seeds_fingerprint = 0
        """The fingerprint of all seeds and orders about the scope that are known here, or 0 while the job is not."""
        self._named: tuple[Sequence[str] | None, int] = None, 0
        """The seeds that the job named at the last look, and their fingerprint."""
        self._parts: BuiltParts | None = None
        self._job: Job | None = None
        self._joining = False
        self._leaving = False
        self._seeding = 0
        """Calls that add a person's seeds and have not returned."""
        self._open_streams: Callable[[], int] = lambda: 0
        """Returns the number of streams of seeds that come in here and have not ended."""

    # --- stages ----------------------------------------------------------------------------------------------------

    @property
    def begun(self) -> bool:
        """True if the parts of the crawl are built."""
        return self._parts is not None

    @property
    def joining(self) -> bool:
        """True if waves of the swarm may still miss this peer, so that it may not know the whole job."""
        return self._joining

    @property
    def leaving(self) -> bool:
        """True if the peer hands its range over when it ends."""
        return self._leaving

    @property
    def ended(self) -> bool:
        """True if the swarm was quiescent when last heard of, and nothing has moved here since."""
        return self.resources.activity.over.is_set()

    @property
    def paused(self) -> bool:
        """True if a person has paused the swarm, as far as this peer knows."""
        return self.swarm_state.paused

    def begin(self, job: Job, parts: BuiltParts) -> None:
        """Take the parts that were built for this job, and follow the swarm state."""
        assert self._parts is None, "a peer begins once"
        self._job, self._parts = job, parts
        self._reach = JournaledReach(parts.components.scope, self.resources.store.reach)
        self.resources.activity.armed = bool(job.seeds)
        self._steer()
        self.follow()

    def begin_joining(self) -> None:
        """Fetch nothing until `joined`."""
        self._joining = True
        self.components.crawler.pause_reasons.add(PauseReason.JOINING)

    def joined(self) -> None:
        """Fetch from now on: waves reach this peer, and it has asked for the orders of earlier waves."""
        self._joining = False
        self.components.crawler.pause_reasons.discard(PauseReason.JOINING)
        self.components.crawler.wake()

    def leave(self) -> None:
        """Note that the peer hands its range over when it ends."""
        self._leaving = True

    def require_begun(self) -> None:
        """Raise NotReadyError unless the peer has begun."""
        if self._parts is None:
            raise NotReadyError(f"{STARTING}; try again in a moment")

    def require_joined(self) -> None:
        """Raise NotReadyError unless the peer has begun and is not joining."""
        self.require_begun()
        if self._joining:
            raise NotReadyError("this peer is still joining the swarm; try again in a moment")

    def require_staying(self) -> None:
        """Raise NotReadyError unless the peer has begun and is not leaving."""
        self.require_begun()
        if self._leaving:
            raise NotReadyError("this peer leaves as well")

    # --- parts -----------------------------------------------------------------------------------------------------

    @property
    def contact(self) -> Contact:
        """The peer's ID and address. The ID is final once the peer has begun."""
        return self.overlay.me

    @property
    def parts(self) -> BuiltParts:
        """The parts that depend on the job."""
        assert self._parts is not None, "the peer has not begun: call begin, join or crawl"
        return self._parts

    @property
    def components(self) -> CrawlComponents:
        """The parts of the crawl."""
        return self.parts.components

    @property
    def cells(self) -> Cells:
        """The replication of the peer's cells."""
        return self.parts.cells

    @property
    def balancing(self) -> Balancer:
        """The load balance."""
        return self.parts.balancing

    @property
    def job(self) -> Job:
        """The swarm's job with all seeds this peer knows."""
        assert self._job is not None, "the peer has not begun: call begin, join or crawl"
        return self._job

    # --- work left -------------------------------------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """URLs of this peer that its crawler may still fetch."""
        return self.components.crawler.pending

    @property
    def remaining(self) -> int:
        """URLs this peer has to fetch. Once it leaves, these are the URLs that no other peer has taken over."""
        return self.resources.store.pending if self._leaving else self.components.frontier.pending

    @property
    def unacknowledged(self) -> int:
        """Links, seeds and records on their way to other peers, and pages of loans to be reported."""
        under_way = self.components.forwarder.unacknowledged + self._seeding + self.cells.unacknowledged
        under_way += self._open_streams()
        if self.job.recrawl_after_s is not None or self.retry_orders:
            under_way += self.cells.unsettled  # Only a peer that crawls a cell knows when its pages are due.
        under_way += self.parts.retrying.looks.left + self.parts.dropping.looks.left
        return under_way + self.balancing.loans.borrower.unreported

    @property
    def due_s(self) -> float | None:
        """Seconds until the first of this peer's pages is to be fetched again, or None if none is or may be."""
        if self.components.crawl_limits.reached:
            return None
        comes_again = self.parts.recrawling or self.parts.expiring
        due_s = comes_again.due_s if comes_again is not None else None
        return None if due_s is None else min(due_s, LONG_S_MAX)

    @property
    def named_fingerprint(self) -> int:
        """The fingerprint of the seeds that the job names."""
        return self._named[1]

    def count_streams(self, open_streams: Callable[[], int]) -> None:
        """Count streams of seeds as `unacknowledged`, by a function that returns their number."""
        self._open_streams = open_streams

    @property
    def seedings(self) -> int:
        """Calls that add a person's seeds and have not returned."""
        return self._seeding

    @contextmanager
    def seeding(self) -> Iterator[None]:
        """Count a person's seeds as `unacknowledged` while they are on their way into the swarm."""
        self._seeding += 1
        try:
            yield
        finally:
            self._seeding -= 1

    # --- the job and the swarm state -------------------------------------------------------------------------------

    def add_seeds(self, urls: Iterable[str]) -> None:
        """Widen the scope by these seeds and journal the job. URLs that are not canonical are ignored.

        The job names as many as it has room for. The others widen the scope by their reach.
        """
        known = {*self.job.seeds}
        fresh = [url for url in dict.fromkeys(urls) if url not in known and is_canonical(url)]
        named = nameable(self.job, fresh)
        seeds = (*self.job.seeds, *named)
        if named:
            self._job = replace(self.job, seeds=seeds)
            self.components.scope.add_seeds(named)
            self.resources.jobs.keep(self.job)
            self.follow()
        if len(named) < len(fresh):
            self.add_reach_of(fresh)
        if seeds:
            self.resources.activity.armed = True
            self.resources.activity.move()

    def add_reach_of(self, urls: Iterable[str]) -> list[bytes]:
        """Widen the scope by the reach of these canonical URLs, and return the new segments."""
        segments = self.components.scope.segments_of(urls)
        self.add_reach(segments)
        return segments

    def add_reach(self, segments: Iterable[bytes]) -> None:
        """Widen the scope by these segments of reach, and journal them. Malformed segments are ignored."""
        if self._reach.add(segments):
            self.follow()
            self.resources.activity.move()

    def adopt(self, stamp: int, *, paused: bool, orders: Iterable[StandingOrder] = ()) -> None:
        """Take the state of the swarm to enter. Whether an earlier run here was paused counts no more."""
        self.swarm_state = SwarmState()
        self.swarm_state.hear(stamp, self.resources.clock.now(), paused=paused)
        self.standing_orders.hear(orders, self.resources.clock.now())

    def begin_paused(self) -> None:
        """Begin a swarm that waits for the order to resume."""
        self.swarm_state.pause()

    def hear(self, stamp: int, *, paused: bool) -> None:
        """Pause or resume if that order is later than the orders known here."""
        self.swarm_state.hear(stamp, self.resources.clock.now(), paused=paused)
        self.follow()

    @property
    def crawl_ms(self) -> int:
        """Milliseconds for which the swarm has crawled, or 0 without a limit of time."""
        return milliseconds(self.components.crawl_limits.time.counted_s(self.resources.clock.now()))

    def hear_time(self, crawl_ms: int) -> None:
        """Take the time for which the swarm has crawled from another peer, if it is longer than the time known here."""
        self.components.crawl_limits.time.learn(crawl_ms / 1000, self.resources.clock.now())

    def hear_retries(self, orders: Iterable[RetryOrder]) -> None:
        """Fetch failed URLs again by the orders among these that are not known here."""
        if self.retry_orders.hear(orders, self.resources.clock.now()):
            self.resources.store.visits.know_order(self.retry_orders.latest)
            self.resources.activity.move()  # The crawl may have been over.
            self.parts.retrying.looks.heard()
            self.follow()

    def settings_beyond(self, fingerprint: int) -> list[StandingOrder] | None:
        """Return the orders that leaves work by, or None for a leaf that knows those of this fingerprint."""
        orders = self.standing_orders.for_leaves
        return None if fingerprint_of(orders) == fingerprint else orders

    def hear_orders(self, orders: Iterable[StandingOrder]) -> None:
        """Carry out the standing orders among these that are not known here."""
        news = self.standing_orders.hear(orders, self.resources.clock.now())
        for order in news:
            log.info(
                "order.heard kind=%s about=%s value=%s by=%s user=%s stamp=%d",
                *(order.kind, order.about, order.value, order.peer.hex(), order.user or "-", order.stamp),
            )
        if news:
            self._steer(order.about for order in news if order.kind == "delay" and not order.value)
            if any(order.kind == "drop" for order in news):
                self.parts.dropping.looks.heard()
            if any(order.kind in ("exclude", "scope") for order in news):
                # An owner that knew more orders may have refused links, which are wanted if they are found again.
                self.components.forwarder.forget()
            self.resources.activity.move()
            self.follow()

    def _steer(self, lifted: Iterable[str] = ()) -> None:
        """Have the crawl follow the standing orders. `lifted` are the sites whose delay by an order has ended."""
        orders, now = self.standing_orders, self.resources.clock.now()
        pauses, excluded = (
            {site: value > 0 for site, value in orders.values(kind).items()} for kind in ("pause", "exclude")
        )
        drops = orders.stamps("drop")
        self.resources.store.frontier.know_order(orders.latest_of("drop"))
        job, components = changed(self.job, orders.values("set")), self.components
        components.site_settings.change(job)
        components.crawl_limits.change(job)
        if not components.crawl_limits.ends_loans:
            components.crawler.pause_reasons.discard(PauseReason.LIMIT)
        self.components.site_settings.steering.follow(pauses, orders.values("delay"), excluded, drops, orders.scope)
        self.components.frontier.steer(now, lifted)
        self.balancing.loans.steer()

    def follow(self) -> None:
        """Act on the swarm state, journal it, and tell its fingerprint with each heartbeat."""
        job, state, store = self.job, self.swarm_state, self.resources.store
        if self._named[0] is not job.seeds:
            self._named = job.seeds, fingerprint_of_seeds(job.seeds)
        scope = fingerprint_of(self.standing_orders.of_kind("scope"))
        seeds = self._named[1] ^ self.components.scope.reach.digest
        self.seeds_fingerprint = (seeds ^ scope) or 1
        store.meta.set("paused", b"1" if state.paused else b"0")
        store.meta.set("stamp", str(state.stamp).encode())
        write_orders(store, self.retry_orders)
        write_standing_orders(store, self.standing_orders)
        orders = self.retry_orders.fingerprint() ^ self.standing_orders.fingerprint()
        self.state_fingerprint = state.fingerprint((seeds or 1) ^ orders)
        self.overlay.set_state_fingerprint(self.state_fingerprint)
        pause_reasons = self.components.crawler.pause_reasons
        (pause_reasons.add if state.paused else pause_reasons.discard)(PauseReason.COMMAND)
        self.components.crawler.wake()
