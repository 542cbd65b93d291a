"""A shared clock at a peer that asks its sites: the lease, the order of the sites, and the spacing of requests."""

from math import inf

import pytest

from kadcrawl.crawl.clocks import shared_clock
from kadcrawl.crawl.clocks.clock_names import LEASE_S
from kadcrawl.crawl.clocks.shared_clock import KNOWN_S, Pace, SharedClock
from kadcrawl.link.wire.cell_messages import RobotsRecord
from kadcrawl.link.wire.clock_messages import ALL_CONNECTIONS, ClockTurn

SLOW, FREE = Pace(1.0, 4), Pace(0.0, 4)
S, T, U = "s.test", "t.test", "u.test"


def leased(pace: Pace = SLOW) -> SharedClock:
    """Return a clock whose lease was asked for by S at second 0, and given at once."""
    clock = SharedClock("ip 192.0.2.1")
    clock.wait(S, pace)
    assert clock.question(0.0) is not None
    clock.heard(ClockTurn(7, 0.0, ALL_CONNECTIONS), 0.0, 0.0)
    return clock


def test_no_request_begins_without_a_lease() -> None:
    clock = SharedClock("ip 192.0.2.1")
    assert not clock.may_begin(S, SLOW, 0.0)
    assert clock.question(0.0) is None
    clock.wait(S, SLOW)
    question = clock.question(0.0)
    assert question is not None
    assert (0, True, False, 1.0) == (question.lease, question.wants, question.ends, question.delay_s)
    assert clock.question(0.0) is None, "one question at a time"


def test_the_site_that_asked_has_the_first_turn() -> None:
    clock = leased()
    assert S == clock.next_site(0.1)
    assert not clock.may_begin(T, SLOW, 0.1)
    assert clock.may_begin(S, SLOW, 0.1)


def test_with_a_delay_one_request_is_under_way_and_the_next_waits_for_the_delay() -> None:
    clock = leased()
    clock.begin(S, SLOW)
    assert not clock.may_begin(T, SLOW, 0.2)
    clock.end(1.3)
    assert not clock.may_begin(T, SLOW, 1.2)
    assert clock.may_begin(T, SLOW, 1.3)


def test_without_a_delay_as_many_requests_are_under_way_as_there_are_connections() -> None:
    two = Pace(0.0, 2)
    clock = leased(two)
    for _ in range(2):
        assert clock.may_begin(S, two, 0.1)
        clock.begin(S, two)
    assert not clock.may_begin(S, two, 0.1)
    clock.end(0.2)
    assert clock.may_begin(S, two, 0.2)


def test_a_site_with_a_delay_is_asked_alone() -> None:
    clock = leased(FREE)
    clock.begin(S, FREE)
    assert not clock.may_begin(T, SLOW, 0.1)
    clock.end(0.1)
    clock.begin(T, SLOW)
    assert not clock.may_begin(S, FREE, 0.2)


def test_sites_have_their_turns_in_the_order_in_which_they_came() -> None:
    clock = leased()
    clock.begin(S, SLOW)
    for site in (T, U, S):
        clock.wait(site, SLOW)
    clock.end(1.0)
    turns = []
    for second in (1.0, 2.0, 3.0):
        turn = clock.next_site(second)
        turns.append(turn)
        assert clock.may_begin(turn, SLOW, second)
        clock.begin(turn, SLOW)
        clock.end(second + 1.0)
    assert [T, U, S] == turns


def test_a_site_that_does_not_come_loses_its_turn() -> None:
    clock = leased()
    clock.wait(T, SLOW)
    assert S == clock.next_site(0.0)
    assert clock.next_site(0.1) is None
    assert T == clock.next_site(shared_clock.PROMISE_S)


def test_a_site_whose_turn_came_too_early_is_the_first_again() -> None:
    clock = leased()
    clock.wait(T, SLOW)
    assert S == clock.next_site(0.0)
    clock.wait(S, SLOW)
    assert S == clock.next_site(0.0)


