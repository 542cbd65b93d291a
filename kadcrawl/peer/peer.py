"""`Peer`: one peer of a swarm inside any asyncio program.

A peer is a context manager: entering it locks the directory, opens the journal and listens; leaving it commits and
closes. One TaskGroup has every background task.

    async with Peer(Config(data=Path("crawl"))) as peer:
        await peer.crawl(["https://example.org/"])
        async for page in peer.pages():
            print(page.url, page.status)

`Peer` is a facade: the parts and the state are in its `Runtime` (runtime.py), build.py builds the parts, tasks.py runs
them, and handlers.py answers other peers. No module of the package imports this one but `kadcrawl.peer` and the
command.
"""

import asyncio
import logging
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from kadcrawl.crawl.build import CrawlComponents
from kadcrawl.crawl.content.page import Page
from kadcrawl.crawl.grants_journal import write_grant
from kadcrawl.crawl.page_budget import write_units
from kadcrawl.lending.balancer import Balancer
from kadcrawl.link.server import LinkServer
from kadcrawl.link.wire.messages import Contact, Order, PeerRow, SwarmStatus
from kadcrawl.link.wire.peer_state import state_text
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.overlay import Overlay
from kadcrawl.overlay.waves.wave import Waves
from kadcrawl.peer.build import build_parts
from kadcrawl.peer.environment import Environment
from kadcrawl.peer.handlers import Handlers
from kadcrawl.peer.membership.bootstrap import welcomed
from kadcrawl.peer.membership.bootstrap_dialer import BootstrapDialer
from kadcrawl.peer.membership.endpoints import open_ends, reachable_host
from kadcrawl.peer.membership.known_peers import KnownPeers
from kadcrawl.peer.membership.lan import LanBeacon, require_library
from kadcrawl.peer.membership.newcomers import Newcomers
from kadcrawl.peer.membership.node_id import Identity
from kadcrawl.peer.monitoring.monitored_peer import MonitoredPeer, of_full_peer
from kadcrawl.peer.offered_links import OfferedLinks
from kadcrawl.peer.page_reader import read
from kadcrawl.peer.runtime import Runtime
from kadcrawl.peer.shutdown import drain, leave
from kadcrawl.peer.status import row_of, state_of
from kadcrawl.peer.steered_peer import SteeredPeer
from kadcrawl.peer.swarm.census import take_census
from kadcrawl.peer.swarm.commands import Commands, change_key
from kadcrawl.peer.swarm.fetch_again import AgainFetcher
from kadcrawl.peer.swarm.find_url import UrlFinder
from kadcrawl.peer.swarm.queue_survey import QueueReporter
from kadcrawl.peer.swarm.seed_streams import SeedStreams
from kadcrawl.peer.swarm.seeds import add_seeds, each, refuse_text, stream_seeds
from kadcrawl.peer.swarm.state_gossip import StateGossip
from kadcrawl.peer.swarm.steer import Steerer
from kadcrawl.peer.swarm.wave_answers import WaveAnswers
from kadcrawl.peer.tasks import background_tasks
from kadcrawl.replication.cells import Cells
from kadcrawl.settings.config import Config
from kadcrawl.settings.job import Job
from kadcrawl.urls import seed

if TYPE_CHECKING:
    from kadcrawl.peer.dashboard.swarm_access import SwarmAccess

log = logging.getLogger(__name__)


