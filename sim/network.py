"""The simulated network: hosts with addresses, datagrams that are late, duplicated or lost, and cut links.

`Conditions` states the current faults, and a test may change them at any moment. The cuts are pairs of IPs that do not
reach each other. TCP streams (`sim/tcp.py`) live by the same conditions, except that a loss is a delay there. Each
arrival enters the trace, and the hash of the trace tells two runs apart. The fate of a packet is a function of the seed
and of the packet (`Network.lots`), not of earlier packets. So a Python that runs the callbacks of one instant in
another order has the same trace.
"""

import asyncio
import contextvars
import errno
import math
import socket
import struct
from collections import deque
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from itertools import count
from typing import Any

from .handles import SimHandle
from .plan import WebFault
from .ports import ListeningPort, Stream, Timeline

Address = tuple[str, int]
Lots = tuple[float, float, float, float]

FIRST_PORT = 40_000
"""Ports the system chooses begin here."""
DATAGRAMS_HELD_MAX = 256
"""The most datagrams in the kernel of a frozen host: about the limit of Linux for a socket (net.core.rmem_default)."""
THAW_STEP_S = 0.0001
"""Seconds that a thawing host takes for each missed callback and datagram."""

_FOUR = struct.Struct("<4Q")
_UNIT = 2.0**-64


@dataclass(slots=True)
class Conditions:
    """The state of all links and disks."""

    latency_s: float = 0.02
    jitter_s: float = 0.02
    """The most that is added to the latency, uniformly from 0. So datagrams may overtake each other."""
    loss: float = 0.0
    """Probability that a packet does not arrive. A stream sends the packet again later."""
    duplication: float = 0.0
    """Probability that a datagram arrives twice."""
    bandwidth_bytes_s: float = math.inf
    """Bandwidth of each stream in each direction."""
    disk_s: float = 0.001
    """Seconds that a call in a host's executor takes, up to twice as long."""


class Host:
    """A machine with one IP address. A killed host is dead for good, and a new `Host` takes its place."""

    def __init__(self, network: "Network", ip: str) -> None:
        self.network = network
        self.ip = ip
        self.alive = True
        self.frozen = False
        self.runs = True
        """True while the host is alive and not frozen."""
        self.hidden = False
        """The host is behind a NAT: connections and datagrams that others begin do not reach it."""
        self.web_fault: WebFault | None = None
        """The fault of the network to the web, which keeps the host from making connections to it."""
        self.read_bytes_s = math.inf
        """Bytes per second that the host reads from each of its streams."""
        self.disk_s = 0.0
        """Seconds that a call in this host's executor takes beyond `Conditions.disk_s`."""
        self.sockets: dict[int, SimDatagramTransport] = {}
        self.listeners: dict[int, ListeningPort] = {}
        self.connections: dict[Stream, None] = {}
        self.held: deque[SimHandle] = deque()
        """Callbacks that were due while frozen."""
        self.context = contextvars.Context()
        self.context.run(HOST.set, self)
        self._datagrams: deque[tuple[Address, Address, bytes]] = deque()
        self._next_port = FIRST_PORT
        self._disk_free_at = 0.0

    def __repr__(self) -> str:
        return f"<Host {self.ip} alive={self.alive} frozen={self.frozen}>"

    def spawn(self, work: Coroutine[Any, Any, Any], name: str | None = None) -> asyncio.Task[Any]:
        """Start a coroutine on this host."""
        return self.network.loop.create_task(work, name=name, context=self.context.copy())

    def free_port(self) -> int:
        self._next_port += 1
        return self._next_port

    def disk_turn(self) -> float:
        """Return the instant at which the disk will have done one more call."""
        disk_s = (self.network.conditions.disk_s + self.disk_s) * (1 + self.network.lots(f"disk {self.ip}")[0])
        self._disk_free_at = max(self._disk_free_at, self.network.loop.now) + disk_s
        return self._disk_free_at

    # --- called by the loop

    def cease(self) -> None:
        self.alive = self.runs = False
        self.sockets.clear()
        self.listeners.clear()
        for connection in self.connections:
            connection.cease()
        self.connections.clear()

    def freeze(self) -> None:
        self.frozen, self.runs = True, False

    def thaw(self) -> None:
        self.frozen, self.runs = False, self.alive
        loop = self.network.loop
        # One instant each: the order within one instant would depend on the version of Python.
        instants = count(loop.now, THAW_STEP_S)
        while self.held:
            loop.make_up(next(instants), self.held.popleft())
        while self._datagrams:
            loop.post(next(instants), self.receive, *self._datagrams.popleft())
        for connection in self.connections:
            loop.post(next(instants), connection.pump)

    def receive(self, source: Address, target: Address, data: bytes) -> None:
        """Deliver a datagram. A frozen host gets it after the thaw, or never if the buffer is full."""
        if self.frozen:
            if len(self._datagrams) < DATAGRAMS_HELD_MAX:
                self._datagrams.append((source, target, data))
            return
        transport = self.sockets.get(target[1])
        if transport is not None:
            self.network.arrived("datagram", source, target, data)
            self.context.run(transport.protocol.datagram_received, data, source)


