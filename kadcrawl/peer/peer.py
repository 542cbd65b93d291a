"""`Peer`: one peer of a swarm inside any asyncio program.

Owns the directory, the network ends and one TaskGroup with every background task. Use it as a context manager:

    async with Peer(Config(data=Path("crawl"))) as peer:
        await peer.crawl(["https://example.org/"])
        async for page in peer.pages():
            print(page.url, page.status)
"""

import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace

from kadcrawl.crawl.build import CrawlComponents, build
from kadcrawl.crawl.content.page import Page
from kadcrawl.crawl.disk_guard import guard
from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.crawl.recrawl.expiry import Expiring
from kadcrawl.crawl.recrawl.scheduler import Recrawling
from kadcrawl.crawl.scope.partitioner import UrlLocation
from kadcrawl.errors import ConfigError, StartError
from kadcrawl.lending.balancer import Balancer
from kadcrawl.lending.leaf_host import LeafHost
from kadcrawl.lending.throughput_learning import throughput_learning
from kadcrawl.link.server import LinkServer
from kadcrawl.link.wire.census_rows import read_rows
from kadcrawl.link.wire.messages import LONG_S_MAX, ROWS_MAX, Census, Contact, Link, Order, PeerRow, SwarmStatus
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.overlay import Overlay
from kadcrawl.overlay.waves.termination import Termination
from kadcrawl.overlay.waves.wave import Waves
from kadcrawl.peer.base import PeerBase
from kadcrawl.peer.build import build_balancer, build_leaf_host
from kadcrawl.peer.environment import Environment
from kadcrawl.peer.handlers import Handlers
from kadcrawl.peer.membership.bootstrap import welcomed
from kadcrawl.peer.membership.departed import DepartedPeers, each_once
from kadcrawl.peer.membership.endpoints import keep_to_loopback, listen, reachable_host
from kadcrawl.peer.membership.key_refusals import KeyMismatchMonitor, watch
from kadcrawl.peer.membership.known_peers import KnownPeers
from kadcrawl.peer.membership.node_id import Identity
from kadcrawl.peer.page_reader import read
from kadcrawl.peer.shutdown import drain, leave
from kadcrawl.peer.status import row_of, state_of
from kadcrawl.peer.swarm.budget_sharing import share_budget
from kadcrawl.peer.swarm.seeds import Seeding
from kadcrawl.peer.swarm.state_gossip import StateGossip
from kadcrawl.replication.cells import Cells
from kadcrawl.settings.config import Config, Job
from kadcrawl.urls import is_canonical, seed

log = logging.getLogger(__name__)


