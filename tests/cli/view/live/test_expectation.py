"""Test the sentences of an expectation, and their corrections."""

from typing import Any

import pytest

from kadcrawl.cli.view.live.expectation import MORE_SITES_AFTER_S, Expectation
from kadcrawl.cli.view.live.sites import SiteLine, SiteReport
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits

ONE = ("https://example.org/",)
LATER = MORE_SITES_AFTER_S


def hosts(count: int, path: str = "/") -> tuple[str, ...]:
    return tuple(f"https://host-{number}.example/{path}" for number in range(count))


@pytest.mark.parametrize(
    ("settings", "seeds", "peers", "expected"),
    [
        ({}, (), 4, []),
        (
            {},
            ONE,
            4,
            ["1 site at 1 request/s: more peers do not make this faster; about 20 min per 1,000 pages"],
        ),
        (
            {},
            (*ONE, "http://example.org/other", "https://example.org/third"),
            1,
            ["1 site at 1 request/s: more peers do not make this faster; about 20 min per 1,000 pages"],
        ),
        (
            {},
            hosts(3),
            4,
            ["3 sites at 1 request/s each: more peers do not make this faster; at best about 7 min per 1,000 pages"],
        ),
        (
            {"delay_s": 10.0},
            ONE,
            1,
            ["1 site at 1 request per 10 s: more peers do not make this faster; about 2 h 50 min per 1,000 pages"],
        ),
        (
            {"delay_s": 0.5},
            ONE,
            1,
            [
                "1 site at 2 requests/s: more peers do not make this faster; about 12 min per 1,000 pages, if an "
                "answer takes 0.2 s"
            ],
        ),
        (
            {"max_pages": 50},
            ONE,
            1,
            ["1 site at 1 request/s: more peers do not make this faster; about 1 min for the 50 pages of --max-pages"],
        ),
        (
            {"max_pages": 1},
            ONE,
            1,
            ["1 site at 1 request/s: more peers do not make this faster; about 1 s for the one page of --max-pages"],
        ),
        (
            {"max_pages": 5_000},
            ONE,
            1,
            ["1 site at 1 request/s: more peers do not make this faster; about 20 min per 1,000 pages"],
        ),
        (
            {},
            hosts(300),
            2,
            [
                "300 sites at 1 request/s each, which allows 250 pages/s: a peer has at most 64 requests in flight, "
                "so more peers make this faster"
            ],
        ),
        (
            {},
            hosts(300),
            4,
            ["300 sites at 1 request/s each: more peers do not make this faster; at best about 4 s per 1,000 pages"],
        ),
        (
            {"delay_s": 0.0},
            ONE,
            4,
            [
                "1 site without a delay (--delay 0): at most 8 requests in flight to a site and 64 of a peer set the "
                "pace"
            ],
        ),
        (
            {"scope": "any"},
            ONE,
            1,
            [
                "1 site at 1 request/s: more peers do not make this faster; about 20 min per 1,000 pages",
                "links may lead to more sites (--scope any), and each adds its own pace",
            ],
        ),
        (
            {"scope": "domain"},
            ("https://a.example.org/", "https://b.example.org/"),
            1,
            [
                "2 sites at 1 request/s each: more peers do not make this faster; at best about 10 min per 1,000 pages",
                "links may lead to more sites (--scope domain), and each adds its own pace",
            ],
        ),
        (
            {"scope": "domain", "partition": "domain"},
            ("https://a.example.org/", "https://b.example.org/"),
            1,
            ["1 site at 1 request/s: more peers do not make this faster; about 20 min per 1,000 pages"],
        ),
        (
            {"partition": "url"},
            ONE,
            1,
            ["1 site at 1 request/s: more peers do not make this faster; about 20 min per 1,000 pages"],
        ),
        (
            {"per_ip": True},
            ONE,
            1,
            [
                "1 site at 1 request/s: more peers do not make this faster; about 20 min per 1,000 pages",
                "sites on one IP address share this pace (--per-ip)",
            ],
        ),
    ],
)
def test_a_crawl_says_what_sets_its_pace(
    settings: dict[str, Any], seeds: tuple[str, ...], peers: int, expected: list[str]
) -> None:
    assert expected == [*Expectation(Job(**settings), seeds, Limits(), peers).sentences()]


@pytest.mark.parametrize(
    ("max_pages", "begun", "work"),
    [
        (50, 0, "about 1 min for the 50 pages of --max-pages"),
        (50, 40, "about 12 s for the 10 pages left of --max-pages"),
        (50, 49, "about 1 s for the one page left of --max-pages"),
        (1_500, 600, "about 18 min for the 900 pages left of --max-pages"),
        (1_500, 100, "about 20 min per 1,000 pages"),
    ],
)
def test_pages_of_an_earlier_run_are_not_expected_again(max_pages: int, begun: int, work: str) -> None:
    expectation = Expectation(Job(max_pages=max_pages), ONE, Limits(), pages_begun=begun)
    assert [f"1 site at 1 request/s: more peers do not make this faster; {work}"] == [*expectation.sentences()]


