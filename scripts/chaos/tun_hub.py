"""A hub between network namespaces: each has a TUN device, and every packet between two of them passes through here.

`Faults` decides what becomes of a packet: it comes late, twice, or not at all, as chance and the cuts will have it;
packets of different lateness overtake each other. `Hub` carries them. It is not a shaper: bandwidth has no bound but
the processor's. What comes too fast for it is lost in the kernel's queue of 500 packets per device, as in a router's.
"""

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from random import Random
from socket import inet_ntoa
from types import TracebackType
from typing import Final, Self

from scripts.chaos.namespaces import MTU, Namespace

NETWORK: Final = "10.77.0.0/16"
"""The network of all addresses. Nothing outside the namespaces sees it."""
BURST: Final = 64
"""Packets taken from one device before the others' turn."""

_HEADER_BYTES: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PacketConditions:
    """Conditions of every packet. Raises ValueError for impossible values."""

    delay_s: float = 0.0
    """One way, on average."""
    jitter_s: float = 0.0
    """The most seconds by which a packet is earlier or later, uniform."""
    loss: float = 0.0
    """Share of the packets that do not arrive."""
    duplication: float = 0.0
    """Share of those that arrive which arrive twice, with delays of their own."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.jitter_s <= self.delay_s:
            raise ValueError("jitter_s must be from 0 to delay_s")
        if not (0.0 <= self.loss <= 1.0 and 0.0 <= self.duplication <= 1.0):
            raise ValueError("loss and duplication are shares, from 0 to 1")


@dataclass(slots=True)
class Counts:
    """Counts of packets by their fate."""

    packets: int = 0
    """All that were sent."""
    lost: int = 0
    """Packets lost by chance."""
    cut: int = 0
    doubled: int = 0
    refused: int = 0
    """Copies the receiving kernel had no room for, or packets to an address nobody has."""


class Faults:
    """Decides the fate of each packet. Pure: `random` is the only chance."""

    def __init__(self, random: Random) -> None:
        self.conditions = PacketConditions()
        self.counts = Counts()
        self._random = random
        self._cut: set[tuple[str, str]] = set()

    def cut(self, sources: Iterable[str], destinations: Iterable[str]) -> None:
        """Stop all packets from any of `sources` to any of `destinations`. The way back is another cut."""
        self._cut.update(product(sources, list(destinations)))

    def heal(self) -> None:
        """Mend all cuts."""
        self._cut.clear()

    def fate(self, source: str, destination: str) -> list[float]:
        """Return the delay in seconds of each copy of a packet, or nothing for a lost packet."""
        self.counts.packets += 1
        if (source, destination) in self._cut:
            self.counts.cut += 1
            return []
        if self._random.random() < self.conditions.loss:
            self.counts.lost += 1
            return []
        copies = 1 + (self._random.random() < self.conditions.duplication)
        self.counts.doubled += copies - 1
        earliest = self.conditions.delay_s - self.conditions.jitter_s
        return [earliest + 2 * self.conditions.jitter_s * self._random.random() for _ in range(copies)]


class Hub:
    """Async context manager: a namespace for each sequence of addresses inside `NETWORK`, joined while it is open.

    Raises OSError, CalledProcessError if the machine makes none; see `namespaces.unavailable`.
    """

    def __init__(self, machines: Sequence[Sequence[str]], random: Random) -> None:
        self.namespaces: list[Namespace] = []
        """The namespaces, in the order of `machines`."""
        self.faults = Faults(random)
        self._machines = machines
        self._devices: Mapping[str, int] = {}
        """Address -> device."""
        self._resources = ExitStack()

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        bits = NETWORK.partition("/")[2]
        with ExitStack() as stack:
            devices: dict[str, int] = {}
            for addresses in self._machines:
                namespace = stack.enter_context(Namespace())
                device = namespace.open_device(f"{address}/{bits}" for address in addresses)
                stack.callback(os.close, device)
                loop.add_reader(device, self._take, device)
                stack.callback(loop.remove_reader, device)
                devices.update(dict.fromkeys(addresses, device))
                self.namespaces.append(namespace)
            self._devices = devices
            self._resources = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._devices = {}  # So that what is still on its way goes to no descriptor that is another's by then.
        self._resources.close()

    def _take(self, device: int) -> None:
        """Read the packets that a machine sends, some at a time."""
        loop = asyncio.get_running_loop()
        for _ in range(BURST):
            try:
                packet = os.read(device, MTU)
            except BlockingIOError:
                return
            if len(packet) < _HEADER_BYTES or packet[0] >> 4 != 4:
                continue  # IPv6 looks for neighbours and routers; it has none.
            source, destination = inet_ntoa(packet[12:16]), inet_ntoa(packet[16:20])
            for delay_s in self.faults.fate(source, destination):
                if delay_s > 0:
                    loop.call_later(delay_s, self._give, destination, packet)
                else:
                    self._give(destination, packet)

    def _give(self, destination: str, packet: bytes) -> None:
        device = self._devices.get(destination)
        try:
            if device is None:
                raise OSError
            os.write(device, packet)
        except OSError:
            self.faults.counts.refused += 1
