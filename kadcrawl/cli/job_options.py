"""The options that define a job, in groups by topic, for `kadcrawl crawl` and `kadcrawl start`.

A job file has the same names (settings/job_file.py). `--help` prints each group under its title.

Tests: tests/cli/test_job_options.py
"""

from pathlib import Path
from typing import Any, get_args

import click
from cloup import option, option_group

from kadcrawl.cli.options import Command
from kadcrawl.cli.types import Duration, Line, Number, OrNone, Size, Text, WholeNumber
from kadcrawl.errors import ConfigError
from kadcrawl.settings.contact import checked_contact
from kadcrawl.settings.job import COPIES_MAX, COPIES_MIN, MAX_TIME_S, REFUSALS_MAX, URL_PARTS_MAX, Job
from kadcrawl.settings.recrawl_checks import CalendarGrain
from kadcrawl.settings.request_headers import normal_header
from kadcrawl.settings.trust import read_authorities
from kadcrawl.settings.unset import is_none


def _headers(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return values if is_none(values) else tuple(map(normal_header, values))
    except ConfigError as error:
        raise click.BadParameter(str(error)) from None


def _contact(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    try:
        return value if value is None or is_none(value) else checked_contact(value)
    except ConfigError as error:
        raise click.BadParameter(str(error)) from None


def _authorities(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    try:
        return value if value is None or is_none(value) else read_authorities(Path(value))
    except ConfigError as error:
        raise click.BadParameter(str(error)) from None


def _url_limit(name: str, default: int, what: str) -> Any:
    return option(
        f"--max-{name}",
        type=OrNone(WholeNumber(1, URL_PARTS_MAX)),
        default=default,
        show_default=True,
        metavar="N",
        help=f"{what}. {URL_PARTS_MAX}, or none, means no limit.",
    )


def _recrawl_bound(name: str, what: str, otherwise: str) -> Any:
    return option(
        f"--recrawl-{name}",
        type=OrNone(Duration()),
        help=f"The {what} period of --recrawl-adaptive.  [default: {otherwise} --recrawl-after]",
    )


JOB = option_group(
    "Job",
    option(
        "--job",
        "job_file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A TOML file holds options of the job by their names, such as max-pages = 500, and seeds. kadcrawl check "
        "--help shows one. Options, and their environment variables, win over the file, and the word none unsets what "
        "the file or an earlier run has set. URLs of both are crawled. Roles and records of pages, and rules for "
        "single sites, can only stand in a file.",
    ),
    option(
        "--contact",
        envvar="KADCRAWL_CONTACT",
        callback=_contact,
        metavar="URL|EMAIL",
        help="The User-Agent tells this address to the owners of sites. [env: KADCRAWL_CONTACT]",
    ),
    option(
        "--headers",
        "--header",
        "headers",
        type=Line(),
        multiple=True,
        callback=_headers,
        metavar="'NAME: VALUE'",
        help="Send this header with each request to a site. Repeatable. Headers that HTTP or kadcrawl decides are "
        "refused, and secrets belong into auth of a [[sites]] table.",
    ),
    option(
        "--user-agent",
        type=Text(),
        metavar="TEXT",
        help="Call the crawl so, in place of kadcrawl. The contact is added, unless it is part of the text.",
    ),
    option(
        "--robots-token",
        type=Text(),
        metavar="NAME",
        help="Obey the group of robots.txt for this name, which must be part of the User-Agent.  [default: its first "
        "word]",
    ),
    option(
        "--ca-file",
        callback=_authorities,
        metavar="FILE",
        help="Trust the certificate authorities in this PEM file, beside those of each machine, for every site. The "
        "certificates go to every peer with the job.",
    ),
    option("--name", default="crawl", show_default=True, help="The crawl's name in its WARC files."),
)
SCOPE = option_group(
    "Scope",
    option(
        "--scope",
        type=click.Choice(["host", "domain", "prefix", "any"]),
        default="host",
        show_default=True,
        help="Follow links on the seeds' hosts, on their registered domains, below their paths, or any.",
    ),
    option("--include", multiple=True, metavar="REGEX", help="Crawl only URLs that match. Repeatable: any may match."),
    option("--exclude", multiple=True, metavar="REGEX", help="Crawl no URL that matches. Repeatable."),
    option(
        "--max-depth",
        type=OrNone(WholeNumber(0)),
        metavar="N",
        help="The most links that lead from a seed to a page.",
    ),
    option(
        "--sitemaps/--no-sitemaps",
        default=False,
        help="Also follow the URLs in each site's sitemaps: those that its robots.txt names, or else /sitemap.xml. "
        "They count as linked from each page of the site. With --recrawl-after, pages come sooner when a sitemap says "
        "that they were modified.",
    ),
    option(
        "--canonical",
        type=click.Choice(["ignore", "honor"]),
        default="ignore",
        show_default=True,
        help="honor treats a page as a redirect when it names a canonical URL. That URL must be of its domain, with "
        "https for http, fewer parameters, or shorter. Other links of the page are not followed.",
    ),
    option(
        "--nofollow",
        type=click.Choice(["obey", "ignore"]),
        default="obey",
        show_default=True,
        help="obey leaves out links that say nofollow, by rel, a robots meta element or X-Robots-Tag, and counts them. "
        "ignore follows them like all others.",
    ),
    option(
        "--twins",
        type=click.Choice(["follow", "skip"]),
        default="follow",
        show_default=True,
        help="skip follows the links of only the first of a site's pages with nearly the same text. Their SimHashes "
        "differ in at most 3 bits. Beware of lists whose pages have little text of their own: they look alike, and "
        "pages that only the later ones link to are lost. Not with --partition url.",
    ),
)
LIMITS = option_group(
    "Limits",
    option(
        "--max-pages",
        type=OrNone(WholeNumber(1)),
        metavar="N",
        help="The most URLs that the whole swarm fetches.",
    ),
    option(
        "--max-bytes",
        type=OrNone(Size()),
        help="The most bytes of bodies that the whole swarm receives, such as 500MB or 10GiB, and the bodies that are "
        "under way then. The crawl ends as with --max-time.",
    ),
    option(
        "--max-time",
        type=OrNone(Duration(0.001, MAX_TIME_S)),
        help="The longest time for which the whole swarm crawls, such as 90m or 2 days. Time counts while a peer has "
        "URLs to fetch, earlier runs with this limit included. Then no request starts, pages under way are finished, "
        "and the crawl ends. A longer time goes on with the URLs that are left.",
    ),
    option(
        "--max-site-pages",
        type=OrNone(WholeNumber(1)),
        metavar="N",
        help="The most URLs of one site, first found first. The sure bound on a site that makes up pages for ever, "
        "such as a calendar. Not with --partition url.",
    ),
    option(
        "--max-path-queries",
        type=OrNone(WholeNumber(1)),
        metavar="N",
        help="The most URLs that differ in nothing but their query, first found first. The bound on lists that can be "
        "filtered and sorted in any combination. Each owner of a site counts by itself, anew after a restart. Not with "
        "--partition url.",
    ),
    _url_limit("path-segments", Job().path_segments_max, "Follow no links with more segments in their path"),
    _url_limit(
        "path-repeats",
        Job().path_repeats_max,
        "Follow no links whose path repeats itself more often in a row, such as /a/b/a/b/a/b/a/b",
    ),
    _url_limit("parameters", Job().query_parameters_max, "Follow no links with more parameters in their query"),
    option(
        "--session-ids",
        type=click.Choice(["strip", "keep"]),
        default="strip",
        show_default=True,
        help="Take session IDs out of links, because each gives a page another URL.",
    ),
    option(
        "--strip-parameters",
        multiple=True,
        metavar="NAME",
        help="Take this parameter out of the queries of links. One * in a NAME stands for any characters, and utm, "
        "click-ids, mail and analytics are sets of parameters that only tell where a visitor comes from. Repeatable.",
    ),
    option(
        "--sort-query/--no-sort-query",
        default=False,
        help="Sort the parameters in the queries of links by name, so that ?b&a and ?a&b are one URL.",
    ),
    option(
        "--retries",
        type=WholeNumber(0, 20),
        default=3,
        show_default=True,
        help="Further tries after a time-out, a reset, 429 or 5xx, each after a longer wait.",
    ),
    option(
        "--network-wait",
        type=Duration(0, 604_800),
        default="30m",
        show_default=True,
        help="Wait so long when no peer reaches any site any more, before unreachable URLs count as failed. 0 does not "
        "wait.",
    ),
)
POLITENESS = option_group(
    "Politeness",
    option(
        "--delay",
        type=Duration(0, 86_400),
        default="1s",
        show_default=True,
        help="Time between two requests to one site. robots.txt may ask for more.",
    ),
    option(
        "--per-ip/--no-per-ip",
        default=False,
        help="Keep the delay between two requests to one IP address, whatever sites are there and whatever peers own "
        "them. Not with --proxies.",
    ),
    option(
        "--delay-factor",
        type=Number(0, 100),
        default=Job().delay_factor,
        show_default=True,
        metavar="F",
        help="Leave a site alone for F times the time of its last answer, at least --delay and at most --delay-most. "
        "0 for a delay that does not adapt.",
    ),
    option(
        "--delay-most",
        type=Duration(0, 86_400),
        default="60s",
        show_default=True,
        help="The longest delay by --delay-factor.",
    ),
    option(
        "--refusals",
        type=WholeNumber(0, REFUSALS_MAX),
        default=Job().refusals_max,
        show_default=True,
        metavar="N",
        help="Answers 429 or 503 in a row after which the URLs of a site fail as site_refused, until its wait is over. "
        "0 keeps them pending.",
    ),
    option(
        "--partition",
        type=click.Choice(["host", "domain", "url"]),
        default="host",
        show_default=True,
        help="The meaning of a site: the unit of politeness and of ownership.",
    ),
)
RECRAWL = option_group(
    "Recrawl",
    option(
        "--recrawl-after",
        type=OrNone(Duration()),
        help="Fetch each page again after this time, such as 12h or 7d. Its server gets a conditional GET, so an "
        "unchanged page costs no body. The swarm then does not end but rests until pages are due. Each visit "
        "counts for --max-pages.",
    ),
    option(
        "--recrawl-adaptive/--no-recrawl-adaptive",
        default=False,
        help="Come back sooner to pages that had changed, and later to others.",
    ),
    _recrawl_bound("least", "shortest", "a tenth of"),
    _recrawl_bound("most", "longest", "ten times"),
)
HISTORY = option_group(
    "History of finished URLs",
    option(
        "--history",
        type=click.Choice(["exact", "bloom"]),
        default="exact",
        show_default=True,
        help="exact keeps keys, on disk. bloom keeps fingerprints of 3 bytes in memory, for very large crawls: one of "
        "10,000 URLs is taken for known and not fetched. With bloom and --recrawl-after a page is fetched again when a "
        "link to it is met after that time, with the seeds as a start, and without a conditional GET.",
    ),
    option(
        "--grain",
        type=OrNone(Duration()),
        help="The step in which bloom forgets fingerprints with --recrawl-after.  "
        "[default: a seventh of --recrawl-after]",
    ),
    option(
        "--calendar-grain",
        type=OrNone(click.Choice(get_args(CalendarGrain))),
        help="The same step by the calendar, in UTC, in place of --grain. Weeks begin on Monday.",
    ),
    option(
        "--filters",
        type=click.Choice(["pybloom", "rbloom"]),
        default="pybloom",
        show_default=True,
        help="The package behind bloom. rbloom is faster, and must be installed on every machine: pip install "
        "'kadcrawl[fast-history]'.",
    ),
)
COPIES = option_group(
    "Copies",
    option(
        "--copies",
        type=WholeNumber(COPIES_MIN, COPIES_MAX),
        default=Job().copies,
        show_default=True,
        metavar="N",
        help="Keep the record of each URL at so many peers, 2 to 5. All but one of them may die at once without loss. "
        "More for peers that often die, fewer for less traffic.",
    ),
)
BALANCE = option_group(
    "Load balance",
    option(
        "--balance",
        type=click.Choice(["auto", "level", "drain", "predictive", "off"]),
        default="auto",
        show_default=True,
        help="Peers lend pages to others when they have more than they can crawl. level counts their URLs. drain "
        "measures the time that the URLs will take. predictive does as drain, but a network (--network) predicts that "
        "time until enough is measured, and measurements are kept for kadcrawl train. auto is drain.",
    ),
    option(
        "--solver",
        type=click.Choice(["exact", "pso"]),
        default="exact",
        show_default=True,
        help="How --balance predictive divides blocks by predicted times. pso is the particle swarm of the paper: more "
        "work for the same shares.",
    ),
    option(
        "--block",
        type=WholeNumber(1, 500),
        default=20,
        show_default=True,
        metavar="N",
        help="URLs that are lent at a time, or a multiple of that.",
    ),
    option(
        "--update",
        type=Duration(0.1, 3600),
        default="5s",
        show_default=True,
        help="Time between two looks at the load.",
    ),
)
PROXIES = option_group(
    "Proxies",
    option(
        "--proxies",
        metavar="FILE|URL",
        help="All peers fetch pages, robots.txt and sitemaps through these proxies. A file has a proxy per line, such "
        "as socks5://user:password@203.0.113.7:1080 (or http://, https://), and # begins a comment. The file goes to "
        "every peer with the job. A URL is that of such a list, or of a web page with addresses and ports in its text "
        "or tables; each peer reads it again and again. A site keeps its pace whatever the proxies. While none "
        "works the crawl waits. The proxies look up the names of sites. Needs --proxy-judge.",
    ),
    option(
        "--proxy-judge",
        metavar="URL",
        help="A page that answers 200. Each proxy is verified by it before its first use and every five minutes: use "
        "a page of yours, or a page meant for that. Its site is not crawled, as these checks keep to no delay.",
    ),
)
OUTPUTS = option_group(
    "Outputs",
    option(
        "--simhash/--no-simhash",
        default=False,
        help="Write the SimHash of each page's text to pages.jsonl: near-identical pages differ in at most 3 of its 64 "
        "bits. Costs half as much CPU again for each page.",
    ),
)
GROUPS = (JOB, SCOPE, LIMITS, POLITENESS, RECRAWL, HISTORY, COPIES, BALANCE, PROXIES, OUTPUTS)


def job_options(command: Command) -> Command:
    """Add the options that define a job."""
    for group in reversed(GROUPS):
        command = group(command)
    return command