def test_nothing_is_sent_after_the_end_of_the_lease_counted_from_the_question() -> None:
    clock = SharedClock("ip 192.0.2.1")
    clock.wait(S, SLOW)
    clock.question(10.0)
    clock.heard(ClockTurn(7, 0.5, ALL_CONNECTIONS), 10.0, 13.0)
    assert not clock.may_begin(S, SLOW, 13.4)
    assert clock.may_begin(S, SLOW, 13.5)
    clock.begin(S, SLOW)
    assert clock.may_send(10.0 + LEASE_S - 0.01)
    assert not clock.may_send(10.0 + LEASE_S)


def test_a_lease_in_use_is_renewed_half_way() -> None:
    clock = leased()
    clock.begin(S, SLOW)
    assert LEASE_S / 2 == clock.due(0.1)
    question = clock.question(LEASE_S / 2)
    assert question is not None
    assert (7, True, False, True) == (question.lease, question.wants, question.ends, question.in_flight)
    clock.heard(ClockTurn(8, 0.0, ALL_CONNECTIONS), 3.0, 3.1)
    assert clock.may_send(3.0 + LEASE_S - 0.1)


def test_a_lease_that_is_not_renewed_goes_on_to_its_end_and_is_given_back_then() -> None:
    clock = leased()
    clock.begin(S, SLOW)
    clock.question(3.0)
    clock.heard(ClockTurn(0, 0.1), 3.0, 3.1)
    clock.end(4.0)
    clock.wait(T, SLOW)
    assert clock.may_begin(T, SLOW, LEASE_S - 0.1)
    question = clock.question(LEASE_S)
    assert question is not None
    assert question.ends
    clock.heard(ClockTurn(0, 2.0), LEASE_S, LEASE_S)
    assert not clock.may_begin(T, SLOW, LEASE_S + 1.0)


def test_a_clock_for_which_no_site_waits_is_given_back_soon() -> None:
    clock = leased()
    clock.begin(S, SLOW)
    clock.end(1.0)
    assert 1.0 + shared_clock.IDLE_S == pytest.approx(clock.due(0.5))
    assert clock.question(1.0) is None
    question = clock.question(1.0 + shared_clock.IDLE_S)
    assert question is not None
    assert (True, False, 0.0) == (question.ends, question.wants, question.wait_s)
    clock.heard(ClockTurn(0, 0.0), 1.3, 1.3)
    assert clock.is_idle(1.4)


def test_a_clock_that_rests_beyond_its_lease_is_given_back_at_once_with_its_rest() -> None:
    clock = leased(Pace(30.0, 4))
    clock.begin(S, Pace(30.0, 4))
    clock.end(30.5)
    question = clock.question(0.5)
    assert question is not None
    assert (True, 30.0) == (question.ends, question.wait_s)


def test_an_owner_that_does_not_answer_is_asked_again_ever_more_seldom() -> None:
    clock = SharedClock("ip 192.0.2.1")
    clock.wait(S, SLOW)
    waits, now = [], 0.0
    for _ in range(6):
        assert clock.question(now) is not None
        clock.unheard(now)
        waits.append(clock.due(now) - now)
        now = clock.due(now)
    assert [0.5, 1.0, 2.0, 4.0, 5.0, 5.0] == pytest.approx(waits)


def test_a_lost_answer_to_a_return_leaves_no_lease_here() -> None:
    clock = leased()
    clock.begin(S, SLOW)
    clock.end(1.0)
    assert clock.question(2.0) is not None
    clock.unheard(2.0)
    assert not clock.may_begin(S, SLOW, 2.1)
    assert inf == clock.due(2.1)


def test_a_peer_that_is_told_that_the_clock_is_free_asks_at_once() -> None:
    clock = SharedClock("ip 192.0.2.1")
    clock.wait(S, SLOW)
    clock.question(0.0)
    clock.heard(ClockTurn(0, 9.0), 0.0, 0.0)
    assert clock.question(1.0) is None
    clock.is_free_now(1.0)
    assert clock.question(1.0) is not None


