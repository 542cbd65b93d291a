"""Simulated TCP: ordered, reliable streams between hosts, with the failures of real streams.

A `SimTransport` is one end of a stream. Its bytes arrive in order, after the latency of the network. A lost segment
costs time. A cut holds back all later segments until a retransmission gets through or `GIVE_UP_S` have passed. Bytes
that the other end has not read yet count against the writer, which is paused above `WINDOW_BYTES`: so a slow or frozen
reader slows its writers. A killed host resets its streams.

As in a real kernel, connections are made and bytes are received while the host is frozen.
"""

import asyncio
import errno
import math
from collections import deque
from collections.abc import Callable
from typing import Any, Literal

from .network import Address, Host
from .ports import Timeline

Kind = Literal["open", "bytes", "end", "reset"]
"""The kinds of segments: the first of a stream, bytes, end of the bytes, and reset."""

WINDOW_BYTES = 256 * 1024
"""Bytes of a stream that the two kernels buffer before the writer buffers more itself."""
HIGH_BYTES = 64 * 1024
"""Bytes that the writer buffers itself before it is paused: asyncio's default."""
RESEND_S = 0.2
"""First wait before a lost segment is sent again. The wait doubles each time (RFC 6298, Linux's minimum)."""
RESEND_MAX_S = 20.0
LOSSES_MAX = 6
"""The most losses of a segment in a row, so that the simulation does not wait on chance."""
GIVE_UP_S = 900.0
"""A stream whose segments stay without acknowledgement this long is given up (Linux: tcp_retries2)."""
CONNECT_RESEND_S = 1.0
"""First wait before a connection request is repeated. The wait doubles each time."""
CONNECT_GIVE_UP_S = 127.0
SLICE_S = 0.1
"""Seconds of reading that a slow reader does at a time."""


class Listener:
    """A listening port. It serves as its own entry in `sockets`."""

    def __init__(self, host: Host, port: int, factory: Callable[[], Any]) -> None:
        """Raises OSError when the port is in use."""
        self._host = host
        self._port = port or host.free_port()
        self.factory = factory
        if self._port in host.listeners:
            raise OSError(errno.EADDRINUSE, "address already in use")
        host.listeners[self._port] = self

    @property
    def sockets(self) -> tuple["Listener", ...]:
        return (self,) if self.is_serving() else ()

    def getsockname(self) -> Address:
        return (self._host.ip, self._port)

    def is_serving(self) -> bool:
        return self._host.listeners.get(self._port) is self

    def close(self) -> None:
        if self.is_serving():
            del self._host.listeners[self._port]

    async def wait_closed(self) -> None:
        """Return at once: connections live on after their listener."""

    async def start_serving(self) -> None:
        """Do nothing: the listener serves from the start."""

    def get_loop(self) -> Timeline:
        return self._host.network.loop


async def connect(host: Host, target: Address) -> "SimTransport":
    """Return the near end of a new stream from `host` to `target`, to be begun with a protocol. Raises OSError."""
    network = host.network
    near_port = host.free_port()
    give_up_at = network.loop.now + CONNECT_GIVE_UP_S
    wait_s = CONNECT_RESEND_S
    while True:
        lost, lost_back, delay, delay_back = network.lots(f"{host.ip}:{near_port} {target[0]}:{target[1]} connect")
        await asyncio.sleep(network.delay(delay) + network.delay(delay_back))
        other = network.hosts.get(target[0])
        cut = network.is_cut(host.ip, target[0]) or network.is_cut(target[0], host.ip)
        if host.web_fault is not None and target[0] in network.web:
            if host.web_fault == "no route":
                raise OSError(errno.ENETUNREACH, "network is unreachable")
            cut = True
        if other is not None and other.hidden:
            network.turned_away += 1
        elif other is not None and not cut and min(lost, lost_back) >= network.conditions.loss:
            break
        if network.loop.now + wait_s > give_up_at:
            raise TimeoutError(errno.ETIMEDOUT, "connection timed out")
        await asyncio.sleep(wait_s)
        wait_s *= 2
    if target[1] not in other.listeners:
        raise ConnectionRefusedError(errno.ECONNREFUSED, "connection refused")
    source = (host.ip, near_port)
    near, far = SimTransport(host, source, target), SimTransport(other, target, source)
    near.far, far.far = far, near
    return near


