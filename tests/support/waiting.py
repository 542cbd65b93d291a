"""Waiting for a condition."""

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], object]) -> None:
    """Return when the condition holds. Raises TimeoutError after a minute."""
    # The slowest repair, that of a copy without a request for it, takes 18 s (replication/owner/sync.py).
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.005)
