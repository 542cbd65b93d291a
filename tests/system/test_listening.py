"""Test that a task which is cancelled while it begins to listen gives the port back."""

import asyncio
from contextlib import suppress

from kadcrawl.system.listening import listen


async def test_a_cancellation_at_any_moment_leaves_the_port_free() -> None:
    server = await listen(asyncio.Protocol, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    for steps in range(4):
        task = asyncio.create_task(listen(asyncio.Protocol, "127.0.0.1", port))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            (await task).close()
        (await listen(asyncio.Protocol, "127.0.0.1", port)).close()