def test_no_time_is_expected_where_no_page_is_left() -> None:
    assert [] == [*Expectation(Job(max_pages=50), ONE, Limits(), pages_begun=50).sentences()]


SLOW = SiteLine("slow.example", 9, 10.0, 0.0, 0.1)
ORDINARY = SiteLine("ordinary.example", 500, 1.0, 0.0, 0.1)
SLOWER_THAN_EXPECTED = (
    "robots.txt of slow.example asks for 10 s between two requests: about 2 h 50 min per 1,000 pages of this site"
)


@pytest.mark.parametrize(
    ("seed", "lines", "expected"),
    [
        ("http://slow.example/", [ORDINARY, SLOW], [SLOWER_THAN_EXPECTED]),
        ("http://ordinary.example/", [SLOW, ORDINARY], [SLOWER_THAN_EXPECTED]),
        ("http://ordinary.example/", [ORDINARY, SLOW], []),
        ("http://ordinary.example/", [ORDINARY], []),
        ("http://ordinary.example/", [], []),
    ],
    ids=["a seed's site", "the site that needs the most time", "a small site", "no longer delay", "no site yet"],
)
def test_a_longer_delay_of_robots_txt_is_told_once(seed: str, lines: list[SiteLine], expected: list[str]) -> None:
    expectation = Expectation(Job(scope="any"), (seed,), Limits())
    assert expected == [*expectation.corrections(SiteReport(lines, 2), 1.0)]
    assert [] == [*expectation.corrections(SiteReport(lines, 2), 2.0)]


@pytest.mark.parametrize("settings", [{}, {"delay_s": 2 / 3}], ids=str)
def test_a_longer_delay_by_order_is_not_laid_on_robots_txt(settings: dict[str, Any]) -> None:
    expectation = Expectation(Job(scope="any", **settings), ("http://slow.example/",), Limits())
    began_s = round(Job(**settings).delay_s, 3)
    as_begun = SiteLine("slow.example", 9, began_s, 0.0, 0.1, set_s=began_s)
    assert [] == [*expectation.corrections(SiteReport([as_begun], 1), 1.0)]
    ordered = SiteLine("slow.example", 9, 10.0, 0.0, 0.1, set_s=10.0)
    said = "by order slow.example has 10 s between two requests: about 2 h 50 min per 1,000 pages of this site"
    assert [said] == [*expectation.corrections(SiteReport([ordered], 1), 2.0)]
    assert [] == [*expectation.corrections(SiteReport([ordered], 1), 3.0)]
    asked = SiteLine("slow.example", 9, 20.0, 0.0, 0.1, set_s=10.0)
    (said,) = expectation.corrections(SiteReport([asked], 1), 4.0)
    assert said.startswith("robots.txt of slow.example asks for 20 s")


@pytest.mark.parametrize(("active", "is_said"), [(5, False), (6, True), (20, True)])
def test_many_more_sites_are_told_once_and_not_at_once(active: int, is_said: bool) -> None:
    expectation = Expectation(Job(scope="any"), ONE, Limits())
    assert [] == [*expectation.corrections(SiteReport([], active), LATER - 1.0)]
    assert is_said == bool([*expectation.corrections(SiteReport([], active), LATER)])
    assert [] == [*expectation.corrections(SiteReport([], 2 * active), LATER)] or not is_said


@pytest.mark.parametrize(
    ("active", "sees_all", "expected"),
    [
        (
            60,
            True,
            "60 sites have URLs left by now, at 1 request/s each: more peers do not make this faster; at best about "
            "20 s per 1,000 pages",
        ),
        (
            60,
            False,
            "at least 60 sites have URLs left by now, at 1 request/s each: more peers do not make this faster; at "
            "best about 20 s per 1,000 pages",
        ),
        (
            2_000,
            True,
            "at least 2,000 sites have URLs left by now, at 1 request/s each, which allows 1,667 pages/s: a peer has "
            "at most 64 requests in flight, so more peers make this faster",
        ),
    ],
)
def test_more_sites_are_counted_as_far_as_they_are_known(active: int, sees_all: bool, expected: str) -> None:
    expectation = Expectation(Job(scope="any"), ONE, Limits(), sees_all=sees_all)
    assert [expected] == [*expectation.corrections(SiteReport([], active), LATER)]


@pytest.mark.parametrize(("settings", "seeds"), [({"delay_s": 0.0}, ONE), ({}, ())], ids=str)
def test_more_sites_do_not_matter_where_no_pace_was_told(settings: dict[str, Any], seeds: tuple[str, ...]) -> None:
    expectation = Expectation(Job(**settings), seeds, Limits())
    assert [] == [*expectation.corrections(SiteReport([], 500), LATER)]
