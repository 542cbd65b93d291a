"""Listening on TCP, so that a task that is cancelled meanwhile leaves no open socket behind.

The loop's own `create_server` waits once more after it began to listen. A cancellation there would lose the server, and
its port would stay taken for as long as the loop runs.

Tests: tests/system/test_listening.py
"""

import asyncio
from collections.abc import Callable


async def listen(factory: Callable[[], asyncio.Protocol], host: str, port: int, backlog: int = 100) -> asyncio.Server:
    """Return a server that listens. Raises OSError, and OverflowError for a number that is no port."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(factory, host, port, backlog=backlog, start_serving=False)
    try:
        await server.start_serving()
    except BaseException:
        server.close()
        raise
    return server
