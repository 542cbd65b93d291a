"""Directories whose crawl does not run: an order to retry is written into the journal of each of their peers.

The peers carry it out when they run again, and their swarm hears of it. So it does not matter which of the directories
are used again, or on which machine.

Named URLs become pending in all journals at once, as all holders of a URL are to agree.

Tests: tests/cli/commands/test_retry.py, tests/cli/commands/test_add_again.py
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kadcrawl.crawl.output.counters import Counters, counted_as
from kadcrawl.crawl.scope.partitioner import Partitioner
from kadcrawl.errors import ConfigError, StartError
from kadcrawl.keys import Key
from kadcrawl.link.wire.retry_messages import RetryOrder
from kadcrawl.peer.directory import Directory
from kadcrawl.peer.job_store import JobRecord
from kadcrawl.peer.swarm.retry import refuse_forgetful
from kadcrawl.peer.swarm.retry_orders import RetryOrders, read_orders, write_orders
from kadcrawl.settings.job import Job
from kadcrawl.store.schema import is_pending
from kadcrawl.store.store import Store
from kadcrawl.store.visit import Visit
from kadcrawl.system.clock import wall
from kadcrawl.system.file_names import ADDRESS, JOURNAL


def rests(directories: Sequence[Path]) -> bool:
    """Return whether these directories hold full peers, and none of the peers is running."""
    held = _of_peers(directories)
    for directory in held:
        try:
            Directory(directory).close()
        except StartError:
            return False
    return bool(held)


def retry_at_rest(directories: Sequence[Path], wanted: RetryOrder) -> Mapping[str, int]:
    """Journal an order to retry in each of these directories. Return the URLs it applies to, by reason.

    Raises ConfigError if the job does not remember its failed URLs, StartError if a journal cannot be opened.
    """
    now = wall()
    with _opened(directories) as (stores, _):
        orders = _known(stores, now)
        order = orders.order(wanted, now)
        orders.hear([order], now)
        urls = _applied_to(stores, orders, order.stamp)
        for store in stores:
            write_orders(store, orders)
        asyncio.run(_commit(stores))
    return urls


def again_at_rest(directories: Sequence[Path], urls: Sequence[str]) -> tuple[int, int, int]:
    """Have these canonical URLs fetched again when their peers run. Return how many are done, pending, and unknown.

    Raises ConfigError if the job does not remember its URLs, StartError if a journal cannot be opened.
    """
    now = wall()
    done = pending = unknown = 0
    with _opened(directories) as (stores, job):
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
        asyncio.run(_commit(stores))
    return done, pending, unknown


@contextmanager
def _opened(directories: Sequence[Path]) -> Iterator[tuple[list[Store], Job]]:
    """Open the stores of these directories. Raises ConfigError, StartError."""
    with ExitStack() as opened:
        stores: list[Store] = []
        jobs = []
        for directory in _of_peers(directories):
            opened.callback(Directory(directory).close)
            store = Store(directory, 0.0)
            opened.callback(store.close)
            job = JobRecord(store).journaled()
            if job is not None:
                refuse_forgetful(job)
                store.visits.load()
                stores.append(store)
                jobs.append(job)
        if not stores:
            raise ConfigError("no crawl has begun here: there is nothing to be fetched again")
        yield stores, jobs[0]


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


async def _commit(stores: Sequence[Store]) -> None:
    for store in stores:
        await store.journal.commit()


def _of_peers(directories: Sequence[Path]) -> list[Path]:
    return [one for one in directories if (one / JOURNAL).exists() and (one / ADDRESS).exists()]
