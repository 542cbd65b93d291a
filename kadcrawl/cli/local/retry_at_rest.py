"""Directories whose crawl does not run: an order to retry is written into the journal of each of their peers.

The peers carry it out when they run again, and their swarm hears of it. So it does not matter which of the directories
are used again, or on which machine.

Named URLs become pending in all journals at once, as all holders of a URL are to agree.

Tests: tests/cli/commands/test_retry.py, tests/cli/commands/test_add_again.py
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from kadcrawl.cli.local.stores_at_rest import commit, opened_stores
from kadcrawl.crawl.output.counters import Counters, counted_as
from kadcrawl.crawl.scope.partitioner import Partitioner
from kadcrawl.keys import Key
from kadcrawl.link.wire.retry_messages import RetryOrder
from kadcrawl.peer.swarm.retry import refuse_again, refuse_forgetful
from kadcrawl.peer.swarm.retry_orders import RetryOrders, read_orders, write_orders
from kadcrawl.store.schema import is_pending
from kadcrawl.store.store import Store
from kadcrawl.store.visit import Visit
from kadcrawl.system.clock import wall


def retry_at_rest(directories: Sequence[Path], wanted: RetryOrder) -> Mapping[str, int]:
    """Journal an order to retry in each of these directories. Return the URLs it applies to, by reason.

    Raises ConfigError if the job does not remember its failed URLs, StartError if a journal cannot be opened.
    """
    now = wall()
    with opened_stores(directories) as (stores, job):
        refuse_forgetful(job)
        _load_visits(stores)
        orders = _known(stores, now)
        order = orders.order(wanted, now)
        orders.hear([order], now)
        urls = _applied_to(stores, orders, order.stamp)
        for store in stores:
            write_orders(store, orders)
        commit(stores)
    return urls


def again_at_rest(directories: Sequence[Path], urls: Sequence[str]) -> tuple[int, int, int]:
    """Have these canonical URLs fetched again when their peers run. Return how many are done, pending, and unknown.

    Raises ConfigError if the job does not remember its URLs, StartError if a journal cannot be opened.
    """
    now = wall()
    done = pending = unknown = 0
    with opened_stores(directories) as (stores, job):
        refuse_again(job)
        _load_visits(stores)
        partitioner = Partitioner(job.partition, job.bits)
        stamp = _known(stores, now).order(RetryOrder(0), now).stamp
        for store in stores:
            store.begin(job.bits)
        for url in urls:
            place = partitioner.locate(url)
            state = max(store.state(place.key) or 0 for store in stores)
            if not state:
                unknown += 1
            elif is_pending(state):
                pending += 1
            else:
                done += 1
                holders = [store for store in stores if store.state(place.key) == state]
                _count(holders[0], place.key)
                for store in holders:
                    store.fetch_again(Visit.first(place.key, place.site, url, 0), stamp)
        commit(stores)
    return done, pending, unknown


def _load_visits(stores: Sequence[Store]) -> None:
    for store in stores:
        store.visits.load()


def _known(stores: Sequence[Store], now: float) -> RetryOrders:
    orders = RetryOrders()
    for store in stores:
        orders.hear(read_orders(store), now)
    return orders


def _count(store: Store, key: Key) -> None:
    """Count a URL that was done among those that are pending again, as its owner would."""
    visit = store.visits.get(key)
    counters = Counters.from_bytes(store.meta.get("totals"))
    counters.retry(counted_as(visit.failed) if visit is not None else "")
    store.meta.set("totals", counters.to_bytes())


def _applied_to(stores: Sequence[Store], orders: RetryOrders, stamp: int) -> Counter[str]:
    """Count the failed URLs by reason, each once, unless another of the stores knows of a later visit."""
    urls: Counter[str] = Counter()
    seen: set[Key] = set()
    for store in stores:
        for visit in store.visits.failed():
            state = store.state(visit.key) or 0
            if visit.key in seen or any((other.state(visit.key) or 0) > state for other in stores):
                continue
            if stamp in orders.applying(visit):
                seen.add(visit.key)
                urls[counted_as(visit.failed)] += 1
    return urls
