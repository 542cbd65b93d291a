"""Test the rules for single sites: their matches, their bounds, and a clear sentence for each mistake."""

from typing import Any

import pytest

from kadcrawl.errors import ConfigError
from kadcrawl.settings.job import Job
from kadcrawl.settings.site_rules import (
    MATCHES_CHARS_MAX,
    SITES_MAX,
    SiteRule,
    check_contact,
    normal_match,
    robots_ignored,
    secrets_of,
    unverified,
)


@pytest.mark.parametrize(
    ("typed", "match"),
    [
        ("example.org", "example.org"),
        (" Example.ORG. ", "example.org"),
        ("example.org:8080", "example.org:8080"),
        ("example.org:80", "example.org"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("*.Example.org", "*.example.org"),
        ("*.org", "*.org"),
        ("*", "*"),
        ("127.0.0.1:9000", "127.0.0.1:9000"),
        ("[::1]:9000", "[::1]:9000"),
    ],
)
def test_a_match_is_kept_in_the_spelling_of_urls(typed: str, match: str) -> None:
    assert match == normal_match(typed)
    assert (match,) == SiteRule(match=(match,), off=True).match


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("", "is no host"),
        ("https://example.org/", "without a scheme or a path"),
        ("example.org/docs", "without a scheme or a path"),
        ("www.*.org", "is no host"),
        ("*example.org", "is no host"),
        ("*.*", "is no host"),
        ("*.10.0.0.1", "is no host"),
        ("*.example.org:8080", "is no host"),
        ("user@example.org", "without a scheme or a path"),
        ("a b", "is no host"),
        ("(", "is no host"),
        ("a..b", "is no host"),
        ("{a}:80", "is no host"),
    ],
)
def test_text_that_is_no_match_is_refused(typed: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        normal_match(typed)


@pytest.mark.parametrize("match", ["Example.org", "example.org:80", "example.org.", "*.Example.org", "a/b", ""])
def test_a_match_of_another_peer_must_have_that_spelling(match: str) -> None:
    with pytest.raises(ConfigError, match="is no host"):
        SiteRule(match=(match,), off=True)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"match": ()}, "match is missing"),
        ({}, "must say something"),
        ({"delay_s": -1.0}, "delay_s must be from 0 to 86400 seconds"),
        ({"delay_s": 86_401.0}, "delay_s must be from 0 to 86400 seconds"),
        ({"delay_s": float("nan")}, "delay_s must be from 0"),
        ({"connections": 0}, "connections must be from 1 to 64"),
        ({"connections": 65}, "connections must be from 1 to 64"),
        ({"site_pages_max": 0}, "site_pages_max must be from 1"),
        ({"sitemap_urls": ("http://A.test/x",)}, "must be canonical"),
        ({"sitemap_urls": ("http://a.test/x",) * 101}, "at most 100 sitemaps"),
        ({"sitemaps": False, "sitemap_urls": ("http://a.test/x",)}, "cannot be false and name URLs"),
        ({"retries": 21}, "retries must be from 0 to 20"),
        ({"body_bytes_max": 0}, "body_bytes_max must be from 1"),
        ({"fetch_timeout_s": 0.0}, "fetch_timeout_s must be from 0.001"),
        ({"robots": "never"}, "robots must be obey or ignore"),
        ({"robots": "ignore", "match": ("a.test", "*.a.test")}, "name each of them in match, without a star"),
        ({"verify": True}, "leave it out, or say false"),
        ({"verify": False, "match": ("*.a.test",)}, "verify false needs each of the hosts in match, without a star"),
        ({"client_certificate": "mine", "match": ("*",)}, "client_certificate needs each of the hosts"),
        ({"client_certificate": "/etc/mine.pem"}, "the name of a secret has"),
        ({"ca_pem": "-----BEGIN PRIVATE KEY-----"}, "must have certificates, and nothing else"),
        ({"proxies": "Some pool"}, "proxies must be the name of a pool, or none"),
        ({"off": True, "delay_s": 1.0}, "delay_s would do nothing, as off"),
    ],
)
def test_a_rule_out_of_its_bounds_is_refused(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        SiteRule(**({"match": ("a.test",)} | fields))


PROXIED: dict[str, Any] = {"proxies": ("http://203.0.113.7:3128",), "proxy_judge": "http://b.test/"}
AGAIN = SiteRule(match=("a.test",), recrawl_after_s=100.0)
OFF = SiteRule(match=("a.test",), off=True)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"sites": (OFF, OFF)}, "sites 1 and 2 both match a.test; make one rule of them"),
        ({"sites": (SiteRule(match=("a.test",), connections=4),)}, "connections of site a.test need delay = 0"),
        (
            {"sites": (SiteRule(match=("a.test",), connections=4, delay_s=2.0),), "delay_s": 0.0},
            "connections of site a.test need delay = 0",
        ),
        (
            {"sites": (SiteRule(match=("a.test",), site_pages_max=4),), "partition": "url"},
            "cannot go with partition url",
        ),
        (
            {"sites": (SiteRule(match=("a.test",), site_pages_max=4),), "history": "bloom"},
            "nor with history bloom",
        ),
        (
            {"sites": (SiteRule(match=("docs.example.org",), site_pages_max=4),), "partition": "domain"},
            "counted together; match example.org",
        ),
        ({"sites": (SiteRule(match=("a.test",), proxies="none"),)}, "would do nothing, as the job has none"),
        (PROXIED | {"sites": (SiteRule(match=("a.test",), verify=False),)}, "cannot go through proxies"),
        (PROXIED | {"sites": (SiteRule(match=("a.test",), client_certificate="x"),)}, "cannot go through proxies"),
        ({"sites": (AGAIN,)}, "needs recrawl_after_s of the job, and history exact"),
        (
            {"sites": (AGAIN,), "recrawl_after_s": 70.0, "history": "bloom"},
            "needs recrawl_after_s of the job, and history exact",
        ),
        (
            {"sites": (AGAIN,), "recrawl_after_s": 70.0, "recrawl_adaptive": True, "recrawl_most_s": 71.0},
            "must lie between recrawl_least_s and recrawl_most_s",
        ),
        (
            {"sites": (SiteRule(match=("a.test",), recrawl_after_s=0.5),), "recrawl_after_s": 70.0},
            "must be 0, or from 1 second to 3660 days",
        ),
        (
            {"sites": (SiteRule(match=tuple(f"s{number}.test" for number in range(101)), robots="ignore"),)},
            "robots ignore is for at most 100 hosts, not 101",
        ),
    ],
)
def test_rules_that_contradict_the_job_are_refused(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Job(**fields)


@pytest.mark.parametrize("match", ["example.org", "*.example.org", "*.org", "*"])
def test_the_urls_of_a_domain_are_counted_where_the_rule_names_a_domain(match: str) -> None:
    rule = SiteRule(match=(match,), site_pages_max=4)
    assert (rule,) == Job(sites=(rule,), partition="domain").sites


def test_connections_go_with_a_job_without_a_delay() -> None:
    rule = SiteRule(match=("a.test",), connections=4)
    assert (rule,) == Job(sites=(rule,), delay_s=0.0).sites


def test_the_rules_of_a_job_are_bounded() -> None:
    many = tuple(SiteRule(match=(f"s{number}.test",), off=True) for number in range(SITES_MAX))
    assert SITES_MAX == len(Job(sites=many).sites)
    with pytest.raises(ConfigError, match=f"at most {SITES_MAX} sites"):
        Job(sites=(*many, OFF))
    name = ".".join(["x" * 60] * 4)
    long = tuple(f"s{number}.{name}" for number in range(MATCHES_CHARS_MAX // 240))
    with pytest.raises(ConfigError, match=f"at most {MATCHES_CHARS_MAX} characters"):
        Job(sites=(SiteRule(match=long, off=True),))


def test_a_crawl_that_ignores_a_robots_txt_names_somebody() -> None:
    own = SiteRule(match=("a.test", "b.test:81"), robots="ignore")
    check_contact((own,), "you@a.test")
    check_contact((SiteRule(match=("a.test",), robots="obey"),), "")
    assert ("a.test", "b.test:81") == robots_ignored((own, OFF))
    with pytest.raises(ConfigError, match="robots ignore needs a contact"):
        check_contact((own,), "")


@pytest.mark.parametrize(("match", "exact"), [(("a.test", "b.test:81"), True), (("a.test", "*.b.test"), False)])
def test_a_rule_knows_whether_it_is_for_single_hosts(match: tuple[str, ...], exact: bool) -> None:
    assert exact == SiteRule(match=match, off=True).is_exact


def test_a_rule_without_proxies_may_have_a_certificate_of_its_own() -> None:
    rule = SiteRule(match=("a.test",), proxies="none", verify=False, client_certificate="mine")
    assert (rule,) == Job(sites=(rule,), **PROXIED).sites
    assert (("mine",), ("a.test",)) == (secrets_of([rule]), unverified([rule]))


def test_the_label_of_a_rule_is_short() -> None:
    assert "a.test, b.test, c.test and 2 more" == SiteRule(match=tuple(f"{x}.test" for x in "abcde"), off=True).label
