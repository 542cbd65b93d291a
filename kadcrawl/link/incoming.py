"""The answering end of one WebSocket that another peer has dialled.

Each question is handled in a task of its own, so that one that waits holds up no other; when `IN_FLIGHT_MAX` are being
handled no more are read, and TCP makes the asker wait. So it does when those of one peer are too many bytes together,
and when each begins is decided for all its connections (link/burden.py): what is being handled outlives its
connection. What is no question ends the connection, and a ping is none, as aiohttp answers all that it has read, some
forty thousand, before it lets anybody else do anything.
"""

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import WebSocketError, WSCloseCode, WSMsgType, web

from kadcrawl.link.burden import Burden
from kadcrawl.link.codec import MalformedError
from kadcrawl.link.connection import CLOSE_S, IN_FLIGHT_MAX, KEPT_IDLE_S, NUMBER_BYTES

SEND_S = 30.0
"""How long an answer may take to be sent; no question is waited for any longer."""
SILENCE_MAX_S = 5 * KEPT_IDLE_S
"""The dialler closes what it does not use; one that has said nothing for this long is not there any more."""


class Incoming:
    """Answers what comes by one connection."""

    def __init__(
        self,
        socket: web.WebSocketResponse[bool],
        transport: asyncio.Transport,
        reply: Callable[[bytes], Awaitable[bytes]],
        tasks: set[asyncio.Task[None]],
        burden: Burden,
    ) -> None:
        """`reply` makes a packed answer of a packed question; `tasks` is where those being handled are kept.

        `burden` is that of whoever asks, by all its connections.

        They outlive the connection, as what they do is to be done although nobody hears of it.
        """
        self._socket = socket
        self._transport = transport
        self._reply = reply
        self._tasks = tasks
        self._burden = burden
        self._places = asyncio.Semaphore(IN_FLIGHT_MAX)
        self._sending = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._heard = 0
        self._silence = self._loop.call_later(SILENCE_MAX_S, self._look, 0)

    async def run(self) -> None:
        """Answer until the other end closes the connection or breaks it. Raises MalformedError for what is no question.

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
                await self._burden.add(len(frame.data))
                task = loop.create_task(self._answer(frame.data), name="link answer")
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        except ConnectionError:
            return  # A ping could not be answered any more.
        finally:
            self._silence.cancel()
        if frame.type is WSMsgType.TEXT:
            raise MalformedError("a text frame")
        if frame.type is WSMsgType.ERROR and isinstance(frame.data, WebSocketError):
            raise MalformedError(str(frame.data))

    async def close(self, code: WSCloseCode) -> None:
        """Part from the other end; a second time it does nothing."""
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._socket.close(code=code)
        except TimeoutError:
            pass
        finally:
            # Closing alone would keep what is not sent, for as long as the other end likes not to read it.
            self._transport.abort()

    def part(self) -> None:
        """End the connection at once; what is being handled is done, although nobody hears of it."""
        self._transport.abort()

    async def _answer(self, frame: bytes) -> None:
        count, held = len(frame), 0
        try:
            await self._burden.turn()
            if self._transport.is_closing():
                return  # Nobody waits for it any more, and nothing has been done about it.
            number, reply = frame[:NUMBER_BYTES], self._reply(frame[NUMBER_BYTES:])
            del frame  # It may be large, and the answer take minutes.
            answer = number + await reply
            held = len(answer)
            self._burden.hold(held)
            # One frame at a time, or all would be in the buffer of the transport when the other end reads slowly.
            async with asyncio.timeout(SEND_S), self._sending:
                if not self._transport.is_closing():  # Each answer to nobody would be a line of the log.
                    await self._socket.send_bytes(answer)
        except TimeoutError:
            self._transport.abort()  # It asks and does not listen.
        except ConnectionError:
            pass  # The asker is gone, and asks again if it wants to know.
        finally:
            self._places.release()
            self._burden.drop(count)
            self._burden.release(held)

    def _look(self, heard: int) -> None:
        if self._heard == heard:
            self._transport.abort()
        else:
            self._silence = self._loop.call_later(SILENCE_MAX_S, self._look, self._heard)
