"""Warnings of rules in a job that never apply: patterns that no URL can match, and rules that an earlier rule starves.

Only what is proven is told (settings/pattern_facts.py). Nothing is said of URLs near other seeds than those known here,
which a person may add later. A decision: no I/O, no clock.

Tests: tests/cli/view/test_job_warnings.py
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from kadcrawl.crawl.scope.seed_reach import near_name
from kadcrawl.settings.job import Job
from kadcrawl.settings.pattern_facts import SCHEMES, PatternFacts
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.urls import host_of, path_of, site_of

BEGINS_MAX = 400
"""Limit on the begins of URLs in scope that patterns are compared with. With more, nothing is said of the scope."""
_AUTHORITY = re.compile(r"https?://([^/]+)/")


@dataclass(frozen=True, slots=True)
class NamedPattern:
    """A pattern of the job, and the rule as a person knows it."""

    kind: str
    label: str
    facts: PatternFacts

    def __str__(self) -> str:
        return f"{self.kind} '{self.label}'"


@dataclass(frozen=True, slots=True)
class _Near:
    """The URLs in scope, as far as they are known."""

    begins: Sequence[str] | None
    """Begins of URLs, one of which each URL in scope has, or None if there are too many or any."""
    domains: frozenset[str] | None
    """The registered domains of all URLs in scope, or None if not known."""


def patterns_of(job: Job) -> list[NamedPattern]:
    """Return all patterns of a job, those of each kind in their order."""
    return [
        *(NamedPattern("include", pattern, PatternFacts(pattern)) for pattern in job.include),
        *(NamedPattern("exclude", pattern, PatternFacts(pattern)) for pattern in job.exclude),
        *(NamedPattern("[[roles]]", rule.pattern, PatternFacts(rule.pattern)) for rule in job.roles),
        *(NamedPattern("[[records]]", rule.label, PatternFacts(rule.pattern)) for rule in job.records),
    ]


def job_warnings(job: Job, *, all_seeds_known: bool = True) -> list[str]:
    """Return a sentence for each rule of this job that never applies.

    With `all_seeds_known`, the job has all seeds that bring URLs into its scope.
    """
    near = _near(job) if all_seeds_known and job.seeds else _Near(None, None)
    patterns, warnings = patterns_of(job), []
    for number, pattern in enumerate(patterns):
        earlier = [one for one in patterns[:number] if one.kind == pattern.kind and one.kind.startswith("[[")]
        excludes = [one for one in patterns if one.kind == "exclude" != pattern.kind]
        why = _impossible(job, pattern, near) or _excluded(pattern, excludes) or _starved(pattern, earlier, near)
        if why is not None:
            warnings.append(why)
    return [*warnings, *_idle_sites(job, near)]


def unmatched(job: Job, urls: Sequence[str]) -> list[str]:
    """Return the rules of this job that match none of these canonical URLs, as a person knows them."""
    settings = SiteSettings(job)
    deciding = [settings.rule(url) for url in urls]
    return [
        *(str(one) for one in patterns_of(job) if not any(map(one.facts.is_found_in, urls))),
        *(f"[[sites]] {', '.join(rule.match)}" for rule in job.sites if all(one is not rule for one in deciding)),
    ]


def _near(job: Job) -> _Near:
    """Return the URLs near the seeds.

    Both schemes are in scope, the host with and without www., and the host with the dot of the root.
    """
    if job.scope == "any":
        return _Near(None, None)
    domains = frozenset(site_of(url, "domain") for url in job.seeds)
    if job.scope == "domain" or len(job.seeds) > BEGINS_MAX:
        return _Near(None, domains)
    found: dict[str, None] = {}
    settings = SiteSettings(job)
    for url in job.seeds:
        name = near_name(url, job.scope)
        host = host_of(f"http://{name}/")
        whole_host = job.scope == "host" or settings.follows_sitemaps(url)  # A sitemap may lie anywhere.
        directory = "/" if whole_host else _directory(url)
        for scheme, www, root in product(SCHEMES, ("", "www."), ("", ".")):
            found[f"{scheme}{www}{host}{root}{name.removeprefix(host)}{directory}"] = None
    return _Near([*found] if len(found) <= BEGINS_MAX else None, domains)


def _directory(url: str) -> str:
    path = path_of(url).partition("?")[0]
    return path[: path.rindex("/") + 1]


def _impossible(job: Job, pattern: NamedPattern, near: _Near) -> str | None:
    facts = pattern.facts
    if (text := facts.impossible) is not None:
        return (
            f"{pattern} matches no URL: no canonical URL has {text!r}; kadcrawl check FILE URL shows the canonical "
            "form of a URL"
        )
    if not facts.may_begin(SCHEMES):
        return f"{pattern} matches no URL: every canonical URL begins with http:// or https://"
    authority = _AUTHORITY.match(facts.begin or "")
    is_far = near.begins is not None and not facts.may_begin(near.begins)
    if near.domains is not None and authority is not None:
        is_far = is_far or site_of(authority[0], "domain") not in near.domains
    return f"{pattern} matches no URL near the seeds (scope {job.scope})" if is_far else None


def _excluded(pattern: NamedPattern, excludes: Sequence[NamedPattern]) -> str | None:
    exclude = next((one for one in excludes if one.facts.found_with(pattern.facts)), None)
    return None if exclude is None else f"{pattern} never applies: {exclude} leaves out every URL that it matches"


def _starved(pattern: NamedPattern, earlier: Sequence[NamedPattern], near: _Near) -> str | None:
    for before in earlier:
        if before.facts.found_with(pattern.facts) or before.facts.always_found():
            return f"{pattern} never applies: {before} stands above it and matches every URL that it matches; swap them"
        if near.begins is not None and before.facts.always_found(near.begins):
            return f"{pattern} never applies: {before} stands above it and matches every URL near the seeds; swap them"
    return None


def _idle_sites(job: Job, near: _Near) -> Iterator[str]:
    """Yield a sentence for each [[sites]] table that decides about no host in scope."""
    settings = SiteSettings(job)
    deciding = [] if near.begins is None else [settings.rule(begin) for begin in near.begins]
    if near.begins is not None and job.partition != "url":
        deciding += [settings.rule_of_site(site_of(begin, job.partition)) for begin in near.begins]
    for rule in job.sites:
        if near.begins is not None:
            is_idle = all(one is not rule for one in deciding)
        else:
            domains = near.domains
            is_idle = domains is not None and not any(_may_match(match, domains) for match in rule.match)
        if is_idle:
            yield f"[[sites]] {', '.join(rule.match)} decides about no host near the seeds (scope {job.scope})"


def _may_match(match: str, domains: frozenset[str]) -> bool:
    """Return whether a match of [[sites]] may stand for a host of these registered domains."""
    name = match.removeprefix("*.")
    if match == "*" or site_of(f"http://{name}/", "domain") in domains:
        return True
    return name != match and any(domain.endswith(f".{name}") for domain in domains)
