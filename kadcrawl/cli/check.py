"""`kadcrawl check`: what a job file says, and what its crawl would do with URLs. It asks nobody, and needs no net."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kadcrawl.cli.exits import DONE, told
from kadcrawl.cli.options import needs_contact
from kadcrawl.config import Job
from kadcrawl.job_file import KEYS, JobFile, read

if TYPE_CHECKING:
    from kadcrawl.cli.verdict import Verdict

SEEDS_SHOWN_MAX = 20
"""Of the table; --json has all."""


@click.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.argument("urls", nargs=-1, metavar="[URL...]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@told
def check(file: Path, urls: tuple[str, ...], as_json: bool) -> int:
    """Explain the job in FILE, and what its crawl would do with each URL, without a swarm or a request.

    FILE is what crawl and start take as --job: TOML, each key an option of theirs without the leading dashes, or seeds.

    \b
        seeds = ["https://example.org/docs/"]
        scope = "prefix"             # host, domain, prefix or any
        exclude = ['/old/', '[?]']   # regular expressions, best in single quotes
        max-pages = 500
        delay = 2                    # seconds
        contact = "you@example.org"

    Of each URL it says the canonical form; the site, which has one delay, and its place among the peers; and whether
    it is in scope, and by which rule not. A URL that is no seed is taken for one link away from a seed. What robots.txt
    forbids, and which addresses are not public, only a crawl finds out.

    \b
    Exit codes: 0  the job is good, whatever becomes of the URLs
                2  it is not
    """
    from kadcrawl.cli.verdict import explain  # Not at the top: no other command needs a room of the crawl.

    found = read(file)
    seeds, others = explain(found.job, found.job.seeds), explain(found.job, urls)
    if as_json:
        click.echo(json.dumps(_as_json(found, seeds, others), indent=2))
    else:
        click.echo("\n".join(_lines(found, seeds, others)))
    return DONE


def _as_json(file: JobFile, seeds: Sequence["Verdict"], urls: Sequence["Verdict"]) -> dict[str, Any]:
    settings = {key: getattr(file.job, field) for key, (field, _) in KEYS.items() if key != "seeds"}
    return {
        "file": str(file.path),
        "settings": settings,
        "changed": [key for key, _, _ in _changed(file.job)],
        "seeds": [
            {"url": verdict.canonical, "in_scope": verdict.in_scope, "reason": verdict.reason} for verdict in seeds
        ],
        "contact_missing": _lacks_contact(file.job),
        "urls": [asdict(verdict) for verdict in urls],
    }


def _lines(file: JobFile, seeds: Sequence["Verdict"], urls: Sequence["Verdict"]) -> Iterator[str]:
    job = file.job
    yield f"{file.path} is a good job."
    rows = [
        ("setting", "value", "default"),
        *((key, _shown(value), _shown(other)) for key, value, other in _changed(job)),
    ]
    yield ""
    if len(rows) > 1:
        widths = [max(len(row[column]) for row in rows) for column in range(2)]
        for key, value, other in rows:
            yield f"{key:{widths[0]}}  {value:{widths[1]}}  {other}"
    else:
        yield "All settings are the defaults."
    yield from _seed_lines(job, seeds)
    for verdict in urls:
        yield ""
        yield verdict.url
        yield f"  in scope   {'yes' if verdict.in_scope else 'no'}: {verdict.why}"
        if verdict.canonical is not None:
            yield f"  canonical  {verdict.canonical}"
            yield f"  site       {verdict.site}"
            yield f"  key        {verdict.key}, cell {verdict.cell}"
            yield f"  delay      {_seconds(job.delay_s)}, or what robots.txt asks for if that is more"


def _seed_lines(job: Job, seeds: Sequence["Verdict"]) -> Iterator[str]:
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


def _lacks_contact(job: Job) -> bool:
    return not job.contact and needs_contact(job.seeds)


def _changed(job: Job) -> list[tuple[str, Any, Any]]:
    """Return (key, value, default) of every setting that is not as it would be without the file."""
    default = Job()
    rows = [(key, getattr(job, field), getattr(default, field)) for key, (field, _) in KEYS.items() if key != "seeds"]
    return [row for row in rows if row[1] != row[2]]


def _shown(value: Any) -> str:
    if value is None:
        return "no limit"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(map(repr, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value) or "none"


def _seconds(number: float) -> str:
    return f"{number:g} second{'' if number == 1 else 's'}"
