"""`kadcrawl check` explains a job file, and the fate of URLs in its crawl. The command asks no peer and needs no
network."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import cloup

from kadcrawl.cli.exits import DONE, told
from kadcrawl.cli.options import make_sinks
from kadcrawl.settings.contact import needs_contact
from kadcrawl.settings.durations import shown
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_file import DURATIONS, KEYS, PROXIES, SINKS, SIZES, JobFile, read
from kadcrawl.settings.limit_file import LIMITS, limit_shown
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.parameter_sets import PARAMETER_SETS
from kadcrawl.settings.proxy_list import shown as proxies_shown
from kadcrawl.settings.site_file import keys_of
from kadcrawl.settings.site_rules import login_hooks, robots_ignored, secrets_of, unverified
from kadcrawl.settings.trust import shown as authorities_shown
from kadcrawl.settings.units import shown_size
from kadcrawl.sinks.sink_names import parse
from kadcrawl.system.printable import printable

if TYPE_CHECKING:
    from kadcrawl.crawl.scope.explain import UrlVerdict

SEEDS_SHOWN_MAX = 20
"""Seeds in the table. --json has all."""


@cloup.command(short_help="Explain a job, and say of any URL whether it would be crawled.")
@cloup.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@cloup.argument("urls", nargs=-1, metavar="[URL...]")
@cloup.option(
    "--page",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="HTML",
    help="Print the records that the crawl would take out of this saved file, as the page at URL. "
    "Give exactly one URL.",
)
@cloup.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@told
def check(file: Path, urls: tuple[str, ...], page: Path | None, as_json: bool) -> int:
    """Explain the job in FILE, and the fate of each URL in its crawl, without a swarm or a request.

    FILE is what crawl and start take as --job: TOML, each key an option of theirs without the leading dashes, or seeds.

    \b
        seeds = ["https://example.org/docs/"]
        scope = "prefix"             # host, domain, prefix or any
        exclude = ['/old/', '[?]']   # regular expressions, best in single quotes
        max-pages = 500
        delay = 2                    # seconds
        contact = "you@example.org"
        sinks = ["sqlite:results.db"]   # of this machine: what joins has its own

    For each URL the command prints the canonical form, the site, the place among the peers, and whether it is in
    scope, or which rule excludes it. A URL that is no seed is taken for one link away from a seed. Only a crawl finds
    out what robots.txt forbids, and which addresses are not public.

    \b
    Which pages hold content, and what becomes a line of records.jsonl, stands in tables at the end of FILE:
        [[roles]]
        pattern = '/item/'           # the first rule whose pattern is found in a URL holds
        role = "detail_request"      # holds content: its links are not followed; or "next_link": leads on
        [[records]]
        pattern = '/item/'
        fields = { title = "css:h1::text", tags = ["xpath://a[@rel='tag']/text()"] }   # [...]: a list of all
        # each = "css:div.item"      # one record for each of these elements
        # hook = "module:function"   # instead of fields: function(page) -> dict, list of dicts or None

    \b
    Settings of single sites stand there as well. The most specific match decides, and it takes nothing from others:
        [[sites]]
        match = "*.example.org"      # or a host, host:port, a list of them, or * for all
        delay = 5                    # or recrawl-after, max-site-pages, sitemaps, off, ...

    \b
    A WARNING names a rule that never applies: its pattern matches no URL near the seeds, or a rule above it matches all
    that it matches. Another names a hook that this machine cannot import.

    \b
    Exit codes: 0  the job is good, whatever becomes of the URLs
                2  it is not
    """
    from kadcrawl.cli.view.hook_check import missing_hooks
    from kadcrawl.cli.view.job_warnings import job_warnings
    from kadcrawl.cli.view.saved_page import records_of  # Not at the top: no other command needs a room of the crawl.
    from kadcrawl.crawl.scope.explain import explain

    found = read(file)
    make_sinks((), file, None)  # So that names that are none are said here.
    if page is not None:
        click.echo("\n".join(records_of(found.job, urls, page)))
        return DONE
    seeds, others = explain(found.job, found.job.seeds), explain(found.job, urls)
    warnings = [*job_warnings(found.job), *missing_hooks(found.job)]
    if as_json:
        click.echo(json.dumps(_as_json(found, seeds, others) | {"warnings": warnings}, indent=2))
    else:
        click.echo("\n".join(map(printable, _lines(found, seeds, others, warnings))))
    return DONE


def _as_json(file: JobFile, seeds: Sequence["UrlVerdict"], urls: Sequence["UrlVerdict"]) -> dict[str, Any]:
    settings = {key: _value(file.job, key) for key in KEYS if key != "seeds"}
    return {
        "file": str(file.path),
        "settings": settings,
        SINKS: _sinks(file),
        LIMITS: file.limits,
        "changed": [key for key, _, _ in _changed(file.job)],
        "seeds": [
            {"url": verdict.canonical, "in_scope": verdict.in_scope, "reason": verdict.reason} for verdict in seeds
        ],
        "contact_missing": _lacks_contact(file.job),
        "roles": [asdict(rule) for rule in file.job.roles],
        "records": [asdict(rule) for rule in file.job.records],
        "pools": {pool.name: proxies_shown(pool.proxies, pool.proxies_from) for pool in file.job.pools},
        "sites": [keys_of(rule) for rule in file.job.sites],
        "urls": [asdict(verdict) for verdict in urls],
    }


def _lines(
    file: JobFile, seeds: Sequence["UrlVerdict"], urls: Sequence["UrlVerdict"], warnings: Sequence[str]
) -> Iterator[str]:
    job = file.job
    yield f"{file.path} is a good job."
    rows = [
        ("setting", "value", "default"),
        *((key, _shown(value, key), _shown(other, key)) for key, value, other in _changed(job)),
        *_limit_rows(file),
    ]
    yield ""
    if len(rows) > 1:
        widths = [max(len(row[column]) for row in rows) for column in range(2)]
        for key, value, other in rows:
            yield f"{key:{widths[0]}}  {value:{widths[1]}}  {other}"
    else:
        yield "All settings are the defaults."
    yield from _rule_lines(job)
    yield from _notes(job)
    for sentence in warnings:
        yield ""
        yield f"WARNING: {sentence}"
    if file.sinks:
        yield ""
        yield "sinks, of the machine that reads the file"
        yield from (f"  {name}" for name in _sinks(file))
    yield from _seed_lines(job, seeds)
    for verdict in urls:
        yield ""
        yield verdict.url
        yield f"  in scope   {'yes' if verdict.in_scope else 'no'}: {verdict.why}"
        if verdict.canonical is not None:
            yield f"  canonical  {verdict.canonical}"
            if verdict.stripped:
                yield f"  without    {', '.join(verdict.stripped)} (strip-parameters)"
            yield f"  site       {verdict.site}"
            yield f"  key        {verdict.key}, cell {verdict.cell}"
            adapts = ""
            if job.delay_factor:
                adapts = f", or {job.delay_factor:g} times an answer up to {_seconds(job.delay_most_s)}"
            yield f"  delay      {_seconds(verdict.delay_s or 0)}{adapts}, or what robots.txt asks for if that is more"
            if verdict.site_rule is not None:
                yield f"  rule       {_site_rule(verdict.site_rule)}"
            if job.roles:
                links = "links followed" if verdict.follows else "links not followed"
                yield f"  role       {verdict.role or 'none'}, {links}"
            if job.records:
                yield f"  records    {'none' if verdict.record_rule is None else f'by rule {verdict.record_rule}'}"
    yield from _unmatched_lines(job, urls)


def _unmatched_lines(job: Job, urls: Sequence["UrlVerdict"]) -> Iterator[str]:
    """Yield the rules that match none of the given URLs, whatever other URLs they match."""
    from kadcrawl.cli.view.job_warnings import unmatched

    given = [verdict.canonical for verdict in urls if verdict.canonical is not None]
    if len(given) > 1 and (rules := unmatched(job, given)):
        yield ""
        yield "rules that match none of these URLs"
        yield from (f"  {rule}" for rule in rules)


def _rule_lines(job: Job) -> Iterator[str]:
    if job.roles:
        yield ""
        yield "roles"
        yield from (f"  {role.role}  {role.pattern}" for role in job.roles)
    if job.records:
        yield ""
        yield "records"
        for rule in job.records:
            what = f"hook {rule.hook}" if rule.hook else ", ".join(field.name for field in rule.fields)
            yield f"  {rule.label}: {what}{', for each ' + rule.each if rule.each else ''}"
    if job.pools:
        yield ""
        yield "pools"
        yield from (f"  {pool.name}: {proxies_shown(pool.proxies, pool.proxies_from)}" for pool in job.pools)
    if job.sites:
        yield ""
        yield "sites, of which the most specific match decides about a URL"
        yield from (f"  {_site_rule(keys_of(site))}" for site in job.sites)


def _site_rule(keys: dict[str, Any]) -> str:
    """Return a [[sites]] table on one line: its hosts, then its keys as the file has them."""
    said = ", ".join(f"{key} = {json.dumps(value)}" for key, value in keys.items() if key != "match")
    return f"{', '.join(keys['match'])}: {said}"


def _notes(job: Job) -> Iterator[str]:
    """Yield notes on settings with effects that their names do not show."""
    if job.sitemaps:
        yield ""
        yield "sitemaps: those a site's robots.txt names, or else its /sitemap.xml, count as linked from each of its"
        yield "pages. They must be in scope, and so must what they list; a URL named like a sitemap need neither match"
        yield "an include nor lie below the path of a seed."
    if ignored := robots_ignored(job.sites):
        yield ""
        yield f"robots.txt is ignored for {', '.join(ignored)}: for your own hosts only. The WARC files say so."
    if hosts := unverified(job.sites):
        yield ""
        yield f"WARNING: any certificate is accepted for {', '.join(hosts)}: others on the way can read and change all."
    if names := secrets_of(job.sites):
        yield ""
        yield f"secrets that each machine needs (--secrets): {', '.join(names)}"
    if hooks := login_hooks(job.sites):
        yield ""
        yield f"login hooks that each machine needs (join --hook): {', '.join(sorted(hooks))}"
    if named := {name: PARAMETER_SETS[name] for name in job.strip_parameters if name in PARAMETER_SETS}:
        yield ""
        yield "strip-parameters: links are followed without these parameters of their query"
        yield from (f"  {name}: {', '.join(parameters)}" for name, parameters in named.items())
    if job.per_ip:
        yield ""
        yield "per-ip: the delay holds between any two requests to one IP address, whatever sites are there."
    if job.canonical == "honor":
        yield ""
        yield "canonical: a page that names another URL of its domain, with https for http, fewer parameters or"
        yield "shorter, counts as a redirect to that, and its other links are not followed; unless it is a seed."
    if job.twins == "skip":
        yield ""
        yield "twins: of pages of a site with nearly the same text only the links of the first are followed; the others"
        yield "are kept like any page. Seeds, and pages of a role that leads on, are always followed."


def _seed_lines(job: Job, seeds: Sequence["UrlVerdict"]) -> Iterator[str]:
    yield ""
    if not seeds:
        yield "No seeds: a crawl with this job needs a URL."
        return
    yield "seeds"
    for verdict in seeds[:SEEDS_SHOWN_MAX]:
        yield f"  {verdict.url}{'' if verdict.in_scope else f'  (not crawled: {verdict.why})'}"
    if (more := len(seeds) - SEEDS_SHOWN_MAX) > 0:
        yield f"  ... and {more} more"
    if _lacks_contact(job):
        yield ""
        yield "No contact: a crawl with this job needs --contact or KADCRAWL_CONTACT, which say who crawls."


def _sinks(file: JobFile) -> list[str]:
    """Return the sinks as they may be shown."""
    return [parse(name).shown for name in file.sinks]


def _lacks_contact(job: Job) -> bool:
    return not job.contact and (needs_contact(job.seeds) or bool(robots_ignored(job.sites)))


def _changed(job: Job) -> list[tuple[str, Any, Any]]:
    """Return (key, value, default) of every setting that is not as it would be without the file."""
    default = Job()
    rows = [(key, _value(job, key), _value(default, key)) for key in KEYS if key != "seeds"]
    return [row for row in rows if row[1] != row[2]]


def _limit_rows(file: JobFile) -> Iterator[tuple[str, str, str]]:
    """Yield (name, value, default) of every limit that the file sets, as they are shown."""
    for name, value in file.limits.items():
        default = limit_shown(name, getattr(Limits(), name))
        yield name, default if value is None else limit_shown(name, value), default


def _value(job: Job, key: str) -> Any:
    """Return the value of a setting as it may be shown."""
    if key == "ca-file":
        return authorities_shown(job.ca_pem)
    return proxies_shown(job.proxies, job.proxies_from) if key == PROXIES else getattr(job, KEYS[key].field)


def _shown(value: Any, key: str) -> str:
    if key in DURATIONS:
        return "none" if value is None else shown(value)
    if value is None:
        return "no limit"
    if key in SIZES:
        return shown_size(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(map(repr, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value) or "none"


def _seconds(number: float) -> str:
    return f"{number:g} second{'' if number == 1 else 's'}"
