"""`GivenOrder`: a standing order as a program sees it, and the words in which a person reads it.

Tests: tests/peer/test_site_orders.py
"""

from dataclasses import dataclass

from kadcrawl.link.wire.order_messages import OrderKind, StandingOrder
from kadcrawl.settings.job_changes import shown_value


@dataclass(frozen=True, slots=True)
class GivenOrder:
    """An order of a person that stands in a swarm."""

    kind: OrderKind
    """`pause`, `delay`, `exclude`, `set` or `scope`."""
    about: str
    """The site that the order is about, a host, or `*.` and a domain for all its hosts. Or the name of a setting."""
    value: float
    """1 to pause or exclude a site and 0 to except it, the least seconds between two requests, or the value of a
    setting."""
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
