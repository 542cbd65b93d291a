"""Orders to retry merge alike everywhere, apply to older failures only, and are bounded."""

import pytest
from hypothesis import given, strategies as st

from kadcrawl.keys import Key
from kadcrawl.link.wire.messages import COUNT_MAX
from kadcrawl.link.wire.retry_messages import RETRY_ORDERS_MAX, RetryOrder
from kadcrawl.peer.swarm.retry_orders import RetryOrders
from kadcrawl.peer.swarm.swarm_state import AHEAD_MAX_S
from kadcrawl.store.visit import Visit

NOW = 1.8e9
ORDERS = st.builds(
    RetryOrder,
    st.integers(0, 9) | st.integers(0, COUNT_MAX),
    st.sampled_from([(), ("dns",), ("http_503",)]),
    st.sampled_from(["", "a.example"]),
    st.sampled_from(["", "http://a.example/"]),
)


def failed(reason: str = "http_503", url: str = "http://www.a.example/1", order: int = 0) -> Visit:
    return Visit(Key(bytes(20)), "www.a.example", url, 0, None, 9.0, "", "", "", "", 0, reason, order)


def heard(*orders: RetryOrder) -> RetryOrders:
    known = RetryOrders()
    for order in orders:
        known.hear([order], NOW)
    return known


@given(st.lists(ORDERS, max_size=8).flatmap(lambda said: st.tuples(st.just(said), st.permutations(said))))
def test_all_come_to_the_same_in_whatever_order_they_hear(orders: tuple[list[RetryOrder], ...]) -> None:
    one, other = orders
    assert heard(*one).to_wire() == heard(*other).to_wire() == heard(*one, *other, *one).to_wire()
    assert heard(*one).fingerprint() == heard(*other).fingerprint()


def test_an_order_is_news_once() -> None:
    known, order = RetryOrders(), RetryOrder(5, ("dns",))
    assert [True, False, False] == [known.hear([one], NOW) for one in (order, order, RetryOrder(4, ("dns",)))]
    assert known.hear([RetryOrder(6, ("dns",))], NOW)
    assert [RetryOrder(6, ("dns",))] == known.to_wire(), "the later order takes the place of the same order"


def test_an_order_for_everything_replaces_all_earlier_orders() -> None:
    known = heard(RetryOrder(5, ("dns",)), RetryOrder(7, site="a.example"), RetryOrder(6))
    assert [RetryOrder(7, site="a.example"), RetryOrder(6)] == known.to_wire()


@pytest.mark.parametrize(("order", "applies"), [(0, True), (7, True), (8, False), (9, False)])
def test_an_order_applies_to_older_failures_only(order: int, applies: bool) -> None:
    assert applies == bool(heard(RetryOrder(8)).applying(failed(order=order)))


@pytest.mark.parametrize(
    ("order", "applies"),
    [
        (RetryOrder(1, ("dns", "http_503")), True),
        (RetryOrder(1, ("dns",)), False),
        (RetryOrder(1, site="www.a.example"), True),
        (RetryOrder(1, site="a.example"), True),
        (RetryOrder(1, site="b.a.example"), False),
        (RetryOrder(1, url="http://www.a.example/1"), True),
        (RetryOrder(1, url="http://www.a.example/2"), False),
        (RetryOrder(1, ("dns",), "a.example"), False),
    ],
)
def test_an_order_is_narrowed_down(order: RetryOrder, applies: bool) -> None:
    assert applies == bool(heard(order).applying(failed()))


def test_a_rare_status_is_wanted_by_its_own_name_and_as_it_is_counted() -> None:
    for reason in ("http_599", "http_5xx"):
        assert heard(RetryOrder(1, (reason,))).applying(failed("http_599"))


def test_a_new_order_is_later_than_all_known_orders_and_than_the_clock() -> None:
    known = RetryOrders()
    first = known.order(RetryOrder(0), NOW)
    assert NOW * 1000 == first.stamp
    known.hear([first], NOW)
    assert first.stamp + 1 == known.order(RetryOrder(0), NOW - 60).stamp
    assert ("dns", "tls") == known.order(RetryOrder(0, ("tls", "dns", "tls")), NOW).reasons


def test_nobody_uses_up_what_later_orders_need() -> None:
    known = heard(RetryOrder(COUNT_MAX))
    assert (NOW + AHEAD_MAX_S) * 1000 == known.latest < known.order(RetryOrder(0), NOW).stamp <= COUNT_MAX


def test_the_oldest_orders_beyond_the_limit_are_forgotten() -> None:
    known = heard(*(RetryOrder(number, site=f"{number}.example") for number in range(1, RETRY_ORDERS_MAX + 2)))
    stamps = [order.stamp for order in known.to_wire()]
    assert [*range(RETRY_ORDERS_MAX + 1, 1, -1)] == stamps
