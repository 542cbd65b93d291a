"""The leases of clocks by their owners: a message about one clock also tells of others."""

from kadcrawl.crawl.clocks.clock_names import LEASE_S
from kadcrawl.crawl.clocks.leased_clocks import LeasedClocks
from kadcrawl.crawl.clocks.shared_clock import EARLY_IDLE_S, EARLY_S, Pace, SharedClock
from kadcrawl.link.wire.clock_messages import ALL_CONNECTIONS, CLOCKS_MAX, ClockTurn

FREE, SLOW = Pace(0.0, 4), Pace(1.0, 4)
ONE, OTHER = b"1" * 20, b"2" * 20


def share(leased: LeasedClocks, name: str, owner: bytes = ONE, connections: int = 2, pace: Pace = FREE) -> SharedClock:
    """Return a clock of a host that an owner leased at second 0, on which one request is under way."""
    clock = SharedClock(f"host {name}")
    clock.wait(name, pace)
    assert clock.question(0.0) is not None
    clock.heard(ClockTurn(7, 0.0, connections), 0.0, 0.0)
    leased.note(clock, owner)
    clock.begin(name, pace)
    return clock


def test_a_message_gives_the_shares_of_its_owner_back_that_have_no_use() -> None:
    leased = LeasedClocks()
    idle, used, other = share(leased, "a.test"), share(leased, "b.test"), share(leased, "c.test", OTHER)
    for clock in (idle, other):
        clock.end(0.5)
    assert leased.company(ONE, 1, 0.5 + EARLY_IDLE_S - 0.1) == []
    [(clock, question)] = leased.company(ONE, 1, 0.5 + EARLY_IDLE_S)
    assert (clock, question.lease, question.ends, question.wants) == (idle, 7, True, False)
    assert used.question(0.5 + EARLY_IDLE_S) is None
    clock.heard(ClockTurn(0, 0.0), 1.3, 1.3)
    leased.note(clock, ONE)
    assert not clock.is_leased
    assert leased.company(ONE, 1, 1.3) == []


def test_a_message_renews_the_shares_in_use_a_while_before_their_time() -> None:
    leased = LeasedClocks()
    used = share(leased, "a.test")
    at = LEASE_S / 2 - EARLY_S
    assert leased.company(ONE, 1, at - 0.1) == []
    [(clock, question)] = leased.company(ONE, 1, at)
    assert (clock, question.ends, question.wants, question.in_flight) == (used, False, True, 1)
    clock.heard(ClockTurn(8, 0.0, 2), at, at)
    leased.note(clock, ONE)
    assert leased.company(ONE, 1, LEASE_S / 2 - 0.1) == []
    assert clock.question(LEASE_S / 2) is None, "it was renewed"
    assert clock.question(at + LEASE_S / 2) is not None


def test_a_clock_that_this_peer_has_alone_is_asked_about_at_its_own_time() -> None:
    leased = LeasedClocks()
    slow = share(leased, "a.test", connections=ALL_CONNECTIONS, pace=SLOW)
    assert leased.company(ONE, 1, LEASE_S / 2 - 0.1) == []
    slow.end(0.5)
    assert leased.company(ONE, 1, 0.6) == []


def test_a_clock_with_a_question_under_way_is_not_asked_about_twice() -> None:
    leased = LeasedClocks()
    share(leased, "a.test").end(0.5)
    assert len(leased.company(ONE, 1, 2.0)) == 1
    assert leased.company(ONE, 1, 2.0) == []


def test_a_message_has_no_more_questions_than_it_may_have() -> None:
    leased = LeasedClocks()
    for number in range(CLOCKS_MAX + 5):
        share(leased, f"{number}.test").end(0.5)
    assert len(leased.company(ONE, 60, 2.0)) == CLOCKS_MAX - 60
    assert leased.company(ONE, CLOCKS_MAX, 2.0) == []


def test_a_clock_that_another_owner_leased_since_is_asked_for_there() -> None:
    leased = LeasedClocks()
    clock = share(leased, "a.test")
    leased.note(clock, OTHER)
    clock.end(0.5)
    assert leased.company(ONE, 1, 2.0) == []
    assert [one for one, _ in leased.company(OTHER, 1, 2.0)] == [clock]
