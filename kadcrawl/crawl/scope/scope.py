"""The scope decides which URLs belong to the crawl. A decision: no I/O, no clock.

A URL is in scope when it lies near a seed (`Job.scope`), matches no ``exclude``, matches an ``include`` if there are
any, is not too deep or too long, and is not built like the URL of a trap (traps.py). A seed is always near itself,
included, and no trap, as somebody asked for it. ``exclude`` binds even seeds, and so does a rule that turns a site off,
or the order of a person that excludes a site.
The job names the first seeds. The others are the URLs that no link led to, and the scope knows their reach
(seed_reach.py). Nearness compares sites, so http and https are near to each other. So are example.org and
www.example.org, as most sites redirect one of them to the other. Where sitemaps are followed, a URL named like a
sitemap need be neither below the path of a seed nor included, as a sitemap is no page but lists pages. The site of the
proxies' health-check page is never in scope, as that page is asked beside all clocks. The reasons are words of the page
log.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Set
from typing import Literal

from kadcrawl.crawl.scope.seed_reach import SeedReach, near_name
from kadcrawl.crawl.scope.sitemap_urls import named_like_one
from kadcrawl.crawl.scope.traps import Trap, Traps
from kadcrawl.crawl.scope.url_rules import UrlRules
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.urls import Partition, path_of, site_of

Ordered = Literal["site_excluded", "site_dropped", "scope_removed"]
"""Reasons that an order of a person gives while the crawl runs."""
Reason = Literal["length", "depth", "scope", "exclude", "include", "proxy_judge", "site_off"] | Ordered | Trap
SITE_DROPPED: Reason = "site_dropped"
"""The reason of a URL that was pending when a person had the pending URLs of its site dropped."""
NEAR_ORIGINS_MAX = 10_000
"""Limit on the remembered origins near a seed: for links to them no name has to be looked up."""
LIMITS: frozenset[Reason] = frozenset({"length", "depth", "path_segments", "path_repeats", "query_parameters"})
"""Reasons that keep a crawl from going on for ever. The other reasons describe the crawl's subject."""


