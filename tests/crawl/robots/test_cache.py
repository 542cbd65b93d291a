"""Test that known robots.txt files take bounded memory, and that a search goes on where redirects led."""

import gc
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from kadcrawl.crawl.robots.cache import LARGE_BYTES, REREAD_BYTES_S, TURN_KEPT_S, RobotsCache
from kadcrawl.crawl.robots.rules import Rules
from kadcrawl.settings.limits import Limits
from kadcrawl.store.store import Store

LIMITS = Limits(robots_cached_bytes_max=120_000, robots_cached_max=50, robots_retry_s=4, robots_tries_max=2)
A = "http://a.example"


@pytest.fixture
def robots_store(tmp_path: Path) -> Store:
    return Store(tmp_path, 0.01)


def test_rules_in_memory_are_bounded_by_bytes_and_all_are_known_still(robots_store: Store) -> None:
    cache = RobotsCache(robots_store, LIMITS)
    large = Rules(tuple((False, f"/{n:05}") for n in range(200)))
    for n in range(30):
        cache.learn(f"http://{n}.example", large, 0.0)
    assert len(cache._rules) <= 3
    assert all(cache.look_up(f"http://{n}.example", 1.0) == large for n in range(30))
    assert cache._bytes == sum(size for _, _, size in cache._rules.values()) <= LIMITS.robots_cached_bytes_max
    robots_store.close()


def test_the_bound_counts_what_rules_take_in_memory() -> None:
    for pattern in ("/{:x}", "/products/item-{}/reviews", "/{:x}$"):
        kept = Rules(tuple((False, pattern.format(n)) for n in range(900))).to_bytes()
        gc.collect()
        tracemalloc.start()
        rules = Rules.from_bytes(kept)
        taken = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert taken / 2 < rules.memory_bytes < taken * 2, pattern


@pytest.mark.parametrize("over", [0, 1])
def test_rules_that_take_long_to_read_are_not_read_again_at_once(over: int, robots_store: Store) -> None:
    cache, ttl_s = RobotsCache(robots_store, LIMITS), LIMITS.robots_ttl_s
    head = len(Rules(((False, "/0000"),)).to_bytes())
    count, rest = divmod(LARGE_BYTES + over - head, len("\ndisallow: /0001"))
    rules = Rules(((False, "/0000" + "x" * rest), *((False, f"/{n:04}") for n in range(1, count + 1))))
    robots_store.sites.set_robots(A, rules.to_bytes(), 5.0)
    assert len(rules.to_bytes()) == LARGE_BYTES + over
    assert (cache.unread(A, 6.0) is not None) == bool(over)
    assert cache.look_up(A, 6.0) == (None if over else rules)
    if over:
        assert cache.unread(A, 5.0 + ttl_s) is None
        cache.read_again(A, rules, 5.0)
        assert cache.unread(A, 6.0) is None
        assert cache.look_up(A, 6.0) == rules
        assert cache.look_up(A, 5.0 + ttl_s) is None
    robots_store.close()


def test_turns_to_be_read_again_are_given_one_by_one_and_kept_for_a_while(robots_store: Store) -> None:
    cache = RobotsCache(robots_store, LIMITS)
    turns = [cache.turn_at(str(n), REREAD_BYTES_S, 10.0) for n in range(3)]
    assert turns == [10.0, 11.0, 12.0]
    assert turns == [cache.turn_at(str(n), REREAD_BYTES_S, 11.0) for n in range(3)]
    cache.read_again("1", Rules(), 0.0)
    assert cache.turn_at("1", REREAD_BYTES_S, 12.0) == 13.0
    assert cache.turn_at("0", REREAD_BYTES_S, 10.0 + TURN_KEPT_S) == 10.0
    assert cache.turn_at("0", REREAD_BYTES_S, 10.1 + TURN_KEPT_S) == 10.1 + TURN_KEPT_S
    robots_store.close()


def test_rules_learned_again_are_weighed_once(robots_store: Store) -> None:
    cache = RobotsCache(robots_store, LIMITS)
    for _ in range(5):
        cache.learn(A, Rules(((False, "/x"),)), 0.0)
    assert cache._bytes == Rules(((False, "/x"),)).memory_bytes
    robots_store.close()


def test_a_robots_fetch_resumes_at_its_redirect_and_restarts_on_failure(robots_store: Store) -> None:
    cache = RobotsCache(robots_store, LIMITS)
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
    robots_store.close()


def test_rules_and_searches_in_memory_are_bounded_in_number(robots_store: Store) -> None:
    cache = RobotsCache(robots_store, replace(LIMITS, robots_cached_max=3, robots_cached_bytes_max=10**9))
    for n in range(20):
        cache.learn(f"http://{n}.example", Rules(), 0.0)
    assert 3 == len(cache._rules)
    for n in range(20):
        cache.fail(f"http://dead{n}.example", "dns", False, 1e5 * n)
    assert len(cache._searches) <= 4
    robots_store.close()


def test_a_file_to_be_fetched_again_is_no_matter_of_other_peers_until_it_is_learned(robots_store: Store) -> None:
    """Other peers may know the former file alone."""
    cache = RobotsCache(robots_store, LIMITS)
    cache.learn(A, Rules(), 0.0)
    assert not cache.is_own(A)
    cache.forget(A, 5.0)
    assert cache.look_up(A, 5.0) is None
    assert cache.is_own(A)
    cache.learn(A, Rules(), 6.0)
    assert not cache.is_own(A)
    for number in range(LIMITS.robots_cached_max + 1):
        cache.forget(f"http://{number}.example", 5.0)
    assert not cache.is_own("http://0.example"), "the memory is bounded"
    robots_store.close()
