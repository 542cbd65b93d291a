"""The expectation tells a person at the start how long a crawl takes, and the reason for its pace.

The delay between two requests to a site bounds most crawls, so the number of the seeds' sites tells the rate, however
many peers there are. Three corrections follow, each at most once: a robots.txt that asks for a longer delay, an order
of a person that does, and many more sites than those of the seeds. A decision: times are seconds since the crawl began
here.

Tests: tests/cli/view/live/test_expectation.py
"""

from collections.abc import Iterator, Sequence

from kadcrawl.cli.view.live.sites import SiteReport, why_slower
from kadcrawl.settings.durations import roughly
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.urls import site_of

PAGES = 1_000
"""Pages by which a time is told."""
ANSWER_S = 0.2
"""Seconds that a site is assumed to take for an answer. Its delay counts from the begin of the answer."""
FETCH_S = 1.0
"""Seconds that a request is assumed to take in all, by which a peer's rate is bounded. Many take less."""
MORE_SITES_AFTER_S = 30.0
"""Seconds after which a larger number of sites is told: not while the first pages still bring them up."""
MORE_SITES_MIN = 5
"""Sites that must be new, beside twice as many, to be worth a sentence."""


class Expectation:
    """The expectation of one crawl, with the corrections told so far."""

    def __init__(
        self,
        job: Job,
        seeds: Sequence[str],
        limits: Limits,
        peers: int = 1,
        *,
        sees_all: bool = True,
        pages_begun: int = 0,
    ) -> None:
        """`seeds` are canonical URLs. `limits` are those of each peer. `sees_all` as in `Progress`.

        `pages_begun` are the fetches of --max-pages that earlier runs of the same directories have used.
        """
        self._job = job
        self._site_settings = SiteSettings(job)
        self._limits = limits
        self._sees_all = sees_all
        self._peers = peers
        self._pages_begun = pages_begun
        self._sites = {site_of(url, "host" if job.partition == "url" else job.partition) for url in seeds}
        self._sites_told = False
        self._causes_told: set[str] = set()
        """The causes of longer delays that were told."""

    def sentences(self) -> Iterator[str]:
        """Yield the sentences for the start of a crawl: none without seeds, or with no page left to fetch."""
        if not self._sites or self._pages_left == 0:
            return
        job, in_flight, sites = self._job, self._limits.fetches_max, len(self._sites)
        if not job.delay_s:
            yield (
                f"{_sites(sites)} without a delay (--delay 0): at most {self._limits.site_connections_max} "
                f"requests in flight to a site and {in_flight} of a peer set the pace"
            )
        else:
            yield self._at_pace(f"{_sites(sites)} at {_pace(job.delay_s)}", sites)
        own = [site for site in self._sites if self._site_settings.delay_s(site) != job.delay_s]
        if own:
            shown = f"{own[0]} has its" if len(own) == 1 else f"{_sites(len(own))} have their"
            yield f"{shown} own delay ([[sites]] of the job file)"
        if job.per_ip:
            yield "sites on one IP address share this pace (--per-ip)"
        if self._may_spread:
            yield f"links may lead to more sites (--scope {job.scope}), and each adds its own pace"

    def corrections(self, report: SiteReport, seconds: float) -> Iterator[str]:
        """Yield the corrections that this report makes necessary, each correction once."""
        job = self._job
        if not self._sites:
            return
        # A small site among many is not worth the sentence, whatever its robots.txt says.
        matters = [line for number, line in enumerate(report.lines) if not number or line.site in self._sites]
        for line in sorted(matters, key=lambda line: -line.delay_s):
            cause = "" if line.adapts else why_slower(line, self._site_settings)
            if cause and cause not in self._causes_told:
                self._causes_told.add(cause)
                told = f"robots.txt of {line.site} asks for" if cause == "robots.txt" else f"by order {line.site} has"
                yield (
                    f"{told} {line.delay_s:g} s between two requests: "
                    f"{_time(line.delay_s, PAGES)} per {PAGES:,} pages of this site"
                )
        is_more = report.active >= max(2 * len(self._sites), len(self._sites) + MORE_SITES_MIN)
        if is_more and not self._sites_told and seconds >= MORE_SITES_AFTER_S and job.delay_s:
            self._sites_told = True
            has_all = self._sees_all and report.active < self._limits.active_sites_max
            at_least = "" if has_all else "at least "
            yield self._at_pace(
                f"{at_least}{_sites(report.active)} have URLs left by now, at {_pace(job.delay_s)}", report.active
            )

    @property
    def _may_spread(self) -> bool:
        """True if the crawl may come to sites that no seed is on."""
        job = self._job
        return job.scope == "any" or (job.scope == "domain" and job.partition != "domain")

    @property
    def _pages_left(self) -> int | None:
        """Fetches left of --max-pages, or None without that limit."""
        return None if self._job.max_pages is None else max(0, self._job.max_pages - self._pages_begun)

    def _at_pace(self, start: str, sites: int) -> str:
        """Return a sentence about so many sites that begins with their number and pace."""
        job, each = self._job, " each" if sites > 1 else ""
        rate = sites / (job.delay_s + ANSWER_S)
        if rate > self._peers * self._limits.fetches_max / FETCH_S:
            return (
                f"{start}{each}, which allows {rate:,.0f} pages/s: a peer has at most {self._limits.fetches_max} "
                "requests in flight, so more peers make this faster"
            )
        pages = min(PAGES, self._pages_left or PAGES)
        left = " left" if self._pages_begun else ""
        work = f"per {pages:,} pages" if pages == PAGES else f"for {_pages(pages)}{left} of --max-pages"
        at_best = "at best " if sites > 1 else ""
        unless = f", if an answer takes {ANSWER_S:g} s" if job.delay_s < 1 else ""
        time = _time(job.delay_s, pages / sites)
        return f"{start}{each}: more peers do not make this faster; {at_best}{time} {work}{unless}"


def _time(delay_s: float, pages: float) -> str:
    """Return in words the time that one site needs for so many pages."""
    return f"about {roughly(max(1.0, pages * (delay_s + ANSWER_S)))}"


def _pages(count: int) -> str:
    return f"the {count} pages" if count > 1 else "the one page"


def _sites(count: int) -> str:
    return f"{count:,} site{'s' if count != 1 else ''}"


def _pace(delay_s: float) -> str:
    """Return the most requests to a site that a delay allows, in words."""
    if delay_s > 1:
        return f"1 request per {delay_s:g} s"
    return f"{1 / delay_s:.3g} request{'s' if delay_s < 1 else ''}/s"
