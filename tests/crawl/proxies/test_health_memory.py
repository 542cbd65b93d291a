"""Test that the health of proxies outlives a restart, without a password in the journal."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest

from kadcrawl.crawl.proxies.health import DEAD_WAIT_MAX_S
from kadcrawl.crawl.proxies.health_memory import HealthMemory, fingerprint_key
from kadcrawl.crawl.proxies.pool import Proxies
from kadcrawl.settings.proxy_list import Proxy
from kadcrawl.store.store import Store

GOOD, BAD, NEW = (Proxy("http", f"192.0.2.{number}", 3128, "someone", "pa55word") for number in range(3))
VERIFY_S, RETRY_S, NOW = 300.0, 5.0, 1_800_000_000.0

Restart = Callable[[], tuple[Store, Proxies]]


@pytest.fixture
def restart(tmp_path: Path) -> Iterator[Restart]:
    """Return a function that opens the directory again, after its last run has committed."""
    opened: list[Store] = []
    with ExitStack() as closing:

        def open_again() -> tuple[Store, Proxies]:
            if opened:
                opened[-1].journal._db.execute("COMMIT")
                opened[-1].close()
            store = Store(tmp_path, 0.01)
            opened.append(store)
            memory = HealthMemory("eu", store.proxy_health, fingerprint_key(store.meta, Random(len(opened))))
            return store, Proxies(Random(1), VERIFY_S, RETRY_S, memory)

        closing.callback(lambda: opened[-1].close())
        yield open_again


def verify(pool: Proxies, now: float) -> None:
    while (proxy := pool.to_check(now)) is not None:
        pool.checked(proxy, 0.1 if proxy != BAD else None, now)


def due(pool: Proxies, now: float) -> set[Proxy]:
    """Return the proxies that are to be verified now."""
    return set(iter(lambda: pool.to_check(now), None))


def test_a_restart_verifies_only_what_is_new(restart: Restart) -> None:
    _, pool = restart()
    pool.learn([GOOD, BAD], NOW)
    verify(pool, NOW)
    verify(pool, NOW + RETRY_S)
    _, pool = restart()
    pool.learn([GOOD, BAD, NEW], NOW + RETRY_S + 1)
    assert (1, GOOD) == (pool.alive, pool.choose("example.org", "http://example.org/"))
    assert {NEW} == due(pool, NOW + RETRY_S + 1), "the dead proxy waits twice as long after its second failure"
    assert {BAD} == due(pool, NOW + 3 * RETRY_S)


def test_what_is_due_is_verified_before_it_is_used(restart: Restart) -> None:
    _, pool = restart()
    pool.learn([GOOD], NOW)
    verify(pool, NOW)
    _, pool = restart()
    pool.learn([GOOD], NOW + VERIFY_S)
    assert (0, None) == (pool.alive, pool.choose("example.org", "http://example.org/"))
    assert {GOOD} == due(pool, NOW + VERIFY_S)


def test_a_suspect_proxy_is_verified_first_after_a_crash(restart: Restart) -> None:
    _, pool = restart()
    pool.learn([GOOD], NOW)
    verify(pool, NOW)
    pool.doubted(GOOD, "http://example.org/", NOW + 1)
    _, pool = restart()
    pool.learn([GOOD], NOW + 2)
    assert 0 == pool.alive
    assert {GOOD} == due(pool, NOW + 2)


def test_a_clock_that_was_put_back_delays_no_verification(restart: Restart) -> None:
    _, pool = restart()
    pool.learn([GOOD, BAD], NOW)
    verify(pool, NOW)
    _, pool = restart()
    earlier = NOW - 86_400
    pool.learn([GOOD, BAD], earlier)
    assert {GOOD, BAD} == due(pool, earlier + max(VERIFY_S, DEAD_WAIT_MAX_S))


def test_proxies_and_pools_that_are_gone_leave_no_rows(restart: Restart) -> None:
    store, pool = restart()
    pool.learn([GOOD, BAD], NOW)
    verify(pool, NOW)
    pool.learn([BAD], NOW)
    counted = "SELECT count(*) FROM proxy_health"
    assert (1,) == store.journal.row((int,), counted)
    store.proxy_health.keep_pools(["eu"])
    assert (1,) == store.journal.row((int,), counted)
    store.proxy_health.keep_pools([""])
    assert (0,) == store.journal.row((int,), counted)


def test_the_rows_show_neither_address_nor_password(restart: Restart) -> None:
    store, pool = restart()
    pool.learn([GOOD], NOW)
    verify(pool, NOW)
    row = store.journal._db.execute("SELECT * FROM proxy_health").fetchone()
    assert not [shown for shown in (GOOD.host, GOOD.user, GOOD.password) if shown in str(row)]
    memories = [HealthMemory("eu", store.proxy_health, bytes([number]) * 32) for number in range(2)]
    assert [None, None] == [memory.recall(GOOD) for memory in memories], "another journal has other fingerprints"


def test_a_directory_of_an_earlier_release_opens(restart: Restart) -> None:
    store, _ = restart()
    store.journal._db.execute("DROP TABLE proxy_health")
    _, pool = restart()
    pool.learn([GOOD], NOW)
    verify(pool, NOW)
    assert pool.alive
