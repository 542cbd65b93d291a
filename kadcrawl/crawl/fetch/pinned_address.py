"""A fetch may be pinned: its connection to the named host goes to one given IP address, and to no other.

The pin belongs to the current task, as aiohttp carries no argument of ours to its resolver. It counts for one host, so
that other requests of the task are free. A host that could not be looked up is pinned to the reason, which its fetch
then fails with. A connection that was kept to another address is closed before anything is sent (`Fetcher`). The guard
sees a pinned address as any other.

"""

import socket
from contextvars import ContextVar
from typing import NamedTuple

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import Connection

from kadcrawl.crawl.clocks.clock_names import plain_address


class Pin(NamedTuple):
    """The address of one host."""

    host: str
    """The host of a canonical URL. An IPv6 address keeps its brackets."""
    address: str
    """The numeric address, or empty if it could not be found."""
    error: OSError | None = None
    """The reason for which it could not be found."""


_pin: ContextVar[Pin | None] = ContextVar("pin", default=None)


def pin(host: str, address: str, error: OSError | None = None) -> None:
    """Pin the fetches of the current task to this address, as far as they go to this host."""
    _pin.set(Pin(host, address, error))


def pinned(host: str) -> Pin | None:
    """Return the pin of the current task for this host, or None."""
    current = _pin.get()
    return current if current is not None and current.host.strip("[]") == host.strip("[]") else None


def goes_to(peername: object, address: str) -> bool:
    """Return whether the other end of a connection, as a transport names it, has this address."""
    try:
        return isinstance(peername, tuple) and plain_address(str(peername[0])) == address
    except ValueError:
        return False


def leads_astray(connection: Connection, host: str) -> bool:
    """Return whether a connection to a host that is pinned leads to another address."""
    current = pinned(host)
    if current is None or not current.address:
        return False
    return not goes_to(connection.transport and connection.transport.get_extra_info("peername"), current.address)


class PinnedResolver(AbstractResolver):
    """A resolver that answers with the pinned address for a host that is pinned."""

    def __init__(self, resolver: AbstractResolver) -> None:
        self._resolver = resolver

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        current = pinned(host)
        if current is None:
            return await self._resolver.resolve(host, port, family)
        if current.error is not None:
            raise current.error
        of = socket.AF_INET6 if ":" in current.address else socket.AF_INET
        flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        return [ResolveResult(hostname=host, host=current.address, port=port, family=of, proto=0, flags=flags)]

    async def close(self) -> None:
        await self._resolver.close()
