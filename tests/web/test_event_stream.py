"""Test the stream of one viewer: what becomes of a viewer that does not read."""

import asyncio
from functools import partial
from typing import Any

from aiohttp import web

from kadcrawl.web.event_stream import stream
from kadcrawl.web.hub import DashboardHub

BIG = 200_000


async def test_a_viewer_that_does_not_read_is_dropped() -> None:
    looks = 0

    async def gather() -> dict[str, Any]:
        nonlocal looks
        looks += 1
        peer = {"pages": looks, "alive": True, "name": "x" * BIG + str(looks)}
        return {"crawl": {"found": 0, "done": 0, "pending": 0}, "peers": {"a": peer}}

    loop = asyncio.get_running_loop()
    hub = DashboardHub(gather, loop.time, "r")

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await stream(request, response, hub, is_allowed=lambda: True, send_s=0.2)
        return response

    http = web.Server(answer, access_log=None)
    async with await loop.create_server(partial(http), "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname(), limit=1024)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        async with asyncio.timeout(60):
            while not hub.viewers:
                await asyncio.sleep(0.01)
            while hub.viewers:
                await asyncio.sleep(0.05)
        assert hub._task is None, "nobody looks any more"
        writer.close()
        await http.shutdown(0.1)
        del reader
