"""The limits of a crawl together: none lets a URL begin once it is reached, and pages under way stay work."""

from kadcrawl.crawl.byte_budget import ByteBudget
from kadcrawl.crawl.crawl_limits import CrawlLimits, LoanLimits
from kadcrawl.crawl.crawl_time import CrawlTime
from kadcrawl.crawl.page_budget import Budget


def bytes_of(max_bytes: int | None, granted: int = 0) -> ByteBudget:
    """Return the byte budget of a peer that has received nothing."""
    return ByteBudget(max_bytes, granted, lambda: (0, 0))


def test_no_url_begins_once_the_time_is_over_and_begun_ones_stay_work() -> None:
    now = 0.0
    limits = CrawlLimits(Budget(None, 0, 0), bytes_of(None), CrawlTime(10.0), lambda: now)
    limits.time.count(now, is_crawling=True)
    assert (True, "") == (limits.begin(), limits.reached)
    now = 10.0
    assert (False, False, False) == (limits.may_begin, limits.may_request, limits.begin())
    assert ("time", 1) == (limits.reached, limits.held)
    limits.end(fetched=True)
    assert 0 == limits.held


def test_a_spent_budget_of_pages_is_a_reached_limit_too() -> None:
    pages = Budget(10, granted=0, begun=0)
    limits = CrawlLimits(pages, bytes_of(None), CrawlTime(None), lambda: 0.0)
    assert (False, "") == (limits.may_begin, limits.reached)
    pages.learn({}, b"", spent=True)
    assert ("pages", True) == (limits.reached, limits.may_request)


def test_a_peer_without_bytes_begins_nothing_and_a_spent_budget_of_bytes_is_a_reached_limit() -> None:
    limits = CrawlLimits(Budget(None, 0, 0), bytes_of(100), CrawlTime(None), lambda: 0.0)
    assert (False, False, "") == (limits.may_begin, limits.begin(), limits.reached)
    limits.budget("bytes").learn({b"me": 50}, b"me", spent=False)
    assert (True, True, True) == (limits.may_begin, limits.begin(), limits.may_request)
    limits.budget("bytes").learn({}, b"me", spent=True)
    assert ("bytes", 1) == (limits.reached, limits.held)


def test_borrowed_pages_need_no_grant_of_pages_and_end_with_time_and_bytes() -> None:
    now = 0.0
    pages = Budget(10, granted=0, begun=0)
    limits = CrawlLimits(pages, bytes_of(100, 50), CrawlTime(10.0), lambda: now)
    loans = LoanLimits(limits)
    pages.learn({}, b"", spent=True)
    assert ("pages", False, True) == (limits.reached, limits.begin(), loans.begin())
    assert (1, 1, 0) == (limits.held, limits.unfinished, pages.begun)
    assert not limits.ends_loans
    loans.end(fetched=True)
    assert (0, 0) == (limits.held, pages.begun)
    pages.lend(2)
    assert 2 == limits.unfinished, "the crawl is not over while pages are on loan"
    limits.bytes.learn({}, b"", spent=True)
    assert limits.ends_loans
    now = 11.0
    limits.time.learn(11.0, now)
    assert (False, False, False) == (loans.may_begin, loans.may_request, loans.begin())
