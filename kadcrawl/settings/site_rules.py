"""The rules of a job for single sites: `SiteRule`, and the matches that say for which hosts a rule holds.

A match is a host (``example.org``), a host with its port (``example.org:8080``), a host and all hosts below it
(``*.example.org``), or every host (``*``). The rule with the most specific match decides alone: a port before a host, a
host before a star, and a longer star before a shorter star. So the order of rules has no meaning, and a rule takes
nothing from another rule. A setting that a rule leaves out is that of the job. Rules travel to every peer with their
job, so they are bounded, and checked wherever they come from. `site_settings` applies them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Literal, Protocol

from kadcrawl.errors import ConfigError
from kadcrawl.settings.limits import require
from kadcrawl.settings.proxy_list import DIRECT, ProxyPool, is_pool_name
from kadcrawl.settings.request_headers import check_agent, check_headers
from kadcrawl.settings.secrets import VARIABLE_PREFIX, check_name
from kadcrawl.settings.site_auth import auth_header, parse_auth
from kadcrawl.settings.site_login import SiteLogin
from kadcrawl.settings.trust import check_authorities
from kadcrawl.settings.value_types import check_types
from kadcrawl.urls import Partition, canonical, is_canonical, seed, site_of

SITES_MAX = 1_000
"""Limit on the site rules of a job."""
MATCHES_MAX = 10_000
"""Limit on the matches of all site rules of a job. Each may have 259 characters, and a job fits one message."""
MATCHES_CHARS_MAX = 200_000
"""Limit on the characters of all matches, URLs and headers of the site rules of a job."""
CONNECTIONS_MAX = 64
"""Limit on the requests in flight to one site, which is that of one peer (`Limits.fetches_max`)."""
SITEMAPS_MAX = 100
"""Limit on the sitemaps that one rule names."""
ROBOTS_IGNORED_MAX = 100
"""Limit on the hosts of a job whose robots.txt is ignored. Each is named in every WARC file."""
RECRAWL_LEAST_S = 1
"""Shortest interval of a recrawl, in seconds."""
RECRAWL_MOST_S = 10 * 366 * 86_400
"""Longest interval of a recrawl, in seconds: ten years."""
PAGES_MAX = 2**53
"""Limit on a number of pages, for which messages and files have room."""
EVERY = "*"
NOTHING = (None, (), "")
"""The values of fields that a rule leaves out."""
Robots = Literal["obey", "ignore"]
Cookies = Literal["keep", "off"]

_HOST = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
_PORT = re.compile(r":\d+\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRule:
    """A rule for the hosts of its matches. Raises ConfigError for a value out of its limits."""

    match: tuple[str, ...]
    """Hosts for which the rule holds: a host, a host with its port, `*.` and a domain, or `*` for every host.

    `*.example.org` holds for example.org and all hosts below it. Of several rules the most specific match decides
    alone."""
    off: bool = False
    """True to leave these hosts out of the crawl, as seeds as well."""
    delay_s: float | None = None
    """Seconds between two requests to the site, 0 to 86,400, in place of the job's delay.

    A robots.txt may ask for more."""
    connections: int | None = None
    """Limit on the requests in flight to the site, 1 to 64, of all peers together. It needs a delay of 0."""
    site_pages_max: int | None = None
    """Limit on the URLs of the site, 1 or more, in place of the job's limit."""
    sitemaps: bool | None = None
    """True to follow the sitemaps of these hosts, False to follow none."""
    sitemap_urls: tuple[str, ...] = ()
    """Canonical URLs of the sitemaps of these hosts, in place of those that their robots.txt names."""
    recrawl_after_s: float | None = None
    """Seconds after which a page of these hosts is fetched again, from 1 second to 3,660 days. 0 for never.

    It needs `recrawl_after_s` of the job."""
    retries: int | None = None
    """Number of retries after a temporary failure, 0 to 20, in place of the job's number."""
    body_bytes_max: int | None = None
    """Limit on a body as received, in bytes, 1 or more. A larger limit than the machine's has no effect."""
    fetch_timeout_s: float | None = None
    """Time-out of one request, in seconds, above 0. A longer time-out than the machine's has no effect."""
    headers: tuple[str, ...] = ()
    """Headers of the requests to these hosts, as `Name: value`, at most 30, in place of the job's headers."""
    user_agent: str | None = None
    """Value of the User-Agent for these hosts. It must contain the robots token of the job."""
    auth: str = ""
    """Proof of who asks: `basic:NAME`, `bearer:NAME`, or `HEADER:NAME`, with the name of a secret of each machine.

    The hosts must be named without a star. The secret goes to https URLs only, and only to the port of the match."""
    http_secrets: bool | None = None
    """True to send the secret to http URLs as well, where others on the way can read it."""
    ca_pem: str = field(default="", repr=False)
    """Certificates of authorities to trust for these hosts beside those of the machine, as PEM text, in place of the
    job's."""
    client_certificate: str = ""
    """Name of the secret that is the path, on each machine, of a PEM file with a client certificate and its key.

    The hosts must be named without a star."""
    verify: bool | None = None
    """False to accept any certificate, of hosts that are named without a star. Others on the way can then read and
    change everything."""
    proxies: str | None = None
    """Name of a pool of the job through which these hosts are fetched, or `none` to fetch from them directly."""
    cookies: Cookies | None = None
    """`keep` to keep the cookies of a site and to send them back, `off` to ignore them, which is the default.

    Such a site is fetched by its owner alone: its URLs are not lent, so leaves do not fetch them. The cookies move with
    the site, so the swarm needs a key. Not with partition `url`."""
    login: SiteLogin | None = None
    """A form that is sent to the site before its first page, and again when the session is over. It needs cookies
    `keep`.

    The hosts must be named without a star, and the form goes to one of them, by https. With `hook`, a function of each
    machine makes the request of the page at `url`."""
    robots: Robots | None = None
    """Treatment of robots.txt: `obey`, or `ignore` for your own hosts.

    `ignore` needs hosts without a star, at most 100 of them in a job, and a contact. The WARC files name these
    hosts."""

    def __post_init__(self) -> None:
        check_types(self)
        require(len(self.match) > 0, "match is missing: a host, such as 'example.org' or '*.example.org'")
        for match in self.match:
            check_match(match)
        require(self.robots in (None, "obey", "ignore"), "robots must be obey or ignore")
        require(
            self.robots != "ignore" or self.is_exact,
            "robots ignore is for your own hosts: name each of them in match, without a star",
        )
        if self.auth:
            parse_auth(self.auth)
            require(self.is_exact, "auth sends a secret: name each of the hosts in match, without a star")
        check_authorities(self.ca_pem)
        require(self.cookies in (None, "keep", "off"), "cookies must be keep or off")
        require(self.proxies is None or is_pool_name(self.proxies), "proxies must be the name of a pool, or none")
        if self.client_certificate:
            check_name(self.client_certificate)
            require(self.is_exact, "client_certificate needs each of the hosts in match, without a star")
        require(self.verify is not True, "verify is true for every site: leave it out, or say false")
        require(self.verify is None or self.is_exact, "verify false needs each of the hosts in match, without a star")
        self._check_login()
        sends = bool(self.auth) or self.login is not None
        require(self.http_secrets is None or sends, "http_secrets would do nothing, as it is for auth and login")
        check_headers(self.headers)
        check_agent(self.user_agent or "")
        for name, least, most, unit in _RANGES:
            value = getattr(self, name)
            require(value is None or least <= value <= most, f"{name} must be from {least} to {most}{unit}")
        require(len(self.sitemap_urls) <= SITEMAPS_MAX, f"a rule names at most {SITEMAPS_MAX} sitemaps")
        for url in self.sitemap_urls:
            require(is_canonical(url), "sitemaps must be canonical URLs, as urls.seed makes them")
        require(self.sitemaps is not False or not self.sitemap_urls, "sitemaps cannot be false and name URLs")
        idle = [name for name in _SETTINGS if self.off and getattr(self, name) not in NOTHING]
        require(not idle, f"{' and '.join(idle)} would do nothing, as off leaves the site out of the crawl")
        useful = self.off or any(getattr(self, name) not in NOTHING for name in _SETTINGS)
        require(useful, "a rule must say something of its sites, such as delay = 5 or off = true")

    def _check_login(self) -> None:
        if self.login is None:
            return
        url = self.login.url
        require(self.cookies == "keep", "login needs cookies = 'keep', as the session is in the cookies")
        require(self.is_exact, "login sends a secret: name each of the hosts in match, without a star")
        require(
            site_of(url, "host") in self.match, f"login must go to a host of its rule, not to {site_of(url, 'host')}"
        )
        require(
            url.startswith("https:") or self.http_secrets is True, "login must go to an https URL, or add http-secrets"
        )

    @property
    def is_exact(self) -> bool:
        """True if the rule holds for single hosts only."""
        return not any(match.startswith("*") for match in self.match)

    @property
    def label(self) -> str:
        """The matches in a few words, for a person."""
        more = len(self.match) - 3
        return ", ".join(self.match[:3]) + (f" and {more} more" if more > 0 else "")


