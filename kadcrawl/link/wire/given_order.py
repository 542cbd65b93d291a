"""`GivenOrder`: a standing order as a program sees it, and the words in which a person reads it. A decision: no I/O.

Tests: tests/cli/view/test_orders.py
"""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from kadcrawl.link.wire.order_messages import OrderKind, StandingOrder
from kadcrawl.settings.job_changes import shown_value


@dataclass(frozen=True, slots=True)
class GivenOrder:
    """An order of a person that stands."""

    kind: OrderKind
    """`pause`, `delay`, `exclude`, `set` or `scope`."""
    about: str
    """The site that the order is about, a host, or `*.` and a domain for all its hosts. Or the name of a setting, or a
    pattern of the scope between slashes."""
    value: float
    """1 to pause or exclude a site or to bring it into the scope and 0 for the opposite, the least seconds between two
    requests, or the value of a setting."""
    given_at: float
    """Seconds since 1970 at which the order was given, by the clock of the asked peer."""
    peer: str
    """ID of the peer that was asked to give the order, 20 bytes in hex."""
    user: str
    """Name of the person, as told, or an empty text."""

    @classmethod
    def of(cls, order: StandingOrder) -> "GivenOrder":
        """Return an order that is not lifted as a program sees it."""
        assert order.value is not None, "a lifted order does not stand"
        return cls(order.kind, order.about, order.value, order.stamp / 1000, order.peer.hex(), order.user)

    def __str__(self) -> str:
        match self.kind:
            case "pause":
                return f"{self.about} is paused" if self.value else f"{self.about} goes on"
            case "exclude":
                return f"{self.about} is excluded" if self.value else f"{self.about} is included"
            case "scope":
                return f"{self.about} is {'in scope' if self.value else 'out of scope'}"
            case "set":
                return f"{self.about} is {shown_value(self.about, self.value)}"
            case "drop":
                return f"the pending URLs of {self.about} are dropped"
            case "delay":
                slow = f"{self.about} is left alone for {self.value:g} s after each request"
                return slow if self.value else f"{self.about} has its own delay"


def orders_in_force(told: Iterable[StandingOrder]) -> list[GivenOrder]:
    """Return the orders that stand among those of several peers, the latest first, each as in its latest form."""
    latest: dict[tuple[str, str], StandingOrder] = {}
    for order in sorted(told, key=rank):
        latest[order.kind, order.about] = order
    return [GivenOrder.of(order) for order in sorted(latest.values(), key=rank, reverse=True) if order.stands]


def silent_parts(parts: int, does: str = "hears of it", do: str = "hear of it") -> str:
    """Return the sentence on parts of the swarm that have not heard an order. `does` and `do` say how they go on."""
    if parts == 1:
        return f"1 part of the swarm does not answer: it {does} when it is back"
    return f"{parts} parts of the swarm do not answer: they {do} when they are back"


def rank(order: StandingOrder) -> tuple[int, bytes]:
    """Return a key by which all peers agree about which of two orders is the later."""
    return order.stamp, msgspec.msgpack.encode(order)
