"""Decisions on whether a peer's network fails: when hosts are missed, when others reach them, when it tests itself."""

from kadcrawl.crawl.reach.network_health import (
    HOSTS_BY_OTHERS,
    HOSTS_KEPT,
    HOSTS_MISSED,
    TEST_LEAST_S,
    TEST_MOST_S,
    NetworkHealth,
    NetworkState,
)

WAIT_S = 300.0


def url(number: int) -> str:
    return f"http://{number}.example/"


def miss(health: NetworkHealth, count: int, now: float = 0.0) -> None:
    for number in range(count):
        health.missed(f"{number}.example", url(number), now)


def test_fewer_missed_hosts_than_the_limit_put_no_network_in_doubt() -> None:
    health = NetworkHealth(WAIT_S)
    miss(health, HOSTS_MISSED - 1)
    miss(health, HOSTS_MISSED - 1)  # The same hosts again.
    assert (False, None) == (health.in_doubt, health.test_due_s(0.0))
    miss(health, HOSTS_MISSED)
    assert (True, 0.0) == (health.in_doubt, health.test_due_s(0.0))


def test_a_host_that_is_reached_ends_all_doubt() -> None:
    health = NetworkHealth(WAIT_S)
    miss(health, HOSTS_MISSED - 1)
    health.reached("a.example", "http://a.example/")
    miss(health, HOSTS_MISSED - 1, 6.0)
    assert not health.in_doubt


def test_a_network_fails_when_others_reach_hosts_that_it_missed() -> None:
    health = NetworkHealth(WAIT_S)
    miss(health, HOSTS_MISSED)
    states = []
    for number in range(HOSTS_BY_OTHERS):
        states.append(health.state)
        health.reached_by_other(f"{number}.example", url(number), 1.0)
    assert [NetworkState.FINE] * HOSTS_BY_OTHERS == states
    assert NetworkState.FAILING is health.state
    assert health.is_failing


def test_dead_hosts_are_no_failure_of_a_network_that_reaches_what_it_knows() -> None:
    health = NetworkHealth(WAIT_S)
    health.reached("known.example", "http://known.example/")
    miss(health, HOSTS_MISSED, 1.0)
    assert ["http://known.example/"] == health.to_test()
    health.reached("known.example", "http://known.example/")
    assert (NetworkState.FINE, None) == (health.state, health.test_due_s(3.0))


def test_a_network_that_misses_what_it_knows_as_all_others_do_is_unreachable_for_a_time() -> None:
    health = NetworkHealth(WAIT_S, ["http://known.example/"])
    miss(health, HOSTS_MISSED)
    health.test_failed(1.0)
    assert (NetworkState.UNREACHABLE, WAIT_S) == (health.state, health.give_up_s(1.0))
    assert 0.0 == health.give_up_s(1.0 + WAIT_S)
    health.give_up(1.0 + WAIT_S)
    assert (NetworkState.GIVEN_UP, None) == (health.state, health.give_up_s(400.0))


def test_a_network_that_was_given_up_is_fine_again_when_it_reaches_a_host() -> None:
    health = NetworkHealth(0.0)
    miss(health, HOSTS_MISSED)
    health.test_failed(1.0)
    given_up = health.state
    health.reached("known.example", "http://known.example/")
    assert (NetworkState.GIVEN_UP, NetworkState.FINE) == (given_up, health.state)


def test_an_unreachable_network_is_a_failing_network_once_another_peer_reaches_a_host() -> None:
    health = NetworkHealth(WAIT_S)
    miss(health, HOSTS_MISSED)
    health.test_failed(1.0)
    health.reached_by_other("0.example", url(0), 2.0)
    assert NetworkState.FAILING is health.state


def test_a_miss_beside_peers_whose_networks_fail_puts_a_network_in_doubt() -> None:
    health = NetworkHealth(WAIT_S)
    health.others_fail(1.0)
    before = health.in_doubt
    miss(health, 1, 1.0)
    health.others_fail(1.0)
    assert (False, True) == (before, health.in_doubt)


def test_the_tests_of_a_failing_network_become_rare_and_never_end() -> None:
    health = NetworkHealth(WAIT_S)
    miss(health, HOSTS_MISSED)
    for number in range(HOSTS_BY_OTHERS):
        health.reached_by_other(f"{number}.example", url(number), 0.0)
    now, waits = 0.0, []
    for _ in range(12):
        wait_s = health.test_due_s(now)
        assert wait_s is not None
        waits.append(wait_s)
        now += wait_s
        health.test_failed(now)
    assert TEST_LEAST_S == waits[0]
    assert waits == sorted(waits)
    assert TEST_MOST_S == waits[-1]


def test_the_urls_kept_for_tests_are_bounded() -> None:
    health = NetworkHealth(WAIT_S, [url(number) for number in range(100)])
    assert HOSTS_KEPT == len(health.known)
    for number in range(200, 300):
        health.reached(f"{number}.example", url(number))
    assert [url(number) for number in range(300 - HOSTS_KEPT, 300)] == health.known
    miss(health, 100)
    for number in range(100):
        health.reached_by_other(f"{number}.example", url(number), 1.0)
    assert 3 == len(health.to_test())
