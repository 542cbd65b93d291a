"""Leases of shared clocks by their keeper: in a fair order, and no more than a site has connections."""

from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from kadcrawl.crawl.clocks import clock_keeper
from kadcrawl.crawl.clocks.clock_keeper import Answer, ClockKeeper
from kadcrawl.crawl.clocks.clock_names import LEASE_S, REACHES_S, host_clock, ip_clock, is_clock, plain_address
from kadcrawl.crawl.clocks.shared_clock import Pace, SharedClock
from kadcrawl.link.wire.clock_messages import ALL_CONNECTIONS, ClockQuestion

A, B, C = b"a" * 20, b"b" * 20, b"c" * 20
CLOCK = "ip 192.0.2.1"
WAIT_MAX_S = 60.0
SILENCE_MAX_S = 30.0
"""Most seconds without a request to a site as three peers die: two leases run out, and a place in the order."""


def ask(
    keeper: ClockKeeper,
    peer: bytes,
    now: float,
    *,
    lease: int = 0,
    wants: bool = True,
    ends: bool = False,
    busy: bool = False,
    wait_s: float = 0.0,
    delay_s: float = 1.0,
    opening: int = 1,
    rest_s: float = 0.0,
    clock: str = CLOCK,
    in_flight: int = 0,
    needs: int = 1,
    most: int = 0,
) -> Answer:
    in_flight = in_flight or busy
    question = ClockQuestion(clock, lease, wants, ends, in_flight, max(needs, in_flight), most, wait_s, delay_s)
    return keeper.answer(peer, question, opening, rest_s, now)


def new() -> ClockKeeper:
    return ClockKeeper(1000, lambda: WAIT_MAX_S)


def test_a_free_clock_is_leased_at_once() -> None:
    turn = ask(new(), A, 0.0).turn
    assert turn.lease > 0
    assert 0.0 == turn.wait_s


def test_a_leased_clock_is_leased_to_no_other_peer() -> None:
    keeper = new()
    ask(keeper, A, 0.0)
    turn = ask(keeper, B, 1.0).turn
    assert 0 == turn.lease
    assert turn.wait_s >= LEASE_S + REACHES_S - 1.0
    assert [A] == keeper.holders(CLOCK, 1.0)


def test_a_lease_that_is_not_given_back_lasts_until_no_request_of_it_is_on_its_way() -> None:
    keeper = new()
    ask(keeper, A, 0.0, delay_s=0.0)
    assert 0 == ask(keeper, B, LEASE_S + REACHES_S - 0.01).turn.lease
    assert ask(keeper, B, LEASE_S + REACHES_S).turn.lease


def test_after_a_lost_lease_the_clock_rests_for_the_delay_of_its_holder() -> None:
    keeper = new()
    ask(keeper, A, 0.0, delay_s=20.0)
    over = LEASE_S + REACHES_S
    assert 0 == ask(keeper, B, over).turn.lease
    assert 0 == ask(keeper, B, over + 18.9).turn.lease
    turn = ask(keeper, B, over + 19.5).turn
    assert turn.lease
    assert 0.5 == pytest.approx(turn.wait_s)


def test_a_lease_that_is_given_back_is_free_when_its_holder_says() -> None:
    keeper = new()
    lease = ask(keeper, A, 0.0).turn.lease
    ask(keeper, B, 0.5)
    answer = ask(keeper, A, 1.0, lease=lease, wants=False, ends=True, wait_s=0.8)
    assert (B,) == answer.next_peers
    turn = ask(keeper, B, 1.1).turn
    assert turn.lease
    assert 0.7 == pytest.approx(turn.wait_s)


def test_a_lease_of_a_former_owner_tells_how_long_the_clock_rests() -> None:
    keeper = new()
    assert 0 == ask(keeper, B, 0.0, rest_s=3.0).turn.lease
    ask(keeper, A, 1.0, lease=77, wants=False, ends=True, wait_s=20.0)
    assert 0 == ask(keeper, B, 4.0).turn.lease
    turn = ask(keeper, B, 20.5).turn
    assert turn.lease
    assert 0.5 == pytest.approx(turn.wait_s)


def test_a_request_under_way_by_a_lease_of_a_former_owner_keeps_the_clock() -> None:
    keeper = new()
    assert 0 == ask(keeper, B, 0.0, rest_s=3.0).turn.lease
    turn = ask(keeper, A, 2.0, lease=77, busy=True).turn
    assert turn.lease
    assert 0.0 == turn.wait_s
    assert [A] == keeper.holders(CLOCK, 4.0)
    ask(keeper, A, 5.0, lease=turn.lease, wants=False, ends=True)
    assert ask(keeper, B, 5.0).turn.lease