class Peer(PeerBase):
    """One peer. All methods belong to the loop it was entered on."""

    def __init__(
        self,
        config: Config,
        job: Job | None = None,
        environment: Environment | None = None,
    ) -> None:
        """`job` is what a first peer crawls; one that joins takes the swarm's.

        `world` is for simulations; by default it is the machine.
        """
        super().__init__(config, environment)
        self.state_gossip = StateGossip(self)
        self._given_job = job
        self._service = Handlers(self)
        self._cells: Cells | None = None
        self._balancing: Balancer | None = None
        self._leaf_host: LeafHost | None = None
        self._recrawling: Recrawling | None = None
        self._expiring: Expiring | None = None
        self._seeding = Seeding(self)
        self._left = False
        self.key_mismatches = KeyMismatchMonitor()
        self.joining = False
        """The swarm's waves do not come here for certain yet, so this peer may not know the whole job."""

    def __repr__(self) -> str:
        return f"<Peer {self.contact} {self.state}>" if hasattr(self, "overlay") else "<Peer not started>"

    # --- life ----------------------------------------------------------------------------------------------------

    async def begin(self, *, paused: bool = False) -> None:
        """Serve this peer's own job as the first of a swarm; `paused` until somebody says resume.

        Called by `crawl` if need be; does nothing if the peer has begun. Raises StartError if its directory
        holds a crawl of another kind.
        """
        if not self.begun:
            if self.key_rotation is not None:
                self.key_rotation.refuse_newcomer()
            self._identity.settle(self.overlay)
            self.state_gossip.state.paused |= paused
            job = self._jobs.joined(self._given_job or self._jobs.journaled() or Job())
            await self._prepare(job, self._given_job)
            self._build(job, first_update_s=None)
            await self._start()

    async def join(self, bootstrap: Sequence[tuple[str, int]], *, rekeyed: bool = False) -> None:
        """Enter the swarm of these peers (host, port), take its job, and take over what is nearest to this peer.

        If none of them answers, those are asked whom this peer knew when it last ran. `rekeyed`: its key is not the one
        of this directory because it was changed meanwhile. Raises StartError when none of these does either, or the
        swarm is not that of this directory.
        """
        assert not self.begun, "a peer joins before it begins"
        welcome, bootstrap = await welcomed(self, bootstrap, rekeyed=rekeyed)
        told_at = self.clock.now()
        if welcome.job.cell_bits != self._cell_bits:
            raise StartError(
                f"the swarm has cells of {welcome.job.cell_bits} bits, this peer of {self._cell_bits}: "
                f"give it Job(cell_bits={welcome.job.cell_bits})"
            )
        job = self._jobs.joined(welcome.job)
        await self._prepare(job, self._given_job)
        await self._identity.choose(self.overlay, self.client, bootstrap)
        if self.credentials is not None:
            self.client.disconnect()  # What others were asked by until now was not yet this peer.
        self.state_gossip.adopt(welcome.stamp, paused=welcome.paused)
        first_update_s = max(0.0, welcome.update_s - (self.clock.now() - told_at))
        self._build(job, first_update_s=first_update_s)
        self.joining = True
        self.components.crawler.pause_reasons.add(PauseReason.JOINING)
        await self._find_host(bootstrap[0])
        await self.overlay.join(bootstrap)
        await self._start()
        # Only now do waves come here as well: what was said meanwhile must be asked for.
        await self.state_gossip.catch_up(bootstrap)
        self.joining = False
        self.components.crawler.pause_reasons.discard(PauseReason.JOINING)
        self.components.crawler.wake()

    async def crawl(self, urls: Sequence[str]) -> None:
        """Add seeds, as typed by a person, to the swarm's job; returns when their owners have journaled them.

        Raises ConfigError for what is no http(s) URL, RemoteError when part of the swarm cannot be told.
        """
        seeds = [seed(url) for url in urls]  # Before anything begins.
        await self.begin()
        await self._seeding.add(seeds)

    def pages(self) -> AsyncIterator[Page]:
        """Yield each page this peer fetches from now on, until the swarm is quiescent.

        The crawl keeps the reader's pace. Called right after the first `crawl`, it misses none.
        """
        return read(self)

    async def finish(self) -> None:
        """End as asked: leave if somebody said so, else finish what is under way. Call after `wait_stopped`."""
        await (self.leave() if self._left else self.drain())

    async def drain(self) -> None:
        """Start nothing more and wait until what is under way is finished and on disk."""
        await drain(self)

    async def leave(self) -> None:
        """Finish what is under way, hand the range over to those nearest to it, and say goodbye."""
        self._left = True
        await leave(self)

    # --- what it is ----------------------------------------------------------------------------------------------

    @property
    def contact(self) -> Contact:
        """Where it is; its ID is final once it has begun."""
        return self.overlay.me

    @property
    def listens_at(self) -> tuple[str, int]:
        return self.contact.address

    @property
    def components(self) -> CrawlComponents:
        assert self._components is not None, "the peer has not begun: call begin, join or crawl"
        return self._components

    @property
    def cells(self) -> Cells:
        assert self._cells is not None, "the peer has not begun: call begin, join or crawl"
        return self._cells

    @property
    def balancing(self) -> Balancer:
        assert self._balancing is not None, "the peer has not begun: call begin, join or crawl"
        return self._balancing

    @property
    def leaf_host(self) -> LeafHost:
        assert self._leaf_host is not None, "the peer has not begun: call begin, join or crawl"
        return self._leaf_host

    @property
    def begun(self) -> bool:
        return self._components is not None

    @property
    def job(self) -> Job:
        return self.components.job

    @property
    def paused(self) -> bool:
        return self.state_gossip.state.paused

    @property
    def leaving(self) -> bool:
        return self._left

    @property
    def remaining(self) -> int:
        """URLs to be fetched by this peer; once it leaves, those that nobody has taken over."""
        return self.store.pending if self._left else self.components.frontier.pending

    @property
    def state(self) -> str:
        """A word or a few for the status."""
        return state_of(self)

    @property
    def pending(self) -> int:
        return self.components.crawler.pending

    @property
    def unacknowledged(self) -> int:
        """What is on its way to other peers: links, seeds, copies."""
        under_way = self.components.forwarder.unacknowledged + self._seeding.under_way + self.cells.unacknowledged
        if self.job.recrawl_after_s is not None:
            under_way += self.cells.unsettled  # Only who crawls a cell says when its pages are due.
        return under_way + self.balancing.loans.borrower.unreported

    @property
    def due_s(self) -> float | None:
        """In how many seconds the first of its pages is to be fetched again; None if none is."""
        comes_again = self._recrawling or self._expiring
        due_s = comes_again.due_s if comes_again is not None else None
        return None if due_s is None else min(due_s, LONG_S_MAX)

    def row(self) -> PeerRow:
        """Describe this peer."""
        return row_of(self)

    async def census(self) -> SwarmStatus:
        """Ask every peer of the swarm to describe itself."""
        answer = await self.waves.ask_all(Census())
        rows = [*await read_rows(answer.rows), *await read_rows(answer.left)]
        return SwarmStatus(answer.tally, each_once(rows)[:ROWS_MAX])

    # --- what others ask of it (see `service`) ----------------------------------------------------------------------

    def obey(self, order: Order) -> None:
        """Carry out an order of the swarm."""
        match order.verb:
            case "pause" | "resume":
                self.state_gossip.obey(order.stamp, paused=order.verb == "pause")
            case "stop":
                self.stop()
            case "rest":
                if not self.pending and not self.unacknowledged and not self.activity.resting:
                    self.activity.rest()
                    log.info("swarm.resting pages=%d", self.counters.pages)
            case "ended":
                if not self.pending and not self.unacknowledged:
                    self.activity.end()
                    log.info("swarm.done pages=%d", self.counters.pages)
                    if self.config.exit_when_done:
                        self.stop()

    def change_key(self, key: SwarmKey) -> None:
        """Go by another key of the swarm; the former one is good for an hour. Raises StartError.

        One before that, if it is good still, ends at once: whoever has only that is out. Raises ConfigError if the
        swarm has none.
        """
        if self.key_rotation is None:
            raise ConfigError("this swarm has no key to be changed: begin it anew with one")
        self.key_rotation.change(key)

    def leave_soon(self) -> None:
        """As `stop`, but the range is to be handed over."""
        self._left = True
        self.stop()

    def add_seeds(self, urls: Iterable[str]) -> None:
        """Widen the scope and journal the job with these seeds; what is no canonical URL is passed over."""
        known = {*self.job.seeds}
        fresh = [url for url in dict.fromkeys(urls) if url not in known and is_canonical(url)]
        seeds = (*self.job.seeds, *fresh)
        if fresh:
            self._components = replace(self.components, job=replace(self.job, seeds=seeds))
            self.components.scope.add_seeds(fresh)
            self._jobs.keep(self.job)
            self.state_gossip.follow()
        if seeds:
            self.activity.armed = True
            self.activity.move()

    # --- inside --------------------------------------------------------------------------------------------------

    async def _open(self, stack: AsyncExitStack) -> None:
        self.state_gossip.restore()
        self.incarnation = self.random.getrandbits(64).to_bytes(8, "big")
        await self._listen(stack)
        self.known = KnownPeers(self.store, self.overlay.siblings, self.client)
        self.departed = DepartedPeers(self.store)
        self.waves = Waves(self.overlay, self.client, self._service.respond)

    async def _listen(self, stack: AsyncExitStack) -> None:
        self._identity = Identity(self.store, self.random, self.key_rotation)
        self._cell_bits = (self._jobs.journaled() or self._given_job or Job()).cell_bits

        def make_server() -> LinkServer:
            server = LinkServer(self.config.limits.message_bytes_max, self.credentials, self.peer_score)
            self._service.register(server)
            return server

        def make_overlay() -> Overlay:
            return Overlay(
                self._identity.node_id,
                self.random,
                cell_bits=self._cell_bits,
                settings=self.environment.overlay,
                credentials=self.credentials,
                peer_score=self.peer_score,
                on_state_fingerprint=self.state_gossip.heard,
            )

        if self.credentials is None and not self.environment.trusted_network:
            keep_to_loopback(self.config.host)
        self.server, self.overlay = await listen(self.config, self.store, make_server, make_overlay)
        stack.push_async_callback(self.overlay.close)
        stack.push_async_callback(self.server.close)
        if not self._identity.settled:
            self.overlay.withhold_answers()
        self._bound_host = self.overlay.me.host
        await self._find_host()

    async def _find_host(self, *towards: tuple[str, int]) -> None:
        """Put into our contact the address others reach us at."""
        self.overlay.set_host(await reachable_host(self._bound_host, *towards))

    def _build(self, job: Job, *, first_update_s: float | None) -> None:
        """Put the rooms together; the levels are first looked at after so many seconds, or a whole interval.

        Raises ConfigError, before anything is kept, if the pace of this peer cannot be predicted as its config says.
        """
        learns = throughput_learning(self.config) if job.lends_by == "predictive" else None
        try:
            self._components = build(
                job=job,
                config=self.config,
                directory=self.config.data,
                store=self.store,
                owners=self.overlay,
                client=self.client,
                activity=self.activity,
                counters=self.counters,
                clock=self.clock,
                random=self.random,
                resolver=self.environment.resolver,
                may_start=lambda: not self.cells.is_stalled(),
                accept_here=self._accept_here,
                extraction=self._extraction,
                poison_pages=self.poison_pages,
            )
        except OSError as error:
            raise StartError(f"cannot write the outputs in {self.config.data}: {error}") from None
        self._cells = Cells(
            self._components,
            self.overlay,
            self.client,
            self.store,
            self.activity,
            self.clock,
            self.config.limits.batch_spacing_s,
        )
        self._balancing = build_balancer(self, first_update_s, learns)
        self._leaf_host = build_leaf_host(self)
        if self._components.rounds is not None:
            copies = self._cells.replicator
            self._recrawling = recrawling = Recrawling(
                self.store,
                self._components.frontier,
                self.activity,
                self.clock,
                copying=lambda: copies.unacknowledged,
                wake=self._components.crawler.wake,
            )
            self._components.rounds.on_due = self._components.intake.on_visit = recrawling.visited
            self._cells.crawl.on_opened = recrawling.opened
            self._cells.crawl.on_closed.append(recrawling.closed)
        elif job.recrawl_after_s is not None and self.store.expiring_filters is not None:
            parts = self._components
            self._expiring = Expiring(
                self.store,
                *(parts.frontier, parts.intake, parts.forwarder, parts.partitioner),
                self.clock,
                self.store.expiring_filters.period,
                lambda: self.job.seeds,
            )
        self._components.scope.scope_is_final = lambda: self.state_gossip.converged
        self.activity.armed = bool(job.seeds)
        self.state_gossip.follow()

    async def _start(self) -> None:
        parts = self.components
        self._jobs.keep(self.job)
        self._jobs.keep_networks(self.config.allow_networks)
        log.info("peer.begun id=%s at=%s:%d pending=%d", self.contact.id.hex(), *self.contact.address, self.pending)
        await parts.fetcher.start()
        reserve = self.config.limits.disk_reserve_bytes
        if self.key_rotation is not None:
            self.key_rotation.keep()
            self.key_rotation.on_changed.append(self.overlay.update_packet_filter)
            self.key_rotation.on_former_ended += [self.client.disconnect, self.server.disconnect]
            self._run(self.key_rotation.run(), "keys")
            self._run(watch(self), "refusals")
        self._run(guard(parts.crawler, self.config.data, reserve, self.environment.free_bytes), "disk")
        self._run(parts.crawler.run(), "crawl")
        self._run(parts.forwarder.run(), "forward")
        self._run(Termination(self.waves, self.random, self.activity).run(), "termination")
        self._run(self.cells.run(), "cells")
        self._run(self.state_gossip.run(), "state_gossip")
        self._run(self.balancing.run(), "balance")
        if parts.proxy_checks is not None:
            self._run(parts.proxy_checks.run(parts.crawler), "proxies")
        if self._recrawling is not None:
            self._run(self._recrawling.run(), "recrawl")
        if self._expiring is not None:
            self._run(self._expiring.run(), "expire")
        if parts.job.max_pages is not None:
            self._run(share_budget(self, parts.job.max_pages), "budget")
        parts.crawler.wake()

    @property
    def _messages(self) -> int:
        return self.client.asked + self.overlay.counters.sent

    def _flush(self) -> list[int]:
        if self._components is not None:
            self.store.meta.set("granted", str(self._components.budget.granted).encode())
        return super()._flush()

    async def _accept_here(self, links: Sequence[tuple[Link, UrlLocation]]) -> list[int]:
        return await self.cells.accept(links, self.components.intake.accept)
