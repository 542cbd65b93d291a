"""`Job`: the settings of a crawl that are the same on every peer.

The person who starts a swarm defines the job once, and every joiner receives it. Two peers with different jobs would
disagree on owners and manners. A job is checked when it is made.

Tests: tests/settings/test_job_file.py, tests/settings/test_limits.py
"""

import math
from dataclasses import dataclass, field
from typing import Literal, get_args

from kadcrawl.settings.job_limits import LimitPairs, check_limits
from kadcrawl.settings.limits import require
from kadcrawl.settings.page_rules import RULES_CHARS_MAX, PageRules, RecordRule, RoleRule, check_pattern, check_rules
from kadcrawl.settings.parameter_sets import check_parameters
from kadcrawl.settings.proxy_list import ProxyPool, check_proxies
from kadcrawl.settings.recrawl_checks import CALENDAR_GRAINS_S, GRAINS_DEFAULT, CalendarGrain, check_recrawl
from kadcrawl.settings.request_headers import check_agent, check_headers, check_token, token_of
from kadcrawl.settings.site_rules import SiteRule, check_sites, login_hooks, recrawl_bounds_s
from kadcrawl.settings.trust import check_authorities
from kadcrawl.settings.value_types import check_types
from kadcrawl.urls import Partition

ScopeKind = Literal["host", "domain", "prefix", "any"]
Balance = Literal["auto", "level", "drain", "predictive", "off"]
PartitionSolver = Literal["exact", "pso"]
LendsBy = Literal["level", "drain", "predictive", "off"]
SessionIds = Literal["strip", "keep"]
Canonical = Literal["ignore", "honor"]
History = Literal["exact", "bloom"]
Filters = Literal["pybloom", "rbloom"]
TwinLinks = Literal["follow", "skip"]
Nofollow = Literal["obey", "ignore"]
_CHOICES = {
    "scope": ScopeKind,
    "partition": Partition,
    "session_ids": SessionIds,
    "canonical": Canonical,
    "nofollow": Nofollow,
    "twins": TwinLinks,
    "balance": Balance,
    "solver": PartitionSolver,
}
"""The fields with a choice of words. `_check_history` checks the others."""

COUNT_MAX = 2**53
"""Limit on numbers of links, pages or URLs, for which messages and files have room."""
MAX_TIME_S = 3660 * 86_400.0
"""Largest limit on the time of a crawl: the longest period of a recrawl."""
SEEDS_MAX = 10_000
"""Limit on the seeds of a job, which travels whole to every joiner."""
SEEDS_CHARS_MAX = 1_000_000
"""Limit on the characters of all seeds together, so that they fit one message (`Limits.message_bytes_max`)."""
REFUSALS_MAX = 1_000_000
"""Largest limit on refusals in a row."""
COPIES_MIN, COPIES_MAX = 2, 5
"""Limits on the peers that hold each record. With one copy, every death would lose records."""
URL_PARTS_MAX = 10_000
"""Largest limit on segments and parameters, equal to no limit: no canonical URL (urls.py) has so many."""


