"""Builds the crawl of one peer from its job.

`build` is called once a full peer or a leaf knows what to crawl. `PeerResources` are the parts of the peer that exist
before; `PeerCallbacks` are the questions that the crawl asks the peer.

Tests: tests/peer/test_peer.py
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from aiohttp.abc import AbstractResolver

from kadcrawl.crawl.capacity import Capacity
from kadcrawl.crawl.clocks.addresses import Addresses
from kadcrawl.crawl.clocks.clock_holder import ClockHolder
from kadcrawl.crawl.content.html_links import LinkExtractor
from kadcrawl.crawl.content.near_duplicates import NearDuplicates
from kadcrawl.crawl.content.record_extractor import Extraction
from kadcrawl.crawl.cookies.log_in import LoggingIn
from kadcrawl.crawl.cookies.login_hook import CallHook, call_login_hook
from kadcrawl.crawl.cookies.sessions import Sessions
from kadcrawl.crawl.cookies.site_cookies import SiteCookies
from kadcrawl.crawl.crawl_limits import CrawlLimits, LoanLimits
from kadcrawl.crawl.crawler import Crawler
from kadcrawl.crawl.dependencies import CrawlDependencies, CrawlHooks, CrawlSource, CrawlStore
from kadcrawl.crawl.fetch.address_guard import Guard
from kadcrawl.crawl.fetch.fetcher import Fetcher, FormFetching, user_agent
from kadcrawl.crawl.fetch.poison_pages import PoisonPages
from kadcrawl.crawl.fetch.refused_addresses import RefusedAddresses
from kadcrawl.crawl.fetch.request_rules import RequestRules
from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.frontier.other_requests import LOANS_OUT, NO_LOANS, OtherRequests
from kadcrawl.crawl.frontier.unproven_quota import UnprovenQuota
from kadcrawl.crawl.links.forwarder import AcceptHere, Forwarder, Owners
from kadcrawl.crawl.links.intake import Intake, IntakeEvents, IntakeLimits
from kadcrawl.crawl.output.counters import Counters
from kadcrawl.crawl.output.outputs import Outputs
from kadcrawl.crawl.output.page_stream import PageFeed
from kadcrawl.crawl.output.warc import warc_name
from kadcrawl.crawl.reach.build import Reach, Swarm, build_reach
from kadcrawl.crawl.recrawl.policy import Recrawl
from kadcrawl.crawl.recrawl.rounds import Rounds
from kadcrawl.crawl.recrawl.scheduler import Recrawling
from kadcrawl.crawl.restored_limits import restored_limits
from kadcrawl.crawl.robots.cache import RobotsCache
from kadcrawl.crawl.scope.partitioner import Partitioner
from kadcrawl.crawl.scope.scope import Scope
from kadcrawl.crawl.shared_rules import SharedRules
from kadcrawl.crawl.url_traces import UrlTraces
from kadcrawl.keys import Key
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.cell_messages import RobotsRecord
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.settings.config import Config
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_limits import limits_with
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.page_rules import PageRules
from kadcrawl.settings.recrawl_checks import GRAINS_DEFAULT
from kadcrawl.settings.site_rules import robots_ignored
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.store.bloom.expiring_filter import Period
from kadcrawl.store.store import Store
from kadcrawl.system.clock import Clock
from kadcrawl.version import VERSION

if TYPE_CHECKING:  # A leaf does without the rooms of a full peer.
    from kadcrawl.crawl.clocks.clock_host import ClockHost
    from kadcrawl.crawl.proxies.health_checks import ProxyChecks
    from kadcrawl.crawl.proxies.pool import Proxies

NEVER_S = 100 * 366 * 86_400.0
"""An epoch that does not end: a job that fetches each page once keeps all fingerprints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerResources:
    """The parts of a peer that exist before its crawl is built."""

    config: Config
    store: Store
    owners: Owners
    client: LinkClient
    activity: Activity
    counters: Counters
    clock: Clock
    started_at: float
    """The second of `clock` at which this run began, after the end of any earlier run."""
    random: Random
    resolver: Callable[[], AbstractResolver]
    extraction: Extraction | None
    """The extraction of records, if the job has rules for records."""
    poison_pages: PoisonPages
    traces: UrlTraces | None = None
    """The traces of URLs, if the peer records them."""
    call_login_hook: CallHook = call_login_hook
    """Calls the login hooks of the job. By default it starts a process for each login."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerCallbacks:
    """The questions that a crawl asks its peer."""

    own_pages: CrawlHooks
    """The callbacks of the crawler of the peer's own pages."""
    accept_here: AcceptHere
    """Accepts links of cells that this peer owns."""
    seeds_fingerprint: Callable[[], int]
    """Returns the fingerprint of the seeds that the scope knows (peer/swarm/swarm_state.py)."""
    scope_is_final: Callable[[], bool] = lambda: True
    """Returns whether no seeds are known to be on their way here."""
    copying: Callable[[], int] = lambda: 0
    """Returns the number of changes on their way to backups."""
    clock_host: "Callable[[], ClockHost | None]" = lambda: None
    """Returns the part that keeps the shared clocks of this peer's cells. None for a leaf."""
    has_met_peers: Callable[[], bool] = lambda: True
    """Returns whether this directory has ever known another peer."""
    swarm: Swarm | None = None
    """The other peers, which fetch what this peer cannot reach. None for a leaf."""