HOST: contextvars.ContextVar[Host] = contextvars.ContextVar("host")
"""The host on whose behalf the current callback runs."""


class Network:
    """All hosts and the links between them."""

    def __init__(self, loop: Timeline, seed: int) -> None:
        self.loop = loop
        self.conditions = Conditions()
        self.hosts: dict[str, Host] = {}
        self.sent = 0
        """Datagrams put on their way."""
        self.turned_away = 0
        """Connections and datagrams that hidden hosts did not get."""
        self.delivered = 0
        """Datagrams and segments of streams that arrived."""
        self._chance = blake2b(digest_size=32, key=str(seed).encode())
        """The keyed hash from which all lots are drawn. It is copied and never updated."""
        self.web: frozenset[str] = frozenset()
        """The IPs of the web's servers."""
        self._cuts: set[tuple[str, str]] = set()
        self._trace = blake2b(digest_size=16)

    def host(self, ip: str) -> Host:
        """Create a machine with address `ip`. It replaces a dead machine there."""
        host = self.hosts[ip] = Host(self, ip)
        return host

    def cut(self, one: Iterable[str], other: Iterable[str], *, one_way: bool = False) -> None:
        """Block all packets between the IPs of the two sides, or with `one_way` only those from `one` to `other`."""
        others = list(other)
        for a in one:
            self._cuts.update((a, b) for b in others)
            if not one_way:
                self._cuts.update((b, a) for b in others)

    def heal(self) -> None:
        """Undo all cuts."""
        self._cuts.clear()

    def is_cut(self, source: str, target: str) -> bool:
        """Return whether nothing passes from IP `source` to IP `target`."""
        return bool(self._cuts) and (source, target) in self._cuts

    def lots(self, about: str, data: bytes = b"") -> Lots:
        """Draw four numbers from 0 to 1 for an event of this instant. Seed, instant and arguments determine the
        numbers."""
        drawn = self._chance.copy()
        drawn.update(f"{self.loop.now!r} {about} ".encode() + data)
        a, b, c, d = _FOUR.unpack(drawn.digest())
        return a * _UNIT, b * _UNIT, c * _UNIT, d * _UNIT

    def delay(self, lot: float) -> float:
        """Return the seconds one packet takes."""
        return self.conditions.latency_s + self.conditions.jitter_s * lot

    def trace(self) -> str:
        """Return the hash of every arrival so far: its instant, ends and bytes."""
        return self._trace.hexdigest()

    def arrived(self, kind: str, source: Address, target: Address, data: bytes) -> None:
        """Record an arrival in the trace."""
        self.delivered += 1
        head = f"{self.loop.now:.9f} {kind} {source[0]}:{source[1]} {target[0]}:{target[1]} {len(data)} "
        self._trace.update(head.encode() + data)

    def open_datagram(self, host: Host, port: int, protocol: Any) -> "SimDatagramTransport":
        """Open a UDP socket. Raises OSError when the port is in use."""
        port = port or host.free_port()
        if port in host.sockets:
            raise OSError(errno.EADDRINUSE, "address already in use")
        transport = host.sockets[port] = SimDatagramTransport(host, port, protocol)
        protocol.connection_made(transport)
        return transport

    def send(self, source: Address, target: Address, data: bytes) -> None:
        """Put a datagram on its way."""
        self.sent += 1
        if self._cuts and (source[0], target[0]) in self._cuts:
            return
        lost, duplicated, first, second = self.lots(f"{source[0]}:{source[1]} {target[0]}:{target[1]}", data)
        conditions, loop = self.conditions, self.loop
        if lost < conditions.loss:
            return
        delay_s = conditions.latency_s + conditions.jitter_s * first
        loop.post(loop.now + delay_s, self._arrive, source, target, data)
        if duplicated < conditions.duplication:
            loop.post(loop.now + self.delay(second), self._arrive, source, target, data)

    def getaddrinfo(self, host: str, port: int, kind: int) -> list[Any]:
        """Resolve an IP literal. Names raise OSError: the `Environment` has a resolver for them."""
        socket.inet_pton(socket.AF_INET, host)
        return [(socket.AF_INET, kind, 0, "", (host, port))]

    def _arrive(self, source: Address, target: Address, data: bytes) -> None:
        host = self.hosts.get(target[0])
        if host is not None and host.hidden:
            self.turned_away += 1
        elif host is not None:
            host.receive(source, target, data)


class SimDatagramTransport(asyncio.DatagramTransport):
    """A UDP socket of one host."""

    def __init__(self, host: Host, port: int, protocol: Any) -> None:
        super().__init__({"sockname": (host.ip, port)})
        self.protocol = protocol
        self._host = host
        self._port = port

    def sendto(self, data: Any, addr: Any = None) -> None:
        host = self._host
        if host.sockets.get(self._port) is self:
            host.network.send((host.ip, self._port), addr, bytes(data))

    def is_closing(self) -> bool:
        return self._host.sockets.get(self._port) is not self

    def close(self) -> None:
        if not self.is_closing():
            del self._host.sockets[self._port]
            self._host.network.loop.call_soon(self.protocol.connection_lost, None)

    def abort(self) -> None:
        self.close()