@pytest.mark.parametrize(("lease", "at"), [(0, 2.0), (77, 3.0)], ids=["without a number", "too late"])
def test_no_request_keeps_the_clock_that_cannot_be_of_a_former_owner(lease: int, at: float) -> None:
    keeper = new()
    assert 0 == ask(keeper, B, 0.0, rest_s=3.0).turn.lease
    assert 0 == ask(keeper, A, at, lease=lease, busy=True).turn.lease


def test_an_old_question_gives_no_new_lease_back() -> None:
    keeper = new()
    first = ask(keeper, A, 0.0).turn.lease
    second = ask(keeper, A, 3.0, lease=first).turn.lease
    assert second not in (0, first)
    ask(keeper, A, 3.1, lease=first, wants=False, ends=True)
    assert [A] == keeper.holders(CLOCK, 3.2)
    assert 0 == ask(keeper, B, 3.2).turn.lease


def test_a_peer_gives_no_lease_of_another_peer_back() -> None:
    keeper = new()
    lease = ask(keeper, A, 0.0).turn.lease
    ask(keeper, B, 0.1, lease=lease, wants=False, ends=True)
    assert [A] == keeper.holders(CLOCK, 0.2)


def test_a_holder_without_its_number_waits_as_any_other_peer() -> None:
    keeper = new()
    ask(keeper, A, 0.0)
    assert 0 == ask(keeper, A, 1.0).turn.lease


def test_a_holder_goes_on_while_no_other_peer_waits() -> None:
    keeper, lease = new(), 0
    for look in range(10):
        lease = ask(keeper, A, 3.0 * look, lease=lease).turn.lease
        assert lease
    ask(keeper, B, 28.0)
    assert 0 == ask(keeper, A, 30.0, lease=lease).turn.lease


def test_requests_under_way_keep_the_clock_from_peers_that_wait_but_not_for_ever() -> None:
    keeper = new()
    lease = ask(keeper, A, 0.0).turn.lease
    now = 0.0
    while lease:
        now += 3.0
        ask(keeper, B, now)
        lease = ask(keeper, A, now, lease=lease, busy=True).turn.lease
    assert clock_keeper.BUSY_MAX_S <= now < clock_keeper.BUSY_MAX_S + 6.0


def test_peers_that_wait_have_their_turns_in_the_order_of_their_questions() -> None:
    keeper = new()
    lease = ask(keeper, A, 0.0).turn.lease
    ask(keeper, B, 0.1)
    ask(keeper, C, 0.2)
    answer = ask(keeper, A, 1.0, lease=lease, ends=True)  # It wants more, and is the last by now.
    assert 0 == answer.turn.lease
    assert (B,) == answer.next_peers
    assert 0 == ask(keeper, C, 1.1).turn.lease
    assert ask(keeper, B, 1.2).turn.lease


def test_a_peer_that_does_not_come_when_told_loses_its_place() -> None:
    keeper = new()
    lease = ask(keeper, A, 0.0).turn.lease
    ask(keeper, B, 0.1)
    ask(keeper, C, 0.2)
    ask(keeper, A, 1.0, lease=lease, wants=False, ends=True)
    assert ask(keeper, C, 1.0 + clock_keeper.TOLD_S).turn.lease


def test_a_dead_peer_that_is_next_keeps_the_clock_from_the_others_for_a_moment_only() -> None:
    keeper = new()
    lease = ask(keeper, A, 0.0).turn.lease
    ask(keeper, B, 0.1)
    ask(keeper, C, 0.2)
    assert (B,) == ask(keeper, A, 1.0, lease=lease, wants=False, ends=True).next_peers
    granted_at = 1.0
    while not ask(keeper, C, granted_at).turn.lease:
        granted_at += 0.5
        assert granted_at < 1.0 + 2 * clock_keeper.TOLD_S, "the dead peer has more time with each question of another"


def test_a_clock_that_a_new_owner_does_not_know_rests() -> None:
    keeper = new()
    assert 0 == ask(keeper, A, 0.0, rest_s=9.0).turn.lease
    assert 0 == ask(keeper, A, 7.9).turn.lease
    assert ask(keeper, A, 8.5).turn.lease


def test_a_clock_is_not_known_after_its_cell_was_closed() -> None:
    keeper = new()
    ask(keeper, A, 0.0)
    assert keeper.knows(CLOCK, 1)
    assert not keeper.knows(CLOCK, 2)
    assert 0 == ask(keeper, B, 0.1, opening=2, rest_s=9.0).turn.lease


