"""`Leaf`: a peer that owns no cells.

A leaf suits a machine that accepts no connections, or that is too weak to own a range. It asks full peers for pages
(work_requests.py) over connections of its own. It fetches them on a lease like any borrower (lending/borrower.py),
sends the links to their owners, and keeps a page log and WARC files. It listens on no port, is in no routing table, and
keeps no records of the history. Its lent pages stay PENDING at their owners, so it may vanish at any moment. When its
full peer dies, the leaf asks another. A leaf is used like a `Peer`:

    async with Leaf(Config(data=Path("crawl"))) as leaf:
        await leaf.join([("peer.example.org", 4160)])
        await leaf.wait_done()
"""

import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kadcrawl.crawl.build import CrawlComponents
from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.errors import StartError
from kadcrawl.keys import ID_BITS, id_bytes
from kadcrawl.leaf.leaf_crawl import LeafCrawl
from kadcrawl.leaf.peer_selection import FullPeers
from kadcrawl.leaf.work_requests import WorkRequester
from kadcrawl.lending.borrower import Borrower
from kadcrawl.link.wire.leaf_messages import LeafDetails, SwarmActivity, leaf_contact
from kadcrawl.link.wire.leave_messages import Departed
from kadcrawl.link.wire.messages import Contact, PeerRow
from kadcrawl.link.wire.peer_state import PeerState, state_text
from kadcrawl.link.wire.watch_messages import SINKS_OF_LEAF_MAX
from kadcrawl.peer.base import PeerBase
from kadcrawl.peer.environment import Environment
from kadcrawl.peer.membership.bootstrap import welcomed
from kadcrawl.peer.membership.bootstrap_names import is_srv
from kadcrawl.peer.membership.departed import KEEPERS, SPARE, send_leave_stats
from kadcrawl.peer.membership.known_peers import KnownPeers
from kadcrawl.peer.monitoring.monitored_peer import MonitoredPeer
from kadcrawl.peer.status import STATE_BY_PAUSE_REASON
from kadcrawl.settings.config import Config
from kadcrawl.settings.job import Job
from kadcrawl.settings.leaf_jobs import why_no_leaf
from kadcrawl.settings.memory_plan import LEAF_BASE_BYTES

if TYPE_CHECKING:
    from kadcrawl.peer.dashboard.swarm_access import SwarmAccess

log = logging.getLogger(__name__)


