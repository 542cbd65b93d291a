"""The standing orders that one peer knows: which sites a person has paused or slowed down in the running swarm.

The orders are part of the swarm state and merge as a map in which the last writer wins: of two orders of one kind about
the same, the later stamp counts. Stamps are a hybrid logical clock, as in swarm_state.py. A lifted order stays in the
map, so that an older one that arrives late does not come back. The map keeps the `STANDING_ORDERS_MAX` latest orders.
As stamps only grow, all peers forget the same orders, in whatever order they hear them.

This module only decides.
"""

from collections.abc import Iterable
from hashlib import blake2b

import msgspec

from kadcrawl.errors import ConfigError
from kadcrawl.link.wire.given_order import rank
from kadcrawl.link.wire.messages import COUNT_MAX
from kadcrawl.link.wire.order_messages import STANDING_ORDERS_MAX, OrderKind, StandingOrder
from kadcrawl.peer.swarm.swarm_state import AHEAD_MAX_S
from kadcrawl.settings.host_matches import lies_below, most_specific
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_changes import check_change
from kadcrawl.settings.scope_orders import subject_of
from kadcrawl.settings.steering import match_of
from kadcrawl.store.store import Store

DELAY_MOST_S = 86_400
"""Longest delay by an order, in seconds: that of a site rule."""
ROOM_MS = 3_600_000
"""A stamp that is too far ahead counts as so many milliseconds below the limit, so that later orders have room."""
_ORDERS = msgspec.msgpack.Decoder(list[StandingOrder])


class StandingOrders:
    """The standing orders that one peer knows."""

    def __init__(self) -> None:
        self._orders: dict[tuple[str, str], StandingOrder] = {}
        """(kind, site) -> the latest order."""
        self._given = 0
        """The latest stamp that was given here."""

    def __len__(self) -> int:
        return len(self._orders)

    @property
    def latest(self) -> int:
        """The stamp of the latest order, or 0 without any."""
        return max((order.stamp for order in self._orders.values()), default=0)

    def latest_of(self, kind: OrderKind) -> int:
        """Return the stamp of the latest order of a kind, or 0 without any."""
        return max((order.stamp for order in self._orders.values() if order.kind == kind), default=0)

    def to_wire(self) -> list[StandingOrder]:
        """Return the orders, lifted ones included, the latest first."""
        return sorted(self._orders.values(), key=rank, reverse=True)

    @property
    def in_force(self) -> list[StandingOrder]:
        """The orders that are not lifted, the latest first, without those that were over when they arrived."""
        return [order for order in self.to_wire() if order.stands]

    def stamps(self, kind: OrderKind) -> dict[str, int]:
        """Return the stamps of the orders of a kind that are not lifted, by what they are about, the latest first."""
        return {one.about: one.stamp for one in self.of_kind(kind) if one.value is not None}

    def values(self, kind: OrderKind) -> dict[str, float]:
        """Return the values of the orders of a kind that are not lifted, by what they are about, the latest first.

        A setting may have no meaning beside another one, so all peers go through them in the same order.
        """
        return {one.about: one.value for one in self.of_kind(kind) if one.value is not None}

    def give(self, wanted: Iterable[StandingOrder], peer: bytes, now: float) -> list[StandingOrder]:
        """Return these orders with stamps, at this second, that are later than all orders known here.

        An order for all hosts of a domain lifts the orders for single hosts of it. Raises ConfigError if an order has
        no meaning, or if an order that stands would have to be forgotten.
        """
        stamp = min(max(self.latest + 1, self._given + 1, _milliseconds(now)), COUNT_MAX)
        given: dict[tuple[str, str], StandingOrder] = {}
        for order in wanted:
            check(order)
            by_host = order.kind != "scope"  # Of orders about the scope, the latest counts, however narrow it is.
            narrower = [
                one
                for one in self.in_force
                if by_host and one.kind == order.kind and lies_below(one.about, order.about)
            ]
            lifts = [msgspec.structs.replace(one, value=None, user=order.user) for one in narrower]
            for one in (*lifts, self._resolved(order)):
                given[_key(one)] = msgspec.structs.replace(one, stamp=stamp, peer=peer)
                stamp = min(stamp + 1, COUNT_MAX)
        new = len(given.keys() - self._orders.keys())
        forgotten = self.to_wire()[max(0, STANDING_ORDERS_MAX - new) :]
        if len(given) > STANDING_ORDERS_MAX or any(order.stands and _key(order) not in given for order in forgotten):
            raise ConfigError(
                f"the swarm remembers {STANDING_ORDERS_MAX} orders: lift some, or name the hosts of a domain at once, "
                "as *.example.org"
            )
        self._given = stamp
        return list(given.values())

    def _resolved(self, order: StandingOrder) -> StandingOrder:
        """Return an order that lifts another as an exception, if an order for more hosts would hold in its place."""
        if order.value is not None or order.kind == "scope":
            return order
        others = {about: value for about, value in self.values(order.kind).items() if about != order.about}
        is_held = bool(most_specific(others, order.about.removeprefix("*.")))
        return msgspec.structs.replace(order, value=0.0) if is_held else order

    def hear(self, orders: Iterable[StandingOrder], now: float) -> list[StandingOrder]:
        """Take over the orders of another peer, and return those that are news."""
        news: dict[tuple[str, str], StandingOrder] = {}
        for told in orders:
            order = _clean(told, now)
            known = self._orders.get(_key(order))
            if known is None or rank(order) > rank(known):
                self._orders[_key(order)] = news[_key(order)] = order
        if len(self._orders) > STANDING_ORDERS_MAX:
            self._orders = {_key(order): order for order in self.to_wire()[:STANDING_ORDERS_MAX]}
        return [order for key, order in news.items() if key in self._orders]

    @property
    def scope(self) -> list[tuple[str, bool]]:
        """(Subject, whether it is in scope) of the orders about the scope that are not lifted, the latest first."""
        return [(one.about, one.value > 0) for one in self.of_kind("scope") if one.value is not None]

    def of_kind(self, kind: OrderKind) -> list[StandingOrder]:
        """Return the orders of a kind, lifted ones included, the latest first."""
        return [order for order in self.to_wire() if order.kind == kind]

    @property
    def for_leaves(self) -> list[StandingOrder]:
        """The orders that leaves hear with their work: those that change settings, or slow sites down."""
        return [order for order in self.to_wire() if order.kind in ("set", "delay")]

    def fingerprint(self) -> int:
        """Return a number of 32 bits that is the same for the same orders, 0 without any."""
        return fingerprint_of(self._orders.values())