_SETTINGS = tuple(entry.name for entry in fields(SiteRule) if entry.name not in ("match", "off"))
"""Fields that would do nothing for a site that is left out."""
_RANGES = (
    ("delay_s", 0, 86_400, " seconds"),
    ("connections", 1, CONNECTIONS_MAX, ""),
    ("site_pages_max", 1, PAGES_MAX, ""),
    ("retries", 0, 20, ""),
    ("body_bytes_max", 1, PAGES_MAX, " bytes"),
    ("fetch_timeout_s", 0.001, 86_400, " seconds"),
)


def check_match(match: str) -> None:
    """Raise ConfigError, saying what would do, unless this is a match in the form that `normal_match` returns."""
    if match == EVERY or (match.startswith("*.") and _HOST.fullmatch(match[2:]) and not _is_address(match[2:])):
        return
    url = canonical(f"http://{match}/") if "*" not in match and len(match) <= 300 else None
    name = match.rpartition(":")[0] if _PORT.search(match) else match
    is_host = name.startswith("[") or _HOST.fullmatch(name)  # The syntax of URLs has more signs than a host.
    if url is None or site_of(url, "host") != match or not is_host:
        raise ConfigError(
            f"match {match!r:.60} is no host: it looks like example.org, example.org:8080, *.example.org, or * for all"
        )


