"""Test which rule decides about a site, and that the job decides about the rest."""

import pytest

from kadcrawl.settings.job import Job
from kadcrawl.settings.site_rules import SiteRule
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.urls import Partition, site_of


def rules(*matches: str) -> SiteSettings:
    """Return settings with a rule for each match, whose delay is its place, from 1."""
    sites = tuple(SiteRule(match=(match,), delay_s=float(number)) for number, match in enumerate(matches, 1))
    return SiteSettings(Job(delay_s=99.0, sites=sites))


@pytest.mark.parametrize(
    ("url", "delay_s"),
    [
        ("http://example.org/", 4.0),
        ("https://example.org/", 4.0),
        ("http://example.org.:8080/", 5.0),
        ("http://example.org:8080/x", 5.0),
        ("http://example.org:8081/x", 4.0),
        ("http://www.example.org/", 3.0),
        ("http://www.example.org:8080/", 3.0),
        ("http://a.docs.example.org/", 6.0),
        ("http://docs.example.org/", 6.0),
        ("http://other.org/", 2.0),
        ("http://myexample.org/", 2.0),
        ("http://other.test/", 1.0),
        ("http://[::1]:81/", 7.0),
        ("http://127.0.0.1/", 1.0),
    ],
)
@pytest.mark.parametrize("backwards", [False, True])
def test_the_most_specific_match_decides_whatever_the_order(url: str, delay_s: float, backwards: bool) -> None:
    matches = ["*", "*.org", "*.example.org", "example.org", "example.org:8080", "*.docs.example.org", "[::1]"]
    sites = tuple(SiteRule(match=(match,), delay_s=float(number)) for number, match in enumerate(matches, 1))
    settings = SiteSettings(Job(sites=sites[::-1] if backwards else sites))
    assert delay_s == settings.delay_s(url)
    assert delay_s == settings.delay_s(site_of(url, "host"))


@pytest.mark.parametrize(("partition", "delay_s"), [("host", 1.0), ("url", 1.0), ("domain", 2.0)])
def test_a_site_of_any_partition_has_its_rule(partition: Partition, delay_s: float) -> None:
    settings = rules("docs.example.org", "example.org")
    assert delay_s == settings.delay_s(site_of("http://docs.example.org/a", partition))


def test_what_a_rule_leaves_out_is_as_the_job_says() -> None:
    rule = SiteRule(match=("a.test",), connections=3)
    settings = SiteSettings(Job(delay_s=0.0, site_pages_max=7, sitemaps=True, sites=(rule,)))
    url = "http://a.test/"
    assert (0.0, 7, True, ()) == (
        settings.delay_s("a.test"),
        settings.pages_max("a.test"),
        settings.follows_sitemaps(url),
        settings.sitemap_urls(url),
    )
    assert (3, None) == (settings.connections("a.test"), settings.connections("b.test"))


def test_a_rule_takes_nothing_from_a_wider_rule() -> None:
    wide = SiteRule(match=("*.test",), delay_s=9.0, site_pages_max=5)
    narrow = SiteRule(match=("a.test",), site_pages_max=6)
    settings = SiteSettings(Job(delay_s=2.0, sites=(wide, narrow)))
    assert (2.0, 6) == (settings.delay_s("a.test"), settings.pages_max("a.test"))
    assert (9.0, 5) == (settings.delay_s("b.test"), settings.pages_max("b.test"))


@pytest.mark.parametrize(
    ("rule", "followed"),
    [
        (SiteRule(match=("a.test",), sitemaps=False), (False, True)),
        (SiteRule(match=("a.test",), sitemap_urls=("http://a.test/x",)), (True, True)),
        (SiteRule(match=("a.test",), delay_s=1.0), (True, True)),
    ],
)
def test_sitemaps_are_switched_by_site(rule: SiteRule, followed: tuple[bool, bool]) -> None:
    settings = SiteSettings(Job(sitemaps=True, sites=(rule,)))
    assert followed == (settings.follows_sitemaps("http://a.test/"), settings.follows_sitemaps("http://b.test/"))
    assert rule.sitemap_urls == settings.sitemap_urls("http://a.test/y")


def test_sitemaps_of_one_site_are_followed_in_a_job_that_follows_none() -> None:
    settings = SiteSettings(Job(sites=(SiteRule(match=("a.test",), sitemaps=True),)))
    assert (True, False) == (settings.follows_sitemaps("http://a.test/"), settings.follows_sitemaps("http://b.test/"))


def test_recrawls_retries_and_robots_txt_are_by_site() -> None:
    own = SiteRule(match=("a.test",), recrawl_after_s=50.0, retries=0, robots="ignore")
    once = SiteRule(match=("b.test",), recrawl_after_s=0.0, robots="obey")
    settings = SiteSettings(Job(recrawl_after_s=500.0, sites=(own, once)))
    urls = [f"http://{host}.test/" for host in "abc"]
    assert [50.0, 0.0, 500.0] == list(map(settings.recrawl_after_s, urls))
    assert [(5.0, 500.0), (50.0, 5000.0), (50.0, 5000.0)] == list(map(settings.recrawl_bounds_s, urls))
    assert [0, 3, 3] == list(map(settings.retries, urls))
    assert [True, False, False] == list(map(settings.ignores_robots, urls))


def test_the_longest_delay_counts_those_of_rules() -> None:
    assert 99.0 == rules("a.test").delay_max_s
    assert 5.0 == SiteSettings(Job(sites=(SiteRule(match=("a.test",), delay_s=5.0),))).delay_max_s


def test_a_site_is_off_by_its_rule_alone() -> None:
    settings = SiteSettings(
        Job(sites=(SiteRule(match=("*.a.test",), off=True), SiteRule(match=("b.a.test",), delay_s=1.0)))
    )
    assert (True, False, False) == tuple(
        settings.is_off(f"http://{host}/") for host in ("c.a.test", "b.a.test", "a.test.org")
    )
