"""Builds the parts of a full peer that depend on the job: crawl, replication, load balance, leaves and recrawl.

Tests: tests/peer/test_peer.py, tests/peer/test_recrawl.py, tests/lending/test_lending_peers.py
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from kadcrawl.balance.sizing import UpdateSchedule
from kadcrawl.crawl.build import CrawlComponents, PeerCallbacks, PeerResources, build
from kadcrawl.crawl.clocks.clock_host import ClockHost
from kadcrawl.crawl.content.record_extractor import Extraction
from kadcrawl.crawl.dependencies import CrawlHooks
from kadcrawl.crawl.reach.build import Swarm
from kadcrawl.crawl.reach.relay_host import RelayHost
from kadcrawl.crawl.reach.relayed_fetcher import Helpers
from kadcrawl.crawl.recrawl.expiry import Expiring
from kadcrawl.crawl.scope.partitioner import UrlLocation
from kadcrawl.errors import StartError
from kadcrawl.keys import Cell, anchor
from kadcrawl.lending.balancer import Balancer
from kadcrawl.lending.blocks import Blocks
from kadcrawl.lending.drain_policy import DrainPolicy
from kadcrawl.lending.leaf_host import LeafHost
from kadcrawl.lending.level_policy import LevelPolicy
from kadcrawl.lending.loans import Loans
from kadcrawl.lending.throughput_learning import ThroughputLearning, throughput_learning
from kadcrawl.link.wire.messages import Contact, Link
from kadcrawl.overlay import Overlay
from kadcrawl.peer.runtime import BuiltParts, Runtime
from kadcrawl.peer.swarm.dropping import Dropping
from kadcrawl.peer.swarm.end_check import EndCheck
from kadcrawl.peer.swarm.queue_counter import QueueCounter
from kadcrawl.peer.swarm.retrying import Retrying
from kadcrawl.replication.cells import Cells
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_limits import limits_with


def build_parts(
    runtime: Runtime,
    job: Job,
    *,
    extraction: Extraction | None,
    first_update_s: float | None,
    converged: Callable[[], bool],
) -> BuiltParts:
    """Build the parts for this job. Loads are first compared after `first_update_s`, or after a whole interval.

    `converged` returns whether the swarm state here is that of all peers. Raises ConfigError, before anything is kept,
    if the throughput of this peer cannot be predicted as its config says, and StartError if an output cannot be
    written.
    """
    resources, overlay = runtime.resources, runtime.overlay
    config, store, clock = resources.config, resources.store, resources.clock
    learns = (
        throughput_learning(config, resources.environment.machine_profile) if job.lends_by == "predictive" else None
    )

    async def accept_here(links: Sequence[tuple[Link, UrlLocation]]) -> list[int]:
        return await cells.accept(links, components.intake.accept)

    try:
        components = build(
            job,
            PeerResources(
                config=config,
                store=store,
                owners=overlay,
                client=resources.client,
                activity=resources.activity,
                counters=resources.counters,
                clock=clock,
                started_at=resources.started_at,
                random=resources.random,
                resolver=resources.environment.resolver,
                extraction=extraction,
                call_login_hook=resources.environment.call_login_hook,
                traces=resources.traces,
                poison_pages=resources.poison_pages,
            ),
            PeerCallbacks(
                own_pages=CrawlHooks(
                    may_start=lambda: not cells.is_stalled(),
                    no_backup_reachable=lambda cell: cells.replicator.no_backup_reachable(cell),
                    on_refused=lambda site: balancing.loans.lender.recall_site(site),
                ),
                accept_here=accept_here,
                seeds_fingerprint=lambda: runtime.seeds_fingerprint,
                scope_is_final=converged,
                copying=lambda: cells.replicator.unacknowledged,
                clock_host=lambda: clock_host,
                has_met_peers=lambda: bool(runtime.known.contacts or overlay.contacts()),
                swarm=Swarm(
                    me=lambda: overlay.me,
                    helpers=Helpers(live=lambda: _live_contacts(overlay), has_any=lambda: bool(runtime.known.contacts)),
                ),
            ),
        )
    except OSError as error:
        raise StartError(f"cannot write the outputs in {config.data}: {error}") from None
    cells = Cells(
        components, overlay, resources.client, store, resources.activity, clock, config.limits.batch_spacing_s
    )
    end_check = EndCheck(resources.activity, resources.client, cells.tasks.spawn, lambda: runtime.waves.surveys)
    overlay.on_joined.append(end_check.joined)
    resources.activity.on_end.append(end_check.ended)
    clock_host = _build_clock_host(runtime, job, components, cells)
    balancing = _build_balancer(runtime, job, components, cells, first_update_s, learns)
    leaves = LeafHost(
        state=runtime,
        lender=balancing.loans.lender,
        overlay=overlay,
        random=resources.random,
        pause_reasons=lambda: components.crawler.pause_reasons,
    )
    if (recrawling := components.recrawling) is not None:
        cells.events.cell_opened.append(recrawling.opened)
        cells.events.cell_closed.append(recrawling.closed)
    retrying = Retrying(
        runtime.retry_orders,
        store,
        components.frontier,
        resources.activity,
        resources.counters,
        clock,
        copying=lambda: cells.replicator.unacknowledged,
        ask_robots_again=components.crawler.ask_robots_again,
        wake=components.crawler.wake,
    )
    dropping = Dropping(
        *(store, components.frontier, components.site_settings.steering, components.crawler, resources.activity, clock),
        copying=lambda: cells.replicator.unacknowledged,
    )
    cells.events.cell_opened.append(dropping.looks.opened)
    cells.events.cell_closed.append(dropping.looks.closed)
    cells.events.cell_opened.append(retrying.looks.opened)
    cells.events.cell_closed.append(retrying.looks.closed)
    return BuiltParts(
        components=components,
        cells=cells,
        balancing=balancing,
        leaves=leaves,
        recrawling=components.recrawling,
        expiring=_build_expiring(runtime, job, components),
        relay_host=RelayHost(
            components.reach.watched,
            components.reach.proof,
            components.reach.health,
            components.scope,
            owns=partial(_owns_page, runtime, components, cells),
            pause_reasons=components.crawler.pause_reasons,
            random=resources.random,
            now=clock.now,
            clocks=components.clocks,
        ),
        retrying=retrying,
        dropping=dropping,
        queue_counter=QueueCounter(store, components, cells.holdings.owned.keys, overlay.me.id, clock),
        clock_host=clock_host,
    )


def _live_contacts(overlay: Overlay) -> list[Contact]:
    return [contact for contact in overlay.contacts() if overlay.is_live(contact.id)]


def _owns_page(runtime: Runtime, components: CrawlComponents, cells: Cells, peer: Contact, url: str) -> bool:
    return _owns_site(runtime, components, cells, peer, components.partitioner.locate(url).site)


def _owns_site(runtime: Runtime, components: CrawlComponents, cells: Cells, peer: Contact, site: str) -> bool:
    """Return whether a peer owns a site, as far as this peer knows."""
    overlay, cell = runtime.overlay, components.partitioner.cell(site)
    nearest = overlay.nearest_known(anchor(cell, components.job.bits), 1)[0]
    if not overlay.is_live(peer.id):
        overlay.suspect(peer)  # We may not know each other yet.
    return nearest == peer and not overlay.owns(cell) and cell not in cells.holdings.owned


def _build_clock_host(runtime: Runtime, job: Job, components: CrawlComponents, cells: Cells) -> ClockHost:
    resources, overlay = runtime.resources, runtime.overlay
    limits = limits_with(resources.config.limits, job.shared_limits)
    host = ClockHost(
        components.frontier,
        components.partitioner,
        resources.client,
        me=lambda: overlay.me,
        owner=lambda cell: _nearest_other(overlay, cell, job.bits),
        opened=cells.sync.opened,
        may_lease=lambda: not cells.is_stalled(),
        spawn=cells.tasks.spawn,
        wait_max_s=lambda: max(components.site_settings.delay_max_s, limits.crawl_delay_max_s),
        now=resources.clock.now,
        random=resources.random,
    )
    if components.clocks is not None:
        host.tell_also(components.clocks)
    if components.shared_rules is not None:
        host.give_rules(components.shared_rules)
    return host


def _nearest_other(overlay: Overlay, cell: Cell, cell_bits: int) -> Contact:
    """Return the peer nearest to a cell, this one only if no other is known."""
    known = overlay.nearest_known(anchor(cell, cell_bits), 2)
    return next((contact for contact in known if contact.id != overlay.me.id), overlay.me)


def _build_expiring(runtime: Runtime, job: Job, components: CrawlComponents) -> Expiring | None:
    store = runtime.resources.store
    if components.recrawling is not None or job.recrawl_after_s is None or store.expiring_filters is None:
        return None
    return Expiring(
        store,
        components.frontier,
        components.intake,
        components.forwarder,
        components.partitioner,
        runtime.resources.clock,
        store.expiring_filters.period,
        lambda: runtime.job.seeds,
    )


def _build_balancer(
    runtime: Runtime,
    job: Job,
    components: CrawlComponents,
    cells: Cells,
    first_update_s: float | None,
    learns: ThroughputLearning | None,
) -> Balancer:
    resources, overlay = runtime.resources, runtime.overlay

    def may_lend(lender: Contact, site: str) -> bool:
        if components.reach.health.is_failing:
            return False  # This peer could not fetch the pages.
        return _owns_site(runtime, components, cells, lender, site)

    loans = Loans(
        components=components,
        cells=cells,
        store=resources.store,
        client=resources.client,
        me=lambda: overlay.me,
        activity=resources.activity,
        clock=resources.clock,
        random=resources.random,
        limits=limits_with(resources.config.limits, job.shared_limits),
        may_lend=may_lend,
    )
    if resources.traces is not None:
        loans.lender.page_reported.append(resources.traces.reported)
    blocks = Blocks(
        job=job,
        overlay=overlay,
        client=resources.client,
        frontier=components.frontier,
        loans=loans,
        me=lambda: overlay.me,
        is_paused=lambda: bool(components.crawler.pause_reasons) or runtime.leaving,
        now=resources.clock.now,
    )
    policy = (
        DrainPolicy(blocks, learns, resources.random)
        if job.lends_by in ("drain", "predictive")
        else LevelPolicy(blocks, resources.config.work_area)
    )
    first_at = asyncio.get_running_loop().time() + (job.update_s if first_update_s is None else first_update_s)
    return Balancer(
        policy=policy,
        blocks=blocks,
        updates=UpdateSchedule(first_at, job.update_s),
        counters=resources.counters,
        learning=learns,
    )