def normal_match(text: str) -> str:
    """Return a match that a person typed in the spelling of canonical URLs. Raises ConfigError for any other text."""
    text = text.strip().lower()
    if any(sign in text for sign in "/@?#"):
        raise ConfigError(f"match {text!r:.60} must be a host without a scheme or a path, such as example.org")
    star = "*." if text.startswith("*.") else ""
    url = canonical(f"http://{text.removeprefix(star)}/") if text != EVERY and len(text) <= 300 else None
    match = text if url is None else star + site_of(url, "host")
    check_match(match)
    return match


def match_named(text: str, alternative: str = "") -> str:
    """Return the match that a person names in an order, also by the URL of a front page. Raises ConfigError.

    The URL of another page is refused, as the order would be about its whole host. `alternative` says what else to do.
    """
    if "://" not in text:
        return normal_match(text)
    url = seed(text)
    host = site_of(url, "host")
    if url.index("/", len("https://")) + 1 < len(url):
        raise ConfigError(f"{url} is one page, and the order would be about its whole host: name {host}{alternative}")
    check_match(host)
    return host


class JobSettings(Protocol):
    """The settings of a job with which its site rules must go together."""

    @property
    def delay_s(self) -> float: ...
    @property
    def delay_factor(self) -> float: ...
    @property
    def partition(self) -> Partition: ...
    @property
    def history(self) -> str: ...
    @property
    def robots_agent(self) -> str: ...
    @property
    def by_proxies(self) -> bool: ...
    @property
    def proxied_by_default(self) -> bool: ...
    @property
    def pools(self) -> Sequence[ProxyPool]: ...
    @property
    def recrawl_after_s(self) -> float | None: ...
    @property
    def recrawl_least_s(self) -> float | None: ...
    @property
    def recrawl_most_s(self) -> float | None: ...


