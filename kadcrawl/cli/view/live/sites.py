"""The figures of sites on their way from a peer to a person: the largest and the slowest sites, merged over peers.

A peer reports few sites, picked in three orders: by the time they need, by their URLs, and by their pace. A site is
reported by its owner alone. Only if each URL is a site (--partition url) do several peers report one host.

Tests: tests/cli/view/live/test_sites.py
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from kadcrawl.settings.durations import roughly
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.urls import Partition, site_of

if TYPE_CHECKING:
    from kadcrawl.crawl.frontier.site_figures import SiteFigures

PICKED_MAX = 6
"""Sites picked by a peer in each of the three orders."""
BACK_OFF_LEAST_S = 2.0
"""Seconds beyond its delay for which a site waits before that counts as back-off."""


class SiteLine(msgspec.Struct, frozen=True, array_like=True):
    """The figures of one site."""

    site: str
    pending: int
    """URLs left."""
    delay_s: float
    """Least seconds between two requests."""
    wait_s: float
    """Seconds before the site may be asked again."""
    request_s: float
    """Seconds that a request takes lately. 0 if unknown."""
    refusals: int = 0
    """Answers 429 or 503 in a row."""
    status: int = 0
    """Status of the last of them, or 0."""
    adapts: bool = False
    """The delay follows the time of the last answer."""
    takes_turns: bool = False
    """The site waits for its turn on the clock of its address."""
    set_s: float = 0.0
    """The part of the delay that the job and the orders of a person ask for. 0 if unknown."""

    @property
    def least_s(self) -> float:
        """Seconds that the URLs left need at the site's delay, if each is asked for once."""
        return self.wait_s + (self.pending - 1) * self.delay_s

    @property
    def page_s(self) -> float:
        """Seconds from one page to the next, if the site is asked by one request at a time."""
        return max(self.delay_s + self.request_s, self.wait_s)


class SiteReport(msgspec.Struct, frozen=True):
    """Some sites of a peer, or of several."""

    lines: list[SiteLine] = []
    """The sites that need the most time first."""
    active: int = 0
    """The number of sites with URLs left that are in memory."""

    @property
    def least_s(self) -> float:
        """Seconds that the slowest site needs for its URLs at its delay."""
        return max((line.least_s for line in self.lines), default=0.0)


ORDERS: tuple[Callable[[SiteLine], float], ...] = (
    lambda line: line.least_s,
    lambda line: line.pending,
    lambda line: line.page_s,
)


def _unknown(_site: str) -> float:
    return 0.0


def report_sites(
    figures: Iterable["SiteFigures"], partition: Partition, set_s: Callable[[str], float] = _unknown
) -> SiteReport:
    """Return the report of a peer with these figures. `set_s` returns the delay of a site by the settings in force."""
    lines = [
        SiteLine(
            figure.site,
            figure.pending,
            round(figure.delay_s, 3),
            round(figure.wait_s, 1),
            round(figure.request_s, 3),
            figure.refusals,
            figure.status,
            figure.adapts,
            figure.takes_turns,
            round(set_s(figure.site), 3),
        )
        for figure in figures
    ]
    if partition == "url":
        lines = _merged(_of_host(line) for line in lines)
    return SiteReport(_picked(lines), len(lines))


def merge_reports(reports: Iterable[SiteReport]) -> SiteReport:
    """Return one report of several peers."""
    reports = list(reports)
    lines = _merged(line for report in reports for line in report.lines)
    repeated = sum(len(report.lines) for report in reports) - len(lines)
    return SiteReport(_by_need(lines), sum(report.active for report in reports) - repeated)


def why_slower(line: SiteLine, site_settings: SiteSettings) -> Literal["order", "robots.txt", ""]:
    """Return the cause of a delay longer than that of these settings, with which the crawl began, or an empty text."""
    began_s = round(site_settings.delay_s(line.site), 3)
    if line.delay_s > max(began_s, line.set_s):
        return "robots.txt"
    return "order" if line.delay_s > began_s else ""


def reason_for_pace(line: SiteLine, site_settings: SiteSettings) -> str:
    """Return the delay of a site and where it comes from, or the refusals for which the site waits."""
    if line.refusals:
        when = f"{roughly(line.wait_s)} more" if line.wait_s >= 1 else "asked again"
        return f"{line.status}{f' x{line.refusals}' if line.refusals > 1 else ''}, {when}"
    if line.wait_s > line.delay_s + BACK_OFF_LEAST_S:
        return f"back-off, {roughly(line.wait_s)} more"
    if line.takes_turns:
        return f"{line.delay_s:g} s, shares an address" if line.delay_s else "shares an address"
    if not line.delay_s:
        return "none"
    rule = site_settings.rule_of_site(line.site)
    if line.adapts:
        return f"{line.delay_s:g} s, --delay-factor"
    own = "--delay" if rule is None or rule.delay_s is None else "[[sites]]"
    return f"{line.delay_s:g} s, {why_slower(line, site_settings) or own}"


def _of_host(line: SiteLine) -> SiteLine:
    """Return the line of a URL as a line of its host, whose URLs share a clock."""
    host, adapts = site_of(line.site, "host"), line.adapts
    return SiteLine(host, line.pending, line.delay_s, 0.0, line.request_s, adapts=adapts, set_s=line.set_s)


def _merged(lines: Iterable[SiteLine]) -> list[SiteLine]:
    merged: dict[str, SiteLine] = {}
    for line in lines:
        other = merged.get(line.site)
        if other is not None:
            line = SiteLine(
                line.site,
                line.pending + other.pending,
                max(line.delay_s, other.delay_s),
                max(line.wait_s, other.wait_s),
                max(line.request_s, other.request_s),
                max(line.refusals, other.refusals),
                max(line.status, other.status),
                line.adapts or other.adapts,
                line.takes_turns and other.takes_turns,
                max(line.set_s, other.set_s),
            )
        merged[line.site] = line
    return list(merged.values())


def _picked(lines: Sequence[SiteLine]) -> list[SiteLine]:
    picked: dict[str, SiteLine] = {}
    for order in ORDERS:
        picked |= {line.site: line for line in sorted(lines, key=order, reverse=True)[:PICKED_MAX]}
    return _by_need(picked.values())


def _by_need(lines: Iterable[SiteLine]) -> list[SiteLine]:
    return sorted(lines, key=lambda line: (-line.least_s, -line.pending, -line.page_s, line.site))
