"""`Addresses` finds the one IP address at which a host is asked: the lowest, or the next after a failed connection.

The choice does not depend on chance, so most peers ask a host at the same address. It stays while the name servers
still name the address, and is looked up again after `DNS_TTL_S`.

Tests: tests/crawl/clocks/test_addresses.py
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from ipaddress import ip_address

from kadcrawl.crawl.clocks.clock_names import plain_address

DNS_TTL_S = 60.0
"""Seconds for which the address of a host is remembered."""
HOSTS_MAX = 20_000
"""Hosts whose address is remembered."""
ADDRESSES_MAX = 64
"""Addresses of one host among which the choice is made."""


@dataclass(slots=True)
class HostAddress:
    """The address of one host."""

    found: list[str]
    """The addresses that the name servers named, the lowest first."""
    chosen: str
    until: float
    """Loop second at which it is looked up again."""


class Addresses:
    """The addresses of hosts, for one peer."""

    def __init__(self, resolve: Callable[[str], Awaitable[list[str]]]) -> None:
        """`resolve` returns the numeric addresses of a name, or raises OSError."""
        self._resolve = resolve
        self._hosts: OrderedDict[str, HostAddress] = OrderedDict()

    def known(self, host: str) -> str | None:
        """Return the address of a host, or None if it must be looked up."""
        if (literal := _literal(host)) is not None:
            return literal
        entry = self._hosts.get(host)
        if entry is None or entry.until <= asyncio.get_running_loop().time():
            return None
        self._hosts.move_to_end(host)
        return entry.chosen

    async def find(self, host: str) -> str:
        """Return the address of a host, and look it up if need be. Raises OSError if no name server knows the host."""
        if (known := self.known(host)) is not None:
            return known
        found = sorted({plain_address(one) for one in await self._resolve(host)}, key=_order)[:ADDRESSES_MAX]
        if not found:
            raise OSError(f"{host} has no address")
        before = self._hosts.get(host)
        chosen = before.chosen if before is not None and before.chosen in found else found[0]
        until = asyncio.get_running_loop().time() + DNS_TTL_S
        self._hosts[host] = HostAddress(found, chosen, until)
        self._hosts.move_to_end(host)
        if len(self._hosts) > HOSTS_MAX:
            self._hosts.popitem(last=False)
        return chosen

    def missed(self, host: str, address: str) -> None:
        """Choose the next address of a host, as no connection to this one could be made."""
        entry = self._hosts.get(host)
        if entry is not None and entry.chosen == address:
            entry.chosen = entry.found[(entry.found.index(address) + 1) % len(entry.found)]


def _literal(host: str) -> str | None:
    try:
        return plain_address(host.strip("[]"))
    except ValueError:
        return None


def _order(address: str) -> tuple[int, int]:
    parsed = ip_address(address)
    return parsed.version, int(parsed)
