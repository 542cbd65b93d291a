"""Standing orders merge alike everywhere, the later of two counts, and they are bounded."""

from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given, strategies as st

from kadcrawl import ConfigError
from kadcrawl.link.wire.messages import COUNT_MAX
from kadcrawl.link.wire.order_messages import STANDING_ORDERS_MAX, StandingOrder
from kadcrawl.peer.swarm.standing_orders import (
    DELAY_MOST_S,
    StandingOrders,
    read_standing_orders,
    write_standing_orders,
)
from kadcrawl.peer.swarm.swarm_state import AHEAD_MAX_S
from kadcrawl.store.store import Store

NOW = 1.8e9
PEER, OTHER = bytes(20), bytes([1] * 20)
SITES = ["a.example", "b.example", "*.example"]
ORDERS = st.builds(
    StandingOrder,
    st.sampled_from(["pause", "delay"]),
    st.sampled_from(SITES),
    st.none() | st.sampled_from([0.0, -0.0, 1.0, 7.5]) | st.floats(0, COUNT_MAX),
    st.integers(0, 9) | st.integers(0, COUNT_MAX),
    st.sampled_from([PEER, OTHER]),
    st.sampled_from(["", "ann"]),
)


def pause(site: str, stamp: int, value: float | None = 1.0) -> StandingOrder:
    return StandingOrder("pause", site, value, stamp)


def heard(*orders: StandingOrder) -> StandingOrders:
    known = StandingOrders()
    for order in orders:
        known.hear([order], NOW)
    return known


@given(st.lists(ORDERS, max_size=8).flatmap(lambda said: st.tuples(st.just(said), st.permutations(said))))
def test_all_come_to_the_same_in_whatever_order_they_hear(orders: tuple[list[StandingOrder], ...]) -> None:
    one, other = orders
    assert heard(*one).to_wire() == heard(*other).to_wire() == heard(*one, *other, *one).to_wire()
    assert heard(*one).fingerprint() == heard(*other).fingerprint()


@given(st.lists(ORDERS, max_size=6), st.lists(ORDERS, max_size=6), st.lists(ORDERS, max_size=6))
def test_merging_is_associative(one: list[StandingOrder], two: list[StandingOrder], three: list[StandingOrder]) -> None:
    left, right = heard(*one), heard(*two)
    left.hear(two, NOW)
    left.hear(three, NOW)
    right.hear(three, NOW)
    right.hear(heard(*one).to_wire(), NOW)
    assert left.to_wire() == right.to_wire()


@given(st.integers(0, 2**64))
def test_all_forget_the_same_orders_beyond_the_limit(seed: int) -> None:
    stamps = Random(seed).sample(range(STANDING_ORDERS_MAX + 3), STANDING_ORDERS_MAX + 3)
    known = heard(*(pause(f"{stamp}.example", stamp) for stamp in stamps))
    assert list(range(STANDING_ORDERS_MAX + 2, 2, -1)) == [order.stamp for order in known.to_wire()]


def test_values_come_in_the_same_order_whatever_was_heard_first() -> None:
    first, second = pause("b.example", 5), pause("a.example", 6)
    for orders in ((first, second), (second, first)):
        assert ["a.example", "b.example"] == list(heard(*orders).values("pause"))
        assert ["a.example", "b.example"] == list(heard(*orders).stamps("pause"))


def test_a_lifted_order_does_not_come_back_with_a_late_peer() -> None:
    known = heard(pause("a.example", 5), pause("a.example", 6, None))
    assert [] == known.hear([pause("a.example", 5)], NOW)
    assert [] == known.in_force
    assert 1 == len(known)


def test_an_order_is_news_once() -> None:
    known = StandingOrders()
    assert [pause("a.example", 5)] == known.hear([pause("a.example", 5)], NOW)
    assert [] == known.hear([pause("a.example", 5), pause("a.example", 4, None)], NOW)


def test_an_order_is_later_than_all_known_whatever_the_clock_says() -> None:
    known = heard(pause("a.example", 1_810_000_000_000))
    [order] = known.give([pause("a.example", 0, None)], OTHER, NOW)
    assert (1_810_000_000_001, OTHER) == (order.stamp, order.peer)
    [again] = known.give([pause("a.example", 0)], OTHER, NOW)
    assert again.stamp > order.stamp, "the first is on its way"


def test_nobody_uses_up_the_stamps_of_later_orders() -> None:
    known = heard(pause("a.example", COUNT_MAX))
    assert int((NOW + AHEAD_MAX_S) * 1000) > known.latest > NOW
    known.hear(known.give([pause("a.example", 0, None)], PEER, NOW), NOW)
    assert [] == known.in_force


def test_a_wide_order_lifts_the_narrow_ones_below_it() -> None:
    known = heard(pause("a.b.example", 1, 0.0), pause("b.example:81", 2), pause("c.example", 3))
    given = known.give([pause("*.b.example", 0)], PEER, NOW)
    known.hear(given, NOW)
    assert {"*.b.example": 1.0, "c.example": 1.0} == known.values("pause")


def test_a_site_goes_on_although_its_domain_is_paused() -> None:
    known = heard(pause("*.b.example", 1))
    [order] = known.give([pause("a.b.example", 0, None)], PEER, NOW)
    assert 0.0 == order.value
    [order] = known.give([pause("a.c.example", 0, None)], PEER, NOW)
    assert order.value is None


def test_a_delay_of_more_than_a_day_is_refused_and_never_taken() -> None:
    known = StandingOrders()
    with pytest.raises(ConfigError, match="pause it"):
        known.give([StandingOrder("delay", "a.example", DELAY_MOST_S + 1.0)], PEER, NOW)
    known.hear([StandingOrder("delay", "a.example", DELAY_MOST_S + 1.0, 1)], NOW)
    assert {"a.example": DELAY_MOST_S} == known.values("delay")


def test_no_order_that_stands_is_forgotten_for_a_new_one() -> None:
    known = heard(*(pause(f"{stamp}.example", stamp) for stamp in range(1, STANDING_ORDERS_MAX + 1)))
    with pytest.raises(ConfigError, match="lift some"):
        known.give([pause("a.example", 0)], PEER, NOW)
    known.hear(known.give([pause("1.example", 0, None)], PEER, NOW), NOW)
    known.hear([pause("2.example", 1_810_000_000_000, None)], NOW)
    assert known.give([pause("3.example", 0, None)], PEER, NOW), "a known site needs no room"


def test_the_orders_outlive_the_process(tmp_path: Path) -> None:
    store, orders = Store(tmp_path, 0.0), heard(pause("a.example", 5), StandingOrder("delay", "b.example", 3.0, 6))
    write_standing_orders(store, orders)
    assert orders.to_wire() == read_standing_orders(store)
    store.meta.set("orders", msgspec.msgpack.encode("damaged"))
    with pytest.raises(Exception, match="orders"):
        read_standing_orders(store)
    store.close()
