"""The memory of what other peers said about hosts: how long it lasts, and that it is bounded."""

import pytest

from kadcrawl.crawl.fetch.result import FetchError
from kadcrawl.crawl.reach import opinions as module
from kadcrawl.crawl.reach.opinions import BOTH_MISSED_S, BY_PEERS_S, HELPER_REST_S, UNHEARD_MAX_S, HostFailure, Opinions

HELPER, HOST = b"helper", "a.example"
FAILURE = HostFailure(2, FetchError.DNS, "no such name")


def test_a_host_that_another_peer_reached_is_fetched_through_it_for_a_while() -> None:
    opinions = Opinions()
    assert opinions.helper_of(HOST, 0.0) is None
    opinions.reached(HOST, HELPER, 0.0)
    assert HELPER == opinions.helper_of(HOST, BY_PEERS_S - 1)
    assert opinions.helper_of(HOST, BY_PEERS_S) is None


def test_a_host_that_others_missed_needs_no_second_opinion_for_a_while() -> None:
    opinions = Opinions()
    opinions.missed(HOST, FAILURE, 0.0)
    assert FAILURE == opinions.failure_of(HOST, BOTH_MISSED_S - 1)
    assert opinions.failure_of(HOST, BOTH_MISSED_S) is None
    opinions.reached(HOST, HELPER, 1.0)
    assert opinions.failure_of(HOST, 2.0) is None


def test_a_url_waits_for_its_first_opinion_no_longer_than_the_bound() -> None:
    opinions = Opinions()
    assert opinions.may_wait(HOST, 10.0)
    assert opinions.may_wait(HOST, 10.0 + UNHEARD_MAX_S - 1)
    assert not opinions.may_wait(HOST, 10.0 + UNHEARD_MAX_S)
    opinions.forget(HOST)
    assert opinions.may_wait(HOST, 10.0 + UNHEARD_MAX_S)


def test_a_peer_that_could_not_help_is_asked_again_after_a_while() -> None:
    opinions = Opinions()
    opinions.cannot_help(HELPER, "", 0.0)
    assert not opinions.can_help(HELPER, HELPER_REST_S - 1)
    assert opinions.can_help(HELPER, HELPER_REST_S)


def test_a_peer_lacks_a_network_for_as_long_as_it_is_not_asked() -> None:
    opinions = Opinions()
    assert not opinions.lacks_network(HELPER, 0.0)
    opinions.cannot_help(HELPER, "network", 0.0)
    assert opinions.lacks_network(HELPER, HELPER_REST_S - 1)
    assert not opinions.lacks_network(HELPER, HELPER_REST_S)
    opinions.cannot_help(HELPER, "", 0.0)
    assert not opinions.lacks_network(HELPER, 0.0)


def test_hosts_beyond_the_bound_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HOSTS_MAX", 3)
    opinions = Opinions()
    for number in range(5):
        opinions.missed(f"{number}.example", FAILURE, 0.0)
    known = [opinions.failure_of(f"{number}.example", 1.0) for number in range(5)]
    assert [None, None, FAILURE, FAILURE, FAILURE] == known