@dataclass(frozen=True, slots=True)
class CrawlComponents:
    """The parts of a peer that depend on the job."""

    job: Job
    scope: Scope
    site_settings: SiteSettings
    partitioner: Partitioner
    frontier: Frontier
    unproven_quota: UnprovenQuota
    """The quota that `frontier` shares with the frontier of borrowed pages."""
    intake: Intake
    forwarder: Forwarder
    crawl_limits: CrawlLimits
    fetcher: Fetcher
    outputs: Outputs
    page_feed: PageFeed
    crawler: Crawler
    crawler_over: "CrawlerOver"
    """Makes another crawler with the same parts."""
    rounds: Rounds | None
    """The rounds of pages, or None if the job keeps fingerprints."""
    recrawling: Recrawling | None
    """The visits to come, if pages are fetched again."""
    proxy_checks: "ProxyChecks | None"
    """The checks of proxies, if pages are fetched through proxies."""
    refused: RefusedAddresses
    reach: Reach
    has_time: Callable[[], bool]
    """Returns whether this peer crawls by URL and has enough to do while pages wait for their links."""
    clocks: ClockHolder | None
    """The leases of shared clocks, if sites of the job may have one clock."""
    shared_rules: SharedRules | None
    """The rules of hosts that this peer reads for others, if each URL is a site."""


CrawlerOver = Callable[[CrawlStore, Frontier, Activity, CrawlHooks], Crawler]
"""(store, frontier, activity, hooks) -> a crawler of the frontier's entries."""


def period_of(job: Job) -> Period | None:
    """Return the time for which a job keeps fingerprints of DONE keys, or None if it keeps the keys.

    Raises ConfigError if the package for the filters is missing.
    """
    if job.history == "exact":
        return None
    if job.recrawl_after_s is None:
        return Period(NEVER_S, 1, filters=job.filters)
    epoch_s = job.grain_s or job.recrawl_after_s / GRAINS_DEFAULT
    return Period(epoch_s, job.grains, filters=job.filters, calendar=job.calendar_grain)