def fingerprint_of(orders: Iterable[StandingOrder]) -> int:
    """Return a number of 32 bits that is the same for the same orders in any order, 0 without any."""
    fingerprint = 0
    for order in orders:
        fingerprint ^= int.from_bytes(blake2b(msgspec.msgpack.encode(order), digest_size=4).digest(), "big")
    return fingerprint


def named(order: StandingOrder, job: Job) -> StandingOrder:
    """Return an order with the normal name of its subject. Raises ConfigError if it has no meaning for this job."""
    if order.kind == "set":
        check_change(job, order.about, order.value)
        return order
    if order.kind == "scope":
        return msgspec.structs.replace(order, about=subject_of(order.about, job))
    return msgspec.structs.replace(order, about=match_of(order.about, job.partition))


def check(order: StandingOrder) -> None:
    """Raise ConfigError unless the value of an order has a meaning."""
    if order.kind == "delay" and order.value is not None and order.value > DELAY_MOST_S:
        raise ConfigError(f"a delay is at most {DELAY_MOST_S} seconds; to ask a site nothing, pause it")
    if order.kind == "drop" and not order.value:
        raise ConfigError("an order to drop is over at once, and cannot be lifted: kadcrawl retry brings the URLs back")


def read_standing_orders(store: Store) -> list[StandingOrder]:
    """Return the orders that an earlier run has journaled."""
    return store.meta.read("orders", _ORDERS.decode) or []


def write_standing_orders(store: Store, orders: StandingOrders) -> None:
    """Journal the orders."""
    store.meta.set("orders", msgspec.msgpack.encode(orders.to_wire()))


def _clean(order: StandingOrder, now: float) -> StandingOrder:
    """Return an order as it counts here: not further ahead than clocks may be, and its value in range."""
    value = order.value
    # The job says which values a setting may have (settings/job_changes.py).
    if value is not None and order.kind != "set":
        value = min(value, DELAY_MOST_S) if order.kind == "delay" else float(value > 0)
    most = _milliseconds(now + AHEAD_MAX_S)
    stamp = order.stamp if order.stamp <= most else most - ROOM_MS
    return msgspec.structs.replace(order, stamp=stamp, value=None if value is None else float(value) + 0.0)


def _key(order: StandingOrder) -> tuple[str, str]:
    return order.kind, order.about


def _milliseconds(now: float) -> int:
    return max(0, int(now * 1000))
