"""The receiving end of the link: one HTTP POST in, one message out.

Owns the listening TCP socket. Each request type has one handler, registered by the room that understands it; a
handler may answer Refused, and whatever it raises beyond RemoteError is a bug of ours: logged, answered by Refused.
Bytes that are no message of this wire get an empty 400 and are counted; they never reach a handler.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from aiohttp import StreamReader, web

from kadcrawl.errors import KadcrawlError
from kadcrawl.link.codec import MalformedError, pack, unpack
from kadcrawl.link.messages import Message, Refused, Request

PATH = "/kadcrawl/1"
CONTENT_TYPE = "application/vnd.kadcrawl+msgpack"
HEADERS = {"Content-Type": CONTENT_TYPE}

log = logging.getLogger(__name__)

Kind = TypeVar("Kind", bound=Message)
Handler = Callable[[Any], Awaitable[Message]]


async def read_body(content: StreamReader, bytes_max: int) -> bytes:
    """Read an HTTP body to its end. Raises MalformedError above `bytes_max`."""
    body = bytearray()
    async for chunk in content.iter_any():
        body += chunk
        if len(body) > bytes_max:
            raise MalformedError(f"more than {bytes_max} bytes")
    return bytes(body)


class LinkServer:
    """Listens on TCP and answers each request by its handler."""

    def __init__(self, message_bytes_max: int) -> None:
        self.message_bytes_max = message_bytes_max
        self.malformed = 0
        self._handlers: dict[type[Message], Handler] = {}
        self._runner: web.ServerRunner | None = None

    def handle(self, kind: type[Kind], handler: Callable[[Kind], Awaitable[Message]]) -> None:
        """Let `handler` answer requests of this kind."""
        assert kind not in self._handlers, f"{kind.__name__} has a handler already"
        self._handlers[kind] = handler

    async def listen(self, host: str, port: int) -> int:
        """Begin to answer; return the port, which the system chose if `port` is 0. Raises OSError."""
        # aiohttp's low-level server: no routes, no middlewares, as there is only one path.
        server = web.Server(self._respond, access_log=None)
        self._runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        try:
            await site.start()
        except OSError:
            await self.close()
            raise
        bound: int = self._runner.addresses[0][1]
        return bound

    async def close(self) -> None:
        """Stop listening and give running handlers a second to finish."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _respond(self, request: web.BaseRequest) -> web.Response:
        if request.method != "POST" or request.path != PATH:
            return web.Response(status=404)
        try:
            if (request.content_length or 0) > self.message_bytes_max:
                raise MalformedError(f"{request.content_length} bytes announced")
            message = unpack(await read_body(request.content, self.message_bytes_max), Request, self.message_bytes_max)
        except MalformedError as error:
            self.malformed += 1
            log.warning("link.malformed from=%s why=%s", request.remote, error)
            return web.Response(status=400)
        reply = await self._answer(message)
        return web.Response(body=pack(reply), headers=HEADERS)

    async def _answer(self, message: Message) -> Message:
        handler = self._handlers.get(type(message))
        if handler is None:
            return Refused(f"this peer does not answer {type(message).__name__}")
        try:
            return await handler(message)
        except asyncio.CancelledError:
            raise
        except KadcrawlError as error:
            return Refused(str(error)[:1000])
        except Exception as error:
            log.exception("link.bug request=%s", type(message).__name__)
            return Refused(f"a fault of this peer: {error!r}"[:1000])