def test_seconds_beyond_the_longest_delay_are_not_believed() -> None:
    keeper = new()
    lease = ask(keeper, A, 0.0, delay_s=86_400.0).turn.lease
    ask(keeper, A, 1.0, lease=lease, wants=False, ends=True, wait_s=86_400.0)
    assert ask(keeper, B, 1.0 + WAIT_MAX_S).turn.lease


def test_a_peer_has_a_limit_of_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_keeper, "LEASES_PER_PEER_MAX", 2)
    keeper = new()
    leases = [ask(keeper, A, 0.0, clock=f"ip 192.0.2.{number}").turn.lease for number in range(3)]
    assert [True, True, False] == [lease > 0 for lease in leases]
    assert ask(keeper, B, 0.0, clock="ip 192.0.2.9").turn.lease
    ask(keeper, A, 0.1, clock="ip 192.0.2.0", lease=leases[0], wants=False, ends=True)
    assert ask(keeper, A, 0.2, clock="ip 192.0.2.7").turn.lease


def test_a_full_table_takes_new_clocks_once_others_are_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_keeper, "CLOCKS_KEPT_MAX", 2)
    keeper = new()
    for number in range(2):
        ask(keeper, A, 0.0, clock=f"ip 192.0.2.{number}", delay_s=0.0)
    turn = ask(keeper, A, 0.0, clock="ip 192.0.2.2").turn
    assert (0, clock_keeper.FULL_WAIT_S) == (turn.lease, turn.wait_s)
    assert ask(keeper, A, LEASE_S + REACHES_S, clock="ip 192.0.2.2").turn.lease
    assert 1 == len(keeper)


def test_peers_that_wait_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_keeper, "WAITING_MAX", 1)
    keeper = new()
    ask(keeper, A, 0.0)
    ask(keeper, B, 0.1)
    assert clock_keeper.FULL_WAIT_S == ask(keeper, C, 0.2).turn.wait_s


def test_names_of_clocks_are_those_of_no_site() -> None:
    assert "ip 192.0.2.1" == ip_clock("::ffff:192.0.2.1")
    assert "2001:db8::1" == plain_address("2001:DB8:0::1%eth0")
    assert is_clock(host_clock("example.org:8080"))
    assert not is_clock("example.org")


@dataclass
class Requests:
    """Peers that ask as honest holders do, and make requests whenever a lease lets them."""

    keeper: ClockKeeper = field(default_factory=new)
    leases: dict[bytes, tuple[int, float, float]] = field(default_factory=dict)
    """Peer -> (number, second of its end, second of the next request)."""
    arrived: list[float] = field(default_factory=list)

    def ask(self, peer: bytes, now: float, answer_s: float, delay_s: float, *, heard: bool) -> None:
        number, until, next_at = self.leases.get(peer, (0, 0.0, 0.0))
        ends = bool(number) and now >= until
        answer = ask(self.keeper, peer, now, lease=number, ends=ends, wait_s=max(0.0, next_at - now), delay_s=delay_s)
        if not heard or ends:
            self.leases.pop(peer, None)
        if heard and answer.turn.lease:
            sent_at = now - answer_s / 2
            begins = max(next_at if number else 0.0, now + answer_s / 2 + answer.turn.wait_s)
            self.leases[peer] = answer.turn.lease, sent_at + LEASE_S, begins

    def request(self, peer: bytes, now: float, way_s: float, delay_s: float) -> None:
        number, until, next_at = self.leases.get(peer, (0, 0.0, 0.0))
        if number and next_at <= now < until:
            self.arrived.append(now + way_s)
            self.leases[peer] = number, until, now + way_s + delay_s


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([A, B, C]),
            st.sampled_from(["ask", "ask", "request", "request", "lost", "die"]),
            st.floats(0.0, 4.0),
            st.floats(0.0, 0.5),
        ),
        max_size=80,
    )
)
def test_no_two_requests_are_closer_than_the_delay_whatever_is_lost(
    steps: list[tuple[bytes, str, float, float]],
) -> None:
    world, now, delay_s = Requests(), 0.0, 1.0
    for peer, what, pause_s, way_s in steps:
        now += pause_s
        match what:
            case "ask" | "lost":
                world.ask(peer, now, way_s, delay_s, heard=what == "ask")
            case "request":
                world.request(peer, now, way_s, delay_s)
            case "die":
                world.leases.pop(peer, None)
    spaced = sorted(world.arrived)
    assert all(later - earlier >= delay_s - 1e-9 for earlier, later in pairwise(spaced))