def check_sites(sites: Sequence[SiteRule], job: JobSettings) -> None:
    """Raise ConfigError if these rules are too many, contradict each other, or cannot go with the rest of the job."""
    require(len(sites) <= SITES_MAX, f"a job has at most {SITES_MAX} sites")
    seen: dict[str, int] = {}
    chars = 0
    for number, rule in enumerate(sites, 1):
        for match in rule.match:
            chars += len(match)
            before = seen.setdefault(match, number)
            require(before == number, f"sites {before} and {number} both match {match}; make one rule of them")
        chars += sum(map(len, (*rule.sitemap_urls, *rule.headers, rule.user_agent or "", rule.ca_pem)))
        require(
            rule.connections is None or not (job.delay_s if rule.delay_s is None else rule.delay_s),
            f"connections of site {rule.label} need delay = 0 in the same rule: a site with a delay has one request in "
            "flight",
        )
        require(
            rule.connections is None or not job.delay_factor,
            f"connections of site {rule.label} cannot go with delay_factor, by which each site has a delay and so one "
            "request in flight; leave out one of them",
        )
        require(
            rule.user_agent is None or job.robots_agent.lower() in rule.user_agent.lower(),
            f"user_agent of site {rule.label} must contain {job.robots_agent}, the name that counts in a robots.txt",
        )
        require(
            rule.cookies != "keep" or job.partition != "url",
            f"cookies keep of site {rule.label} cannot go with partition url, where each URL is a site and no peer has "
            "the cookies of a host; use partition host or domain",
        )
        if rule.login is not None:
            _check_login_site(rule, rule.login, job.partition)
        own_tls = rule.verify is False or rule.client_certificate
        require(
            not (own_tls and (job.proxied_by_default if rule.proxies is None else rule.proxies != DIRECT)),
            f"verify and client_certificate of site {rule.label} cannot go through proxies, which would count as the "
            'site; add proxies = "none" to the rule',
        )
        _check_pool(rule, job)
        if rule.site_pages_max is not None:
            _check_site_pages(rule, job.partition, job.history)
        if rule.recrawl_after_s is not None:
            _check_recrawl(rule, job)
    require(len(seen) <= MATCHES_MAX, f"the sites of a job have at most {MATCHES_MAX} matches")
    ignored = len(robots_ignored(sites))
    require(ignored <= ROBOTS_IGNORED_MAX, f"robots ignore is for at most {ROBOTS_IGNORED_MAX} hosts, not {ignored}")
    require(chars <= MATCHES_CHARS_MAX, f"the sites of a job have at most {MATCHES_CHARS_MAX} characters")


def robots_ignored(sites: Iterable[SiteRule]) -> tuple[str, ...]:
    """Return the hosts whose robots.txt is ignored."""
    return tuple(match for rule in sites if rule.robots == "ignore" for match in rule.match)


def secrets_of(sites: Sequence[SiteRule]) -> tuple[str, ...]:
    """Return the names of the secrets that these rules need on each machine."""
    names = {parse_auth(rule.auth).secret for rule in sites if rule.auth}
    names |= {secret for rule in sites if rule.login for _, secret in rule.login.secrets}
    return tuple(sorted(names | {rule.client_certificate for rule in sites if rule.client_certificate}))


def login_hooks(sites: Iterable[SiteRule]) -> frozenset[str]:
    """Return the functions of each machine by which these rules log in."""
    return frozenset(rule.login.hook for rule in sites if rule.login is not None and rule.login.hook)


def check_secrets(sites: Sequence[SiteRule], secrets: Mapping[str, str]) -> None:
    """Raise ConfigError, saying how to give it, unless a machine has each secret of these rules."""
    if missing := [name for name in secrets_of(sites) if name not in secrets]:
        variables = " and ".join(VARIABLE_PREFIX + name.upper().replace("-", "_") for name in missing)
        raise ConfigError(
            f"the job needs the secret {', '.join(missing)} on each machine of the swarm, and this machine has none of "
            f"that name: give it in a file, by --secrets FILE, or in {variables}"
        )
    for rule in sites:
        if rule.auth:
            auth = parse_auth(rule.auth)
            auth_header(auth, secrets[auth.secret])


