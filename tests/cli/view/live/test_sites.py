"""Test the figures of sites between a peer and a person: few sites are picked, and peers add up."""

import pytest

from kadcrawl.cli.view.live.sites import (
    PICKED_MAX,
    SiteLine,
    SiteReport,
    merge_reports,
    reason_for_pace,
    report_sites,
)
from kadcrawl.crawl.frontier.site_figures import SiteFigures
from kadcrawl.settings.job import Job
from kadcrawl.settings.site_rules import SiteRule
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.urls import Partition


def test_the_largest_and_the_slowest_sites_are_picked() -> None:
    ordinary = [SiteFigures(f"site-{number}", 100 + number, 1.0, 0.0, 0.1) for number in range(50)]
    largest = SiteFigures("largest", 5_000, 0.0, 0.0, 0.1)
    delayed = SiteFigures("delayed", 1, 60.0, 0.0, 0.1)
    slow = SiteFigures("slow", 1, 1.0, 0.0, 90.0)
    waiting = SiteFigures("waiting", 1, 1.0, 600.0, 0.1)
    report = report_sites([*ordinary, largest, delayed, slow, waiting], "host")
    assert 54 == report.active
    assert {"largest", "delayed", "slow", "waiting", "site-49"} <= {line.site for line in report.lines}
    assert len(report.lines) <= 3 * PICKED_MAX


def test_the_site_that_needs_the_most_time_is_first() -> None:
    many, slow, few = (
        SiteFigures("many", 100, 1.0, 0.0, 0.1),
        SiteFigures("slow", 20, 10.0, 0.0, 0.1),
        SiteFigures("few", 2, 1.0, 0.0, 0.1),
    )
    report = report_sites([few, many, slow], "host")
    assert ["slow", "many", "few"] == [line.site for line in report.lines]
    assert 190.0 == report.least_s


def test_without_sites_nothing_is_known() -> None:
    assert (0, 0.0) == (SiteReport().active, SiteReport().least_s)


def test_the_urls_of_a_host_add_up_where_each_is_a_site() -> None:
    figures = [SiteFigures(f"http://a.example/{number}", 1, 1.0, 5.0, 0.2) for number in range(7)]
    first = report_sites([*figures, SiteFigures("http://b.example:81/", 1, 1.0, 0.0, 0.0)], "url")
    assert [SiteLine("a.example", 7, 1.0, 0.0, 0.2), SiteLine("b.example:81", 1, 1.0, 0.0, 0.0)] == first.lines
    second = report_sites([SiteFigures("http://a.example/99", 1, 1.0, 0.0, 0.5)], "url")
    merged = merge_reports([first, second])
    assert [SiteLine("a.example", 8, 1.0, 0.0, 0.5), SiteLine("b.example:81", 1, 1.0, 0.0, 0.0)] == merged.lines
    assert 2 == merged.active


@pytest.mark.parametrize(("partition", "site"), [("host", "a.example"), ("url", "http://a.example/1")])
def test_a_report_tells_the_delay_by_the_settings_in_force(partition: Partition, site: str) -> None:
    settings = SiteSettings(Job(delay_s=0.1, partition=partition))
    settings.steering.follow({}, {"a.example": 3.0})
    report = report_sites([SiteFigures(site, 1, 3.0, 0.0, 0.1)], partition, settings.delay_s)
    for lines in (report.lines, merge_reports([report, report]).lines):
        assert [("a.example", 3.0)] == [(line.site, line.set_s) for line in lines]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (SiteLine("a", 1, 1.0, 0.0, 0.1), "1 s, --delay"),
        (SiteLine("a", 1, 1.0, 3.0, 0.1), "1 s, --delay"),
        (SiteLine("a", 1, 1.0, 0.0, 0.1, takes_turns=True), "1 s, shares an address"),
        (SiteLine("a", 1, 0.0, 0.0, 0.1, takes_turns=True), "shares an address"),
        (SiteLine("a", 1, 1.0, 3.1, 0.1), "back-off, 3 s more"),
        (SiteLine("a", 1, 10.0, 12.0, 0.1), "10 s, robots.txt"),
        (SiteLine("own.test", 1, 5.0, 0.0, 0.1), "5 s, [[sites]]"),
        (SiteLine("own.test", 1, 6.0, 0.0, 0.1), "6 s, robots.txt"),
        (SiteLine("a", 1, 10.0, 0.0, 0.1, set_s=10.0), "10 s, order"),
        (SiteLine("own.test", 1, 6.0, 0.0, 0.1, set_s=6.0), "6 s, order"),
        (SiteLine("a", 1, 20.0, 0.0, 0.1, set_s=10.0), "20 s, robots.txt"),
        (SiteLine("a", 1, 10.0, 300.0, 0.1), "back-off, 5 min more"),
        (SiteLine("a", 1, 0.0, 0.0, 0.1), "none"),
        (SiteLine("a", 1, 0.0, 40.0, 0.1), "back-off, 40 s more"),
        (SiteLine("a", 1, 1.0, 50.0, 0.1, 1, 503), "503, 50 s more"),
        (SiteLine("a", 1, 4.0, 0.0, 0.8, adapts=True), "4 s, --delay-factor"),
        (SiteLine("a", 1, 0.0, 240.0, 0.1, 3, 429), "429 x3, 4 min more"),
        (SiteLine("a", 1, 0.0, 0.0, 0.1, 3, 429), "429 x3, asked again"),
    ],
)
def test_a_pace_has_its_reason(line: SiteLine, expected: str) -> None:
    rules = (SiteRule(match=("own.test",), delay_s=5.0),)
    assert expected == reason_for_pace(line, SiteSettings(Job(delay_s=1.0, sites=rules)))
