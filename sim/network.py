"""The simulated network: hosts with addresses, and datagrams that arrive late, twice, or not at all.

What may go wrong is in `Conditions`, changed at any moment by the test; who cannot reach whom is in the cuts. Each
delivered datagram enters the trace, whose hash tells two runs apart. Chance comes from one `Random`, in the order of
events, so the same seed gives the same trace.
"""

import asyncio
import contextvars
import errno
import socket
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from random import Random
from typing import Any, cast

Address = tuple[str, int]

FIRST_PORT = 40_000
"""Ports the system chooses begin here."""


@dataclass(slots=True)
class Conditions:
    """The state of all links."""

    latency_s: float = 0.02
    jitter_s: float = 0.02
    """Added to the latency, uniformly from 0 to this; so datagrams may overtake each other."""
    loss: float = 0.0
    """Probability that a datagram does not arrive."""
    duplication: float = 0.0
    """Probability that it arrives twice."""


class Host:
    """A machine with one IP address."""

    def __init__(self, network: "Network", ip: str) -> None:
        self.network = network
        self.ip = ip
        self.alive = True
        self.sockets: dict[int, SimDatagramTransport] = {}
        self.context = contextvars.Context()
        self.context.run(HOST.set, self)
        self._next_port = FIRST_PORT

    def __repr__(self) -> str:
        return f"<Host {self.ip} alive={self.alive}>"

    def spawn(self, work: Coroutine[Any, Any, Any], name: str | None = None) -> asyncio.Task[Any]:
        """Start a coroutine on this host."""
        return self.network.loop.create_task(work, name=name, context=self.context.copy())

    def free_port(self) -> int:
        self._next_port += 1
        return self._next_port


HOST: contextvars.ContextVar[Host] = contextvars.ContextVar("host")
"""The host on whose behalf the current callback runs."""


class Network:
    """All hosts and the links between them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, random: Random) -> None:
        self.loop = loop
        self.conditions = Conditions()
        self.hosts: dict[str, Host] = {}
        self.sent = 0
        self.delivered = 0
        self._random = random
        self._cuts: set[tuple[str, str]] = set()
        self._trace = blake2b(digest_size=16)

    def host(self, ip: str) -> Host:
        """Make a machine with address `ip`; a dead one there is replaced."""
        host = self.hosts[ip] = Host(self, ip)
        return host

    def cut(self, one: Iterable[str], other: Iterable[str]) -> None:
        """Let no datagram pass between the IPs of `one` side and those of the `other`, either way."""
        others = list(other)
        for a in one:
            for b in others:
                self._cuts.update(((a, b), (b, a)))

    def heal(self) -> None:
        """Undo all cuts."""
        self._cuts.clear()

    def trace(self) -> str:
        """Return the hash of every delivery so far: its instant, ends and bytes."""
        return self._trace.hexdigest()

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
        chance, conditions = self._random.random, self.conditions
        if (source[0], target[0]) in self._cuts or chance() < conditions.loss:
            return
        copies = 2 if chance() < conditions.duplication else 1
        for _ in range(copies):
            delay = conditions.latency_s + conditions.jitter_s * chance()
            # In an empty context: the sender may die and the datagram still arrives.
            self.loop.call_later(delay, self._arrive, source, target, data, context=contextvars.Context())

    def getaddrinfo(self, host: str, port: int) -> list[Any]:
        """Resolve an IP literal; names are not simulated. Raises OSError for them."""
        socket.inet_pton(socket.AF_INET, host)
        return [(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_UDP, "", (host, port))]

    def _arrive(self, source: Address, target: Address, data: bytes) -> None:
        host = self.hosts.get(target[0])
        transport = host.sockets.get(target[1]) if host is not None else None
        if host is None or transport is None:
            return
        self.delivered += 1
        self._trace.update(f"{self.loop.time():.9f} {source} {target} ".encode() + data)
        host.context.run(transport.protocol.datagram_received, data, source)


class SimDatagramTransport(asyncio.DatagramTransport):
    """A UDP socket of one host."""

    def __init__(self, host: Host, port: int, protocol: Any) -> None:
        super().__init__({"sockname": (host.ip, port)})
        self.protocol = protocol
        self._host = host
        self._port = port

    def sendto(self, data: Any, addr: Any = None) -> None:
        if not self.is_closing():
            self._host.network.send((self._host.ip, self._port), cast(Address, addr), bytes(data))

    def is_closing(self) -> bool:
        return self._host.sockets.get(self._port) is not self

    def close(self) -> None:
        if not self.is_closing():
            del self._host.sockets[self._port]
            self._host.network.loop.call_soon(self.protocol.connection_lost, None)

    def abort(self) -> None:
        self.close()
