"""The stream of one viewer: the document, and then each change, as server-sent events.

A viewer that does not read is dropped after some seconds. Until then it holds what waits in its socket, and nothing of
later changes: those it would get from the ring that all share.
"""

import asyncio
import logging
from collections.abc import Callable

from aiohttp import web

from kadcrawl.web.hub import DashboardHub

SEND_S = 10.0
"""Seconds within which a viewer must have taken an event."""
IDLE_S = 15.0
"""Seconds without news after which a line without meaning finds out whether the viewer is still there."""

log = logging.getLogger(__name__)


async def stream(
    request: web.BaseRequest,
    response: web.StreamResponse,
    hub: DashboardHub,
    *,
    is_allowed: Callable[[], bool],
    send_s: float = SEND_S,
) -> None:
    """Send events until the viewer goes away, stops reading, or is allowed no more."""
    with hub.viewer():
        await response.prepare(request)
        number = hub.document.number_in(request.headers.get("Last-Event-ID"))
        try:
            while is_allowed():
                if not hub.document.is_empty and number != hub.document.last:
                    events, number = hub.document.events_after(number), hub.document.last
                    for event in events:
                        await _send(response, event, send_s)
                    continue
                try:
                    async with asyncio.timeout(IDLE_S):
                        await hub.news()
                except TimeoutError:
                    await _send(response, b":\n\n", send_s)
        except TimeoutError:
            log.info("web.viewer_dropped from=%s", request.remote)
            if request.transport is not None:
                request.transport.abort()
        except ConnectionError:
            pass  # The viewer is gone.


async def _send(response: web.StreamResponse, data: bytes, send_s: float) -> None:
    async with asyncio.timeout(send_s):
        await response.write(data)
