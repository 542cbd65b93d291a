"""Requests by datagram that wait for their replies: resending, time-out, and the match of a reply.

A request goes out at most twice, under one random ID of 64 bits. Its reply must come from the address asked and be of
the type asked for. Each request is concluded exactly once, by `conclude` with the reply or None.

Tests: tests/overlay/test_protocol.py, tests/overlay/test_repairs.py
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Protocol

from kadcrawl.link.wire.messages import Message
from kadcrawl.overlay.datagrams import REPLY_TO, DatagramCounters, encode
from kadcrawl.overlay.settings import OverlaySettings

LOOP_STALL_S = 0.1
"""A timer that fires later than this shows that the own event loop was held up."""
EXTENSIONS_MAX = 8
"""Times that a request waits on because the own loop was held up. In so many turns of the loop an answer is read, also
if it comes from a peer on the same loop. A loop that is always late still finds that a peer is dead."""

Address = tuple[str, int]


class Send(Protocol):
    """Sends the bytes of a datagram to the peer of ID `to` (None if unknown). `again` for a second time."""

    def __call__(self, data: bytes, address: Address, to: bytes | None, *, again: bool = False) -> None: ...


@dataclass(slots=True, eq=False)
class PendingRequest:
    """One request in flight."""

    address: Address
    to: bytes | None
    """The ID of the peer asked, if known."""
    request: bytes
    expects: type[Message]
    conclude: Callable[[Message | None], None]
    """Receives the reply or None, once. Must not raise."""
    timer: asyncio.TimerHandle
    due_at: float
    """The second of the loop at which the request times out."""
    extensions: int = 0
    """Times that the request has waited on because the own loop was held up."""


class PendingRequests:
    """All requests of one socket that wait for a reply, by request ID."""

    def __init__(self, settings: OverlaySettings, random: Random, counters: DatagramCounters, send: Send) -> None:
        self._settings = settings
        self._random = random
        self._counters = counters
        self._send = send
        self._loop = asyncio.get_running_loop()
        self.by_id: dict[int, PendingRequest] = {}

    def begin(
        self, address: Address, message: Message, to: bytes | None, conclude: Callable[[Message | None], None]
    ) -> int:
        """Send a request and return its ID."""
        request_id = self._random.getrandbits(64)
        while request_id in self.by_id:
            request_id = self._random.getrandbits(64)
        request = encode(request_id, message)
        timer = self._loop.call_later(self._settings.resend_s, self._resend, request_id)
        due_at = self._loop.time() + self._settings.timeout_s
        self.by_id[request_id] = PendingRequest(address, to, request, REPLY_TO[type(message)], conclude, timer, due_at)
        self._send(request, address, to)
        return request_id

    def end(self, request_id: int) -> PendingRequest | None:
        """Stop waiting for the reply to a request. Return the request, or None if it is not pending."""
        pending = self.by_id.pop(request_id, None)
        if pending is not None:
            pending.timer.cancel()
        return pending

    def accept_reply(self, request_id: int, message: Message, address: Address) -> bool:
        """Conclude the request that `message` answers. Return False if no request expects this message from there."""
        pending = self.by_id.get(request_id)
        if pending is None or pending.address != address or type(message) is not pending.expects:
            return False
        self._conclude(request_id, message)
        return True

    def abandon_all(self) -> None:
        """Conclude all requests without a reply, as the socket is closed."""
        for request_id in list(self.by_id):
            self._conclude(request_id, None)

    def _resend(self, request_id: int) -> None:
        pending = self.by_id[request_id]
        self._send(pending.request, pending.address, pending.to, again=True)
        self._await_time_out(pending, request_id)

    def _time_out(self, request_id: int) -> None:
        pending = self.by_id[request_id]
        is_late = self._loop.time() - pending.due_at > LOOP_STALL_S
        if is_late and pending.extensions < EXTENSIONS_MAX:
            # The own loop was held up, so the reply may wait in the socket, or the peer may share this loop.
            pending.extensions += 1
            pending.due_at = self._loop.time() + self._settings.resend_s
            self._await_time_out(pending, request_id)
            return
        self._counters.timeouts += 1
        self._conclude(request_id, None)

    def _await_time_out(self, pending: PendingRequest, request_id: int) -> None:
        pending.timer = self._loop.call_at(pending.due_at, self._time_out, request_id)

    def _conclude(self, request_id: int, reply: Message | None) -> None:
        pending = self.end(request_id)
        if pending is not None:
            pending.conclude(reply)
