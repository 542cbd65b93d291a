"""Directories of peers that do not run, made for a test."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from kadcrawl import Job
from kadcrawl.link.wire.order_messages import StandingOrder
from kadcrawl.peer.job_store import JobRecord
from kadcrawl.peer.swarm.standing_orders import StandingOrders, write_standing_orders
from kadcrawl.store.store import Store
from kadcrawl.system.clock import wall
from kadcrawl.system.file_names import ADDRESS


@contextmanager
def store_of(directory: Path) -> Iterator[Store]:
    store = Store(directory, 0.0)
    try:
        yield store
    finally:
        store.close()


async def directory_at_rest(path: Path, *orders: StandingOrder, job: Job | None = None, node_id: bytes = b"") -> Path:
    """Return the directory of a peer that knew these orders."""
    path.mkdir(parents=True)
    (path / ADDRESS).write_text("127.0.0.1:4160")
    with store_of(path) as store:
        if node_id:
            store.meta.set("node_id", node_id)
        known = StandingOrders()
        known.hear(orders, wall())
        write_standing_orders(store, known)
        job = job or Job(seeds=("http://a.example/",))
        JobRecord(store).keep(replace(job, cell_bits=job.bits))
        await store.journal.commit()
    return path
