"""The hosts of a real swarm's processes and of its web: this machine's loopback, or a hub of its own.

On the hub each peer is alone in a network namespace, and so is the web, so that the network between them can be made
worse than loopback. The web's servers stay in the calling process, and only their sockets are elsewhere.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from random import Random
from types import TracebackType
from typing import Final, NamedTuple, Protocol, Self

from scripts.chaos.tun_hub import NETWORK, Faults, Hub
from scripts.kadcrawl_run import LOOPBACK


class PeerHost(NamedTuple):
    """The host of one peer."""

    address: str
    prefix: Sequence[str]
    """The words before a command that make it run there."""


class PeerHosts(Protocol):
    """The hosts, as a swarm and its web use them."""

    network: str
    """CIDR of the web's addresses."""

    def site(self, number: int) -> str:
        """Return the address of a site, counted from 0."""

    def web(self) -> AbstractContextManager[None]:
        """Return a context in which this thread's sockets are opened where the web is."""

    def peer(self, name: str) -> PeerHost:
        """Return where the peer of this name runs, each time it is started: ``peer-1``, ``peer-2`` ..."""


class Loopback:
    """All on one machine: sites live on 127.0.0.2, 127.0.0.3, ..."""

    network = LOOPBACK

    def site(self, number: int) -> str:
        return f"127.0.0.{number + 2}"

    def web(self) -> AbstractContextManager[None]:
        return nullcontext()

    def peer(self, name: str) -> PeerHost:
        return PeerHost("127.0.0.1", [])


class OnHub:
    """Async context manager: machines for so many peers and sites, joined by a hub. Raises what `Hub` does."""

    network = NETWORK

    def __init__(self, peers: int, sites: int, random: Random) -> None:
        self._sites = [f"10.77.1.{number}" for number in range(1, sites + 1)]
        self._peers = {f"peer-{number}": f"10.77.0.{number}" for number in range(1, peers + 1)}
        self._hub: Final = Hub([self._sites, *([address] for address in self._peers.values())], random)

    async def __aenter__(self) -> Self:
        await self._hub.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._hub.__aexit__(kind, error, trace)

    @property
    def faults(self) -> Faults:
        """The faults of the packets."""
        return self._hub.faults

    def site(self, number: int) -> str:
        return self._sites[number]

    def web(self) -> AbstractContextManager[None]:
        return self._hub.namespaces[0].entered()

    def peer(self, name: str) -> PeerHost:
        return PeerHost(self._peers[name], self._hub.namespaces[[*self._peers].index(name) + 1].prefix)