CELL_BITS, CELL_BITS_BY_URL = 16, 10
"""Number of bits of a key that name its cell, if the job does not say it: sites by host, and URLs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The pages that a swarm crawls, and the manners of the crawl: the same on every peer.

    Raises ConfigError for a value out of its limits, and for values that contradict each other.
    """

    name: str = "crawl"
    """Name of the crawl in WARC files and logs, 1 to 100 characters. Peers of different names do not mix."""
    seeds: tuple[str, ...] = ()
    """Canonical URLs with which the crawl begins: at most 10,000, with 1,000,000 characters in all."""
    scope: ScopeKind = "host"
    """Links to follow: on a seed's `host`, on its registered `domain`, below its path (`prefix`), or `any`."""
    include: tuple[str, ...] = ()
    """Regular expressions that limit the crawl: a URL must match at least one of them. Seeds always pass.

    Empty for no limit. With `exclude`, at most 200,000 characters."""
    exclude: tuple[str, ...] = ()
    """Regular expressions of URLs that are not crawled."""
    max_depth: int | None = None
    """Limit on the number of links from a seed to a page, 0 or more. None for no limit."""
    max_pages: int | None = None
    """Limit on the number of URLs that the whole swarm fetches, 1 or more. None for no limit."""
    max_bytes: int | None = None
    """Limit on the bytes of bodies that the whole swarm receives, 1 or more. None for no limit.

    Bodies under way when it is reached are received whole (crawl/byte_budget.py). Not with leaves."""
    max_time_s: float | None = None
    """Limit on the seconds for which the swarm crawls, above 0 and at most 3,660 days. None for no limit.

    Time counts while at least one peer has URLs to fetch, also in earlier runs with a limit (crawl/crawl_time.py)."""
    path_segments_max: int = 32
    """Limit on the segments of a path, 1 to 10,000.

    Without it, a crawl would follow links that grow by one segment on each page for ever. Heritrix stops at 20, and the
    source trees of some honest sites end just below 20."""
    path_repeats_max: int = 3
    """Limit on consecutive repeats of a segment or a group of segments in a path, 1 to 10,000.

    For example, /a/b/a/b/a/b has /a/b three times. Heritrix stops after 2, and so loses archives by date, such as
    /2011/11/11/11."""
    query_parameters_max: int = 50
    """Limit on the parameters of a query, 1 to 10,000.

    Each click on a facet may add a parameter. Links for people have fewer than a tenth of these."""
    session_ids: SessionIds = "strip"
    """Treatment of session IDs in links: `strip` removes them, `keep` leaves them in the URL.

    A server that gives each visit a new ID has endlessly many URLs for every page."""
    strip_parameters: tuple[str, ...] = ()
    """Parameters that are taken out of the queries of links, by name, with one `*` for any characters, or by set.

    The sets are `utm`, `click-ids`, `mail` and `analytics` (settings/parameter_sets.py). Upper and lower case are the
    same. At most 1,000 names."""
    sort_query: bool = False
    """True to sort the parameters in the queries of links by name, so that `?b&a` and `?a&b` are one URL."""
    sitemaps: bool = False
    """True to fetch the sitemaps of each site, and to follow their URLs like links of all its pages.

    Off by default, as in Heritrix and Scrapy, because sitemaps list pages that no other page links to any more. With
    `recrawl_after_s`, pages that a sitemap reports as modified are fetched again sooner."""
    canonical: Canonical = "ignore"
    """Treatment of a page's canonical link: `ignore` treats it as any other link, `honor` as a redirect.

    With `honor`, a link to a simpler URL of the same domain replaces the page's other links
    (crawl/content/canonical_link.py)."""
    nofollow: Nofollow = "obey"
    """Treatment of links that say nofollow, by `rel`, a robots meta element or `X-Robots-Tag`.

    `obey` counts them and does not follow them, `ignore` follows them like all others."""
    site_pages_max: int | None = None
    """Limit on the URLs of one site, counted by its owner, 1 or more. None for no limit.

    It is the only bound on a site that generates pages, such as an endless calendar. Not with partition `url`, nor with
    history `bloom`."""
    path_queries_max: int | None = None
    """Limit on the URLs of one path that differ only in their query, 1 or more.

    Each owner of the site counts by itself. None for no limit. It bounds lists that can be filtered and sorted in any
    combination (crawl/scope/query_limits.py). Not with partition `url`."""
    twins: TwinLinks = "follow"
    """Treatment of the links of a near duplicate: its text is nearly that of an earlier page of its site.

    `follow` follows them, `skip` leaves them to the earlier page (crawl/content/near_duplicates.py). Not `skip` with
    partition `url`."""
    simhash: bool = False
    """True to write into each line of pages.jsonl the SimHash of the page's text, which finds near duplicates."""
    partition: Partition = "host"
    """Definition of a site: `host` with its port, the registered `domain`, or each `url` by itself (as in P1)."""
    cell_bits: int = 0
    """Number of bits of a key that name its cell, 1 to 24. 0 for 16, or for 10 by `url`.

    16 bits make 65,536 cells, enough to balance thousands of peers. By host the sites fill some of them, by URL the
    pages fill all, and each costs its holders messages: more than a hundred peers by URL need more bits than 10."""
    copies: int = 3
    """Number of peers that hold each record, 2 to 5: the owner and its backups.

    All of them but one may die at once, and no URL is lost. Each copy costs messages and disk (replication/)."""
    delay_s: float = 1.0
    """Seconds between two requests to one site, 0 to 86,400. A robots.txt may ask for more, never for less."""
    delay_factor: float = 0.0
    """Factor of an adaptive delay, 0 to 100: a site rests for this many times the seconds of its last answer.

    The rest is counted from the end of the answer, and is at least `delay_s` and at most `delay_most_s`. 0 for a delay
    that does not adapt. It is `delayFactor` of Heritrix, and AutoThrottle of Scrapy."""
    delay_most_s: float = 60.0
    """Longest rest by `delay_factor`, in seconds, from `delay_s` to 86,400. A robots.txt may ask for more."""
    per_ip: bool = False
    """True to keep the delay between two requests to one IP address, whatever sites are there (crawl/clocks/).

    Not with proxies, which look up the addresses themselves."""
    retries: int = 3
    """Number of retries after a temporary failure (time-out, reset, 429, 5xx), 0 to 20.

    After the last retry, the failure is recorded."""
    refusals_max: int = 10
    """Number of answers 429 or 503 in a row after which a site's URLs fail as `site_refused`, 0 to 1,000,000.

    They fail until the site's wait is over: then one URL asks again. 0 to keep them pending, however long that takes.
    10 refusals without a Retry-After take 8.5 hours."""
    network_wait_s: float = 1800.0
    """Seconds for which the crawl waits when no peer reaches any site any more, 0 to 604,800.

    After that, unreachable URLs are recorded as failed. With 0 the crawl does not wait."""
    balance: Balance = "auto"
    """Method by which heavily loaded peers lend pages to lightly loaded peers.

    `level` compares load levels (P1 1.4). `drain` compares measured seconds to drain the frontier. `predictive` begins
    with a prediction from the peers' machines (P2). `off` lends nothing. `auto` is `drain`."""
    solver: PartitionSolver = "exact"
    """Method by which balance `predictive` divides blocks by predicted times.

    `exact` finds the shares that end earliest. `pso` is the particle swarm of P2: more work for the same shares."""
    block_urls: int = 20
    """Number of URLs in a heavy block (H), the unit of load levels and loans, 1 to 500."""
    update_s: float = 5.0
    """Seconds between two comparisons of load levels (T), at the same instants on all peers, 0.1 to 3,600."""
    recrawl_after_s: float | None = None
    """Seconds after which a page is fetched again, from 1 second to 3,660 days. None to fetch each page once.

    Each visit counts for `max_pages`."""
    recrawl_adaptive: bool = False
    """True to make that interval shorter for a page that has changed, and longer for a page that has not.

    Not with history `bloom`."""
    recrawl_least_s: float | None = None
    """Shortest interval of an adaptive recrawl, in seconds. None for a tenth of `recrawl_after_s`."""
    recrawl_most_s: float | None = None
    """Longest interval of an adaptive recrawl, in seconds. None for ten times `recrawl_after_s`."""
    history: History = "exact"
    """Memory of finished URLs: `exact` keeps their keys, `bloom` keeps fingerprints in Bloom filters (P4).

    A key takes 30 bytes of disk. A fingerprint takes 3 bytes of memory, and 1 URL in 10,000 is mistaken for a known URL
    and never fetched."""
    grain_s: float | None = None
    """Seconds of one epoch of the Bloom filters, 1 or more. None for a seventh of `recrawl_after_s`.

    Each epoch begins new filters, and filters older than `recrawl_after_s` are dropped. It must be from a 400th to half
    of `recrawl_after_s`."""
    calendar_grain: CalendarGrain | None = None
    """Epoch of the Bloom filters by the calendar, in UTC, in place of `grain_s`: `hour`, `day`, `week` or `month`.

    A week begins on Monday, and a month with its first day. `recrawl_after_s` must be more than one of them, and at
    most 400."""
    filters: Filters = "pybloom"
    """Package of the Bloom filters: `pybloom`, or `rbloom` with the extra ``kadcrawl[fast-history]``."""
    proxies: tuple[str, ...] = field(default=(), repr=False)
    """URLs of proxies through which all peers fetch, with their credentials, at most 1,000
    (settings/proxy_list.py)."""
    proxies_from: str | None = field(default=None, repr=False)
    """Canonical URL of a list of proxies, or of a web page that names proxies, in place of `proxies`.

    Each peer reads it from time to time. It may contain secrets."""
    pools: tuple[ProxyPool, ...] = ()
    """Named proxies, at most 20 pools, for the sites whose rules name them."""
    proxy_judge: str = ""
    """Canonical URL of a health-check page that answers 200, by which peers verify proxies. Required with proxies.

    The crawl leaves its site alone, because health checks ignore the site's delay."""
    headers: tuple[str, ...] = ()
    """Headers of every request for a page, as `Name: value`, at most 30. They are no place for secrets."""
    user_agent: str = ""
    """Value of the User-Agent, to which the contact is added unless it is part of it. Empty for kadcrawl's own."""
    robots_token: str = ""
    """Name by which a robots.txt speaks to the crawl, a part of the User-Agent. Empty for the User-Agent's first
    word."""
    ca_pem: str = field(default="", repr=False)
    """Certificates of authorities that all peers trust beside those of their machines, as PEM text
    (settings/trust.py)."""
    contact: str = ""
    """URL or e-mail address in the User-Agent, so that a site's owner can reach a person.

    At most 200 characters of printable ASCII."""
    roles: tuple[RoleRule, ...] = ()
    """Rules that say which URLs lead on and which hold content. The first matching rule counts
    (settings/page_rules.py)."""
    records: tuple[RecordRule, ...] = ()
    """Rules that extract records from pages into records.jsonl. The first rule that matches the URL counts."""
    sites: tuple[SiteRule, ...] = ()
    """Rules for single sites. The rule with the most specific match decides (settings/site_rules.py)."""
    shared_limits: LimitPairs = ()
    """Pairs (name, value) of limits that all peers share, where they differ from `Limits` (settings/job_limits.py)."""

    def __post_init__(self) -> None:
        check_types(self)
        require(0 < len(self.name) <= 100, "name must have 1 to 100 characters")
        for name, kind in _CHOICES.items():
            choices = get_args(kind)
            words = " or ".join(choices) if len(choices) == 2 else f"one of {', '.join(choices)}"
            require(getattr(self, name) in choices, f"{name} must be {words}")
        require(len(self.seeds) <= SEEDS_MAX, f"a job has at most {SEEDS_MAX} seeds; give more by --seeds FILE")
        chars = sum(map(len, self.seeds))
        require(chars <= SEEDS_CHARS_MAX, f"the seeds of a job have at most {SEEDS_CHARS_MAX} characters, not {chars}")
        require(0 <= self.cell_bits <= 24, "cell_bits must be from 1 to 24, or 0")
        require(COPIES_MIN <= self.copies <= COPIES_MAX, f"copies must be from {COPIES_MIN} to {COPIES_MAX}")
        require(0 <= self.delay_s <= 86_400, "delay_s must be from 0 to 86400 seconds")
        require(0 <= self.delay_factor <= 100, "delay_factor must be from 0 to 100")
        require(0 < self.delay_most_s <= 86_400, "delay_most_s must be above 0 and at most 86400 seconds")
        require(
            not self.delay_factor or self.delay_s <= self.delay_most_s,
            "delay_most_s must be at least delay_s; use a larger delay_most_s, or a smaller delay_s",
        )
        require(
            not (self.per_ip and self.by_proxies),
            "per_ip cannot go with proxies, which look up the addresses of sites themselves, so this crawl does not "
            "know them; leave out per-ip or the proxies",
        )
        require(0 <= self.retries <= 20, "retries must be from 0 to 20")
        require(0 <= self.network_wait_s <= 604_800, "network_wait_s must be from 0 seconds to 7 days")
        require(self.max_depth is None or self.max_depth >= 0, "max_depth must be 0 or more")
        require(self.max_pages is None or self.max_pages >= 1, "max_pages must be 1 or more")
        require(
            self.max_time_s is None or 0 < self.max_time_s <= MAX_TIME_S, "max_time_s must be above 0, up to 3660 days"
        )
        require(self.max_bytes is None or self.max_bytes >= 1, "max_bytes must be 1 or more")
        for name in ("max_depth", "max_pages", "max_bytes", "site_pages_max", "path_queries_max"):
            require((getattr(self, name) or 0) <= COUNT_MAX, f"{name} must be at most {COUNT_MAX}")
        for name in ("path_segments_max", "path_repeats_max", "query_parameters_max"):
            require(1 <= getattr(self, name) <= URL_PARTS_MAX, f"{name} must be from 1 to {URL_PARTS_MAX}")
        check_parameters(self.strip_parameters)
        require(self.site_pages_max is None or self.site_pages_max >= 1, "site_pages_max must be 1 or more")
        require(
            self.site_pages_max is None or self.partition != "url",
            "site_pages_max cannot go with partition url, where each URL is a site and no peer counts the URLs of a "
            "host; use max_pages or max_depth",
        )
        require(self.path_queries_max is None or self.path_queries_max >= 1, "path_queries_max must be 1 or more")
        require(
            self.path_queries_max is None or self.partition != "url",
            "path_queries_max cannot go with partition url, where each URL is a site and no peer counts the queries of "
            "a path; use query_parameters_max or max_pages",
        )
        require(
            self.twins == "follow" or self.partition != "url",
            "twins skip cannot go with partition url, where each URL is a site without other pages; "
            "use partition host or domain",
        )
        require(0 <= self.refusals_max <= REFUSALS_MAX, f"refusals_max must be from 0 to {REFUSALS_MAX}")
        require(
            self.solver == "exact" or self.balance == "predictive",
            f"solver {self.solver} divides blocks by predicted times, which balance {self.balance} does not know; use "
            "balance predictive, or leave out solver",
        )
        require(self.history in get_args(History), f"history must be one of {', '.join(get_args(History))}")
        require(self.filters in get_args(Filters), f"filters must be one of {', '.join(get_args(Filters))}")
        check_recrawl(self)
        check_proxies(self.proxies, self.proxies_from, self.proxy_judge, self.pools)
        require(1 <= self.block_urls <= 500, "block_urls must be from 1 to 500")
        require(0.1 <= self.update_s <= 3600, "update_s must be from 0.1 to 3600 seconds")
        require(len(self.contact) <= 200, "contact must have at most 200 characters")
        require(self.contact.isprintable() and self.contact.isascii(), "contact must be printable ASCII")
        check_rules(self.roles, self.records)
        check_headers(self.headers)
        check_authorities(self.ca_pem)
        check_agent(self.user_agent)
        check_token(self.user_agent, self.robots_token)
        check_sites(self.sites, self)
        check_limits(self.shared_limits)
        chars = sum(map(len, (*self.include, *self.exclude)))
        require(chars <= RULES_CHARS_MAX, f"include and exclude have at most {RULES_CHARS_MAX} characters, not {chars}")
        for pattern in (*self.include, *self.exclude):
            check_pattern(pattern)

    @property
    def bits(self) -> int:
        """The number of bits of a key that name its cell, with 0 resolved."""
        return self.cell_bits or (CELL_BITS_BY_URL if self.partition == "url" else CELL_BITS)

    @property
    def lends_by(self) -> LendsBy:
        """The method of lending, with `auto` resolved."""
        return "drain" if self.balance == "auto" else self.balance

    @property
    def shares_clocks(self) -> bool:
        """True if several sites may be asked by one clock, which its owner leases to the owners of the sites."""
        return self.per_ip or self.partition == "url"

    @property
    def by_proxies(self) -> bool:
        """True if some pages are fetched through proxies."""
        return self.proxied_by_default or bool(self.pools)

    @property
    def proxied_by_default(self) -> bool:
        """True if pages are fetched through proxies unless the rule of their site says otherwise."""
        return bool(self.proxies) or self.proxies_from is not None

    @property
    def hooks(self) -> frozenset[str]:
        """The functions that the job calls on each machine."""
        return PageRules(records=self.records).hooks | login_hooks(self.sites)

    @property
    def recrawl_bounds_s(self) -> tuple[float, float]:
        """The shortest and the longest time, in seconds, after which a page is fetched again."""
        return recrawl_bounds_s(self.recrawl_after_s or 0.0, self.recrawl_least_s, self.recrawl_most_s)

    @property
    def robots_agent(self) -> str:
        """The name by which a robots.txt or a page speaks to the crawl."""
        return token_of(self.user_agent, self.robots_token)

    @property
    def grains(self) -> int:
        """Number of epoch filters of a cell that live at a time (L in P4)."""
        if self.recrawl_after_s is None:
            return 1
        grain_s = self.grain_s if self.calendar_grain is None else CALENDAR_GRAINS_S[self.calendar_grain]
        return math.ceil(self.recrawl_after_s / grain_s) if grain_s else GRAINS_DEFAULT