class Leaf(PeerBase):
    """One leaf. All methods belong to the loop it was entered on."""

    _base_bytes = LEAF_BASE_BYTES
    _keeps_history = False

    def __init__(self, config: Config, environment: Environment | None = None) -> None:
        """Take the configuration, whose listening address a leaf ignores. `environment` is for simulations."""
        super().__init__(config, environment)
        self._work: LeafCrawl | None = None

    def __repr__(self) -> str:
        return f"<Leaf {self.contact} {self.state}>" if self._resources is not None else "<Leaf not started>"

    # --- life ----------------------------------------------------------------------------------------------------

    async def join(self, bootstrap: Sequence[tuple[str, int]], *, rekeyed: bool = False) -> None:
        """Ask these full peers (host, port), and the peers they name, for pages from now on.

        If none of them answers, the leaf asks the peers that it knew in its last run. `rekeyed` says that the swarm's
        key is another than this directory's because it was changed meanwhile. Raises StartError when none of these
        peers answers either, when the swarm is not the swarm of this directory, or when it has no leaves.
        """
        assert not self.begun, "a leaf joins once"
        if self.config.announce:
            raise StartError("a leaf listens on nothing, so nobody can be told where: leave out announce")
        welcome, answering = await welcomed(self.resources, self.known, bootstrap, listens_at=None, rekeyed=rekeyed)
        if (why := why_no_leaf(welcome.job)) is not None:
            raise StartError(why)
        hosts = [address for address in bootstrap if not is_srv(address)]
        self.full_peers = FullPeers([*hosts, *answering], self.resources.random)
        self.full_peers.learn(self.known.contacts)
        job = self.resources.jobs.joined(welcome.job)
        await self._prepare(job)
        self._build(job)
        log.info("leaf.begun id=%s", self._me.id.hex())
        self._run(self.work.run(), "crawl")
        if self.key_rotation is not None:
            self.key_rotation.keep()
            self.key_rotation.subscribe(former_ended=[self.client.disconnect])
            self._run(self.key_rotation.run(), "keys")
        self._requester_task = self._run(self._work_requester.run(), "work requests")

    async def finish(self) -> None:
        """Ask for no more pages, wait until pages in flight are finished and on disk, and return the rest."""
        if self.begun:
            self._requester_task.cancel()
            await self.work.give_back()
            me = Departed(self._me, self.counters.to_wire())
            await send_leave_stats(self.client, self._me.id, [(me, self.full_peers.contacts()[: KEEPERS + SPARE])])
        await self.store.journal.commit()

    # --- state ---------------------------------------------------------------------------------------------------

    @property
    def contact(self) -> Contact:
        """The leaf's ID, with the address of its full peer, as a leaf has no address."""
        home = self._work_requester.home if self.begun else None
        return Contact(self._me.id, home.host, home.port) if home is not None else self._me

    @property
    def begun(self) -> bool:
        """True if the leaf has joined a swarm."""
        return self._work is not None

    @property
    def work(self) -> LeafCrawl:
        """The crawl of this leaf."""
        assert self._work is not None, "the leaf has not begun: call join"
        return self._work

    @property
    def job(self) -> Job:
        """The swarm's job with all seeds this leaf knows."""
        return self.work.job

    @property
    def borrower(self) -> Borrower:
        """The loans of this leaf."""
        return self.work.borrower

    @property
    def remaining(self) -> int:
        """URLs on loan that this leaf has still to fetch."""
        return self.borrower.urls

    @property
    def state(self) -> str:
        """The state in words, as the status shows it."""
        return state_text(self._state())

    def row(self) -> PeerRow:
        """Describe this leaf."""
        in_flight = self.work.crawler.in_flight  # First, as it says so if the leaf has not begun.
        return PeerRow(
            contact=self.contact,
            state=self._state(),
            pending=self.borrower.urls,
            in_flight=in_flight,
            uptime_s=int(self.clock.now() - self.resources.started_at),
            counters=self.counters.to_wire(),
            allowance=0,
            granted=0,
            borrowed=self.borrower.urls,
            lag=self.deliveries.lag,
            limit=self.work.components.crawl_limits.reached,
        )

    def _state(self) -> PeerState:
        if not self.begun:
            return PeerState.STARTING
        reasons = self.work.crawler.pause_reasons
        if PauseReason.STOPPING in reasons:
            return PeerState.STOPPING
        if PauseReason.COMMAND in reasons:
            return PeerState.PAUSED
        if self.ended:
            return PeerState.DONE
        for reason, state in STATE_BY_PAUSE_REASON.items():
            if reason in reasons:
                return state
        if self._work_requester.is_refused:
            return PeerState.REFUSED_BY_ALL
        if self._work_requester.is_lost:
            return PeerState.NO_PEER
        return PeerState.CRAWLING if self.borrower.loans else PeerState.IDLE

    # --- putting it together ---------------------------------------------------------------------------------------

    async def _open(self, stack: AsyncExitStack) -> KnownPeers:
        self._me = leaf_contact(self._identity())
        self.full_peers = FullPeers((), self.resources.random)
        return KnownPeers(self.store, lambda: self.full_peers.contacts(), self.client)

    def _monitored(self) -> MonitoredPeer:
        return MonitoredPeer(
            resources=self.resources,
            peer_id=lambda: self._me.id,
            state=self._state,
            messages=lambda: self._messages_before + self._messages,
            components=self._built,
            crawlers=lambda: (self.work.crawler,) if self.begun else (),
            borrower=lambda: self.borrower if self.begun else None,
            runtime=lambda: None,
        )

    def _swarm_access(self) -> "SwarmAccess":
        from kadcrawl.leaf.leaf_access import leaf_access  # Not at the top: for a leaf with a dashboard alone.

        return leaf_access(self.client, lambda: self._work_requester.home if self.begun else None, self._own_row)

    def _own_row(self) -> PeerRow | None:
        return replace(self.row(), hosted_leaf=True, details=self._details().row) if self.begun else None

    def _details(self) -> LeafDetails:
        # Not at the top: while nobody watches a swarm, its leaves do without these rooms.
        from kadcrawl.peer.dashboard.own_details import details_of, sinks_of

        # A leaf has room or none. It lends nothing, so its level is not above 0.
        level = -self.work.room() / self.job.block_urls
        return LeafDetails(details_of(level), sinks_of(self.deliveries, SINKS_OF_LEAF_MAX, of_leaf=True))

    def _identity(self) -> bytes:
        if self.key_rotation is not None:
            return self.key_rotation.credentials.peer_key.id
        leaf_id = self.store.meta.get("leaf_id")
        if leaf_id is None:
            leaf_id = id_bytes(self.resources.random.getrandbits(ID_BITS))
            self.store.meta.set("leaf_id", leaf_id)
        return leaf_id

    def _build(self, job: Job) -> None:
        self.resources.jobs.keep(job)
        self.resources.jobs.keep_networks(self.config.allow_networks)
        work = LeafCrawl(
            me=self._me,
            job=job,
            resources=self.resources,
            extraction=self._extraction,
            home=lambda: self._work_requester.known_home,
        )
        self._work_requester = WorkRequester(
            me=self._me,
            client=self.client,
            peers=self.full_peers,
            take=work.accept,
            row=self.row,
            room=work.room,
            job=lambda: self.job,
            on_seeds=self._add_seeds,
            reach=work.reach,
            on_activity=self._follow,
            on_time=work.hear_time,
            settings=work.settings,
            details=self._details,
        )
        self._work = work

    def _built(self) -> CrawlComponents | None:
        return self._work.components if self._work is not None else None

    # --- news of the swarm -----------------------------------------------------------------------------------------

    def _follow(self, activity: SwarmActivity) -> None:
        """Pause, resume, stop or end as the swarm does."""
        self.work.set_pause_reason(PauseReason.COMMAND, activity == "paused")
        if activity == "stopped":
            self.stop()
        elif activity == "ended":
            if not self.ended and not self.borrower.loans:
                self.activity.end()
                log.info("leaf.done pages=%d", self.counters.pages)
                if self.config.exit_when_done:
                    self.stop()
        elif self.ended:
            self.activity.move()  # The swarm has work again.

    def _add_seeds(self, urls: Sequence[str]) -> None:
        if self.work.add_seeds(urls):
            self.resources.jobs.keep(self.job)
