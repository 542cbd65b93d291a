"""Directories whose crawl does not run: an order to retry is written into the journal of each of their peers.

The peers carry it out when they run again, and their swarm hears of it. So it does not matter which of the directories
are used again, or on which machine.

Tests: tests/cli/commands/test_retry.py
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from kadcrawl.crawl.output.counters import counted_as
from kadcrawl.errors import ConfigError, StartError
from kadcrawl.keys import Key
from kadcrawl.link.wire.retry_messages import RetryOrder
from kadcrawl.peer.directory import Directory
from kadcrawl.peer.job_store import JobRecord
from kadcrawl.peer.swarm.retry import refuse_forgetful
from kadcrawl.peer.swarm.retry_orders import RetryOrders, read_orders, write_orders
from kadcrawl.store.store import Store
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
    with ExitStack() as opened:
        stores: list[Store] = []
        orders = RetryOrders()
        now = wall()
        for directory in _of_peers(directories):
            opened.callback(Directory(directory).close)
            store = Store(directory, 0.0)
            opened.callback(store.close)
            job = JobRecord(store).journaled()
            if job is None:
                continue
            refuse_forgetful(job)
            store.visits.load()
            orders.hear(read_orders(store), now)
            stores.append(store)
        if not stores:
            raise ConfigError("no crawl has begun here: there is nothing to be fetched again")
        order = orders.order(wanted, now)
        orders.hear([order], now)
        urls = _applied_to(stores, orders, order.stamp)
        for store in stores:
            write_orders(store, orders)
        asyncio.run(_commit(stores))
    return urls


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
