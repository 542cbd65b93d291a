"""What can be chosen, with units and reasons: `Job` for the whole swarm, `Config` for one peer, `Limits` for both.

A `Job` is defined once, by whoever starts the swarm, and handed to every joiner; it must be the same everywhere,
or two peers would disagree on owners and manners. A `Config` belongs to one peer and one machine. `Limits` are the
bounds that keep a peer alive whatever it meets; they rarely need changing. All three are checked when they are made.
"""

import ipaddress
import re
from collections.abc import Collection
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal, get_args

from kadcrawl.errors import ConfigError
from kadcrawl.page_rules import RecordRule, RoleRule, check_rules
from kadcrawl.proxy import PROXIES_MAX, PROXY_CHARS_MAX, parse

Partition = Literal["host", "domain", "url"]
ScopeKind = Literal["host", "domain", "prefix", "any"]
Balance = Literal["auto", "level", "drain", "predictive", "off"]
LendsBy = Literal["level", "drain", "predictive", "off"]
SessionIds = Literal["strip", "keep"]
Canonical = Literal["ignore", "honor"]

PORT_DEFAULT = 4160
"""TCP and UDP port a peer listens on when none is named (4160: Wikipedia lists no common use)."""

SEEDS_MAX = 10_000
"""Seeds of one job: it travels whole to every joiner."""
SEEDS_CHARS_MAX = 1_000_000
"""Characters of all seeds together: they fit one message (`Limits.message_bytes_max`) with room to spare."""

_URL = re.compile(r"https?://[a-z0-9._:\[\]-]+/[!-~]*")
"""What every canonical URL looks like (urls.py, which is above this file)."""
RECRAWL_LEAST_S = 1
RECRAWL_MOST_S = 10 * 366 * 86_400
LENDS_NOT = ("max_pages", "max_depth", "recrawl_after_s")
"""Fields of a job with which no pages are lent."""
_OR_LENDS_NOT = f"{', '.join(LENDS_NOT[:-1])} or {LENDS_NOT[-1]}"

