"""Opens the stores of a crawl at rest, so that an order can be journaled in them.

Tests: tests/cli/local/test_orders_at_rest.py, tests/cli/commands/test_retry.py
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kadcrawl.cli.targets import of_full_peers
from kadcrawl.errors import ConfigError
from kadcrawl.peer.directory import Directory
from kadcrawl.peer.job_store import JobRecord
from kadcrawl.settings.job import Job
from kadcrawl.store.store import Store


@contextmanager
def opened_stores(directories: Sequence[Path]) -> Iterator[tuple[list[Store], Job]]:
    """Lock and open the stores of these directories, and yield them with the job. The caller commits what it changes.

    Raises ConfigError if no crawl has begun in any of them, StartError if a peer is running or a journal is damaged.
    """
    with ExitStack() as opened:
        stores: list[Store] = []
        jobs = []
        for directory in of_full_peers(directories):
            opened.callback(Directory(directory).close)
            store = Store(directory, 0.0)
            opened.callback(store.close)
            job = JobRecord(store).journaled()
            if job is not None:
                stores.append(store)
                jobs.append(job)
        if not stores:
            raise ConfigError("no crawl has begun here, so there is nothing to give an order to")
        yield stores, jobs[0]


def commit(stores: Sequence[Store]) -> None:
    """Commit the changes in these stores. It needs a thread without an event loop."""

    async def commit_all() -> None:
        for store in stores:
            await store.journal.commit()

    asyncio.run(commit_all())
