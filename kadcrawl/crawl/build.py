"""The crawl rooms of one peer, built from its job: what `Peer` puts together once it knows what to crawl.

Tests: tests/peer/test_peer.py
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import msgspec
from aiohttp.abc import AbstractResolver

from kadcrawl.crawl.content.html_links import LinkExtractor
from kadcrawl.crawl.content.near_duplicates import NearDuplicates
from kadcrawl.crawl.content.record_extractor import Extraction
from kadcrawl.crawl.crawler import Crawler, CrawlStore
from kadcrawl.crawl.fetch.address_guard import Guard
from kadcrawl.crawl.fetch.fetcher import Fetcher, Fetching, user_agent
from kadcrawl.crawl.fetch.poison_pages import PoisonPages
from kadcrawl.crawl.fetch.refused_addresses import RefusedAddresses
from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.links.forwarder import AcceptHere, Forwarder, Owners
from kadcrawl.crawl.links.intake import Intake
from kadcrawl.crawl.output.counters import Counters
from kadcrawl.crawl.output.outputs import Outputs
from kadcrawl.crawl.output.warc import warc_name
from kadcrawl.crawl.page_budget import Budget
from kadcrawl.crawl.proxies.fetcher import ThroughProxies
from kadcrawl.crawl.proxies.health_checks import ProxyChecks
from kadcrawl.crawl.proxies.pool import Proxies
from kadcrawl.crawl.recrawl.policy import Recrawl
from kadcrawl.crawl.recrawl.rounds import Rounds
from kadcrawl.crawl.robots.cache import RobotsCache
from kadcrawl.crawl.scope.partitioner import Partitioner
from kadcrawl.crawl.scope.scope import Scope
from kadcrawl.link.client import LinkClient
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.settings.config import GRAINS_DEFAULT, Config, Job, Limits
from kadcrawl.settings.page_rules import PageRules
from kadcrawl.store.bloom.expiring_filter import Period
from kadcrawl.store.store import Store
from kadcrawl.system.clock import Clock
from kadcrawl.version import VERSION

NEVER_S = 100 * 366 * 86_400.0
"""A grain that does not end: fingerprints of pages that are fetched once are kept."""


@dataclass(frozen=True, slots=True)
class CrawlComponents:
    """Everything that depends on the job."""

    job: Job
    scope: Scope
    partitioner: Partitioner
    frontier: Frontier
    intake: Intake
    forwarder: Forwarder
    budget: Budget
    fetcher: Fetcher
    outputs: Outputs
    crawler: Crawler
    crawler_over: "CrawlerOver"
    """Makes another crawler with the same parts."""
    rounds: Rounds | None
    """If pages are fetched again."""
    proxy_checks: ProxyChecks | None
    """If pages are fetched through proxies."""
    refused: RefusedAddresses


CrawlerOver = Callable[[CrawlStore, Frontier, Activity, Callable[[], bool], Limits], Crawler]
"""(store, frontier, activity, may_start, limits) -> a crawler of what they give."""


def period_of(job: Job) -> Period | None:
    """Return for how long a job keeps which fingerprints of what is done; None if it keeps the keys.

    Raises ConfigError if the package they need is missing.
    """
    if job.history == "exact":
        return None
    if job.recrawl_after_s is None:
        return Period(NEVER_S, 1, filters=job.filters)
    return Period(job.grain_s or job.recrawl_after_s / GRAINS_DEFAULT, job.grains, filters=job.filters)


def build(
    *,
    job: Job,
    config: Config,
    directory: Path,
    store: Store,
    owners: Owners,
    client: LinkClient,
    activity: Activity,
    counters: Counters,
    clock: Clock,
    random: Random,
    resolver: Callable[[], AbstractResolver],
    may_start: Callable[[], bool],
    accept_here: AcceptHere,
    extraction: Extraction | None,
    poison_pages: PoisonPages,
) -> CrawlComponents:
    """Put the crawl rooms together. Raises OSError if the outputs cannot be opened.

    `may_start` is asked before each request; `accept_here` takes links of cells owned here.
    """
    store.begin(job.cell_bits, period_of(job), clock.now)
    limits = config.limits
    by_depth = job.max_depth is not None
    scope = Scope(job, limits)
    rules = PageRules(job.roles, job.records)
    partitioner = Partitioner(job.partition, job.cell_bits)
    frontier = Frontier(store, limits, job.delay_s, clock.now() if store.saved_time.has_run else 0.0)
    intake = Intake(store, frontier, scope, counters, activity, by_depth, job.site_pages_max, job.path_queries_max)
    forwarder = Forwarder(
        owners,
        client,
        intake,
        partitioner,
        limits,
        by_depth,
        clock.now,
        is_open=frontier.is_open,
        accept_here=accept_here,
    )
    granted = store.meta.read("granted", int) or 0
    known = store.meta.read("grants", msgspec.msgpack.Decoder(dict[bytes, int]).decode)
    budget = Budget(job.max_pages, granted, begun=counters.tried, known=known)
    agent = user_agent(VERSION, job.contact)
    refused = RefusedAddresses()
    guard = Guard(config.allow_networks, lambda address: refused.add(address, clock.now()))

    def fetcher_with(limits: Limits) -> Fetcher:
        return Fetcher(limits, guard, agent, clock.now, resolver, job.by_proxies, poison_pages)

    fetcher = fetcher_with(limits)
    fetching: Fetching = fetcher
    proxy_checks: ProxyChecks | None = None
    if job.by_proxies:
        pool = Proxies(random, limits.proxy_verify_s, limits.proxy_retry_s)
        fetching = ThroughProxies(fetcher, pool, job.partition, clock.now)
        proxy_checks = ProxyChecks(job, pool, fetcher_with, limits, clock.now)
    peer = owners.me.id.hex()
    outputs = Outputs(
        directory,
        warc_name(job.name, peer),
        {
            "software": f"kadcrawl/{VERSION}",
            "isPartOf": job.name,
            "http-header-user-agent": agent,
            "robots": "obey",
        },
        peer,
        store,
        limits,
        random,
        with_simhash=job.simhash,
        rules=rules,
    )
    extractor = LinkExtractor(limits)
    twins = NearDuplicates() if job.twins == "skip" else None

    comes_back = job.recrawl_after_s is not None and job.history == "exact"
    rounds = Rounds(Recrawl(job), store, clock.now) if comes_back else None

    def crawler_over(
        source: CrawlStore, front: Frontier, activity: Activity, may_start: Callable[[], bool], limits: Limits
    ) -> Crawler:
        return Crawler(
            by_depth=by_depth,
            may_start=may_start,
            limits=limits,
            delay_s=job.delay_s,
            retries=job.retries,
            clock=clock,
            random=random,
            store=source,
            frontier=front,
            robots=RobotsCache(store, limits),
            budget=budget,
            fetcher=fetching,
            extractor=extractor,
            scope=scope,
            forwarder=forwarder,
            outputs=outputs,
            counters=counters,
            activity=activity,
            rounds=rounds,  # With them nothing is lent, so all crawlers are over the store.
            rules=rules,
            extraction=extraction,
            near_duplicates=twins,  # Of what this peer fetches, for whomever.
            poison_pages=poison_pages,
        )

    crawler = crawler_over(store, frontier, activity, may_start, limits)
    intake.wake = crawler.wake
    if rounds is not None:
        intake.on_modified = rounds.modified
    return CrawlComponents(
        job,
        scope,
        partitioner,
        frontier,
        intake,
        forwarder,
        budget,
        fetcher,
        outputs,
        crawler,
        crawler_over,
        rounds,
        proxy_checks,
        refused,
    )
