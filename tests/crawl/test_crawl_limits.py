"""The limits of a crawl together: none lets a URL begin once it is reached, and pages under way stay work."""

from kadcrawl.crawl.crawl_limits import CrawlLimits
from kadcrawl.crawl.crawl_time import CrawlTime
from kadcrawl.crawl.page_budget import Budget


def test_no_url_begins_once_the_time_is_over_and_begun_ones_stay_work() -> None:
    now = 0.0
    limits = CrawlLimits(Budget(None, 0, 0), CrawlTime(10.0), lambda: now)
    limits.time.count(now, is_crawling=True)
    assert (True, "") == (limits.begin(), limits.reached)
    now = 10.0
    assert (False, False, False) == (limits.may_begin, limits.may_request, limits.begin())
    assert ("time", 1) == (limits.reached, limits.held)
    limits.end(fetched=True)
    assert 0 == limits.held


def test_a_spent_budget_of_pages_is_a_reached_limit_too() -> None:
    pages = Budget(10, granted=0, begun=0)
    limits = CrawlLimits(pages, CrawlTime(None), lambda: 0.0)
    assert (False, "") == (limits.may_begin, limits.reached)
    pages.learn({}, b"", spent=True)
    assert ("pages", True) == (limits.reached, limits.may_request)
