"""Directories whose crawl does not run: standing orders are written into the journal of each of their peers.

An order gets a stamp of now, later than all orders in these journals, as a peer gives it. The peers follow it when they
run again, and their swarm hears of it. What others ordered meanwhile merges with it, as the later stamp counts.

Tests: tests/cli/local/test_orders_at_rest.py
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from kadcrawl.cli.local.stores_at_rest import commit, opened_stores
from kadcrawl.keys import ID_BYTES
from kadcrawl.link.wire.order_messages import StandingOrder
from kadcrawl.peer.swarm.standing_orders import StandingOrders, named, read_standing_orders, write_standing_orders
from kadcrawl.store.store import Store
from kadcrawl.system.clock import wall


def give_at_rest(directories: Sequence[Path], wanted: Iterable[StandingOrder]) -> list[StandingOrder]:
    """Journal these orders in each of these directories, and return all orders that are known then.

    Raises ConfigError for an order without a meaning, StartError if a peer is running or a journal is damaged.
    """
    now = wall()
    with opened_stores(directories) as (stores, job):
        orders = StandingOrders()
        for store in stores:
            orders.hear(read_standing_orders(store), now)
        orders.hear(orders.give([named(order, job) for order in wanted], _id_of(stores[0]), now), now)
        for store in stores:
            write_standing_orders(store, orders)
        commit(stores)
    return orders.to_wire()


def _id_of(store: Store) -> bytes:
    """Return the ID of a peer, or zeros if it has none."""
    node_id = store.meta.get("node_id") or b""
    return node_id if len(node_id) == ID_BYTES else bytes(ID_BYTES)
