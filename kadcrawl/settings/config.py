"""What can be chosen, with units and reasons: `Job` for the whole swarm, `Config` for one peer, `Limits` for both.

A `Job` is defined once, by whoever starts the swarm, and handed to every joiner; it must be the same everywhere,
or two peers would disagree on owners and manners. A `Config` belongs to one peer and one machine. `Limits` (limits.py)
are the bounds that keep a peer alive whatever it meets; they rarely need changing. All three are checked when they are
made.

Tests: tests/settings/test_job_file.py, tests/settings/test_limits.py
"""

import ipaddress
import math
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from kadcrawl.errors import ConfigError
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.settings.limits import Limits as Limits, require
from kadcrawl.settings.page_rules import RULES_CHARS_MAX, RecordRule, RoleRule, check_pattern, check_rules
from kadcrawl.settings.proxy_list import PROXIES_MAX, PROXY_CHARS_MAX, parse
from kadcrawl.urls import Partition

ScopeKind = Literal["host", "domain", "prefix", "any"]
Balance = Literal["auto", "level", "drain", "predictive", "off"]
LendsBy = Literal["level", "drain", "predictive", "off"]
SessionIds = Literal["strip", "keep"]
Canonical = Literal["ignore", "honor"]
History = Literal["exact", "bloom"]
Filters = Literal["pybloom", "rbloom"]
TwinLinks = Literal["follow", "skip"]

PORT_DEFAULT = 4160
"""TCP and UDP port a peer listens on when none is named (4160: Wikipedia lists no common use)."""

COUNT_MAX = 2**53
"""Of links, pages or URLs: what messages and files have room for."""
SEEDS_MAX = 10_000
"""Seeds of one job: it travels whole to every joiner."""
SEEDS_CHARS_MAX = 1_000_000
"""Characters of all seeds together: they fit one message (`Limits.message_bytes_max`) with room to spare."""

