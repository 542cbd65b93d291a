"""Test the bounds of a request by the rule for its site."""

from kadcrawl.crawl.fetch.request_rules import RequestRules
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_rules import SiteRule
from kadcrawl.settings.site_settings import SiteSettings

LIMITS = Limits(body_bytes_max=1000, fetch_timeout_s=10)


def rules(*sites: SiteRule) -> RequestRules:
    return RequestRules(LIMITS, SiteSettings(Job(sites=sites)))


def test_a_rule_lowers_the_limits_of_the_machine_and_raises_none() -> None:
    low = SiteRule(match=("low.test",), body_bytes_max=999, fetch_timeout_s=9)
    high = SiteRule(match=("high.test",), body_bytes_max=1001, fetch_timeout_s=11)
    made = rules(low, high)
    assert Limits(body_bytes_max=999, fetch_timeout_s=9) == made.of("http://low.test/").limits
    assert LIMITS == made.of("http://high.test/").limits
    assert LIMITS is made.of("http://other.test/").limits
    assert LIMITS is RequestRules(LIMITS).of("http://low.test/").limits


def test_the_rule_of_a_request_is_made_once() -> None:
    made = rules(SiteRule(match=("*.a.test",), body_bytes_max=1))
    assert made.of("http://x.a.test/") is made.of("http://y.a.test/")
