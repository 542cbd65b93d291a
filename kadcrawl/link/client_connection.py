"""The asking end of one kept WebSocket: many requests at once, answered in any order.

A binary frame is a number of eight bytes and a packed message; an answer bears the number of its request. A connection
belongs to the peer that dialed it: only the dialer asks, and only the dialer closes it when it is idle.
"""

import asyncio
import os
import struct
from collections.abc import Awaitable, Callable
from itertools import count

import aiohttp
from aiohttp import ClientWebSocketResponse, WSCloseCode, WSMsgType

from kadcrawl.system.event import Event

NUMBER_BYTES = 8
IN_FLIGHT_MAX = 64
"""Requests of one connection that may wait for their answers at a time. The other end handles no more either."""
PATIENT_MAX = 48
"""Requests among these that wait at the other end for the effects of other requests. They must leave room for those."""
UNREACHED_PREFIX = "cannot be reached"
"""The first words of an error if nobody answered the dialer."""
NO_ANSWER = "no answer"
"""The first words of an error if the answer took too long."""
SILENT = "is silent"
"""The error of a connection that was given up because an earlier answer took too long."""
DIAL_S = 10.0
KEPT_IDLE_S = 60.0
SILENT_MIN_S = 5.0
"""The shortest silence after which a connection is given up, however soon an answer was wanted."""
CLOSE_S = 1.0
"""Time limit for the closing handshake of a WebSocket."""

_number = struct.Struct("!Q").pack


class BrokenError(Exception):
    """The connection could not be made, or broke. The text says how, with the other end as its subject."""


def is_hung_up(why: str) -> bool:
    """Return whether the other end was there and hung up silently.

    A peer with a key does so to a caller without a key.
    """
    return any(words in why for words in ("disconnected", "connection is lost", "reset by peer"))


def is_going_away(why: str) -> bool:
    """Return whether the other end closed the connection because its process ends."""
    return f"(code {WSCloseCode.GOING_AWAY})" in why


class UnsentError(BrokenError):
    """The connection broke before the request was sent, so that the caller may try another connection."""


