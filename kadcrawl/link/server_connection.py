"""The answering end of one WebSocket that another peer has dialed.

Each request is handled in a task of its own, so that a waiting request delays no other. When `IN_FLIGHT_MAX` are being
handled no more are read, and TCP makes the asker wait. The same holds when the requests of one peer are too many bytes
together. The start of each request is decided for all connections of its peer (link/admission_control.py), as its
handling outlives the connection. A frame that is no request ends the connection. So does a ping, as aiohttp answers all
pings that it has read, some forty thousand, before any other task runs.

Tests: tests/link/test_slow_readers.py, tests/link/test_client_connection.py
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import WebSocketError, WSCloseCode, WSMsgType
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_ws import WebSocketResponse

from kadcrawl.link.admission_control import SMALL_BYTES, PeerQuota
from kadcrawl.link.client_connection import CLOSE_S, IN_FLIGHT_MAX, KEPT_IDLE_S, NUMBER_BYTES, forget_frames
from kadcrawl.link.wire.codec import MalformedError

SEND_S = 30.0
"""Time limit for sending an answer. No request is waited for any longer."""
SILENCE_MAX_S = 5 * KEPT_IDLE_S
"""Silence after which a connection is ended. The dialer closes what it does not use, so a silent dialer has gone."""


class ServerConnection:
    """Answers the requests of one connection."""

    def __init__(
        self,
        socket: WebSocketResponse[bool],
        protocol: RequestHandler,
        transport: asyncio.Transport,
        reply: Callable[[bytes], Awaitable[bytes]],
        tasks: set[asyncio.Task[None]],
        quota: PeerQuota,
    ) -> None:
        """The arguments `protocol` and `transport` are those below `socket`.

        `reply` makes a packed answer of a packed request, and `tasks` holds the requests being handled. They outlive
        the connection, as a request is handled to its end although nobody receives the answer. `quota` is that of the
        asking peer, over all its connections.
        """
        self._socket = socket
        self._transport = transport
        self._reply = reply
        self._tasks = tasks
        self.quota = quota
        self._read = 0
        """Bytes of requests that were read and not admitted ..."""
        self._reported = 0
        """... as `quota` knows them."""
        self._is_over = False
        # A release of aiohttp without this attribute goes uncounted. The bounds of each connection hold all the same.
        if (parser := getattr(protocol, "_payload_parser", None)) is not None:
            protocol._payload_parser = _ByteCounter(parser, self._note_read)
        self._places = asyncio.Semaphore(IN_FLIGHT_MAX)
        self._sending = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._heard = 0
        self.heard_at = self._loop.time()
        """Second of the loop of the last request."""
        self.under_way = 0
        """Requests that are being handled."""
        self._silence = self._loop.call_later(SILENCE_MAX_S, self._look, 0)

    @property
    def is_ending(self) -> bool:
        return self._transport.is_closing()

    async def run(self) -> None:
        """Answer until the other end closes or breaks the connection. Raises MalformedError for a frame that is no
        request.

        The socket is still to be closed.
        """
        loop, socket, places, tasks = self._loop, self._socket, self._places, self._tasks
        try:
            while True:
                await places.acquire()
                frame = await socket.receive()
                if frame.type in (WSMsgType.PING, WSMsgType.PONG):
                    self._transport.abort()
                    raise MalformedError("a ping")
                if frame.type is not WSMsgType.BINARY:
                    break
                if len(frame.data) < NUMBER_BYTES:
                    raise MalformedError("a frame without a number")
                self._heard += 1
                self.heard_at = loop.time()
                count = max(len(frame.data), SMALL_BYTES)
                await self.quota.add(count)
                self._note_read(-_frame_bytes(len(frame.data)))
                self.under_way += 1
                task = loop.create_task(self._answer(frame.data, count), name="link answer")
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                del frame  # The frame may be large, and the next may take long.
        except ConnectionError:
            return  # The connection broke before a ping was answered.
        finally:
            self._is_over = True
            self._note_read(-self._read)
            self._silence.cancel()
        if frame.type is WSMsgType.TEXT:
            raise MalformedError("a text frame")
        if frame.type is WSMsgType.ERROR and isinstance(frame.data, WebSocketError):
            raise MalformedError(str(frame.data))

    async def close(self, code: WSCloseCode) -> None:
        """Close the WebSocket. A second call does nothing."""
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._socket.close(code=code)
        except TimeoutError:
            pass
        finally:
            # Closing alone would keep what is not sent, for as long as the other end does not read it.
            self._transport.abort()
            forget_frames(self._socket.exception())

    def disconnect(self) -> None:
        """End the connection at once. Its requests are handled to their end, although nobody receives the answers."""
        self._transport.abort()

    async def _answer(self, frame: bytes, count: int) -> None:
        held = 0
        try:
            await self.quota.turn()
            if self._transport.is_closing():
                return  # The asker has gone, and the request has not begun.
            number, reply = frame[:NUMBER_BYTES], self._reply(frame[NUMBER_BYTES:])
            del frame  # The request may be large, and the answer take minutes.
            answer = number + await reply
            if self._transport.is_closing():
                return
            if len(answer) > SMALL_BYTES:
                held = len(answer)
                self.quota.hold_answer(held)
            is_unread = self._sending.locked() or self._transport.get_write_buffer_size() > 0
            if len(answer) <= SMALL_BYTES and not is_unread:
                # It fits into the buffer of the transport, so sending it does not wait, and needs no time limit.
                async with self._sending:
                    await self._socket.send_bytes(answer)
                return
            # One frame at a time, or all would be in the buffer of the transport when the other end reads slowly.
            async with asyncio.timeout(SEND_S), self._sending:
                if not self._transport.is_closing():  # aiohttp would log each send to a closed transport.
                    await self._socket.send_bytes(answer)
        except TimeoutError:
            self._transport.abort()  # The asker does not read its answers.
        except ConnectionError:
            pass  # The asker has gone, and asks again if it needs the answer.
        finally:
            self.under_way -= 1
            self._places.release()
            self.quota.drop(count)
            if held:
                self.quota.release_answer(held)

    def _look(self, heard: int) -> None:
        if self._heard == heard:
            self._transport.abort()
        else:
            self._silence = self._loop.call_later(SILENCE_MAX_S, self._look, self._heard)

    def _note_read(self, more: int) -> None:
        """Add `more` bytes (or fewer, if negative) that were read and not admitted. Bytes that came with the handshake
        are not noted.
        """
        self._read = max(0, self._read + more)
        reported = self._read if self._read > SMALL_BYTES and not self._is_over else 0
        if reported != self._reported:
            self.quota.hold(reported - self._reported)
            self._reported = reported


class _ByteCounter:
    """Counts the bytes for aiohttp's parser of frames, which reports a frame only when it is whole."""

    def __init__(self, parser: Any, count: Callable[[int], None]) -> None:
        self._parser = parser
        self._count = count

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        self._count(len(data))
        fed: tuple[bool, bytes] = self._parser.feed_data(data)
        return fed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parser, name)


def _frame_bytes(count: int) -> int:
    """Return the length of a client's frame with a payload of `count` bytes (RFC 6455 5.2)."""
    return count + (6 if count < 126 else 8 if count < 2**16 else 14)