class Peer(SteeredPeer):
    """One full peer. All methods belong to the loop it was entered on."""

    def __init__(self, config: Config, job: Job | None = None, environment: Environment | None = None) -> None:
        """Make a peer. The first peer of a swarm takes `job`, and a peer that joins takes the swarm's job.

        `environment` is for simulations. By default it is the machine.
        """
        super().__init__(config, environment)
        self._given_job = job
        self._handlers = Handlers()
        self._runtime: Runtime | None = None

    def __repr__(self) -> str:
        return f"<Peer {self.contact} {self.state}>" if self._runtime is not None else "<Peer not started>"

    # --- life ------------------------------------------------------------------------------------------------------

    async def begin(self, *, paused: bool = False) -> None:
        """Serve this peer's own job as the first of a swarm. If `paused`, fetch nothing until a person resumes.

        `crawl` calls this if need be. Does nothing if the peer has begun. Raises StartError if the directory holds a
        crawl of another kind.
        """
        self._refuse_if_ended()
        if not self.begun:
            if self.key_rotation is not None:
                self.key_rotation.refuse_newcomer()
            self._identity.settle(self.overlay)
            if paused:
                self.runtime.begin_paused()
            jobs = self.resources.jobs
            job = jobs.joined(self._given_job or jobs.journaled() or Job())
            await self._prepare(job, self._given_job)
            self._build(job, first_update_s=None)
            await self._start()

    async def join(self, bootstrap: Sequence[tuple[str, int]], *, rekeyed: bool = False) -> None:
        """Enter the swarm of these peers (host, port), take its job, and take over the cells nearest to this peer.

        If none of them answers, the peers that this one knew when it last ran are asked. `rekeyed`: the swarm's key was
        changed meanwhile, so it is not the key of this directory. Raises StartError when no peer answers, or when the
        swarm is not that of this directory.
        """
        assert not self.begun, "a peer joins before it begins"
        welcome, bootstrap = await welcomed(
            self.resources, self.known, bootstrap, listens_at=self.listens_at, rekeyed=rekeyed
        )
        welcomed_at = self.clock.now()
        job = self.resources.jobs.joined(welcome.job)
        self.overlay.use_cell_bits(job.bits)  # Until now this peer could only guess them.
        await self._prepare(job, self._given_job)
        await self._identity.choose(self.overlay, self.client, bootstrap)
        if self.credentials is not None:
            self.client.disconnect()  # Earlier requests were made under another ID.
        self.state_gossip.adopt(welcome.stamp, paused=welcome.paused, orders=welcome.orders)
        self._build(job, first_update_s=max(0.0, welcome.update_s - (self.clock.now() - welcomed_at)))
        self.runtime.begin_joining()
        await self._find_host(bootstrap[0])
        await self.overlay.join(bootstrap)
        await self._start()
        # Waves reach this peer only from now on, so it asks for the orders given meanwhile.
        await self.state_gossip.catch_up(bootstrap)
        self.runtime.joined()

    def dial_while_alone(self, bootstrap: Sequence[tuple[str, int]]) -> None:
        """Look for the swarm at these names or addresses (host, port) whenever this peer knows no other peer."""
        self._refuse_if_ended()
        self._run(BootstrapDialer(self.runtime, bootstrap).run(), "bootstrap dialer")

    async def crawl(self, urls: Sequence[str]) -> None:
        """Add seeds, as typed by a person, to the swarm's job, and return when their owners have journaled them.

        Raises ConfigError for text that is no http(s) URL, RemoteError when a part of the swarm does not answer.
        """
        refuse_text(urls)
        seeds = [seed(url) for url in urls]  # Before anything begins.
        await self.begin()
        await add_seeds(self.runtime, seeds)

    async def add_seeds(self, urls: AsyncIterable[str] | Iterable[str]) -> int:
        """Add seeds of any number, and return how many. The peer reads no faster than their owners journal them.

        The first 1,000 are in the job, and the others at their owners only. With a scope that depends on the seeds, the
        peer fetches nothing while it reads the first seeds of a crawl. Raises ConfigError for text that is no http(s)
        URL, and for a job that takes no more seeds.
        """
        refuse_text(urls)
        await self.begin()
        return await stream_seeds(self.runtime, (seed(url) async for url in each(urls)))

    def pages(self) -> AsyncIterator[Page]:
        """Yield each page this peer fetches from now on, until the swarm is quiescent or this peer ends.

        The crawl keeps the reader's pace. Called right after the first `crawl`, it misses none.
        """
        return read(self.balancing.loans, self.wait_done)

    async def finish(self) -> None:
        """End as asked: leave if a person said so, or else finish the work under way. Call after `wait_stopped`."""
        await (self.leave() if self.leaving else self.drain())

    async def drain(self) -> None:
        """Start nothing more and wait until work under way is finished and on disk."""
        await drain(self.runtime)

    async def leave(self) -> None:
        """Finish the work under way, hand the range over to the nearest peers, and say goodbye."""
        self.runtime.leave()
        await leave(self.runtime)

    def leave_soon(self) -> None:
        """Stop, and hand the range over in `finish`."""
        self.runtime.leave()
        self.stop()

    def obey(self, order: Order) -> None:
        """Carry out an order of the swarm at this peer alone."""
        self._wave_answers.obey(order)

    def change_key(self, key: SwarmKey) -> None:
        """Use another key of the swarm. The former key stays valid for an hour. Raises StartError, ConfigError."""
        change_key(self.runtime, key)

    # --- state -----------------------------------------------------------------------------------------------------

    @property
    def contact(self) -> Contact:
        """The peer's ID and address. The ID is final once the peer has begun."""
        return self.runtime.contact

    @property
    def listens_at(self) -> tuple[str, int]:
        """The address (host, port) at which others ask this peer."""
        return self.contact.address

    @property
    def job(self) -> Job:
        """The swarm's job with all seeds this peer knows."""
        return self.runtime.job

    @property
    def begun(self) -> bool:
        """True if the peer serves a job."""
        return self._runtime is not None and self._runtime.begun

    @property
    def joining(self) -> bool:
        """True if waves of the swarm may still miss this peer."""
        return self.runtime.joining

    @property
    def leaving(self) -> bool:
        """True if the peer hands its range over when it ends."""
        return self._runtime is not None and self._runtime.leaving

    @property
    def paused(self) -> bool:
        """True if a person has paused the swarm, as far as this peer knows."""
        return self.runtime.paused

    @property
    def swarm_has_work(self) -> bool:
        """False if the swarm is done, or rests until a page is due, as far as this peer knows."""
        return not (self.runtime.ended or self.runtime.resources.activity.resting)

    @property
    def pending(self) -> int:
        """URLs of this peer that it may still fetch."""
        return self.runtime.pending

    @property
    def remaining(self) -> int:
        """URLs this peer has to fetch. Once it leaves, these are the URLs that no other peer has taken over."""
        return self.runtime.remaining

    @property
    def unacknowledged(self) -> int:
        """Links, seeds and records on their way to other peers, and pages of loans to be reported."""
        return self.runtime.unacknowledged

    @property
    def state(self) -> str:
        """The state in words, as the status shows it."""
        return state_text(state_of(self.runtime), self.runtime.key_mismatches.count)

    def row(self) -> PeerRow:
        """Describe this peer."""
        return row_of(self.runtime)

    async def census(self) -> SwarmStatus:
        """Ask every peer of the swarm to describe itself."""
        return await take_census(self.waves)

    # --- parts, for tests and tools --------------------------------------------------------------------------------

    @property
    def runtime(self) -> Runtime:
        """The parts and the state of this peer."""
        assert self._runtime is not None, "enter the peer first: async with Peer(...) as peer"
        return self._runtime

    @property
    def overlay(self) -> Overlay:
        """The Kademlia overlay."""
        return self.runtime.overlay

    @property
    def server(self) -> LinkServer:
        """The answering end of the link."""
        return self.runtime.server

    @property
    def waves(self) -> Waves:
        """The waves that reach all peers."""
        return self.runtime.waves

    @property
    def state_gossip(self) -> StateGossip:
        """The gossip of the swarm state."""
        assert self._runtime is not None, "enter the peer first: async with Peer(...) as peer"
        return self._state_gossip

    @property
    def components(self) -> CrawlComponents:
        """The parts of the crawl."""
        return self.runtime.components

    @property
    def cells(self) -> Cells:
        """The replication of the peer's cells."""
        return self.runtime.cells

    @property
    def balancing(self) -> Balancer:
        """The load balance."""
        return self.runtime.balancing

    # --- inside ----------------------------------------------------------------------------------------------------

    async def _open(self, stack: AsyncExitStack) -> KnownPeers:
        resources = self.resources
        if self.config.announce:
            require_library()
        incarnation = resources.random.getrandbits(64).to_bytes(8, "big")
        self._identity = Identity(self.store, resources.random, self.key_rotation)
        bits = (self.journaled_job or self._given_job or Job()).bits
        register, heard = self._handlers.register, self._heard
        server, overlay = await open_ends(resources, self._identity, bits, register, heard, stack)
        self._bound_host = overlay.me.host
        waves = Waves(
            overlay,
            self.client,
            lambda question: self._wave_answers.respond(question),
            lambda survey: self._wave_answers.queue(survey),
            lambda since_s: self._wave_answers.watched(since_s),
        )
        self._runtime = runtime = Runtime(resources, overlay, server, waves, incarnation)
        self._state_gossip = StateGossip(runtime)
        self._wave_answers = WaveAnswers(runtime, self.stop)
        stack.callback(self._wave_answers.close)
        self._handlers.use(runtime)
        for part in (
            OfferedLinks(runtime, self._state_gossip),
            AgainFetcher(runtime),
            Newcomers(runtime),
            self._state_gossip,
            self._wave_answers,
            runtime.departed,
            Commands(runtime, self._state_gossip, self.leave_soon, self.open_dashboard),
            SeedStreams(runtime),
            Steerer(runtime),
            UrlFinder(runtime),
            QueueReporter(runtime),
        ):
            self._handlers.add(part.handlers())
        await self._find_host()
        return runtime.known

    async def _find_host(self, *towards: tuple[str, int]) -> None:
        """Put the address at which others reach this peer into its contact."""
        self.overlay.set_host(await reachable_host(self._bound_host, *towards))

    def _heard(self, contact: Contact, state_fingerprint: int, crawl_ms: int) -> None:
        """Note the state fingerprint and the time of a heartbeat, once the peer has begun."""
        if self.begun:
            self.state_gossip.heard(contact, state_fingerprint, crawl_ms)

    def _build(self, job: Job, *, first_update_s: float | None) -> None:
        parts = build_parts(
            self.runtime,
            job,
            extraction=self._extraction,
            first_update_s=first_update_s,
            converged=lambda: self._state_gossip.converged,
        )
        for part in (parts.cells, parts.balancing, parts.leaves, parts.relay_host, parts.clock_host):
            self._handlers.add(part.handlers())
        self.runtime.begin(job, parts)

    async def _start(self) -> None:
        """Journal the job and start all background tasks."""
        self.resources.jobs.keep(self.job)
        self.resources.jobs.keep_networks(self.config.allow_networks)
        log.info("peer.begun id=%s at=%s:%d pending=%d", self.contact.id.hex(), *self.contact.address, self.pending)
        await self.components.fetcher.start()
        if self.key_rotation is not None:
            self.key_rotation.keep()
            self.key_rotation.subscribe(
                changed=[self.overlay.update_packet_filter],
                former_ended=[self.client.disconnect, self.server.disconnect],
            )
        if self.config.announce:
            self._run(LanBeacon(self.contact).run(), "LAN beacon")
        for name, work in background_tasks(self.runtime, self._state_gossip):
            self._run(work, name)
        self.store.journal.forget_start()
        await asyncio.sleep(0)  # Once the tasks have begun, the caller may give orders.
        self.components.crawler.wake()

    def _monitored(self) -> MonitoredPeer:
        return of_full_peer(self.runtime, lambda: self._messages_before + self._messages)

    def _swarm_access(self) -> "SwarmAccess":
        from kadcrawl.peer.dashboard.swarm_access import access_of  # Not at the top: for a peer with a dashboard alone.

        return access_of(self.runtime, self.state_gossip)

    def _built(self) -> CrawlComponents | None:
        return self.components if self.begun else None

    @property
    def _messages(self) -> int:
        return self.client.asked + self.overlay.counters.sent

    def _flush(self) -> list[int]:
        if self.begun:
            limits = self.components.crawl_limits
            self.runtime.parts.queue_counter.note_arrivals()
            self.balancing.loans.marker.update()
            write_units(self.store.meta, limits.pages)
            write_grant(self.store.meta, limits.bytes)
            self.store.meta.set("limit", limits.journaled)
        return super()._flush()