def unverified(sites: Iterable[SiteRule]) -> tuple[str, ...]:
    """Return the hosts whose certificates are not verified."""
    return tuple(match for rule in sites if rule.verify is False for match in rule.match)


def check_key(sites: Iterable[SiteRule], *, has_key: bool) -> None:
    """Raise ConfigError if cookies would travel between peers without encryption."""
    require(
        has_key or all(rule.cookies != "keep" for rule in sites),
        "cookies keep needs a swarm with a key, as cookies travel with their site: leave out --insecure, or give a key",
    )


def check_contact(sites: Iterable[SiteRule], contact: str) -> None:
    """Raise ConfigError if a robots.txt is ignored by a crawl that names nobody."""
    require(
        bool(contact) or not robots_ignored(sites),
        "robots ignore needs a contact, so that the owner of a host can reach you: give --contact",
    )


def _check_login_site(rule: SiteRule, login: SiteLogin, partition: Partition) -> None:
    """Raise ConfigError unless the hosts of a rule share the cookies that its login form begins."""
    kind: Partition = "domain" if partition == "domain" else "host"
    site = site_of(login.url, kind)
    others = [match for match in rule.match if site_of(f"http://{match}/", kind) != site]
    require(
        not others,
        f"login of site {rule.label} is at {site}, which shares no cookies with {', '.join(others[:3])}; make another "
        "rule for those, or use partition domain for hosts of one domain",
    )


def _check_pool(rule: SiteRule, job: JobSettings) -> None:
    """Raise ConfigError unless the job has the proxies that a rule names."""
    if rule.proxies is None:
        return
    if rule.proxies == DIRECT:
        require(job.by_proxies, f"proxies of site {rule.label} would do nothing, as the job has none")
        return
    names = [pool.name for pool in job.pools]
    known = f"the pools are {', '.join(names)}, or say none" if names else "add a table [[pools]] with this name"
    require(rule.proxies in names, f"proxies of site {rule.label}: there is no pool {rule.proxies!r:.60}; {known}")


def _check_recrawl(rule: SiteRule, job: JobSettings) -> None:
    after_s = rule.recrawl_after_s or 0.0
    require(
        job.recrawl_after_s is not None and job.history == "exact",
        f"recrawl_after_s of site {rule.label} needs recrawl_after_s of the job, and history exact",
    )
    require(
        not after_s or RECRAWL_LEAST_S <= after_s <= RECRAWL_MOST_S,
        f"recrawl_after_s of site {rule.label} must be 0, or from {RECRAWL_LEAST_S} second to "
        f"{RECRAWL_MOST_S // 86_400} days",
    )
    least_s, most_s = recrawl_bounds_s(after_s, job.recrawl_least_s, job.recrawl_most_s)
    require(
        not after_s or least_s <= after_s <= most_s,
        f"recrawl_after_s of site {rule.label} must lie between recrawl_least_s and recrawl_most_s",
    )


def recrawl_bounds_s(after_s: float, least_s: float | None, most_s: float | None) -> tuple[float, float]:
    """Return the shortest and the longest period of a page whose period begins as `after_s` seconds.

    `least_s` and `most_s` are the bounds that the job names, if any.
    """
    return least_s or max(after_s / 10, RECRAWL_LEAST_S), most_s or after_s * 10


def _check_site_pages(rule: SiteRule, partition: Partition, history: str) -> None:
    require(
        partition != "url" and history != "bloom",
        f"site_pages_max of site {rule.label} cannot go with partition url, nor with history bloom, where no peer "
        "counts the URLs of a host; use partition host and history exact",
    )
    for match in rule.match if partition == "domain" else ():
        host = match.removeprefix("*.")
        domain = host if match == EVERY else site_of(f"http://{host}/", "domain")
        require(
            host == domain,
            f"site_pages_max of site {match} cannot go with partition domain, where all URLs of {domain} are counted "
            f"together; match {domain}",
        )


def _is_address(host: str) -> bool:
    return host.rpartition(".")[2].isdecimal()