def test_a_site_without_a_delay_may_have_fewer_connections_than_others() -> None:
    one = Pace(0.0, 1)
    clock = leased(FREE)
    clock.begin(S, FREE)
    assert not clock.may_begin(T, one, 0.1)
    clock.end(0.1)
    clock.begin(T, one)
    assert not clock.may_begin(S, FREE, 0.2)


def test_no_request_begins_while_the_lease_is_on_its_way_back() -> None:
    clock = leased()
    clock.begin(S, SLOW)
    clock.end(1.0)
    question = clock.question(2.0)
    assert question is not None
    assert question.ends
    assert not clock.may_begin(T, SLOW, 2.01)
    clock.wait(T, SLOW)
    assert clock.next_site(2.02) is None
    clock.heard(ClockTurn(0, 0.0), 2.0, 2.05)
    assert clock.question(2.1) is not None


def test_rules_are_asked_for_with_a_lease_until_they_are_told() -> None:
    clock = SharedClock("host a.test")
    clock.wait(S, FREE._replace(page="http://a.test/1"))
    question = clock.question(0.0)
    assert question is not None
    assert "http://a.test/1" == question.page
    clock.heard(ClockTurn(0, 0.5), 0.0, 0.0)
    question = clock.question(0.5)
    assert question is not None
    assert "http://a.test/1" == question.page
    clock.heard(ClockTurn(7, 0.0, 3, robots=RobotsRecord("http://a.test", b"", 0.0)), 0.5, 0.5)
    clock.wait(T, FREE._replace(page="http://a.test/2"))
    question = clock.question(0.5 + LEASE_S / 2)
    assert question is not None
    assert "" == question.page
    clock.heard(ClockTurn(0, 0.0), 4.0, 4.0)
    while (question := clock.question(now := 1 + KNOWN_S)) is not None and (question.lease or question.ends):
        clock.heard(ClockTurn(0, 0.0), now, now)
    assert question is not None
    assert "http://a.test/1" == question.page, "the rules may be too old by now"


def put_off(wait_s: float = 9.0) -> SharedClock:
    """Return a clock that S waits for, and that another peer has."""
    clock = SharedClock("ip 192.0.2.1")
    clock.wait(S, SLOW)
    assert clock.question(0.0) is not None
    clock.heard(ClockTurn(0, wait_s), 0.0, 0.0)
    return clock


def test_a_free_clock_that_no_site_waits_for_any_more_is_left_to_the_next_peer_at_once() -> None:
    clock = put_off()
    assert S == clock.first_waiting
    clock.leave(S)
    assert clock.first_waiting is None
    assert clock.due(1.0) == inf
    clock.is_free_now(1.0)
    assert clock.due(1.0) == 1.0
    question = clock.question(1.0)
    assert question is not None
    assert (0, False, False) == (question.lease, question.wants, question.ends)
    clock.heard(ClockTurn(0, 0.0), 1.0, 1.0)
    clock.is_free_now(2.0)
    assert (None, inf) == (clock.question(2.0), clock.due(2.0)), "it has no place any more"


def test_a_free_clock_is_asked_for_if_a_site_waits_again() -> None:
    clock = put_off()
    clock.leave(S)
    clock.is_free_now(1.0)
    clock.wait(T, SLOW)
    question = clock.question(1.0)
    assert question is not None
    assert question.wants
    clock.heard(ClockTurn(7, 0.0, ALL_CONNECTIONS), 1.0, 1.0)
    assert T == clock.next_site(1.0)


def test_an_owner_that_does_not_hear_that_its_clock_is_not_wanted_is_told_no_more() -> None:
    clock = put_off()
    clock.leave(S)
    clock.is_free_now(1.0)
    assert clock.question(1.0) is not None
    clock.unheard(2.0)
    assert (None, inf) == (clock.question(9.0), clock.due(9.0))


def test_a_clock_told_to_be_free_that_was_never_asked_for_is_not_given_up() -> None:
    clock = SharedClock("ip 192.0.2.1")
    clock.is_free_now(1.0)
    assert clock.question(1.0) is None
    has_lease = leased()
    has_lease.is_free_now(0.1)
    assert has_lease.question(0.1) is None
