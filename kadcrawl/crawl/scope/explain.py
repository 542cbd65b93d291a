"""The fate of a URL in the crawl of a job, in words. A decision: no I/O, no clock.

The crawler decides whether a URL is crawled (crawl/scope). This module only tells the decision.

Tests: tests/cli/commands/test_check.py
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kadcrawl.crawl.scope.scope import Scope
from kadcrawl.errors import ConfigError
from kadcrawl.keys import cell_of, site_hash, url_key
from kadcrawl.settings.job import Job
from kadcrawl.settings.page_rules import PageRules
from kadcrawl.settings.site_file import keys_of
from kadcrawl.urls import URL_CHARS_MAX, canonical, has_credentials, seed, site_of, without_password


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlVerdict:
    """The fate of one URL in the crawl of a job."""

    url: str
    """The URL as given."""
    canonical: str | None = None
    """The URL as stored, hashed and sent, or None for text that is no http(s) URL. All other fields are None then as
    well.

    Unless the URL is a seed, session IDs and parameters are taken out of it and its query is sorted, as the job says.
    """
    stripped: tuple[str, ...] = ()
    """The parameters that strip-parameters takes out of the URL, by name."""
    site: str | None = None
    """The site of the URL: the unit of delay and of ownership."""
    key: str | None = None
    """The key of the URL among the peers, 160 bits in hexadecimal."""
    cell: int | None = None
    """The top bits of the key, as the peers' logs name it."""
    delay_s: float | None = None
    """Seconds between two requests to the site. robots.txt may ask for more."""
    in_scope: bool
    reason: str | None
    """The rule that keeps it out: scheme, url, credentials, or a reason of `Scope.why_not`; None if it is in scope."""
    why: str
    """The reason as a sentence, or the rule that lets the URL in."""
    role: str | None = None
    """The role of the URL by the job's rules."""
    follows: bool = True
    """True if the links of its page would be followed."""
    record_rule: str | None = None
    """The rule that takes records out of its page."""
    site_rule: dict[str, Any] | None = None
    """The [[sites]] table that decides about its host: the keys that it gives."""


def explain(job: Job, urls: Sequence[str], scope: Scope | None = None) -> list[UrlVerdict]:
    """Return the fate of each of these URLs in the crawl of this job.

    `scope` is that of a running crawl, which may know more seeds than the job names, and orders about sites.
    """
    scope, rules = scope or Scope(job), PageRules(job.roles, job.records)
    return [_verdict(job, scope, rules, url) for url in urls]


def _verdict(job: Job, scope: Scope, rules: PageRules, given: str) -> UrlVerdict:
    url = canonical(given.strip())
    if url is None:
        word, why = _no_url(given)
        return UrlVerdict(url=without_password(given), in_scope=False, reason=word, why=why)
    if has_credentials(given.strip()):
        _, why = _no_url(given)
        return UrlVerdict(url=without_password(given), in_scope=False, reason="credentials", why=why)
    stripped = () if scope.is_seed(url) else scope.url_rules.stripped(url)
    url = url if scope.is_seed(url) else scope.url_rules.plain(url)
    reason = scope.why_not(url, 0 if scope.is_seed(url) else 1)
    site = site_of(url, job.partition)
    key = url_key(site_hash(site), url)
    role, record = rules.role(url), rules.record(url)
    return UrlVerdict(
        url=given,
        canonical=url,
        stripped=stripped,
        site=site,
        key=key.hex(),
        cell=cell_of(key, job.bits),
        delay_s=scope.site_settings.delay_s(url),
        in_scope=reason is None,
        reason=reason,
        why=_why_in(job, scope, url) if reason is None else _why_out(job, scope, url, reason),
        role=None if role is None else role.role,
        follows=rules.follows(url),
        record_rule=None if record is None else job.records[record].label,
        site_rule=None if (rule := scope.site_settings.rule(url)) is None else keys_of(rule),
    )


def _no_url(given: str) -> tuple[str, str]:
    """Return the reason and the sentence for text without a canonical form."""
    try:
        seed(given)
    except ConfigError as error:
        why = str(error)
    else:
        raise AssertionError("what has no canonical form, or a password, is no seed")
    if len(given) > URL_CHARS_MAX:
        return "length", why
    return "url" if given.strip().lower().startswith(("http:", "https:")) else "scheme", why


def _why_in(job: Job, scope: Scope, url: str) -> str:
    if scope.is_seed(url):
        return "it is a seed"
    if scope.is_sitemap(url) and (job.scope == "prefix" or job.include):
        why = "it is near a seed and named like a sitemap (sitemaps)"
    elif job.scope == "any":
        why = "every link is followed (scope any)"
    elif job.scope == "prefix":
        why = "it is below the path of a seed"
    else:
        site = site_of(url, job.scope)
        is_other = job.scope == "host" and all(site != site_of(given, "host") for given in job.seeds)
        why = f"{site} is the {job.scope} of a seed" + (", with or without www." if is_other else "")
    if (pattern := scope.included_by(url)) is not None:
        why += f", and it matches include {pattern!r}"
    conditions = []
    if job.max_depth is not None:
        conditions.append(f"at most {job.max_depth} link{'' if job.max_depth == 1 else 's'} away from one")
    if job.path_queries_max is not None and "?" in url:
        conditions.append(f"among the first {job.path_queries_max} with a query at its path (max-path-queries)")
    return f"{why}, if {' and '.join(conditions)}" if conditions else why


def _why_out(job: Job, scope: Scope, url: str, reason: str) -> str:
    """Return the sentence for a reason of `Scope.why_not`."""
    if reason == "scope" and job.scope in ("host", "domain"):
        return f"{site_of(url, job.scope)} is not the {job.scope} of a seed (scope {job.scope})"
    return {
        "scope": "it is not below the path of a seed (scope prefix)",
        "length": f"it has {len(url)} characters, and a URL that is crawled at most {scope.url_chars_max}",
        "depth": f"it is not a seed (max-depth {job.max_depth})",
        "exclude": f"it matches exclude {scope.excluded_by(url)!r}",
        "include": "it matches no include",
        "site_off": "a rule of [[sites]] turns its site off",
        "scope_removed": "an order of a person has taken it out of the scope",
        "site_dropped": "an order of a person has dropped it",
        "site_excluded": "an order of a person excludes its site",
        "proxy_judge": "it is on the site of proxy-judge, which is asked beside all clocks and so not crawled",
        "path_segments": f"its path has more than {job.path_segments_max} segments (max-path-segments)",
        "path_repeats": f"its path repeats itself more than {job.path_repeats_max} times in a row (max-path-repeats)",
        "query_parameters": f"its query has more than {job.query_parameters_max} parameters (max-parameters)",
    }[reason]