@pytest.mark.parametrize("seed", range(60))
def test_a_site_is_asked_again_soon_whoever_dies_while_it_waits(seed: int) -> None:
    """Some peers die. The others ask when their clocks are due, and hear that the clock is free, or do not."""
    random = Random(seed)
    dead, spread_s, delay_s = random.randint(1, 3), random.choice([1.0, 5.0, 20.0]), random.choice([0.1, 0.3, 1.0, 3.0])
    wants, hears = random.choice([1.0, 0.3, 0.05]), random.choice([1.0, 0.5, 0.0])
    keeper, pace = new(), Pace(delay_s, 1, is_known=True)
    clocks = {bytes([number]) * 20: SharedClock(CLOCK) for number in range(random.randint(dead + 1, 12))}
    begins = {peer: random.uniform(0.0, spread_s) for peer in clocks}
    dies = {peer: random.uniform(0.0, spread_s + 5.0) for peer in list(clocks)[:dead]}
    asked_at = spread_s
    for tick in range(600):
        now = tick * 0.2
        for peer, clock in clocks.items():
            if not begins[peer] <= now < dies.get(peer, inf):
                continue
            if not clock.is_waiting("a.test") and random.random() < wants:
                clock.wait("a.test", pace)
            if clock.may_send(now) and clock.next_site(now) is not None and clock.may_begin("a.test", pace, now):
                clock.begin("a.test", pace)
                clock.end(now + delay_s)
                asked_at = max(asked_at, now)
            if (question := clock.question(now)) is not None:
                answer = keeper.answer(peer, question, 1, 0.0, now)
                clock.heard(answer.turn, now, now)
                for other in answer.next_peers:
                    if random.random() < hears:
                        clocks[other].is_free_now(now)
        assert now < asked_at + SILENCE_MAX_S


HOST = "host a.test"


def shared(most: int = 4) -> tuple[ClockKeeper, int]:
    """Return a keeper, and the lease of A, which has one connection of a host without a delay."""
    keeper = new()
    lease = ask(keeper, A, 0.0, clock=HOST, delay_s=0.0).turn.lease
    turn = ask(keeper, A, 0.1, lease=lease, clock=HOST, delay_s=0.0, in_flight=1, most=most).turn
    assert 1 == turn.connections
    return keeper, turn.lease


def test_a_host_is_shared_out_once_its_robots_txt_has_been_read() -> None:
    keeper = new()
    first = ask(keeper, A, 0.0, clock=HOST, delay_s=0.0, needs=3).turn
    assert ALL_CONNECTIONS == first.connections
    assert not ask(keeper, B, 0.1, clock=HOST, delay_s=0.0).turn.lease, "its delay is not known yet"
    answer = ask(keeper, A, 0.2, lease=first.lease, clock=HOST, delay_s=0.0, in_flight=1, needs=2, most=4)
    assert (B,) == answer.next_peers
    assert ask(keeper, B, 0.3, clock=HOST, delay_s=0.0).turn.connections
    assert [A, B] == keeper.holders(HOST, 0.3)


def test_the_shares_of_a_host_are_no_more_than_its_connections() -> None:
    keeper, _ = shared()
    found = [ask(keeper, bytes([n]) * 20, 0.2, clock=HOST, delay_s=0.0, needs=9).turn.connections for n in range(6)]
    assert 1 + sum(found) == 4
    assert 0 == found[-1]


def test_the_clock_of_an_address_is_not_shared_out() -> None:
    keeper = new()
    lease = ask(keeper, A, 0.0, delay_s=0.0).turn.lease
    ask(keeper, A, 0.1, lease=lease, delay_s=0.0, in_flight=1, most=4)
    assert not ask(keeper, B, 0.2, delay_s=0.0).turn.lease, "other sites of the address may have a delay"