def build(job: Job, resources: PeerResources, callbacks: PeerCallbacks) -> CrawlComponents:
    """Build the crawl of a peer. Raises OSError if the outputs cannot be opened."""
    store, clock = resources.store, resources.clock
    limits = limits_with(resources.config.limits, job.shared_limits)
    store.begin(job.bits, period_of(job), clock.now)
    scope = Scope(job, limits, callbacks.scope_is_final)
    site_settings = scope.site_settings
    traces = resources.traces
    partitioner = Partitioner(job.partition, job.bits)
    quota = UnprovenQuota(limits)
    earlier_until = resources.started_at if store.saved_time.has_run else 0.0
    has_lent = store.meta.get(LOANS_OUT) != NO_LOANS
    others = OtherRequests(earlier_until, has_lent, callbacks.has_met_peers)
    last_seq = None if job.recrawl_after_s is None else lambda: store.frontier.last_seq
    frontier = Frontier(store, limits, site_settings, others, unproven_quota=quota, last_seq=last_seq)
    crawl_limits = restored_limits(job, resources.store.meta, resources.counters, resources.clock.now)
    recrawling, rounds = _rounds(job, resources, callbacks, frontier, crawl_limits, lambda: crawler.wake())
    intake = Intake(
        store,
        frontier,
        scope,
        resources.counters,
        resources.activity,
        IntakeLimits(job.max_depth is not None, site_settings.pages_max, job.path_queries_max),
        _intake_events(lambda: crawler.wake(), crawl_limits.pages.note_elsewhere, recrawling, rounds, traces),
    )
    capacity = Capacity(limits)

    def has_time() -> bool:
        # By host few links leave their peer, so that waiting would save little, and a kill would repeat more pages.
        return job.partition == "url" and not capacity.is_idle(store.pending)

    store.journal.take_time(has_time)
    forwarder = Forwarder(
        resources.owners,
        resources.client,
        intake,
        partitioner,
        limits,
        job.max_depth is not None,
        clock.now,
        is_open=frontier.is_open,
        accept_here=callbacks.accept_here,
        seeds_fingerprint=callbacks.seeds_fingerprint,
        hurries=lambda: capacity.is_idle(store.pending),
        # Links wait longer only by URL. By host that would save few messages, and a kill would repeat their pages.
        is_laden=lambda: job.partition == "url" and capacity.is_laden(frontier.pending),
    )
    refused = RefusedAddresses()
    fetcher, fetching, testing, proxy_checks = _fetchers(job, resources, limits, site_settings, refused)
    reach = build_reach(
        fetching,
        fetcher,
        testing,
        callbacks.swarm,
        wait_s=job.network_wait_s,
        client=resources.client,
        limits=limits,
        meta=store.meta,
        random=resources.random,
        now=clock.now,
    )
    clocks = _clocks(job, resources, partitioner, fetcher, site_settings, callbacks.clock_host)
    parts = CrawlDependencies(
        by_depth=job.max_depth is not None,
        site_settings=site_settings,
        limits=limits,
        clock=clock,
        random=resources.random,
        crawl_limits=crawl_limits,
        fetcher=reach.watched,
        direct=reach.alone,
        extractor=LinkExtractor(limits, obeys_nofollow=job.nofollow == "obey", agent=job.robots_agent),
        scope=scope,
        forwarder=forwarder,
        outputs=_outputs(job, resources),
        counters=resources.counters,
        capacity=capacity,
        page_feed=PageFeed(),
        page_rules=PageRules(job.roles, job.records),
        poison_pages=resources.poison_pages,
        pause_reasons=set(),
        rounds=rounds,
        extraction=resources.extraction,
        near_duplicates=NearDuplicates() if job.twins == "skip" else None,  # Of all pages fetched here, for any owner.
        clocks=clocks,
        traces=traces,
    )
    if traces is not None:
        traces.begin(resources.owners.me.id.hex(), job.name)
        forwarder.acknowledged.append(traces.forwarded)

    of_loans = replace(parts, crawl_limits=LoanLimits(crawl_limits))

    def crawler_over(source: CrawlStore, front: Frontier, activity: Activity, hooks: CrawlHooks) -> Crawler:
        return Crawler(of_loans, CrawlSource(source, front, RobotsCache(store, limits), activity), hooks)

    cookies = SiteCookies(store.sites, store.cell_of, site_settings)
    sessions = Sessions(cookies, site_settings, resources.config.secrets)
    logging_in = LoggingIn(sessions, frontier, clock, resources.call_login_hook, limits)
    own = CrawlSource(store, frontier, RobotsCache(store, limits), resources.activity, cookies, sessions, logging_in)
    crawler = Crawler(replace(parts, fetcher=reach.own), own, callbacks.own_pages)
    return CrawlComponents(
        job=job,
        scope=scope,
        site_settings=site_settings,
        partitioner=partitioner,
        frontier=frontier,
        unproven_quota=quota,
        intake=intake,
        forwarder=forwarder,
        crawl_limits=crawl_limits,
        fetcher=fetcher,
        outputs=parts.outputs,
        page_feed=parts.page_feed,
        crawler=crawler,
        crawler_over=crawler_over,
        rounds=rounds,
        recrawling=recrawling,
        proxy_checks=proxy_checks,
        refused=refused,
        reach=reach,
        has_time=has_time,
        clocks=clocks,
        shared_rules=SharedRules(parts, reach.watched, store.sites, own.robots) if job.partition == "url" else None,
    )


def _rounds(
    job: Job,
    resources: PeerResources,
    callbacks: PeerCallbacks,
    frontier: Frontier,
    crawl_limits: CrawlLimits,
    wake: Callable[[], None],
) -> tuple[Recrawling | None, Rounds | None]:
    """Return the visits to come, if the job fetches pages again, and the rounds. Both need the keys of done pages."""
    if job.history != "exact":
        return None, None
    store, clock = resources.store, resources.clock
    if job.recrawl_after_s is None:
        return None, Rounds(None, store, clock.now, lambda key: None)
    recrawling = Recrawling(
        store,
        frontier,
        resources.activity,
        clock,
        resources.counters,
        copying=callbacks.copying,
        is_over=lambda: bool(crawl_limits.reached),
        wake=wake,
    )
    return recrawling, Rounds(Recrawl(job), store, clock.now, recrawling.visited)


