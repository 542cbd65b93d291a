"""The words in which a person reads the standing orders of a swarm.

Tests: tests/cli/commands/test_site.py
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kadcrawl.link.wire.order_messages import StandingOrder

if TYPE_CHECKING:  # The summary of a crawl at rest loads nothing of a peer.
    from kadcrawl.peer.swarm.given_order import GivenOrder

SITES_SHOWN = 3
"""Paused sites that a line of the status names."""


def lines(orders: "Sequence[GivenOrder]") -> list[str]:
    """Return a line for each order that stands, the latest first."""
    if not orders:
        return ["no order about a site stands"]
    return [f"{order}, by {order.user or '?'} at {_when(order.given_at)} (peer {order.peer[:8]})" for order in orders]


def paused_line(orders: Sequence[StandingOrder]) -> str | None:
    """Return the sentence on the sites that an order keeps paused, or None without any."""
    paused = [order.about for order in orders if order.kind == "pause" and order.value]
    if not paused:
        return None
    more = f" and {len(paused) - SITES_SHOWN} more" if len(paused) > SITES_SHOWN else ""
    sites, they = ("site", "its") if len(paused) == 1 else ("sites", "their")
    return (
        f"{len(paused)} {sites} paused by order, {they} URLs stay pending: {', '.join(paused[:SITES_SHOWN])}{more} "
        "(kadcrawl site resume SITE)"
    )


def changed_lines(orders: Sequence[StandingOrder]) -> list[str]:
    """Return a sentence for each setting that a person has changed."""
    from kadcrawl.peer.swarm.given_order import GivenOrder

    given = [GivenOrder.of(order) for order in orders if order.kind == "set" and order.stands]
    return [
        f"{one} by order of {one.user or '?'} at {_when(one.given_at)} (kadcrawl set {one.about} default lifts it)"
        for one in given
    ]


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
