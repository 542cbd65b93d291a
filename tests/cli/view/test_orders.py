"""Test the words in which a person reads the standing orders of a swarm."""

import json

import pytest

from kadcrawl.cli.view.orders import lines, order_lines, paused_line
from kadcrawl.cli.view.summary import add_up
from kadcrawl.link.wire.basics import COUNT_MAX
from kadcrawl.link.wire.given_order import GivenOrder, orders_in_force, silent_parts
from kadcrawl.link.wire.order_messages import OrderKind, StandingOrder
from kadcrawl.settings.job import Job

AT = "at 1970-01-01 00:00:00 UTC"


def given(kind: OrderKind, about: str, value: float, stamp: int = 0, user: str = "") -> GivenOrder:
    return GivenOrder.of(StandingOrder(kind, about, value, stamp, bytes(20), user))


def test_orders_are_listed_in_words() -> None:
    orders = [
        given("pause", "a.example", 1.0, user="ann"),
        given("pause", "b.example", 0.0, 1_000),
        given("delay", "c.example", 2.5),
        given("delay", "d.example", 0.0),
    ]
    assert [
        "a.example is paused, by ann at 1970-01-01 00:00:00 UTC (peer 00000000)",
        "b.example goes on, by ? at 1970-01-01 00:00:01 UTC (peer 00000000)",
        "c.example is left alone for 2.5 s after each request, by ? at 1970-01-01 00:00:00 UTC (peer 00000000)",
        "d.example has its own delay, by ? at 1970-01-01 00:00:00 UTC (peer 00000000)",
    ] == lines(orders)
    assert ["no order stands"] == lines([])


def test_parts_of_the_swarm_are_counted_in_words() -> None:
    assert "1 part of the swarm does not answer: it hears of it when it is back" == silent_parts(1)
    assert "2 parts of the swarm do not answer: they begin when they are back" == silent_parts(2, "begins", "begin")


@pytest.mark.parametrize(("count", "said"), [(1, "a0 ("), (3, "a0, a1, a2 ("), (5, "a0, a1, a2 and 2 more (")])
def test_a_line_names_the_first_paused_sites(count: int, said: str) -> None:
    line = paused_line([given("pause", f"a{number}", 1.0) for number in range(count)])
    assert line is not None
    assert said in line
    assert line.startswith(f"{count} site")
    assert paused_line([given("pause", "a", 0.0), given("delay", "a", 5.0)]) is None


def test_each_kind_of_order_has_a_line_with_its_remedy() -> None:
    orders = [
        given("pause", "a.example", 1.0),
        given("delay", "b.example", 90.0),
        given("delay", "c.example", 0.0),
        given("exclude", "d.example", 1.0),
        given("exclude", "e.example", 1.0),
        given("scope", "/calendar/", 0.0),
        given("set", "delay", 5.0, user="ann"),
        given("set", "max-bytes", 2_000_000.0),
    ]
    assert [
        "1 site paused by order, its URLs stay pending: a.example (kadcrawl site resume SITE)",
        "1 site slowed down by order: b.example (90s) (kadcrawl site slow SITE off lifts it)",
        "2 sites excluded by order: d.example, e.example (kadcrawl site include SITE lifts it)",
        "the scope changed by order: /calendar/ is out of scope (kadcrawl site ls)",
        f"delay is 5s by order of ann {AT} (kadcrawl set delay default lifts it)",
        f"max-bytes is 2 MB by order of ? {AT} (kadcrawl set max-bytes default lifts it)",
    ] == list(order_lines(orders))
    assert [] == list(order_lines([]))


def test_words_of_a_lying_peer_steer_no_terminal_and_tell_no_impossible_time() -> None:
    orders = [given("pause", "a\x1b[31m", 1.0, COUNT_MAX), given("set", "x\ny", 1.0, COUNT_MAX)]
    shown = [*lines(orders), *order_lines(orders)]
    assert all(line.isprintable() for line in shown)
    assert "9999-12-31" in shown[0]


def test_a_summary_has_the_latest_orders_of_all_its_peers() -> None:
    told = [
        StandingOrder("set", "delay", 5.0, 7, bytes(20), "ann"),
        StandingOrder("pause", "a.example", None, 9),
        StandingOrder("drop", "b.example", 1.0, 10),
        StandingOrder("set", "delay", 2.0, 6),
        StandingOrder("pause", "a.example", 1.0, 8),
        StandingOrder("pause", "c.example", 1.0, 5),
    ]
    figures = json.loads(json.dumps(add_up([], None, Job(), told).as_json()))
    assert {"delay": 5.0} == figures["changed_settings"]
    assert ["c.example"] == figures["paused_sites"]
    assert [("set", "delay", 5.0, 0.007, "ann"), ("pause", "c.example", 1.0, 0.005, "")] == [
        (one["kind"], one["about"], one["value"], one["given_at"], one["user"]) for one in figures["orders"]
    ]
    assert orders_in_force(told) == orders_in_force(reversed(told))