class ClientConnection:
    """One WebSocket, dialed when made, until it breaks, is given up, or is idle for `KEPT_IDLE_S`."""

    def __init__(
        self, dial: Callable[[], Awaitable[ClientWebSocketResponse[bool]]], gone: Callable[["ClientConnection"], None]
    ) -> None:
        """The function `dial` raises BrokenError, ValueError (impossible address), aiohttp.ClientError or OSError.

        `gone` is called once, as soon as the connection accepts no further request.
        """
        self._dial = dial
        self._gone = gone
        self._loop = asyncio.get_running_loop()
        self._socket: ClientWebSocketResponse[bool] | None = None
        self._settled = Event()
        """Set when the connection is open, or over."""
        self._why: str | None = None
        """The reason for its end, or None while it lasts."""
        self._waiting: dict[bytes, asyncio.Future[bytes | None]] = {}
        """The pending answers by number. A result of None means that there will be none."""
        self._numbers = count(1)
        self._places = asyncio.Semaphore(IN_FLIGHT_MAX)
        self._patient = asyncio.Semaphore(PATIENT_MAX)
        self._sending = asyncio.Lock()
        self._asking = 0
        self._used_at = self._heard_at = self._loop.time()
        self._idle = self._loop.call_later(KEPT_IDLE_S, self._look)
        self.task: asyncio.Task[None] | None = self._loop.create_task(self._run(), name="link connection")
        """The task of the connection. It ends when the connection is closed for good, and then is None."""

    async def ask(self, question: bytes) -> bytes:
        """Return the answer of the other end. Raises BrokenError, UnsentError. May be cancelled at any moment."""
        self._asking += 1
        try:
            if self._socket is None:
                await self._settled.wait()
                if self._socket is None:
                    raise BrokenError(self._why)
            async with self._places:
                number = _number(next(self._numbers))
                answer = self._waiting[number] = self._loop.create_future()
                try:
                    await self._send(number + question)
                    body: bytes | None = await answer
                finally:
                    del self._waiting[number]
            if body is None:
                raise BrokenError(self._why)
            return body
        finally:
            self._asking -= 1
            self._used_at = self._loop.time()
            if self._asking == 0 and self._socket is None:
                self.drop("nobody waits for it any more")

    async def ask_patiently(self, question: bytes) -> bytes:
        """Send a request that waits at the other end for the effects of other requests."""
        async with self._patient:
            return await self.ask(question)

    def silent_since(self, asked_at: float) -> None:
        """Note that a deadline has passed. Give up the connection if nothing has come since `asked_at`, as it may be
        dead.

        TCP would wait long before it tries a dead connection again. Dialing goes on while any caller waits for it.
        """
        silent = self._heard_at <= asked_at <= self._loop.time() - SILENT_MIN_S
        if silent and self._socket is not None:
            self.drop(SILENT)

    def drop(self, why: str) -> None:
        """Accept no further requests. Waiting callers get `why` as the reason."""
        if self._end(why) and self.task is not None:
            self.task.cancel()

    async def _send(self, frame: bytes) -> None:
        # One frame at a time, or all of them would be in the buffer of the transport when the other end reads slowly.
        async with self._sending:
            if self._why is not None:
                raise UnsentError(self._why)
            assert self._socket is not None, "dialled before anything is sent"
            try:
                await self._socket.send_bytes(frame)
            except ConnectionError:
                self.drop("the connection is lost")
                raise UnsentError(self._why) from None

    async def _run(self) -> None:
        why = "an exception"
        try:
            async with asyncio.timeout(DIAL_S):
                self._socket = await self._dial()
            self._heard_at = self._loop.time()
            self._settled.set()
            why = await self._read(self._socket)
        except TimeoutError:
            why = f"{UNREACHED_PREFIX} within {DIAL_S:g} s"
        except BrokenError as error:
            why = str(error)
        except ValueError as error:
            why = f"is no address: {error}"
        except aiohttp.ClientConnectorDNSError:
            why = "no address is known for this name"
        except aiohttp.ClientResponseError:
            why = "is no peer of this version"
        except (aiohttp.ClientError, OSError) as error:
            what = UNREACHED_PREFIX if self._socket is None else "the connection is lost"
            why = f"{what}: {_said(error)}"
        finally:
            self._end(why)
            try:
                if self._socket is not None:
                    await _close(self._socket)
            finally:
                self.task = None  # A canceled task holds its frames, and so this object: a circle for the collector.

    async def _read(self, socket: ClientWebSocketResponse[bool]) -> str:
        """Distribute answers until the connection ends. Return the reason."""
        waiting, time = self._waiting, self._loop.time
        while True:
            frame = await socket.receive()
            if frame.type in (WSMsgType.PING, WSMsgType.PONG):
                socket._writer.transport.abort()
                return "malformed answer: a ping"
            if frame.type is not WSMsgType.BINARY:
                break
            data: bytes = frame.data
            if len(data) < NUMBER_BYTES:
                return "malformed answer: a frame without a number"
            self._heard_at = time()
            answer = waiting.get(data[:NUMBER_BYTES])
            if answer is not None and not answer.done():
                answer.set_result(data[NUMBER_BYTES:])
        if frame.type is WSMsgType.TEXT:
            return "malformed answer: a text frame"
        if frame.type is WSMsgType.ERROR:
            return f"malformed answer: {frame.data}"
        code = socket.close_code
        if code in (None, 0, WSCloseCode.ABNORMAL_CLOSURE):
            return "the connection is lost"
        return f"has closed the connection (code {code:d})"

    def _end(self, why: str) -> bool:
        """Note the end of the connection. Return False if it was noted before."""
        if self._why is not None:
            return False
        self._why = why
        self._idle.cancel()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_result(None)
        self._settled.set()
        self._gone(self)
        return True

    def _look(self) -> None:
        """Close the connection if it is idle."""
        now = self._loop.time()
        since = now if self._asking else self._used_at
        if now >= since + KEPT_IDLE_S:
            self.drop("is not needed")
        else:
            self._idle = self._loop.call_at(since + KEPT_IDLE_S, self._look)


async def _close(socket: ClientWebSocketResponse[bool]) -> None:
    try:
        async with asyncio.timeout(CLOSE_S):
            await socket.close()
    except TimeoutError:
        pass
    finally:
        # Closing alone would keep what is not sent, for as long as the other end does not read it.
        socket._writer.transport.abort()
        forget_frames(socket.exception())


def forget_frames(error: BaseException | None) -> None:
    """Take the traceback from the error that ended a WebSocket, so that neither holds the other.

    Else a closed connection, which is 25 kB, stays until the garbage collector finds the circle.
    """
    if error is not None:
        error.__traceback__ = None


def _said(error: Exception) -> str:
    """Return the error in a few words, e.g. that a connection was refused."""
    if isinstance(error, aiohttp.ClientConnectorError) and error.os_error.errno is not None:
        return os.strerror(error.os_error.errno).lower()
    return str(error) or type(error).__name__