def _intake_events(
    wake: Callable[[], None],
    done_elsewhere: Callable[[Key], None],
    recrawling: Recrawling | None,
    rounds: Rounds | None,
    traces: UrlTraces | None,
) -> IntakeEvents:
    events = IntakeEvents(changed=wake, done_elsewhere=done_elsewhere)
    if recrawling is not None and rounds is not None:
        events = replace(events, visited=recrawling.visited, modified=rounds.modified)
    return events if traces is None else replace(events, accepted=traces.accepted)


def _fetchers(
    job: Job, resources: PeerResources, limits: Limits, site_settings: SiteSettings, refused: RefusedAddresses
) -> "tuple[Fetcher, FormFetching, tuple[Fetcher, FormFetching], ProxyChecks | None]":
    """Return the direct fetcher, the fetcher of pages, the two of network tests, and the checks of proxies if any."""
    config, clock = resources.config, resources.clock
    guard = Guard(config.allow_networks, lambda address: refused.add(address, clock.now()))
    agent, own = user_agent(VERSION, job.contact), user_agent(VERSION)

    def fetcher_with(limits: Limits, rules: RequestRules | None = None) -> Fetcher:
        return Fetcher(
            *(limits, guard, agent, clock.now, resources.resolver, job.by_proxies, resources.poison_pages, rules),
            pins=job.per_ip,
        )

    rules = RequestRules(limits, own, site_settings, config.secrets)
    fetcher, tester = fetcher_with(limits, rules), fetcher_with(limits, rules)
    table = resources.store.proxy_health
    table.keep_pools([*([""] if job.proxied_by_default else []), *(pool.name for pool in job.pools)])
    if not job.by_proxies:
        return fetcher, fetcher, (tester, tester), None
    # Not at the top, as most crawls have no proxies.
    from kadcrawl.crawl.proxies.fetcher import ThroughProxies
    from kadcrawl.crawl.proxies.health_checks import ProxyChecks
    from kadcrawl.crawl.proxies.health_memory import HealthMemory, fingerprint_key
    from kadcrawl.crawl.proxies.pool import Proxies

    key = fingerprint_key(resources.store.meta, resources.random)

    def make_pool(name: str) -> "Proxies":
        memory = HealthMemory(name, table, key)
        return Proxies(resources.random, limits.proxy_verify_s, limits.proxy_retry_s, memory)

    checks = ProxyChecks(job, make_pool, fetcher_with, limits, clock.now)
    fetching, testing = (
        ThroughProxies(one, checks.pools, job.partition, clock.now, site_settings.pool) for one in (fetcher, tester)
    )
    return fetcher, fetching, (tester, testing), checks


def _clocks(
    job: Job,
    resources: PeerResources,
    partitioner: Partitioner,
    fetcher: Fetcher,
    site_settings: SiteSettings,
    host: "Callable[[], ClockHost | None]",
) -> ClockHolder | None:
    """Return the leases of shared clocks, if sites of the job may have one clock."""
    if not job.shares_clocks:
        return None
    addresses = Addresses(fetcher.resolve) if job.per_ip else None
    limits = limits_with(resources.config.limits, job.shared_limits)
    shared = (resources.owners, resources.client, partitioner, limits, site_settings)

    def learn_rules(record: RobotsRecord) -> None:
        resources.store.sites.learn_robots(record.origin, record.rules, resources.clock.now() - record.age_s)

    # By host or domain, a robots.txt is read by the owner of its site alone.
    takes_rules = learn_rules if job.partition == "url" else None
    return ClockHolder(*shared, addresses=addresses, host=host, learn_rules=takes_rules)


def _robots(job: Job) -> str:
    """Return the treatment of robots.txt for the warcinfo record."""
    ignored = robots_ignored(job.sites)
    return f"obey, but ignore for {', '.join(ignored)}" if ignored else "obey"


def _outputs(job: Job, resources: PeerResources) -> Outputs:
    peer = resources.owners.me.id.hex()
    return Outputs(
        resources.config.data,
        warc_name(job.name, peer),
        {
            "software": f"kadcrawl/{VERSION}",
            "isPartOf": job.name,
            "http-header-user-agent": SiteSettings(job).user_agent(None, user_agent(VERSION)),
            "robots": _robots(job),
        },
        peer,
        resources.store,
        resources.config.limits,
        resources.random,
        resources.clock.now,
        with_simhash=job.simhash,
        rules=PageRules(job.roles, job.records),
    )
