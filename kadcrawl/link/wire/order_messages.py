"""Messages by which a person steers a running swarm: orders that stand until another order takes their place.

The orders merge as a part of the swarm state (peer/swarm/standing_orders.py).

Tests: tests/link/wire/test_messages.py
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from kadcrawl.link.wire.basics import COUNT_MAX, PRINTABLE, Count, IdBytes, Message

STANDING_ORDERS_MAX = 500
"""Orders that a swarm remembers, lifted ones included. Beyond that, it forgets the oldest."""
ABOUT_CHARS_MAX = 500
"""Characters of the site or pattern that an order is about."""
USER_CHARS_MAX = 40
"""Characters of the name of the person who gives an order."""

OrderKind = Literal["pause", "delay", "exclude", "drop", "set", "scope"]
"""The kinds of standing orders: a site is paused, has at least this delay, is left out of the crawl, or loses the URLs
that are pending where the order arrives, a setting of the job has another value, or URLs come into the scope or
leave it.
"""
MOMENTARY: frozenset[OrderKind] = frozenset({"drop"})
"""The kinds of orders that say something about the moment of their arrival, and nothing about the time after it."""
Text = Annotated[str, Meta(min_length=1, max_length=ABOUT_CHARS_MAX)]
UserName = Annotated[str, Meta(max_length=USER_CHARS_MAX, pattern=PRINTABLE)]


class StandingOrder(Struct, frozen=True, array_like=True):
    """An order that stands until a later order of the same kind about the same takes its place."""

    kind: OrderKind
    """What the order says about the sites."""
    about: Text
    """The match of sites that the order is about (settings/host_matches.py), the name of a setting, or hosts or a
    pattern of the scope (settings/scope_orders.py).
    """
    value: Annotated[float, Meta(ge=0, le=COUNT_MAX)] | None
    """1 to pause, exclude, drop or add and 0 to except or remove, the least seconds between two requests, or the value
    of a setting. None lifts it.
    """
    stamp: Count = 0
    """The giver's clock in milliseconds since 1970, but later than all standing orders known there."""
    peer: IdBytes = bytes(20)
    """The peer that was asked to give the order."""
    user: UserName = ""
    """The name of the person on the machine of the command, as told."""

    @property
    def stands(self) -> bool:
        """True if the order says something about the time after its arrival, and is not lifted."""
        return self.value is not None and self.kind not in MOMENTARY


class Steer(Message, frozen=True):
    """Standing orders by wave. A repeat changes nothing."""

    orders: Annotated[list[StandingOrder], Meta(max_length=STANDING_ORDERS_MAX)]
    """The orders with their stamps."""


class GiveOrders(Message, frozen=True):
    """A command gives standing orders. Answered by OrdersGiven. A repeat gives them anew, with a later stamp."""

    orders: Annotated[list[StandingOrder], Meta(min_length=1, max_length=STANDING_ORDERS_MAX)]
    """The orders without stamps: the asked peer gives the stamps and its ID."""


class OrdersGiven(Message, frozen=True):
    """The answer to GiveOrders: the orders are on the disk of the asked peer, and travel."""

    parts_missing: Count
    """Parts of the swarm that did not answer. They hear of the orders when they can be reached."""
    dropped: Count = 0
    """URLs that an order to drop has ended so far."""
    cells_left: Count = 0
    """Cells in which URLs are still being dropped."""
