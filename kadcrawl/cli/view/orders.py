"""The words in which a person reads the standing orders of a swarm.

Tests: tests/cli/view/test_orders.py
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from kadcrawl.link.wire.given_order import GivenOrder
from kadcrawl.link.wire.order_messages import OrderKind
from kadcrawl.settings.durations import shown
from kadcrawl.system.printable import printable

SITES_SHOWN = 3
"""Sites, or changes of the scope, that a line names."""
LATEST = 253_402_300_799
"""The last second of the year 9999: a lying peer may tell later ones, which are no dates."""


def lines(orders: Sequence[GivenOrder]) -> list[str]:
    """Return a line for each order that stands, the latest first."""
    given = (f"{one}, by {one.user or '?'} at {_when(one)} (peer {one.peer[:8]})" for one in orders)
    return [*map(printable, given)] or ["no order stands"]


def order_lines(orders: Sequence[GivenOrder]) -> Iterator[str]:
    """Yield the few lines on the orders that stand: a line for each changed setting, and for each other kind."""
    if (paused := paused_line(orders)) is not None:
        yield paused
    if slowed := [f"{one.about} ({shown(one.value)})" for one in _of_kind(orders, "delay")]:
        yield f"{_sites(slowed)} slowed down by order: {_first(slowed)} (kadcrawl site slow SITE off lifts it)"
    if excluded := [one.about for one in _of_kind(orders, "exclude")]:
        yield f"{_sites(excluded)} excluded by order: {_first(excluded)} (kadcrawl site include SITE lifts it)"
    if changes := [f"{one}" for one in orders if one.kind == "scope"]:
        yield f"the scope changed by order: {_first(changes)} (kadcrawl site ls)"
    for one in orders:
        if one.kind == "set":
            how = f"kadcrawl set {one.about} default lifts it"
            yield printable(f"{one} by order of {one.user or '?'} at {_when(one)} ({how})")


def paused_line(orders: Sequence[GivenOrder]) -> str | None:
    """Return the sentence on the sites that an order keeps paused, or None without any."""
    paused = [one.about for one in _of_kind(orders, "pause")]
    if not paused:
        return None
    their = "its" if len(paused) == 1 else "their"
    return f"{_sites(paused)} paused by order, {their} URLs stay pending: {_first(paused)} (kadcrawl site resume SITE)"


def _of_kind(orders: Sequence[GivenOrder], kind: OrderKind) -> list[GivenOrder]:
    """Return the orders of a kind, without those that only make an exception of a site."""
    return [one for one in orders if one.kind == kind and one.value]


def _sites(sites: Sequence[str]) -> str:
    return f"{len(sites)} site{'s' if len(sites) != 1 else ''}"


def _first(named: Sequence[str]) -> str:
    more = f" and {len(named) - SITES_SHOWN} more" if len(named) > SITES_SHOWN else ""
    return printable(", ".join(named[:SITES_SHOWN])) + more


def _when(order: GivenOrder) -> str:
    return datetime.fromtimestamp(min(order.given_at, LATEST), UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