class Scope:
    """The bounds of one crawl, grown by each seed."""

    def __init__(
        self, job: Job, limits: Limits | None = None, scope_is_final: Callable[[], bool] | None = None
    ) -> None:
        """`scope_is_final` returns whether no seeds are known to be on their way here."""
        self.url_chars_max = (limits or Limits()).url_chars_max
        self.max_depth = job.max_depth
        self.kind = job.scope
        self.url_rules = UrlRules(job)
        self.site_settings = SiteSettings(job)
        self.honors_canonical = job.canonical == "honor"
        self._traps = Traps(job)
        # What counts as one site here.
        self._site_kind: Partition = "domain" if job.partition == "domain" else "host"
        self._health_check_site = site_of(job.proxy_judge, self._site_kind) if job.by_proxies else None
        self._include = tuple(map(re.compile, job.include))
        self._exclude = tuple(map(re.compile, job.exclude))
        self.scope_is_final = scope_is_final or (lambda: True)
        """Returns False while seeds may be on their way here, which may bring a URL into scope."""
        self.reach = SeedReach(job.scope)
        """The reach of seeds that the job does not name."""
        self._seeds: set[str] = set()
        self._sites: set[str] = set()
        self._near_origins: set[str] = set()
        """Origins whose site is that of a seed, as most links lead there. A seed is never taken away."""
        self._directories: dict[str, set[str]] = defaultdict(set)
        self.add_seeds(job.seeds)

    def add_seeds(self, urls: Iterable[str]) -> None:
        """Extend the scope to the URLs near these canonical URLs."""
        for url in urls:
            self._seeds.add(url)
            site = near_name(url, self.kind)
            self._sites.add(site)
            self._directories[site].add(_directory(url))

    @property
    def version(self) -> tuple[int, ...]:
        """Numbers that change when another URL may be in scope, or out of it."""
        return len(self._seeds), self.reach.digest, len(self.reach), self.site_settings.steering.version

    def allows(self, url: str, depth: int, hops: int | None = None) -> bool:
        """Say whether a canonical URL, found `depth` links from a seed, is to be crawled."""
        return self.why_not(url, depth, hops) is None

    def why_ends(self, entry: FrontierEntry) -> Reason | None:
        """Return the first reason to end a pending URL without a request, or None."""
        if self.site_settings.steering.drop_order(entry.site) > entry.drop_order:
            return SITE_DROPPED
        return self.why_not(entry.url, entry.depth, entry.hops)

    def why_not(self, url: str, depth: int, hops: int | None = None) -> Reason | None:
        """Return the first reason against crawling a canonical URL found `depth` links from a seed, or None.

        A record of the history has `hops` as well. At depth 0 and without hops it is of a seed.
        """
        if len(url) > self.url_chars_max:
            return "length"
        if self.max_depth is not None and depth > self.max_depth:
            return "depth"
        ordered = self.site_settings.steering.scope.verdict(url)
        if ordered is False:
            return "scope_removed"
        if ordered is None and not self.is_near(url):
            return "scope"
        if self.site_settings.is_off(url):
            return "site_off"
        if self.site_settings.steering.is_excluded(url):
            return "site_excluded"
        if self._exclude and self.excluded_by(url) is not None:
            return "exclude"
        if self._health_check_site is not None and site_of(url, self._site_kind) == self._health_check_site:
            return "proxy_judge"
        if self.is_seed(url, depth, hops):
            return None
        if ordered is None and self._include and self.included_by(url) is None and not self.is_sitemap(url):
            return "include"
        return self._traps.why_not(url)

    def is_seed(self, url: str, depth: int = 1, hops: int | None = None) -> bool:
        """Say whether this canonical URL is a seed: the job names it, or no link led to it."""
        return (depth == 0 and hops == 0) or url in self._seeds

    def segments_of(self, urls: Iterable[str]) -> list[bytes]:
        """Return the segments of reach that bring these canonical URLs into scope, if they are not."""
        return self.reach.segments_of(url for url in urls if not self.is_near(url))

    def is_sitemap(self, url: str) -> bool:
        """Return whether this canonical URL is named like a sitemap, or by a rule, and its site's are followed."""
        settings = self.site_settings
        return settings.follows_sitemaps(url) and (named_like_one(url) or url in settings.sitemap_urls(url))

    def excluded_by(self, url: str) -> str | None:
        """Return the first ``exclude`` that matches a canonical URL, or None."""
        return _first(self._exclude, url)

    def included_by(self, url: str) -> str | None:
        """Return the first ``include`` that matches a canonical URL, or None."""
        return _first(self._include, url)

    def is_near(self, url: str) -> bool:
        """Return whether a canonical URL lies near a seed."""
        if self.kind == "any" or url[: url.index("/", 8)] in self._near_origins:
            return True
        if self.kind == "prefix":
            directories = self._directories.get(near_name(url, self.kind))
            if directories is not None and (_is_below(path_of(url), directories) or self.is_sitemap(url)):
                return True
        elif near_name(url, self.kind) in self._sites:
            if len(self._near_origins) < NEAR_ORIGINS_MAX:
                self._near_origins.add(url[: url.index("/", 8)])
            return True
        return self.reach.covers(url, is_sitemap=self.kind == "prefix" and self.is_sitemap(url))


def _first(patterns: Iterable[re.Pattern[str]], url: str) -> str | None:
    for pattern in patterns:
        if pattern.search(url):
            return pattern.pattern
    return None


def _is_below(path: str, directories: Set[str]) -> bool:
    """Say whether a path, or one above it, is among these directories: thousands of them cost no more than one."""
    path = path.partition("?")[0]
    end = path.find("/") + 1
    while end:
        if path[:end] in directories:
            return True
        end = path.find("/", end) + 1
    return False


def _directory(url: str) -> str:
    """Return the path of a canonical URL up to its last slash, which the links beside it share."""
    path = path_of(url).partition("?")[0]
    return path[: path.rindex("/") + 1]