class SimTransport(asyncio.Transport):
    """One end of a stream."""

    far: "SimTransport | None"
    """The other end. None once both ends are lost, as two ends that hold each other wait for the garbage collector."""

    def __init__(self, host: Host, local: Address, remote: Address) -> None:
        super().__init__({"sockname": local, "peername": remote})
        self._host = host
        self._network = host.network
        self._loop = host.network.loop
        self._local = local
        self._remote = remote
        self._ends = f"{local[0]}:{local[1]} {remote[0]}:{remote[1]}"
        self._protocol: Any = None
        self._closing = False
        self._lost = False
        self._ended = False
        """We shall write no more."""
        # What we write:
        self._arrives_at = 0.0
        self._sent_until = 0.0
        self._unread_bytes = 0
        self._writer_paused = False
        self._high_bytes = HIGH_BYTES
        self._low_bytes = HIGH_BYTES // 4
        self._stalled: deque[tuple[Kind, bytes]] | None = None
        """Segments that a cut holds back. Few streams ever have any, and an empty deque takes more than a stream."""
        # What we read:
        self._received: deque[tuple[Kind, bytes]] | None = None
        """Segments that the protocol or its host has not read."""
        self._reader_paused = False
        self._reads_at = 0.0
        host.connections[self] = None

    def __repr__(self) -> str:
        return f"<SimTransport {self._ends} closing={self._closing}>"

    def begin(self, protocol: Any) -> None:
        """Attach the protocol of the near end and open the far end."""
        self._protocol = protocol
        self._send("open")
        protocol.connection_made(self)

    def cease(self) -> None:
        """Our host was killed: its kernel resets the stream."""
        if not self._lost:
            self._closing = self._lost = True
            self._send("reset")
            self._part()

    # --- asyncio.Transport

    def write(self, data: Any) -> None:
        if not data or self._ended or self._closing or not self._host.alive:
            return
        self._unread_bytes += len(data)
        self._send("bytes", bytes(data))
        if not self._writer_paused and self.get_write_buffer_size() > self._high_bytes:
            self._writer_paused = True
            self._protocol.pause_writing()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not self._ended and not self._closing:
            self._ended = True
            self._send("end")

    def close(self) -> None:
        if not self._closing:
            self.write_eof()
            self._lose(None)

    def abort(self) -> None:
        if not self._lost:
            self._send("reset")
            self._lose(None)

    def is_closing(self) -> bool:
        return self._closing

    def is_reading(self) -> bool:
        return not self._reader_paused and not self._closing

    def pause_reading(self) -> None:
        self._reader_paused = True

    def resume_reading(self) -> None:
        self._reader_paused = False
        if self._received:
            self._loop.post(self._loop.now, self.pump)

    def get_write_buffer_size(self) -> int:
        return max(0, self._unread_bytes - WINDOW_BYTES)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low_bytes, self._high_bytes

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high_bytes = high if high is not None else (4 * low if low is not None else HIGH_BYTES)
        self._low_bytes = low if low is not None else self._high_bytes // 4

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def get_protocol(self) -> Any:
        return self._protocol

    # --- from here to there

    def _send(self, kind: Kind, data: bytes = b"") -> None:
        network, now = self._network, self._loop.now
        self._sent_until = max(self._sent_until, now) + len(data) / network.conditions.bandwidth_bytes_s
        lost, delay, *_ = network.lots(f"{self._ends} {kind} {len(data)}")
        delay_s = network.delay(delay)
        chance, resend_s = network.conditions.loss, RESEND_S
        for _ in range(LOSSES_MAX):
            if lost >= chance:
                break
            delay_s += resend_s
            chance *= network.conditions.loss
            resend_s *= 2
        self._arrives_at = max(self._arrives_at, self._sent_until + delay_s)
        self._loop.post(self._arrives_at, self._arrive, kind, data)

    def _arrive(self, kind: Kind, data: bytes) -> None:
        if self._stalled:
            self._stalled.append((kind, data))
        elif self._network.is_cut(self._host.ip, self._remote[0]):
            self._stalled = deque([(kind, data)])
            now = self._loop.now
            self._loop.post(now + RESEND_S, self._resend, RESEND_S, now + GIVE_UP_S)
        elif self.far is not None:
            self.far._take(kind, data)

    def _resend(self, wait_s: float, give_up_at: float) -> None:
        """Send the segments again that a cut has held back."""
        now = self._loop.now
        if not self._network.is_cut(self._host.ip, self._remote[0]):
            stalled, self._stalled = self._stalled, None
            for kind, data in stalled or ():
                if self.far is not None:
                    self.far._take(kind, data)
        elif now < give_up_at:
            wait_s = min(2 * wait_s, RESEND_MAX_S)
            self._loop.post(now + wait_s, self._resend, wait_s, give_up_at)
        else:
            self._lose(TimeoutError(errno.ETIMEDOUT, "connection timed out"))

    # --- from there to here

    def _take(self, kind: Kind, data: bytes) -> None:
        if self._lost:
            # Nobody is here any more to read it, and the other end should know.
            if kind in ("open", "bytes") and self._host.alive:
                self._send("reset")
            return
        self._network.arrived(kind, self._remote, self._local, data)
        host = self._host
        is_slow = host.read_bytes_s != math.inf or self._loop.now < self._reads_at
        if self._received or self._reader_paused or is_slow or not host.runs:
            if self._received is None:
                self._received = deque()
            self._received.append((kind, data))
            self.pump()
        else:
            self._hand(kind, data)

    def pump(self) -> None:
        """Hand received segments to the protocol, as fast as the protocol and its host read."""
        received, host = self._received, self._host
        while received and host.runs and not self._reader_paused and not self._lost:
            now = self._loop.now
            if now < self._reads_at:
                return
            kind, data = received.popleft()
            if kind == "bytes" and host.read_bytes_s != math.inf:
                data = self._slice(received, data, now)
            self._hand(kind, data)

    def _hand(self, kind: Kind, data: bytes) -> None:
        """Hand one segment to the protocol."""
        context = self._host.context
        if kind == "bytes":
            if self.far is not None:
                self.far._read(len(data))
            context.run(self._protocol.data_received, data)
        elif kind == "open":
            self._open()
        elif kind == "end":
            if not context.run(self._protocol.eof_received):
                self.close()
        else:
            self._lose(ConnectionResetError(errno.ECONNRESET, "connection reset by peer"))

    def _slice(self, received: deque[tuple[Kind, bytes]], data: bytes, now: float) -> bytes:
        """Return as much of `data` as the host reads in `SLICE_S`, and let the rest wait."""
        rate = self._host.read_bytes_s
        count = max(1, int(rate * SLICE_S))
        if len(data) > count:
            received.appendleft(("bytes", data[count:]))
        self._reads_at = now + min(len(data), count) / rate
        self._loop.post(self._reads_at, self.pump)
        return data[:count]

    def _open(self) -> None:
        listener = self._host.listeners.get(self._local[1])
        if listener is None:
            self._send("reset")
            self._lose(None)
        else:
            self._protocol = self._host.context.run(listener.factory)
            self._host.context.run(self._protocol.connection_made, self)

    def _read(self, count: int) -> None:
        """The other end has read `count` bytes of ours."""
        self._unread_bytes -= count
        if self._writer_paused and self.get_write_buffer_size() <= self._low_bytes:
            self._writer_paused = False
            self._loop.call_soon(self._resume, context=self._host.context)

    def _resume(self) -> None:
        if not self._lost:
            self._protocol.resume_writing()

    def _lose(self, error: Exception | None) -> None:
        if not self._lost:
            self._closing = self._lost = True
            self._received = None
            self._host.connections.pop(self, None)
            if self._protocol is not None:
                self._loop.call_soon(self._let_go, error, context=self._host.context)
            self._part()

    def _let_go(self, error: Exception | None) -> None:
        """Tell the protocol of the end, and forget the protocol, as asyncio's transports do."""
        protocol, self._protocol = self._protocol, None
        protocol.connection_lost(error)

    def _part(self) -> None:
        """Forget the other end if that is lost as well."""
        far = self.far
        if far is not None and far._lost:
            far.far = self.far = None