_URL = re.compile(r"https?://[a-z0-9._:\[\]-]+/[!-~]*")
"""What every canonical URL looks like (urls.py, which is above this file)."""
RECRAWL_LEAST_S = 1
RECRAWL_MOST_S = 10 * 366 * 86_400
GRAINS_DEFAULT, GRAINS_MAX = 7, 400
"""Parts of the time for which fingerprints are kept: as P4's week of days, and a year of them."""
LENDS_NOT = ("max_pages", "max_depth", "recrawl_after_s")
"""Fields of a job with which no pages are lent; nor are they if fingerprints are kept in place of keys."""
_OR_LENDS_NOT = f"{', '.join(LENDS_NOT)} or history bloom"

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
    Not by default, as with Heritrix and Scrapy: they list what no page links to any more. With `recrawl_after_s`, pages
    they say were modified since are fetched again sooner."""
    canonical: Canonical = "ignore"
    """What a page's canonical link is: a link like any other, or, if it names a simpler URL of its domain, a redirect,
    whose page is followed in place of this one (crawl/content/canonical_link.py)."""
    site_pages_max: int | None = None
    """URLs of one site at most, as its owner counts them; None for no limit. The one bound on a site that makes up
    pages, such as a calendar without end."""
    path_queries_max: int | None = None
    """URLs at most that differ in nothing but their query, of those that each owner of their site takes; None for no
    limit. The bound on lists that can be filtered and sorted in any combination (crawl/scope/query_limits.py)."""
    twins: TwinLinks = "follow"
    """What becomes of the links of a page whose text is nearly that of one of the same site before it
    (crawl/content/near_duplicates.py): they are followed like any other, or left to the first."""
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
    history: History = "exact"
    """How finished URLs are remembered: exactly, 30 bytes of disk each; or as fingerprints in Bloom filters (P4), 3
    bytes of memory each, by which one URL in 10,000 is taken for known and never fetched."""
    grain_s: float | None = None
    """Seconds after which a new filter is begun in such a history; those older than `recrawl_after_s` are dropped. None
    for a seventh of that."""
    filters: Filters = "pybloom"
    """The package that makes the filters."""
    proxies: tuple[str, ...] = field(default=(), repr=False)
    """URLs of proxies, with their credentials (proxy_list.py), through which every peer fetches."""
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
        require(0 < len(self.name) <= 100, "name must have 1 to 100 characters")
        require(self.scope in get_args(ScopeKind), f"scope must be one of {', '.join(get_args(ScopeKind))}")
        require(
            self.partition in get_args(Partition),
            f"partition must be one of {', '.join(get_args(Partition))}",
        )
        require(len(self.seeds) <= SEEDS_MAX, f"a job has at most {SEEDS_MAX} seeds; a page that links to them is one")
        chars = sum(map(len, self.seeds))
        require(chars <= SEEDS_CHARS_MAX, f"the seeds of a job have at most {SEEDS_CHARS_MAX} characters, not {chars}")
        require(1 <= self.cell_bits <= 24, "cell_bits must be from 1 to 24")
        require(0 <= self.delay_s <= 86_400, "delay_s must be from 0 to 86400 seconds")
        require(0 <= self.retries <= 20, "retries must be from 0 to 20")
        require(self.max_depth is None or self.max_depth >= 0, "max_depth must be 0 or more")
        require(self.max_pages is None or self.max_pages >= 1, "max_pages must be 1 or more")
        for name in ("max_depth", "max_pages", "site_pages_max", "path_queries_max"):
            require((getattr(self, name) or 0) <= COUNT_MAX, f"{name} must be at most {COUNT_MAX}")
        for name in ("path_segments_max", "path_repeats_max", "query_parameters_max"):
            require(1 <= getattr(self, name) <= URL_PARTS_MAX, f"{name} must be from 1 to {URL_PARTS_MAX}")
        require(self.session_ids in get_args(SessionIds), "session_ids must be strip or keep")
        require(self.canonical in get_args(Canonical), "canonical must be ignore or honor")
        require(self.site_pages_max is None or self.site_pages_max >= 1, "site_pages_max must be 1 or more")
        require(
            self.site_pages_max is None or self.partition != "url",
            "site_pages_max cannot go with partition url, where each URL is a site and nobody sees how many a host "
            "has; max_pages and max_depth can",
        )
        require(self.path_queries_max is None or self.path_queries_max >= 1, "path_queries_max must be 1 or more")
        require(
            self.path_queries_max is None or self.partition != "url",
            "path_queries_max cannot go with partition url, where each URL is a site and nobody sees how many queries "
            "a path has; query_parameters_max and max_pages can",
        )
        require(self.twins in get_args(TwinLinks), "twins must be follow or skip")
        require(
            self.twins == "follow" or self.partition != "url",
            "twins skip cannot go with partition url, where each URL is a site and has no other page to be like; "
            "partition host or domain can",
        )
        require(self.balance in get_args(Balance), f"balance must be one of {', '.join(get_args(Balance))}")
        require(
            self.balance in ("auto", "off") or self.can_lend,
            f"balance {self.balance} cannot go with {_OR_LENDS_NOT}, where no pages are "
            "lent: only their owner knows its share of the first, a shorter path to one, and what it was like before, "
            "and a fingerprint cannot be taken back",
        )
        self._check_recrawl()
        self._check_proxies()
        require(1 <= self.block_urls <= 500, "block_urls must be from 1 to 500")
        require(0.1 <= self.update_s <= 3600, "update_s must be from 0.1 to 3600 seconds")
        require(len(self.contact) <= 200, "contact must have at most 200 characters")
        require(self.contact.isprintable() and self.contact.isascii(), "contact must be printable ASCII")
        check_rules(self.roles, self.records)
        chars = sum(map(len, (*self.include, *self.exclude)))
        require(chars <= RULES_CHARS_MAX, f"include and exclude have at most {RULES_CHARS_MAX} characters, not {chars}")
        for pattern in (*self.include, *self.exclude):
            check_pattern(pattern)

    @property
    def lends_by(self) -> LendsBy:
        """By what it is decided which pages are lent."""
        if self.balance == "auto":
            return "drain" if self.can_lend else "off"
        return self.balance

    @property
    def can_lend(self) -> bool:
        """Whether a page may be fetched by another peer than its owner."""
        return self.history == "exact" and all(getattr(self, name) is None for name in LENDS_NOT)

    def check_useful(self, said: Collection[str]) -> None:
        """Raise ConfigError if one of these fields, which somebody gave a value, does nothing in this job."""
        lends = self.lends_by != "off"
        for names, useful, otherwise in (
            (("block_urls", "update_s"), lends, f"this job lends no pages: not with balance off, {_OR_LENDS_NOT}"),
            (("recrawl_adaptive",), self.recrawl_after_s is not None, "it is for recrawl_after_s"),
            (("recrawl_least_s", "recrawl_most_s"), self.recrawl_adaptive, "they are for recrawl_adaptive"),
            (("filters",), self.history == "bloom", "it is for history bloom"),
            (
                ("grain_s",),
                self.history == "bloom" and self.recrawl_after_s is not None,
                "it is for history bloom with recrawl_after_s",
            ),
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
            require(
                seconds is None or RECRAWL_LEAST_S <= seconds <= RECRAWL_MOST_S,
                f"{name} must be from {RECRAWL_LEAST_S} second to {RECRAWL_MOST_S // 86_400} days",
            )
        self._check_history()
        if self.recrawl_after_s is None:
            return
        require(
            self.max_pages is None,
            "recrawl_after_s cannot go with max_pages, which would be used up by the pages fetched again; "
            "site_pages_max and max_depth can",
        )
        least_s, most_s = self.recrawl_bounds_s
        require(
            least_s <= self.recrawl_after_s <= most_s,
            "recrawl_after_s must lie between recrawl_least_s and recrawl_most_s",
        )

    @property
    def grains(self) -> int:
        """How many filters of a cell live at a time (P4's L)."""
        if self.recrawl_after_s is None:
            return 1
        return math.ceil(self.recrawl_after_s / self.grain_s) if self.grain_s else GRAINS_DEFAULT

    def _check_history(self) -> None:
        require(self.history in get_args(History), f"history must be one of {', '.join(get_args(History))}")
        require(self.filters in get_args(Filters), f"filters must be one of {', '.join(get_args(Filters))}")
        if self.history == "bloom":
            require(
                self.site_pages_max is None,
                "history bloom cannot go with site_pages_max: fingerprints of a site's URLs cannot be counted; "
                "max_pages and max_depth can",
            )
            require(
                not self.recrawl_adaptive,
                "history bloom cannot go with recrawl_adaptive, as it forgets what a page was like",
            )
        require(self.grain_s is None or self.grain_s >= 1, "grain_s must be at least 1 second")
        if self.history == "bloom" and self.recrawl_after_s is not None:
            require(
                self.recrawl_after_s >= GRAINS_DEFAULT or self.grain_s is not None,
                f"recrawl_after_s must be at least {GRAINS_DEFAULT} seconds with history bloom, or grain_s be given",
            )
            require(
                2 * (self.grain_s or 0) <= self.recrawl_after_s and self.grains <= GRAINS_MAX,
                f"grain_s must be from a {GRAINS_MAX}th of recrawl_after_s to half of it",
            )

    def _check_proxies(self) -> None:
        require(not self.proxies or self.proxies_from is None, "proxies and proxies_from cannot go together")
        require(len(self.proxies) <= PROXIES_MAX, f"a job has at most {PROXIES_MAX} proxies")
        for number, url in enumerate(self.proxies, 1):
            try:
                require(len(url) <= 3 * PROXY_CHARS_MAX, "too long")
                parse(url)
            except ConfigError as error:
                raise ConfigError(f"proxy {number} of {len(self.proxies)}: {error}") from None
        for name in ("proxies_from", "proxy_judge"):
            url = getattr(self, name)
            require(
                not url or _URL.fullmatch(url) is not None, f"{name} must be a canonical URL, as urls.seed makes it"
            )
        require(
            bool(self.proxy_judge) or not self.by_proxies,
            "proxies need proxy_judge: the URL of a page that answers 200, by which each proxy is verified before it "
            "is used and every few minutes; a page of yours, or one meant for that, on a site this crawl leaves alone",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One peer on one machine."""

    data: Path
    """Directory of this peer: its identity, journal and outputs. Used by one peer at a time."""
    host: str = "127.0.0.1"
    """Address to listen on, TCP and UDP; 0.0.0.0 for all of the machine's IPv4 addresses. Kept as peers write it."""
    port: int = PORT_DEFAULT
    """Port for both; 0 lets the system choose one."""
    allow_networks: tuple[str, ...] = ()
    """CIDRs that may be fetched from although they are not public, e.g. 127.0.0.0/8."""
    swarm_key: SwarmKey | None = None
    """What whoever is in the swarm has, and nobody else: all that peers say to each other is encrypted, and nobody else
    is let in or answered. Without one anybody is, so such a peer listens on loopback only."""
    exit_when_done: bool = False
    """Stop the peer once the swarm is quiescent."""
    work_area: int | None = None
    """W: URLs this peer likes to have before it; None for what its measured rates say (P1 1.4.2)."""
    network: Path | None = None
    """What `kadcrawl train` wrote, for a job of balance predictive; None to do without until enough is measured."""
    powers: tuple[tuple[str, float], ...] = ()
    """(name, value) of what is declared instead of measured in such a job (balance/machine_profile.py)."""
    sinks: tuple[str, ...] = field(default=(), repr=False)
    """Where results go besides `data`, as in sinks/names.py, e.g. sqlite:results.db; may hold passwords."""
    hooks: tuple[str, ...] = ()
    """``module:function`` a swarm's job may call on this machine; those of a job given to this peer may be anyway."""
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        require(self.work_area is None or self.work_area >= 1, "work_area must be 1 or more")
        require(0 <= self.port <= 65_535, "port must be from 0 to 65535")
        object.__setattr__(self, "host", _to_listen_on(self.host))
        for network in self.allow_networks:
            try:
                ipaddress.ip_network(network)
            except ValueError as error:
                raise ConfigError(f"--allow-network takes a CIDR such as 192.168.0.0/16: {error}") from None


def _to_listen_on(host: str) -> str:
    """Return the address in the one spelling that peers take from each other (overlay/addresses.py)."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise ConfigError(f"host must be an IP address, such as 127.0.0.1 or ::, not {host!r}") from None
    require("%" not in host, f"host {host} is good on one network interface only, so no other peer can be told of it")
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped  # Only IPv4 comes there.
    several = address.is_multicast or address == ipaddress.IPv4Address("255.255.255.255")
    require(not several, f"host {host} is the address of many machines, and a peer listens on one")
    return str(address)


def why_no_leaf(job: "Job") -> str | None:
    """Return why nobody can be a leaf in this job, as a sentence for a person; None if one can."""
    if job.can_lend:
        return None
    return (
        "a crawl with --max-pages, --max-depth, --recrawl-after or --history bloom has no leaves: only the owner of a "
        "page knows its share of the first, a shorter path to it, and what it was like before, and a fingerprint "
        "cannot be taken back; join without --leaf"
    )
