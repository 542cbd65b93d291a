"""The orders to retry that one peer knows: which failed URLs are fetched again, and which order is the later.

The orders are part of the swarm state and merge as a map that only grows: of two orders for the same URLs (the same
reasons, site and URL) the later stamp counts. Stamps are a hybrid logical clock, as in swarm_state.py. A failure keeps
the stamp of the latest order that was known where the visit began (store/visit.py). So an order applies to failures
that are older than the order, and to each of them once, whichever peer owns the URL by then, and however often the
order arrives. A failure where the order had not been heard of counts as older, and so does a request under way.

This module only decides.
"""

from collections.abc import Iterable
from hashlib import blake2b

import msgspec

from kadcrawl.crawl.output.counters import counted_as
from kadcrawl.link.wire.messages import COUNT_MAX
from kadcrawl.link.wire.retry_messages import RETRY_ORDERS_MAX, RetryOrder
from kadcrawl.peer.swarm.swarm_state import AHEAD_MAX_S
from kadcrawl.store.store import Store
from kadcrawl.store.visit import Visit
from kadcrawl.urls import host_of, site_of

EVERYTHING = RetryOrder(0)
_ORDERS = msgspec.msgpack.Decoder(list[RetryOrder])


class RetryOrders:
    """The orders to retry that one peer knows."""

    def __init__(self) -> None:
        self._stamps: dict[RetryOrder, int] = {}
        """An order without its stamp -> its latest stamp."""
        self._given = 0
        """The latest stamp that was given here."""

    def __len__(self) -> int:
        return len(self._stamps)

    @property
    def latest(self) -> int:
        """The stamp of the latest order, or 0 without any."""
        return max(self._stamps.values(), default=0)

    def to_wire(self) -> list[RetryOrder]:
        """Return the orders, the latest first."""
        return self._in_order()

    def order(self, wanted: RetryOrder, now: float) -> RetryOrder:
        """Return this order with a stamp, at this second, that is later than all orders known here."""
        self._given = stamp = min(max(self.latest + 1, self._given + 1, _milliseconds(now)), COUNT_MAX)
        return msgspec.structs.replace(wanted, stamp=stamp, reasons=tuple(sorted({*wanted.reasons})))

    def hear(self, orders: Iterable[RetryOrder], now: float) -> bool:
        """Take over the orders of another peer, and return whether any of them is news."""
        before = dict(self._stamps)
        for order in orders:
            known = msgspec.structs.replace(order, stamp=0)
            stamp = min(order.stamp, _milliseconds(now + AHEAD_MAX_S))
            self._stamps[known] = max(stamp, self._stamps.get(known, 0))
        all_until = self._stamps.get(EVERYTHING, 0)
        kept = [order for order in self._in_order() if order.stamp >= all_until][:RETRY_ORDERS_MAX]
        self._stamps = {msgspec.structs.replace(order, stamp=0): order.stamp for order in kept}
        return self._stamps != before

    def applying(self, visit: Visit) -> list[int]:
        """Return the stamps of the orders by which a page, that failed at its last visit, is fetched again."""
        return [stamp for order, stamp in self._stamps.items() if stamp > visit.order and _is_wanted(order, visit)]

    def fingerprint(self) -> int:
        """Return a number of 32 bits that is the same for the same orders, 0 without any."""
        fingerprint = 0
        for order in self._in_order():
            fingerprint ^= int.from_bytes(blake2b(msgspec.msgpack.encode(order), digest_size=4).digest(), "big")
        return fingerprint

    def _in_order(self) -> list[RetryOrder]:
        orders = [msgspec.structs.replace(one, stamp=stamp) for one, stamp in self._stamps.items()]
        return sorted(orders, key=_age, reverse=True)


def read_orders(store: Store) -> list[RetryOrder]:
    """Return the orders that an earlier run has journaled."""
    return store.meta.read("retries", _ORDERS.decode) or []


def write_orders(store: Store, orders: RetryOrders) -> None:
    """Journal the orders."""
    store.meta.set("retries", msgspec.msgpack.encode(orders.to_wire()))


def _is_wanted(order: RetryOrder, visit: Visit) -> bool:
    if order.url and order.url != visit.url:
        return False
    if order.reasons and visit.failed not in order.reasons and counted_as(visit.failed) not in order.reasons:
        return False
    sites = (visit.site, host_of(visit.url), site_of(visit.url, "host"), site_of(visit.url, "domain"))
    return not order.site or order.site in sites


def _age(order: RetryOrder) -> tuple[int, bytes]:
    return order.stamp, msgspec.msgpack.encode(order)


def _milliseconds(now: float) -> int:
    return max(0, int(now * 1000))
