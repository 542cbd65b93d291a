"""Test the bounds of a request by the rule for its site."""

import pytest

from kadcrawl.crawl.fetch.content_encoding import ACCEPT_ENCODING
from kadcrawl.crawl.fetch.request_rules import RequestRules
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_rules import SiteRule
from kadcrawl.settings.site_settings import SiteSettings

LIMITS = Limits(body_bytes_max=1000, fetch_timeout_s=10)


def rules(*sites: SiteRule) -> RequestRules:
    return RequestRules(LIMITS, "kadcrawl/1", SiteSettings(Job(sites=sites)))


def test_a_rule_lowers_the_limits_of_the_machine_and_raises_none() -> None:
    low = SiteRule(match=("low.test",), body_bytes_max=999, fetch_timeout_s=9)
    high = SiteRule(match=("high.test",), body_bytes_max=1001, fetch_timeout_s=11)
    made = rules(low, high)
    assert Limits(body_bytes_max=999, fetch_timeout_s=9) == made.of("http://low.test/").limits
    assert LIMITS == made.of("http://high.test/").limits
    assert LIMITS is made.of("http://other.test/").limits
    assert LIMITS is RequestRules(LIMITS, "kadcrawl/1").of("http://low.test/").limits


def test_a_rule_has_headers_and_a_user_agent_of_its_own() -> None:
    own = SiteRule(match=("a.test",), headers=("Accept: text/plain", "X-Own: 1"), user_agent="kadcrawl for a.test")
    job = Job(
        headers=("Accept-Language: de",), contact="you@b.test", sites=(own, SiteRule(match=("c.test",), retries=1))
    )
    made = RequestRules(LIMITS, "kadcrawl/1", SiteSettings(job))
    lines = made.of("http://a.test/").header_lines.splitlines()
    assert ["User-Agent: kadcrawl for a.test (+you@b.test)", f"Accept-Encoding: {ACCEPT_ENCODING}"] == lines[:2]
    assert ["Accept: text/plain", "X-Own: 1"] == lines[2:]
    for url in ("http://b.test/", "http://c.test/"):
        assert made.of(url).header_lines.startswith("User-Agent: kadcrawl/1 (+you@b.test)\r\nAccept: text/html")
        assert ("Accept-Language", "de") == made.of(url).headers[-1]


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("https://a.test/x", True),
        ("http://a.test/x", False),
        ("https://a.test:8443/x", False),
        ("https://b.test:8443/x", True),
        ("https://b.test/x", False),
        ("https://x.a.test/", False),
        ("http://plain.test/", True),
        ("https://plain.test/", True),
        ("http://plain.test:8080/", False),
        ("https://other.test/", False),
    ],
)
def test_a_secret_goes_to_the_host_and_port_of_its_rule_and_by_https(url: str, sent: bool) -> None:
    sites = (
        SiteRule(match=("a.test", "b.test:8443"), auth="bearer:token"),
        SiteRule(match=("plain.test",), auth="bearer:token", http_secrets=True),
        SiteRule(match=("*",), retries=1),
    )
    rule = RequestRules(LIMITS, "x", SiteSettings(Job(sites=sites)), {"token": "hunter2"}).of(url)
    assert ((("Authorization", "Bearer hunter2"),) if sent else ()) == rule.secret_headers
    assert "hunter2" not in f"{rule!r} {rule.header_lines}"


def test_the_rule_of_a_request_is_made_once() -> None:
    made = rules(SiteRule(match=("*.a.test",), body_bytes_max=1))
    assert made.of("http://x.a.test/") is made.of("http://y.a.test/")