def test_a_holder_gives_back_what_it_does_not_need_and_shares_with_peers_that_wait() -> None:
    keeper, lease = shared()
    lease = ask(keeper, A, 0.7, lease=lease, clock=HOST, delay_s=0.0, in_flight=1, needs=4, most=4).turn.lease
    turn = ask(keeper, A, 1.3, lease=lease, clock=HOST, delay_s=0.0, in_flight=2, needs=4, most=4).turn
    assert 3 == turn.connections
    turn = ask(keeper, A, 1.9, lease=turn.lease, clock=HOST, delay_s=0.0, in_flight=3, needs=4, most=4).turn
    assert 4 == turn.connections
    assert not ask(keeper, B, 2.0, clock=HOST, delay_s=0.0).turn.lease
    turn = ask(keeper, A, 2.1, lease=turn.lease, clock=HOST, delay_s=0.0, in_flight=4, needs=9, most=4).turn
    assert 2 == turn.connections
    assert not ask(keeper, B, 2.2, clock=HOST, delay_s=0.0).turn.lease, "four requests are under way"
    answer = ask(keeper, A, 2.6, lease=turn.lease, clock=HOST, delay_s=0.0, in_flight=2, needs=9, most=4)
    assert (B,) == answer.next_peers
    assert ask(keeper, B, 2.7, clock=HOST, delay_s=0.0).turn.connections


def test_a_share_of_a_dead_peer_comes_back() -> None:
    keeper, _ = shared(2)
    assert ask(keeper, B, 0.2, clock=HOST, delay_s=0.0).turn.connections
    assert not ask(keeper, C, 0.3, clock=HOST, delay_s=0.0).turn.lease
    assert ask(keeper, C, 0.2 + LEASE_S + REACHES_S, clock=HOST, delay_s=0.0).turn.connections


def test_a_host_that_turns_out_to_have_a_delay_is_leased_to_one_peer_again() -> None:
    keeper, lease = shared()
    other = ask(keeper, B, 0.2, clock=HOST, delay_s=0.0).turn.lease
    ask(keeper, A, 0.3, lease=lease, clock=HOST, ends=True, most=1)
    turn = ask(keeper, B, 0.4, lease=other, clock=HOST, delay_s=0.0, in_flight=1, most=4).turn
    assert (True, 0) == (bool(turn.lease), turn.connections), "it ends its request, and begins no other"
    assert not ask(keeper, A, 0.5, clock=HOST, most=1).turn.lease
    answer = ask(keeper, B, 0.6, lease=turn.lease, clock=HOST, wants=False, ends=True, delay_s=0.0)
    assert (A,) == answer.next_peers
    assert ALL_CONNECTIONS == ask(keeper, A, 0.7, clock=HOST, most=1).turn.connections


@pytest.mark.parametrize("connections", [4, 1])
def test_a_site_that_must_be_asked_alone_gets_a_shared_host_before_its_robots_txt_is_read(connections: int) -> None:
    """Its delay may be of rules that are too old by now, or of an order that was lifted, and other peers know none."""
    keeper, lease = shared()
    clock, pace = SharedClock(HOST), Pace(60.0 if connections > 1 else 0.0, connections)
    clock.wait("a.test", pace)
    for tick in range(20):
        now = 0.2 + tick / 10
        if (question := clock.question(now)) is not None:
            clock.heard(keeper.answer(B, question, 1, 0.0, now).turn, now, now)
        if tick == 5:
            ask(keeper, A, now, lease=lease, clock=HOST, wants=False, ends=True, delay_s=0.0, most=4)
            clock.is_free_now(now)
        if clock.next_site(now) is not None:
            break
    assert clock.may_begin("a.test", pace, now)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([A, B, C]),
            st.sampled_from(["ask", "ask", "ask", "request", "request", "request", "lost", "die"]),
            st.floats(0.0, 0.5),
            st.floats(0.5, 2.5),
        ),
        min_size=20,
        max_size=120,
    )
)
def test_a_host_never_has_more_requests_under_way_than_connections_whatever_is_lost(
    steps: list[tuple[bytes, str, float, float]],
) -> None:
    pace, now, serial = Pace(0.0, 3, is_known=True), 0.0, 0
    keeper, clocks = new(), {peer: SharedClock(HOST) for peer in (A, B, C)}
    under_way: list[tuple[float, SharedClock]] = []
    for peer, what, pause_s, takes_s in steps:
        now += pause_s
        for over in [one for one in under_way if one[0] <= now]:
            over[1].end(over[0])
            under_way.remove(over)
        clock = clocks[peer]
        match what:
            case "ask" | "lost":
                if (question := clock.question(now)) is not None:
                    turn = keeper.answer(peer, question, 1, 0.0, now).turn
                    clock.heard(turn, now, now) if what == "ask" else clock.unheard(now)
            case "request":
                for _ in range(3):
                    serial += 1
                    site = clock.next_site(now) or serial
                    if clock.may_begin(site, pace, now) and clock.may_send(now):
                        clock.begin(site, pace)
                        under_way.append((now + takes_s, clock))
                    else:
                        clock.wait(site, pace)
            case "die":
                clocks[peer] = SharedClock(HOST)
        assert len(under_way) <= 3
