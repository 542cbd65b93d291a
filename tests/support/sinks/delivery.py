"""Deliveries from a peer's directory to sinks."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kadcrawl.sinks.deliveries import Deliveries
from kadcrawl.system.daemon_threads import DaemonThreadExecutor


@asynccontextmanager
async def delivering(directory: Path, *sinks: str) -> AsyncIterator[Deliveries]:
    """Deliver in the background, as a peer does."""
    deliveries = Deliveries(directory, sinks, DaemonThreadExecutor(), asyncio.get_running_loop().time)
    running = asyncio.create_task(deliveries.run())
    try:
        yield deliveries
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def deliver(directory: Path, *sinks: str) -> Deliveries:
    """Deliver all there is."""
    async with delivering(directory, *sinks) as deliveries:
        await deliveries.finish()
    return deliveries
