"""The counted time of a swarm: only work counts, the longest time wins, and nobody can claim more than the limit."""

import pytest

from kadcrawl.crawl.crawl_time import CrawlTime


def test_time_counts_only_while_this_peer_crawls() -> None:
    time = CrawlTime(60.0)
    assert 0.0 == time.counted_s(500.0)
    time.count(500.0, is_crawling=True)
    time.count(510.0, is_crawling=True)
    time.count(520.0, is_crawling=False)
    assert (20.0, 40.0, False) == (time.counted_s(900.0), time.left_s(900.0), time.is_over(900.0))
    time.count(900.0, is_crawling=True)
    assert (False, True) == (time.is_over(939.9), time.is_over(940.0))
    assert 60.0 == time.counted_s(2_000.0), "no more than the limit"


def test_the_longest_time_of_all_peers_wins() -> None:
    time = CrawlTime(60.0, counted_s=10.0)
    time.count(0.0, is_crawling=True)
    time.learn(5.0, 1.0)
    assert 11.0 == time.counted_s(1.0)
    time.learn(40.0, 2.0)
    assert (40.0, 45.0) == (time.counted_s(2.0), time.counted_s(7.0)), "its own work counts on from there"
    idle = CrawlTime(60.0)
    idle.learn(30.0, 2.0)
    assert 30.0 == idle.counted_s(50.0)


@pytest.mark.parametrize("claimed_s", [60.0, 1e300, float("inf")])
def test_a_claim_of_a_peer_ends_this_crawl_and_no_longer_one(claimed_s: float) -> None:
    time = CrawlTime(60.0)
    time.learn(claimed_s, 0.0)
    assert (True, 60.0) == (time.is_over(0.0), time.counted_s(0.0))
    assert 40.0 == CrawlTime(100.0, time.counted_s(0.0)).left_s(0.0)


def test_a_crawl_without_a_limit_counts_nothing_and_never_ends_by_time() -> None:
    time = CrawlTime(None, counted_s=90.0)
    time.learn(70.0, 0.0)
    time.count(0.0, is_crawling=True)
    assert (0.0, None, False) == (time.counted_s(1e9), time.left_s(1e9), time.is_over(1e9))


def test_a_clock_that_steps_back_takes_no_counted_time_away() -> None:
    time = CrawlTime(60.0)
    time.count(100.0, is_crawling=True)
    time.count(110.0, is_crawling=True)
    time.count(50.0, is_crawling=True)
    assert 10.0 == time.counted_s(50.0)
