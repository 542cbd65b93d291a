"""The parts a crawler is made of: those that all crawlers of a peer share, its source of URLs, and its callbacks.

Tests: tests/crawl/test_crawler.py
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Protocol

from kadcrawl.crawl.capacity import Capacity
from kadcrawl.crawl.clocks.clock_holder import ClockHolder
from kadcrawl.crawl.content.html_links import LinkExtractor
from kadcrawl.crawl.content.near_duplicates import NearDuplicates
from kadcrawl.crawl.content.record_extractor import Extraction
from kadcrawl.crawl.cookies.log_in import LoggingIn
from kadcrawl.crawl.cookies.sessions import Sessions
from kadcrawl.crawl.cookies.site_cookies import SiteCookies
from kadcrawl.crawl.crawl_limits import AttemptLimits
from kadcrawl.crawl.fetch.fetcher import FormFetching
from kadcrawl.crawl.fetch.poison_pages import PoisonPages
from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.links.forwarder import Forwarder
from kadcrawl.crawl.output.counters import Counters
from kadcrawl.crawl.output.outputs import Outputs
from kadcrawl.crawl.output.page_stream import PageFeed
from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.crawl.reach.relayed_fetcher import PageFetching
from kadcrawl.crawl.recrawl.rounds import Rounds
from kadcrawl.crawl.robots.cache import RobotsCache
from kadcrawl.crawl.scope.scope import Scope
from kadcrawl.crawl.url_traces import UrlTraces
from kadcrawl.keys import Cell, Key
from kadcrawl.overlay.waves.activity import Activity
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.page_rules import PageRules
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.store.visit import Visit
from kadcrawl.system.clock import Clock


class CrawlStore(Protocol):
    """The store of a crawler's URLs, as far as the crawler needs it."""

    @property
    def pending(self) -> int: ...
    def cell_of(self, key: Key) -> Cell: ...
    def latest(self, entry: FrontierEntry) -> FrontierEntry: ...
    def rounds(self, key: Key) -> int: ...
    def last_visit(self, key: Key) -> Visit | None: ...
    def finish(
        self, entry: FrontierEntry, line: bytes, records: bytes = b"", visit: Visit | None = None, rounds: int = 0
    ) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlDependencies:
    """The parts that all crawlers of one peer share."""

    by_depth: bool
    """The job limits depth, so the shortest known path to a URL counts."""
    site_settings: SiteSettings
    limits: Limits
    clock: Clock
    random: Random
    crawl_limits: AttemptLimits
    fetcher: PageFetching
    direct: FormFetching
    """Fetches without the help of other peers, which must not see the cookies of a site."""
    extractor: LinkExtractor
    scope: Scope
    forwarder: Forwarder
    outputs: Outputs
    counters: Counters
    capacity: Capacity
    page_feed: PageFeed
    page_rules: PageRules
    poison_pages: PoisonPages
    pause_reasons: set[PauseReason]
    """Reasons to start no request. The crawl goes on when there are none."""
    rounds: Rounds | None
    """The rounds of pages, or None if the job keeps fingerprints."""
    extraction: Extraction | None
    """Extracts the records of pages, if the job has rules for records."""
    near_duplicates: NearDuplicates | None
    """The pages seen by this peer, if the job skips the links of near duplicates."""
    clocks: ClockHolder | None = None
    """The leases of shared clocks, if several sites of the job may have one clock."""
    traces: UrlTraces | None = None
    """The traces of URLs, if the peer records them."""


@dataclass(frozen=True, slots=True)
class CrawlSource:
    """The URLs of one crawler: its own pages of the peer, or borrowed pages."""

    store: CrawlStore
    frontier: Frontier
    robots: RobotsCache
    activity: Activity
    cookies: SiteCookies | None = None
    """The cookies of its sites, unless the pages are borrowed."""
    sessions: Sessions | None = None
    """The sessions of sites with a login, together with the cookies."""
    logging_in: LoggingIn | None = None
    """The login at these sites, together with the sessions."""


def _never(cell: Cell) -> bool:
    return False


def _always(cell: Cell) -> bool:
    return True


async def _at_once(cell: Cell) -> bool:
    return False


def _nothing(cell: Cell) -> None:
    pass


@dataclass(slots=True, kw_only=True)
class CrawlHooks:
    """The callbacks of one crawler."""

    may_start: Callable[[], bool]
    """Returns whether a request may start, right before each request. Whoever makes it True calls `Crawler.wake`."""
    prepare: Callable[[Cell], Awaitable[bool]] = _at_once
    """Awaited at the beginning of each attempt at a page of a cell. Returns whether it took time."""
    may_ask: Callable[[Cell], bool] = _always
    """Returns whether a request for a page of a cell may start, right before each request."""
    on_send: Callable[[Cell], None] = _nothing
    """Receives the cell of a request that is sent now, after its attempt was prepared and got a connection."""
    no_backup_reachable: Callable[[Cell], bool] = _never
    """Returns whether, for the moment, no other peer would learn which pages of a cell are fetched."""
    on_refused: Callable[[str], None] | None = None
    """Receives the site of a page after an answer 429 or 503, so that other peers hear of the refusal."""
    on_unreached: Callable[[str], None] | None = None
    """Receives the site of a page that perhaps only this machine cannot reach. The page is then not finished here."""

    def lets_ask(self, cell: Cell) -> bool:
        """Return whether a request for a page of a cell may start now."""
        return self.may_start() and self.may_ask(cell)

    def lets_send(self, cell: Cell) -> bool:
        """Return whether a request for a page of a cell, all else being ready, is sent now."""
        if not self.lets_ask(cell):
            return False
        self.on_send(cell)
        return True