URL_PARTS_MAX = 10_000
"""The largest bound on segments and parameters, and none at all: no canonical URL (`urls`) has so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What the swarm crawls and how politely; the same on every peer."""

    name: str = "crawl"
    """Names the crawl in WARC files and logs; peers of different names do not mix."""
    seeds: tuple[str, ...] = ()
    """Canonical URLs the crawl begins with."""
    scope: ScopeKind = "host"
    """Which links are followed: those on a seed's host (the default), its registered domain, below its path, or any."""
    include: tuple[str, ...] = ()
    """Regular expressions; when given, a URL must match one of them (seeds always pass)."""
    exclude: tuple[str, ...] = ()
    """Regular expressions; a URL that matches one of them is not crawled."""
    max_depth: int | None = None
    """Links away from a seed at most; None for no limit."""
    max_pages: int | None = None
    """URLs the whole swarm fetches at most; None for no limit."""
    path_segments_max: int = 32
    """Segments of a path: links that grow by one at each page would be followed for ever. Heritrix stops at 20, where
    the source trees of some honest sites end just below."""
    path_repeats_max: int = 3
    """Times in a row that a segment of a path, or a group of them, may stand: /a/b/a/b/a/b is three times /a/b.
    Heritrix stops after 2, which costs the archives of dates such as /2011/11/11/11."""
    query_parameters_max: int = 50
    """Parameters of a query: each click on a facet may add one. No link anybody reads has a tenth of these."""
    session_ids: SessionIds = "strip"
    """What becomes of session IDs in links: a server that gives each visit its own has endless URLs for every page, so
    they are taken out, or kept as parts of the URL."""
    sitemaps: bool = False
    """Whether the sitemaps of each site are fetched and what they list is followed, as if all its pages linked to them.
    Not by default, as with Heritrix and Scrapy: they list what no page links to any more."""
    canonical: Canonical = "ignore"
    """What a page's canonical link is: a link like any other, or, if it names a simpler URL of its domain, a redirect,
    whose page is followed in place of this one (crawl/canonical_link.py)."""
    site_pages_max: int | None = None
    """URLs of one site at most, as its owner counts them; None for no limit. The one bound on a site that makes up
    pages, such as a calendar without end."""
    simhash: bool = False
    """Whether page lines tell the SimHash of each page's text, by which near-identical pages are found."""
    partition: Partition = "host"
    """What a site is: host[:port], the registered domain, or (as in P1) each URL by itself."""
    cell_bits: int = 16
    """Bits of a key that name its cell: 65,536 cells, which keep thousands of peers balanced."""
    delay_s: float = 1.0
    """Seconds between two requests to one site; robots.txt may ask for more, never for less."""
    retries: int = 3
    """Further tries after a passing fault (time-out, reset, 429, 5xx) before the failure is recorded."""
    balance: Balance = "auto"
    """How heavy peers lend pages to light ones: by load level (P1 1.4), by seconds to drain as measured, or at first as
    predicted from the peers' powers (P2), or not at all; auto: by seconds to drain, where pages can be lent."""
    block_urls: int = 20
    """H: URLs of a heavy block, by which levels are measured and pages lent."""
    update_s: float = 5.0
    """T: seconds between two looks at the levels, at the same instants everywhere."""
    recrawl_after_s: float | None = None
    """Seconds after which a page is fetched again; None to fetch each page once."""
    recrawl_adaptive: bool = False
    """Whether that time becomes shorter for a page that had changed, and longer for one that had not."""
    recrawl_least_s: float | None = None
    """The shortest it may become; None for a tenth of `recrawl_after_s`."""
    recrawl_most_s: float | None = None
    """The longest it may become; None for ten times that."""
    proxies: tuple[str, ...] = field(default=(), repr=False)
    """URLs of proxies, with their credentials (proxy.py), through which every peer fetches."""
    proxies_from: str | None = field(default=None, repr=False)
    """In place of them a canonical URL that gives a list of them, which each peer asks now and again; may be secret."""
    proxy_judge: str = ""
    """The canonical URL by which proxies are verified. Its site is not crawled, as it is asked beside all clocks."""
    contact: str = ""
    """URL or e-mail address put in the User-Agent, so that a site's owner can reach a person."""
    roles: tuple[RoleRule, ...] = ()
    """Which URLs lead on and which hold content; the first whose pattern is found in a URL says it (page_rules.py)."""
    records: tuple[RecordRule, ...] = ()
    """What is taken out of pages into records.jsonl, by the first whose pattern is found in their URL."""

    def __post_init__(self) -> None:
        _require(0 < len(self.name) <= 100, "name must have 1 to 100 characters")
        _require(self.scope in get_args(ScopeKind), f"scope must be one of {', '.join(get_args(ScopeKind))}")
        _require(
            self.partition in get_args(Partition),
            f"partition must be one of {', '.join(get_args(Partition))}",
        )
        _require(len(self.seeds) <= SEEDS_MAX, f"a job has at most {SEEDS_MAX} seeds; a page that links to them is one")
        chars = sum(map(len, self.seeds))
        _require(chars <= SEEDS_CHARS_MAX, f"the seeds of a job have at most {SEEDS_CHARS_MAX} characters, not {chars}")
        _require(1 <= self.cell_bits <= 24, "cell_bits must be from 1 to 24")
        _require(0 <= self.delay_s <= 86_400, "delay_s must be from 0 to 86400 seconds")
        _require(0 <= self.retries <= 20, "retries must be from 0 to 20")
        _require(self.max_depth is None or self.max_depth >= 0, "max_depth must be 0 or more")
        _require(self.max_pages is None or self.max_pages >= 1, "max_pages must be 1 or more")
        for name in ("path_segments_max", "path_repeats_max", "query_parameters_max"):
            _require(1 <= getattr(self, name) <= URL_PARTS_MAX, f"{name} must be from 1 to {URL_PARTS_MAX}")
        _require(self.session_ids in get_args(SessionIds), "session_ids must be strip or keep")
        _require(self.canonical in get_args(Canonical), "canonical must be ignore or honor")
        _require(self.site_pages_max is None or self.site_pages_max >= 1, "site_pages_max must be 1 or more")
        _require(
            self.site_pages_max is None or self.partition != "url",
            "site_pages_max cannot go with partition url, where each URL is a site and nobody sees how many a host "
            "has; max_pages and max_depth can",
        )
        _require(self.balance in get_args(Balance), f"balance must be one of {', '.join(get_args(Balance))}")
        _require(
            self.balance in ("auto", "off") or self.can_lend,
            f"balance {self.balance} cannot go with {_OR_LENDS_NOT}, where no pages are "
            "lent: only their owner knows its share of the first, a shorter path to one, and what it was like before",
        )
        self._check_recrawl()
        self._check_proxies()
        _require(1 <= self.block_urls <= 500, "block_urls must be from 1 to 500")
        _require(0.1 <= self.update_s <= 3600, "update_s must be from 0.1 to 3600 seconds")
        _require(len(self.contact) <= 200, "contact must have at most 200 characters")
        _require(self.contact.isprintable() and self.contact.isascii(), "contact must be printable ASCII")
        check_rules(self.roles, self.records)
        for pattern in (*self.include, *self.exclude):
            try:
                re.compile(pattern)
            except re.error as error:
                raise ConfigError(f"pattern {pattern!r} is not a regular expression: {error}") from None

    @property
    def lends_by(self) -> LendsBy:
        """By what it is decided which pages are lent."""
        if self.balance == "auto":
            return "drain" if self.can_lend else "off"
        return self.balance

    @property
    def can_lend(self) -> bool:
        """Whether a page may be fetched by another peer than its owner."""
        return all(getattr(self, name) is None for name in LENDS_NOT)

    def check_useful(self, said: Collection[str]) -> None:
        """Raise ConfigError if one of these fields, which somebody gave a value, does nothing in this job."""
        lends = self.lends_by != "off"
        for names, useful, otherwise in (
            (("block_urls", "update_s"), lends, f"this job lends no pages: not with balance off, {_OR_LENDS_NOT}"),
            (("recrawl_adaptive",), self.recrawl_after_s is not None, "it is for recrawl_after_s"),
            (("recrawl_least_s", "recrawl_most_s"), self.recrawl_adaptive, "they are for recrawl_adaptive"),
            (("proxy_judge",), self.by_proxies, "it is for proxies"),
        ):
            if idle := [name for name in names if name in said and not useful]:
                raise ConfigError(f"{' and '.join(idle)} would do nothing, as {otherwise}")

    @property
    def by_proxies(self) -> bool:
        """Whether pages are fetched through proxies."""
        return bool(self.proxies) or self.proxies_from is not None

    @property
    def recrawl_bounds_s(self) -> tuple[float, float]:
        """The shortest and the longest time, in seconds, after which a page is fetched again."""
        after_s = self.recrawl_after_s or 0.0
        return self.recrawl_least_s or max(after_s / 10, RECRAWL_LEAST_S), self.recrawl_most_s or after_s * 10

    def _check_recrawl(self) -> None:
        for name in ("recrawl_after_s", "recrawl_least_s", "recrawl_most_s"):
            seconds = getattr(self, name)
            _require(
                seconds is None or RECRAWL_LEAST_S <= seconds <= RECRAWL_MOST_S,
                f"{name} must be from {RECRAWL_LEAST_S} second to {RECRAWL_MOST_S // 86_400} days",
            )
        if self.recrawl_after_s is None:
            return
        _require(
            self.max_pages is None,
            "recrawl_after_s cannot go with max_pages, which would be used up by the pages fetched again; "
            "site_pages_max and max_depth can",
        )
        least_s, most_s = self.recrawl_bounds_s
        _require(
            least_s <= self.recrawl_after_s <= most_s,
            "recrawl_after_s must lie between recrawl_least_s and recrawl_most_s",
        )

    def _check_proxies(self) -> None:
        _require(not self.proxies or self.proxies_from is None, "proxies and proxies_from cannot go together")
        _require(len(self.proxies) <= PROXIES_MAX, f"a job has at most {PROXIES_MAX} proxies")
        for number, url in enumerate(self.proxies, 1):
            try:
                _require(len(url) <= 3 * PROXY_CHARS_MAX, "too long")
                parse(url)
            except ConfigError as error:
                raise ConfigError(f"proxy {number} of {len(self.proxies)}: {error}") from None
        for name in ("proxies_from", "proxy_judge"):
            url = getattr(self, name)
            _require(
                not url or _URL.fullmatch(url) is not None, f"{name} must be a canonical URL, as urls.seed makes it"
            )
        _require(
            bool(self.proxy_judge) or not self.by_proxies,
            "proxies need proxy_judge: the URL of a page that answers 200, by which each proxy is verified before it "
            "is used and every few minutes; a page of yours, or one meant for that, on a site this crawl leaves alone",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds, each with its unit and the reason it stands where it stands."""

    url_chars_max: int = 2083
    """Longer URLs are traps far more often than pages; the classic browser limit."""
    links_per_page_max: int = 20_000
    """Distinct links taken from one page; the largest honest index pages stay below."""
    sitemap_urls_max: int = 50_000
    """Distinct URLs taken from one sitemap: as many as sitemaps.org allows."""
    header_bytes_max: int = 64 * 1024
    """All response headers of one response together."""
    body_bytes_max: int = 32 * 1024 * 1024
    """Body as received; the rest is cut off and the page recorded as truncated by us."""
    inflated_bytes_max: int = 64 * 1024 * 1024
    """Body after decompression: what one gzip bomb may cost in memory."""
    robots_ttl_s: float = 86_400
    """RFC 9309 2.4: a cached robots.txt is not used for longer than 24 hours."""
    robots_retry_s: float = 5
    """An unreachable robots.txt (5xx, no answer) forbids the site for now; asked again after this, then twice this."""
    robots_tries_max: int = 3
    """Then the URLs waiting for it are recorded as failed, so that a crawl with a dead site still ends."""
    robots_dead_s: float = 3600
    """How long the robots.txt of such a site is not asked for again, while more of its URLs turn up."""
    robots_cached_max: int = 10_000
    """Parsed robots.txt files in memory; the others are in the journal."""
    robots_cached_bytes_max: int = 4 * 1024 * 1024
    """Text of those files; parsed, a file of many short rules takes 16 times its text."""
    crawl_delay_max_s: float = 60
    """A Crawl-delay above this is taken as this: some files ask for days to keep everybody out."""
    connect_timeout_s: float = 10
    """TCP and TLS set-up together."""
    fetch_timeout_s: float = 120
    """One request from first byte sent to last byte read."""
    idle_timeout_s: float = 20
    """Silence of the server in the middle of an answer."""
    rate_min_bytes_s: int = 512
    """Average below which a body that drips is given up, after `rate_grace_s`."""
    rate_grace_s: float = 15
    """Time a slow start is forgiven."""
    proxy_verify_s: float = 300
    """How long a proxy is used before it is verified again."""
    proxy_retry_s: float = 5
    """First wait before a dead proxy is verified again; doubles each time, to a quarter of an hour."""
    proxy_source_s: float = 600
    """How often the source of proxies is asked what there are; while few are alive, sooner."""
    redirects_max: int = 10
    """Hops in a row; the hop after that is recorded as failed, not followed."""
    retry_base_s: float = 5
    """First wait before a retry; doubles each time, with jitter."""
    retry_after_max_s: float = 3600
    """A Retry-After above this is taken as this."""
    fetches_max: int = 64
    """Requests in flight per peer."""
    site_connections_max: int = 8
    """Requests in flight to one site when its delay is 0; with a delay there is exactly one."""
    unfinished_max: int = 512
    """Pages fetched whose links are not yet acknowledged; above it fetching waits (backpressure)."""
    unfinished_bytes_max: int = 64 * 1024 * 1024
    """Links and unread content of those pages; above it fetching waits. What is in flight then comes on top."""
    active_sites_max: int = 2_000
    """Sites with URLs in memory; the others wait on disk."""
    site_window: int = 128
    """URLs of one active site in memory; refilled from disk."""
    recent_links_max: int = 200_000
    """Links remembered as already forwarded, so that repeats cost no message."""
    batch_links_max: int = 500
    """Links in one offer to another peer: about 50 KB."""
    batch_spacing_s: float = 0.05
    """Least time between two batches of links, or of copies to one peer: what comes alone goes at once."""
    message_bytes_max: int = 5 * 1024 * 1024
    """One message between peers, packed."""
    commit_spacing_s: float = 0.05
    """Least time between two commits: what is acknowledged waits at most this long for the disk to begin."""
    warc_bytes_max: int = 1_000_000_000
    """A WARC file is closed and the next begun at this size (WARC 1.1 annex C suggests 1 GB)."""
    record_page_bytes_max: int = 4 * 1024 * 1024
    """Of a page records are taken out of; as a tree 4 MB of plain HTML take 100 MB and 3 s."""
    record_bytes_max: int = 1024 * 1024
    """All records of one page, as JSON."""
    records_per_page_max: int = 1_000
    """Records of one page."""
    record_time_s: float = 10
    """One page in the worker; then that is killed and the page has no records."""
    record_memory_bytes: int = 1024 * 1024 * 1024
    """Address space of the worker, with Python and what a hook imports."""
    disk_reserve_bytes: int = 64 * 1024 * 1024
    """With less room on the disk nothing is fetched; what is under way, and the journal, live on the reserve."""

    def __post_init__(self) -> None:
        for entry in fields(self):
            minimum = 0 if entry.name in _MAY_BE_ZERO else 1e-9
            _require(getattr(self, entry.name) >= minimum, f"{entry.name} must be above 0")


_MAY_BE_ZERO = frozenset({"redirects_max", "retry_base_s", "batch_spacing_s", "commit_spacing_s", "disk_reserve_bytes"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One peer on one machine."""

    data: Path
    """Directory of this peer: its identity, journal and outputs. Used by one peer at a time."""
    host: str = "127.0.0.1"
    """Address to listen on, TCP and UDP; 0.0.0.0 for all of the machine's IPv4 addresses."""
    port: int = PORT_DEFAULT
    """Port for both; 0 lets the system choose one."""
    allow_networks: tuple[str, ...] = ()
    """CIDRs that may be fetched from although they are not public, e.g. 127.0.0.0/8."""
    exit_when_done: bool = False
    """Stop the peer once the swarm is quiescent."""
    work_area: int | None = None
    """W: URLs this peer likes to have before it; None for what its measured rates say (P1 1.4.2)."""
    network: Path | None = None
    """What `kadcrawl train` wrote, for a job of balance predictive; None to do without until enough is measured."""
    powers: tuple[tuple[str, float], ...] = ()
    """(name, value) of what is declared instead of measured in such a job (balance/powers.py)."""
    sinks: tuple[str, ...] = field(default=(), repr=False)
    """Where results go besides `data`, as in sinks/names.py, e.g. sqlite:results.db; may hold passwords."""
    hooks: tuple[str, ...] = ()
    """``module:function`` a swarm's job may call on this machine; those of a job given to this peer may be anyway."""
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        _require(self.work_area is None or self.work_area >= 1, "work_area must be 1 or more")
        _require(0 <= self.port <= 65_535, "port must be from 0 to 65535")
        for network in self.allow_networks:
            try:
                ipaddress.ip_network(network)
            except ValueError as error:
                raise ConfigError(f"--allow-network takes a CIDR such as 192.168.0.0/16: {error}") from None


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ConfigError(otherwise)
