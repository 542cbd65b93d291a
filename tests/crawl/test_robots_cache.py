"""Known robots.txt files take bounded memory, and a search goes on where redirects led."""

from dataclasses import replace
from pathlib import Path

import pytest

from kadcrawl.config import Limits
from kadcrawl.crawl.robots import Rules
from kadcrawl.crawl.robots_cache import RobotsCache
from kadcrawl.history.store import Store

LIMITS = Limits(robots_cached_bytes_max=10_000, robots_cached_max=50, robots_retry_s=4, robots_tries_max=2)
A = "http://a.example"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path, 0.01)


def test_rules_in_memory_are_bounded_by_bytes_and_all_are_known_still(store: Store) -> None:
    cache = RobotsCache(store, LIMITS)
    large = Rules(tuple((False, f"/{n:05}") for n in range(200)))
    for n in range(30):
        cache.learn(f"http://{n}.example", large, 0.0)
    assert len(cache._rules) <= 3
    assert all(cache.look_up(f"http://{n}.example", 1.0) == large for n in range(30))
    assert cache._bytes == sum(size for _, _, size in cache._rules.values()) <= LIMITS.robots_cached_bytes_max
    store.close()


def test_rules_learned_again_are_weighed_once(store: Store) -> None:
    cache = RobotsCache(store, LIMITS)
    for _ in range(5):
        cache.learn(A, Rules(((False, "/x"),)), 0.0)
    assert cache._bytes == len(Rules(((False, "/x"),)).to_bytes())
    store.close()


def test_a_search_goes_on_where_a_redirect_led_and_begins_anew_after_a_failure(store: Store) -> None:
    cache = RobotsCache(store, LIMITS)
    search = cache.search(A, 0.0)
    assert (search.url, search.robots_origin) == (f"{A}/robots.txt", A)
    search.follow("http://b.example/r.txt", 1.0)
    again = cache.search(A, 2.0)
    assert (again.url, again.hops, again.robots_origin) == ("http://b.example/r.txt", 1, None)
    assert cache.fail(A, "timeout", True, 2.0) == 4.0
    anew = cache.search(A, 3.0)
    assert (anew.url, anew.hops, anew.not_before) == (f"{A}/robots.txt", 0, 6.0)
    assert cache.fail(A, "timeout", True, 6.0) == 0.0
    assert cache.look_up(A, 6.0) == "timeout"
    store.close()


def test_rules_and_searches_in_memory_are_bounded_in_number(store: Store) -> None:
    cache = RobotsCache(store, replace(LIMITS, robots_cached_max=3, robots_cached_bytes_max=10**9))
    for n in range(20):
        cache.learn(f"http://{n}.example", Rules(), 0.0)
    assert 3 == len(cache._rules)
    for n in range(20):
        cache.fail(f"http://dead{n}.example", "dns", False, 1e5 * n)
    assert len(cache._searches) <= 4
    store.close()
