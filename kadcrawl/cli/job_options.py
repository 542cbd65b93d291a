"""The options that define a job, as `kadcrawl crawl` and `kadcrawl start` take them; a job file has the same names."""

from pathlib import Path
from typing import Any

import click

from kadcrawl.cli.options import Command
from kadcrawl.settings.config import URL_PARTS_MAX, Job
from kadcrawl.settings.durations import seconds_of


class Duration(click.ParamType[float]):
    """A length of time, in seconds."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            return seconds_of(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def job_options(command: Command) -> Command:
    """Add the options that define a job."""
    for option in reversed(
        [
            click.option(
                "--job",
                "job_file",
                type=click.Path(path_type=Path),
                metavar="FILE",
                help="A TOML file for what follows, each by the option's name, as in max-pages = 500, and for seeds, "
                'as in seeds = ["https://example.org/"]. What is said here as well, or by KADCRAWL_CONTACT, wins; URLs '
                "are joined. Roles and records of pages can only stand in a file. kadcrawl check FILE explains one, "
                "kadcrawl check --help what it may say.",
            ),
            click.option(
                "--scope",
                type=click.Choice(["host", "domain", "prefix", "any"]),
                default="host",
                show_default=True,
                help="Follow links on the seeds' hosts, on their registered domains, below their paths, or any.",
            ),
            click.option("--include", multiple=True, metavar="REGEX", help="Only URLs that match one of these."),
            click.option("--exclude", multiple=True, metavar="REGEX", help="No URLs that match one of these."),
            click.option("--max-depth", type=click.IntRange(0), help="Links away from a seed at most."),
            click.option("--max-pages", type=click.IntRange(1), help="URLs the whole swarm fetches at most."),
            click.option(
                "--max-site-pages",
                type=click.IntRange(1),
                metavar="N",
                help="URLs of one site at most, the first that are found; the sure bound on a site that makes up pages "
                "for ever, such as a calendar. Not with --partition url.",
            ),
            click.option(
                "--max-path-queries",
                type=click.IntRange(1),
                metavar="N",
                help="URLs at most that differ in nothing but their query, the first that are found; the bound on "
                "lists that can be filtered and sorted in any combination. Each owner of a site counts by itself, anew "
                "after a restart. Not with --partition url.",
            ),
            *(
                click.option(
                    f"--max-{name}",
                    type=click.IntRange(1, URL_PARTS_MAX),
                    default=default,
                    show_default=True,
                    metavar="N",
                    help=f"{what}; {URL_PARTS_MAX} for no limit.",
                )
                for name, default, what in (
                    ("path-segments", Job().path_segments_max, "No links with more segments in their path"),
                    (
                        "path-repeats",
                        Job().path_repeats_max,
                        "No links in whose path something stands more often in a row, such as /a/b/a/b/a/b/a/b",
                    ),
                    ("parameters", Job().query_parameters_max, "No links with more parameters in their query"),
                )
            ),
            click.option(
                "--session-ids",
                type=click.Choice(["strip", "keep"]),
                default="strip",
                show_default=True,
                help="Take session IDs such as ;jsessionid=... out of links, as each gives a page one more URL.",
            ),
            click.option(
                "--sitemaps/--no-sitemaps",
                default=False,
                help="Follow what each site's sitemaps list as well: those its robots.txt names, or else /sitemap.xml. "
                "They count as linked from each page of the site. With --recrawl-after, pages they say were "
                "modified come sooner.",
            ),
            click.option(
                "--canonical",
                type=click.Choice(["ignore", "honor"]),
                default="ignore",
                show_default=True,
                help="honor: a page that names another URL of its domain as canonical, with https for http, fewer "
                "parameters or shorter, counts as a redirect to that; its other links are not followed.",
            ),
            click.option(
                "--twins",
                type=click.Choice(["follow", "skip"]),
                default="follow",
                show_default=True,
                help="skip: of pages of a site with nearly the same text (at most 3 bits of their SimHashes differ) "
                "only the links of the first are followed. Beware of lists whose pages have little text of their own: "
                "they look alike, and what only the later ones link to is lost. Not with --partition url.",
            ),
            click.option(
                "--delay",
                type=click.FloatRange(0, 86_400),
                default=1.0,
                show_default=True,
                metavar="S",
                help="Seconds between two requests to one site; robots.txt may ask for more.",
            ),
            click.option(
                "--retries",
                type=click.IntRange(0, 20),
                default=3,
                show_default=True,
                help="Further tries after a time-out, a reset, 429 or 5xx, each after a longer wait.",
            ),
            click.option(
                "--partition",
                type=click.Choice(["host", "domain", "url"]),
                default="host",
                show_default=True,
                help="What a site is: the unit of politeness and of ownership.",
            ),
            click.option(
                "--balance",
                type=click.Choice(["auto", "level", "drain", "predictive", "off"]),
                default="auto",
                show_default=True,
                help="Peers with more than they can crawl lend pages to others. level: by how many URLs they have. "
                "drain: by how long these will take them, at the pace they measure. predictive: as drain, but at "
                "the pace a network (--network) predicts until enough is measured; and what is measured is kept for "
                "kadcrawl train. None of them with --max-pages, --max-depth, --recrawl-after or --history bloom; auto "
                "is drain where that can be.",
            ),
            click.option(
                "--block",
                type=click.IntRange(1, 500),
                default=20,
                show_default=True,
                metavar="N",
                help="URLs that are lent at a time, or a multiple of that.",
            ),
            click.option(
                "--update",
                type=click.FloatRange(0.1, 3600),
                default=5.0,
                show_default=True,
                metavar="S",
                help="Seconds between two looks at who has too much.",
            ),
            click.option(
                "--recrawl-after",
                type=Duration(),
                help="Fetch each page again after this time, such as 12h or 7d: from its server with a conditional "
                "GET, so that one that has not changed costs no body. The swarm then does not end but rests until "
                "pages are due. Not with --max-pages.",
            ),
            click.option(
                "--recrawl-adaptive",
                is_flag=True,
                help="Come back sooner to pages that had changed, and later to others.",
            ),
            *(
                click.option(
                    f"--recrawl-{name}",
                    type=Duration(),
                    help=f"With --recrawl-adaptive: the {what} time. Without it {otherwise} --recrawl-after.",
                )
                for name, what, otherwise in (
                    ("least", "shortest", "a tenth of"),
                    ("most", "longest", "ten times"),
                )
            ),
            click.option(
                "--history",
                type=click.Choice(["exact", "bloom"]),
                default="exact",
                show_default=True,
                help="What is kept of finished URLs. exact: their keys, on disk. bloom: fingerprints of 3 bytes in "
                "memory, for very large crawls; of 10,000 URLs one is taken for known and not fetched. With "
                "--recrawl-after a page is then fetched again when a link to it is met after that time, with the "
                "seeds as a start, and without a conditional GET.",
            ),
            click.option(
                "--grain",
                type=Duration(),
                help="With --history bloom and --recrawl-after: fingerprints are forgotten in steps of this time.  "
                "[default: a seventh of --recrawl-after]",
            ),
            click.option(
                "--filters",
                type=click.Choice(["pybloom", "rbloom"]),
                default="pybloom",
                show_default=True,
                help="With --history bloom: by which package. rbloom is faster, and must be installed on every "
                "machine: pip install 'kadcrawl[fast-history]'.",
            ),
            click.option(
                "--proxies",
                metavar="FILE|URL",
                help="Fetch pages, robots.txt and sitemaps through proxies, on all peers: a file with one a line, such "
                "as socks5://user:password@203.0.113.7:1080 (or http://, https://; # begins a comment), which goes to "
                "every peer with the job; or the URL of such a list, which each peer asks again and again. A site "
                "keeps its pace whatever the proxies; while none works the crawl waits. Sites' names are looked up by "
                "the proxies. '' for none again. Needs --proxy-judge.",
            ),
            click.option(
                "--proxy-judge",
                metavar="URL",
                help="A page that answers 200, by which each proxy is verified before it is used and every five "
                "minutes: one of yours, or one meant for that. Its site is not crawled, as this keeps to no delay.",
            ),
            click.option(
                "--simhash",
                is_flag=True,
                help="Write the SimHash of each page's text to pages.jsonl: near-identical pages differ in 3 of its 64 "
                "bits at most. Costs half as much CPU again for each page.",
            ),
            click.option("--name", default="crawl", show_default=True, help="Names the crawl in its WARC files."),
            click.option(
                "--contact",
                envvar="KADCRAWL_CONTACT",
                metavar="URL|EMAIL",
                help="Where a site's owner can reach you; goes into the User-Agent. [env: KADCRAWL_CONTACT]",
            ),
        ]
    ):
        command = option(command)
    return command
